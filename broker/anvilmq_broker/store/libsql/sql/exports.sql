-- name: export_jobs
-- Every job by number; walks the table: for comparison and export.
SELECT id, created_ms FROM jobs ORDER BY id;

-- name: export_attempts
-- Every kept attempt of a job as stored.
-- params: job_id int
SELECT
    number, start, worker_id, started_at, ended_at, outcome, error_type, error_message, error_stack, error_details, token,
    settle_outcome, answer
FROM attempts WHERE job_id = :job_id ORDER BY start;

-- name: export_receipts
-- Every receipt; walks the table: for comparison and export.
SELECT queue_id, name, key, singleton, job_id, job_created_ms, digest, created_ms, expires_at FROM receipts;

-- name: export_producers
-- Every producer's kept answer; walks the table: for comparison and export.
SELECT producer_id, seq, answer, used_at FROM producers ORDER BY producer_id;

-- name: export_events
-- The whole log; walks the table: for comparison and export.
SELECT first, at_ms, body FROM events ORDER BY first;

-- name: export_ticks
-- Every tick that has fired; walks the table: for comparison and export.
SELECT scheduler_id, tick_ms, fired_at, job_id FROM ticks ORDER BY scheduler_id, tick_ms;

-- name: export_triggers
-- Every key of a trigger; walks the table: for comparison and export.
SELECT scheduler_id, run_key, job_id, job_created_ms, at_ms FROM triggers ORDER BY scheduler_id, run_key;
