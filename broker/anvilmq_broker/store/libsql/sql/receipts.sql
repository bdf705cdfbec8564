-- name: get_receipt
-- A key's holder.
-- params: queue_id small, name text, key text
SELECT singleton, job_id, job_created_ms, digest, created_ms, expires_at FROM receipts
WHERE queue_id = :queue_id AND name = :name AND key = :key;

-- name: get_receipts
-- The holders of many keys.
-- rows: queue_id small, name text, key text
SELECT r.queue_id, r.name, r.key, r.singleton, r.job_id, r.job_created_ms, r.digest, r.created_ms, r.expires_at
FROM rows CROSS JOIN receipts AS r
WHERE r.queue_id = :queue_id AND r.name = :name AND r.key = :key;

-- name: put_receipts
-- Keys of new jobs; one whose receipt has expired is taken over.
-- params: created_ms int
-- rows: queue_id small, name text, key text, singleton small, job_id int, digest blob
INSERT INTO receipts (queue_id, name, key, singleton, job_id, job_created_ms, digest, created_ms, expires_at)
SELECT :queue_id, :name, :key, :singleton, :job_id, :created_ms, :digest, :created_ms, NULL
FROM rows WHERE true
ON CONFLICT (queue_id, name, key) DO UPDATE SET
    singleton = excluded.singleton, job_id = excluded.job_id, job_created_ms = excluded.job_created_ms,
    digest = excluded.digest, created_ms = excluded.created_ms, expires_at = NULL;

-- name: date_receipt
-- A RETAIN receipt's lifetime starts with the end of its job; job_id keeps a newer owner's key safe.
-- params: queue_id small, name text, key text, job_id int, expires_at int
UPDATE receipts SET expires_at = :expires_at
WHERE queue_id = :queue_id AND name = :name AND key = :key AND job_id = :job_id;

-- name: date_receipts
-- The same for many jobs that have just ended.
-- params: now_ms int
-- rows: job_id int
UPDATE receipts SET expires_at = :now_ms + (SELECT receipt_ttl_ms FROM jobs WHERE jobs.id = receipts.job_id)
WHERE rowid IN (
    SELECT r.rowid
    FROM rows CROSS JOIN jobs AS j ON j.id = :job_id CROSS JOIN job_bodies AS b ON b.job_id = j.id
    CROSS JOIN receipts AS r
    ON r.queue_id = j.queue_id AND r.name = j.name AND r.key = b.idempotency_key AND r.job_id = j.id
);

-- name: free_receipt
-- A singleton's in the transaction that ends its job, or a release; job_id keeps a newer owner's key safe.
-- params: queue_id small, name text, key text, job_id int
DELETE FROM receipts WHERE queue_id = :queue_id AND name = :name AND key = :key AND job_id = :job_id;

-- name: free_receipts
-- The same for many singletons that have just ended.
-- rows: job_id int
DELETE FROM receipts WHERE rowid IN (
    SELECT r.rowid
    FROM rows CROSS JOIN jobs AS j ON j.id = :job_id CROSS JOIN job_bodies AS b ON b.job_id = j.id
    CROSS JOIN receipts AS r
    ON r.queue_id = j.queue_id AND r.name = j.name AND r.key = b.idempotency_key AND r.job_id = j.id
);

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
