-- name: structural_two_active_in_solo_group
-- Finds groups with two running jobs where one is allowed; the unique index should make it impossible.
SELECT count(*) FROM (
    SELECT 1 FROM jobs WHERE state = 3 AND solo = 1 GROUP BY queue_id, group_id HAVING count(*) > 1 LIMIT 1
);

-- name: structural_active_without_token
-- Running jobs that nobody could settle; found in the index of states.
SELECT count(*) FROM queues AS q CROSS JOIN jobs AS j WHERE j.queue_id = q.id AND j.state = 3 AND j.token IS NULL;

-- name: structural_edge_without_job
-- Edges whose job is gone; foreign keys should make it impossible.
SELECT count(*) FROM edges WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = edges.child_id);

-- name: structural_singleton_without_holder
-- Singleton keys held by nobody: no add with the key would ever be taken.
SELECT count(*) FROM receipts
WHERE singleton = 1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = receipts.job_id AND jobs.state < 5);

-- name: structural_scheduler_without_spec
-- Definitions that say nothing: they would be there, and never fire.
SELECT count(*) FROM schedulers
WHERE NOT EXISTS (SELECT 1 FROM scheduler_specs WHERE scheduler_specs.scheduler_id = schedulers.id);

-- name: derived_job_without_body
-- Jobs whose payload is missing. Walks the table: for backups and tests.
SELECT count(*) FROM jobs WHERE NOT EXISTS (SELECT 1 FROM job_bodies WHERE job_bodies.job_id = jobs.id);

-- name: derived_counts_differ
-- Kept counts against counted rows. Walks the table: for backups and tests.
SELECT count(*) FROM (
    SELECT queue_id * 16 + state AS id, count(*) AS jobs FROM jobs GROUP BY queue_id, state
    EXCEPT
    SELECT id, jobs FROM counts
);

-- name: derived_counts_too_many
-- Kept counts of states without rows. Walks the table: for backups and tests.
SELECT coalesce(sum(jobs), 0) - (SELECT count(*) FROM jobs) FROM counts WHERE id % 16 <= 7;

-- name: derived_own_retention_count
-- Kept numbers of ended jobs with a retention of their own. Walks the table: for backups and tests.
SELECT coalesce(sum(jobs), 0) - (SELECT count(*) FROM jobs WHERE prune_at IS NOT NULL) FROM counts WHERE id % 16 > 8;

-- name: derived_waiting_out_of_line
-- Waiting jobs that no claim would find. Walks the index of states: for backups and tests.
SELECT count(*) FROM jobs WHERE state = 1 AND ready_at IS NULL AND group_id IS NULL;

-- name: derived_receipt_of_open_job_expires
-- RETAIN keys that would expire under a job that is not finished. Walks the table: for backups and tests.
SELECT count(*) FROM receipts
WHERE expires_at IS NOT NULL AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = receipts.job_id AND jobs.state < 5);
