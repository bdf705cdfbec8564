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
-- params: id int
DELETE FROM jobs WHERE id IN (SELECT v.column1 FROM (VALUES /*row*/(:id)/*row*/) AS v) AND state >= 5
RETURNING id, queue_id, state;

-- name: prune_producers
-- Producers that were silent too long.
-- params: used_before int, rows small
DELETE FROM producers WHERE producer_id IN (
    SELECT producer_id FROM producers WHERE used_at < :used_before ORDER BY used_at LIMIT :rows
) RETURNING NULL;

-- name: prune_events
-- Old rows of the log.
-- params: older_than int, first_kept int, rows small
DELETE FROM events WHERE first IN (
    SELECT first FROM events WHERE at_ms < :older_than OR first < :first_kept ORDER BY first LIMIT :rows
) RETURNING NULL;
