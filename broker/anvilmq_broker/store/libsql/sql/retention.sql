-- name: ended_before
-- Ended jobs of one queue and state that its retention has passed, oldest first.
-- params: queue_id small, state small, ended_before int, page small
SELECT id FROM jobs
WHERE queue_id = :queue_id AND state = :state AND finished_at < :ended_before
AND finished_at IS NOT NULL AND pinned = 0 AND prune_at IS NULL
ORDER BY finished_at LIMIT :page;

-- name: oldest_ended
-- The oldest ended jobs of one queue and state, for a limit on their number.
-- params: queue_id small, state small, page small
SELECT id FROM jobs
WHERE queue_id = :queue_id AND state = :state AND finished_at IS NOT NULL AND pinned = 0 AND prune_at IS NULL
ORDER BY finished_at LIMIT :page;

-- name: past_own_retention
-- Ended jobs with a retention of their own that is over.
-- params: now_ms int, page small
SELECT id, queue_id, state FROM jobs
WHERE prune_at IS NOT NULL AND pinned = 0 AND prune_at <= :now_ms ORDER BY prune_at LIMIT :page;

-- name: delete_jobs
-- Ended jobs and, by foreign keys, all that hangs on them.
-- rows: id int
DELETE FROM jobs WHERE id IN (SELECT :id FROM rows) AND state >= 5
RETURNING queue_id, state, prune_at;

-- name: idle_producers
-- Producers that were silent too long.
-- params: used_before int, page small
SELECT producer_id FROM producers WHERE used_at < :used_before ORDER BY used_at LIMIT :page;

-- name: delete_producers
-- Producers that were found idle.
-- rows: producer_id text
DELETE FROM producers WHERE producer_id IN (SELECT :producer_id FROM rows);

-- name: superfluous_events
-- Rows of the log that are too many: those before the first number to keep.
-- params: first_kept int, page small
SELECT first FROM events WHERE first < :first_kept ORDER BY first LIMIT :page;

-- name: old_events
-- Rows of the log, of those not too many, that are too old.
-- params: older_than int, first_kept int, page small
SELECT first FROM events WHERE at_ms < :older_than AND first >= :first_kept ORDER BY at_ms LIMIT :page;

-- name: delete_events
-- Rows of the log that were found old.
-- rows: first int
DELETE FROM events WHERE first IN (SELECT :first FROM rows);

-- name: expired_receipts
-- Receipts whose lifetime is over.
-- params: now_ms int, page small
SELECT queue_id, name, key FROM receipts WHERE expires_at IS NOT NULL AND expires_at <= :now_ms
ORDER BY expires_at LIMIT :page;

-- name: delete_receipts
-- Receipts that were found expired.
-- rows: queue_id small, name text, key text
DELETE FROM receipts WHERE rowid IN (
    SELECT r.rowid FROM rows CROSS JOIN receipts AS r ON r.queue_id = :queue_id AND r.name = :name AND r.key = :key
);
