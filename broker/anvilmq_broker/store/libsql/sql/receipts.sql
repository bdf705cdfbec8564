-- name: get_receipt
-- A key's holder.
-- params: queue_id small, name text, key text
SELECT singleton, job_id, job_created_ms, digest, created_ms, expires_at FROM receipts
WHERE queue_id = :queue_id AND name = :name AND key = :key;

-- name: put_receipts
-- Keys of new jobs; one whose receipt has expired is taken over.
-- common: created_ms int
-- params: queue_id small, name text, key text, singleton small, job_id int, digest blob
INSERT INTO receipts (queue_id, name, key, singleton, job_id, job_created_ms, digest, created_ms, expires_at)
VALUES /*row*/(:queue_id, :name, :key, :singleton, :job_id, :created_ms, :digest, :created_ms, NULL)/*row*/
ON CONFLICT (queue_id, name, key) DO UPDATE SET
    singleton = excluded.singleton, job_id = excluded.job_id, job_created_ms = excluded.job_created_ms,
    digest = excluded.digest, created_ms = excluded.created_ms, expires_at = NULL
RETURNING NULL;

-- name: date_receipt
-- A RETAIN receipt's lifetime starts with the end of its job; job_id keeps a newer owner's key safe.
-- params: queue_id small, name text, key text, job_id int, expires_at int
UPDATE receipts SET expires_at = :expires_at
WHERE queue_id = :queue_id AND name = :name AND key = :key AND job_id = :job_id RETURNING NULL;

-- name: free_receipt
-- A singleton's in the transaction that ends its job, or a release; job_id keeps a newer owner's key safe.
-- params: queue_id small, name text, key text, job_id int
DELETE FROM receipts WHERE queue_id = :queue_id AND name = :name AND key = :key AND job_id = :job_id RETURNING NULL;

-- name: delete_receipt
-- Whoever has the key.
-- params: queue_id small, name text, key text
DELETE FROM receipts WHERE queue_id = :queue_id AND name = :name AND key = :key RETURNING job_id, job_created_ms;

-- name: list_receipts
-- A page by (name, key) after that pair, in every name of the queue.
-- params: queue_id small, after_name text, after_key text, now_ms int, page small
SELECT name, key, singleton, job_id, job_created_ms, digest, created_ms, expires_at FROM receipts
WHERE queue_id = :queue_id AND (name, key) > (:after_name, :after_key) AND (expires_at IS NULL OR expires_at > :now_ms)
ORDER BY name, key LIMIT :page;

-- name: list_receipts_of_name
-- A page by key inside one name; from_key and below_key bound a prefix.
-- params: queue_id small, name text, after_key text, from_key text, below_key text, now_ms int, page small
SELECT name, key, singleton, job_id, job_created_ms, digest, created_ms, expires_at FROM receipts
WHERE queue_id = :queue_id AND name = :name AND key > :after_key AND key >= :from_key AND key < :below_key
AND (expires_at IS NULL OR expires_at > :now_ms)
ORDER BY key LIMIT :page;

-- name: prune_receipts
-- Receipts whose lifetime is over.
-- params: now_ms int, rows small
DELETE FROM receipts WHERE (queue_id, name, key) IN (
    SELECT queue_id, name, key FROM receipts WHERE expires_at IS NOT NULL AND expires_at <= :now_ms
    ORDER BY expires_at LIMIT :rows
) RETURNING NULL;
