-- name: get_job
-- A job as decisions need it.
-- params: id int, created_ms int
SELECT
    j.id, j.created_ms, j.queue_id, j.name, j.state, j.priority, j.run_at, j.ready_at, j.ready_seq, j.expires_at, j.attempt,
    j.starts, j.stalled, j.token, j.worker_id, j.claim_id, j.started_at, j.timeout_at, j.finished_at, j.finish_reason,
    j.finish_message, j.cancel_requested, j.last_token, j.last_outcome, j.last_answer, j.max_attempts, j.lease_ms,
    j.attempt_timeout_ms, j.max_stalled, j.max_starts, j.retain_completed_ms, j.retain_failed_ms, j.receipt_ttl_ms,
    j.traits, j.revision, b.backoff, b.idempotency_key, j.scheduler_id, j.scheduler, j.tick_ms, j.caused_by,
    j.caused_by_created_ms
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id
WHERE j.id = :id AND j.created_ms = :created_ms;

-- name: get_body
-- What a full view adds.
-- params: job_id int
SELECT b.content_type, b.headers, b.labels, p.progress, b.data, r.content_type, r.data
FROM job_bodies AS b LEFT JOIN results AS r ON r.job_id = b.job_id LEFT JOIN job_progress AS p ON p.job_id = b.job_id
WHERE b.job_id = :job_id;

-- name: get_labels
-- What a basic view adds.
-- params: job_id int
SELECT labels FROM job_bodies WHERE job_id = :job_id;

-- name: list_attempts
-- Oldest first.
-- params: job_id int
SELECT number, start, worker_id, started_at, ended_at, outcome, error_type, error_message, error_stack, error_details
FROM attempts WHERE job_id = :job_id ORDER BY start;

-- name: list_log_lines
-- A page of a job's log.
-- params: job_id int, after int, page small
SELECT line, at_ms, level, attempt, text FROM job_logs WHERE job_id = :job_id AND line > :after ORDER BY line LIMIT :page;

-- name: due_in_class
-- How many of a class could be claimed now, counted up to a bound.
-- params: queue_id small, priority small, now_ms int, most small
SELECT count(*) FROM (
    SELECT 1 FROM jobs
    WHERE queue_id = :queue_id AND priority = :priority AND ready_at IS NOT NULL AND ready_at <= :now_ms LIMIT :most
);

-- name: due_before
-- The same of those before a place in the class.
-- params: queue_id small, priority small, ready_at int, ready_seq int, now_ms int, most small
SELECT count(*) FROM (
    SELECT 1 FROM jobs
    WHERE queue_id = :queue_id AND priority = :priority AND ready_at IS NOT NULL AND ready_at <= :now_ms
    AND (ready_at, ready_seq) < (:ready_at, :ready_seq)
    LIMIT :most
);

-- name: newest_jobs
-- A page of every queue, newest first, as far as filters look at a job.
-- params: before int, page small
SELECT
    j.id, j.created_ms, j.queue_id, j.name, j.state, j.run_at, j.finished_at, j.finish_reason, b.idempotency_key, b.labels,
    j.scheduler
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id
WHERE j.id < :before ORDER BY j.id DESC LIMIT :page;

-- name: oldest_jobs
-- The same, oldest first.
-- params: after int, page small
SELECT
    j.id, j.created_ms, j.queue_id, j.name, j.state, j.run_at, j.finished_at, j.finish_reason, b.idempotency_key, b.labels,
    j.scheduler
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id
WHERE j.id > :after ORDER BY j.id LIMIT :page;

-- name: newest_jobs_in_state
-- The same of one queue and state, newest first.
-- params: queue_id small, state small, before int, page small
SELECT
    j.id, j.created_ms, j.queue_id, j.name, j.state, j.run_at, j.finished_at, j.finish_reason, b.idempotency_key, b.labels,
    j.scheduler
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id
WHERE j.queue_id = :queue_id AND j.state = :state AND j.id < :before ORDER BY j.id DESC LIMIT :page;

-- name: oldest_jobs_in_state
-- The same, oldest first.
-- params: queue_id small, state small, after int, page small
SELECT
    j.id, j.created_ms, j.queue_id, j.name, j.state, j.run_at, j.finished_at, j.finish_reason, b.idempotency_key, b.labels,
    j.scheduler
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id
WHERE j.queue_id = :queue_id AND j.state = :state AND j.id > :after ORDER BY j.id LIMIT :page;

-- name: active_jobs
-- At start: every attempt that was running.
SELECT
    j.id, j.created_ms, j.token, j.queue_id, j.worker_id, j.claim_id, j.lease_ms, j.timeout_at, j.started_at,
    j.cancel_requested, j.name, j.attempt, j.traits
FROM queues AS q CROSS JOIN jobs AS j
WHERE j.queue_id = q.id AND j.state = 3 ORDER BY q.id, j.id;

-- name: parked_jobs
-- At start: released jobs that wait out of the line.
SELECT id, created_ms, run_at FROM jobs WHERE state = 2 AND ready_at IS NULL AND group_id IS NULL ORDER BY run_at;

-- name: expiring_jobs
-- At start: jobs that must start by a time.
SELECT id, created_ms, expires_at FROM jobs
WHERE expires_at IS NOT NULL AND starts = 0 AND state IN (1, 2, 4) ORDER BY expires_at;

-- name: pull_line_down
-- After the wall clock was set back far, class by class: what waits for a time that had passed is claimable now.
-- params: queue_id small, priority small, was_ms int, now_ms int
UPDATE jobs SET ready_at = :now_ms
WHERE queue_id = :queue_id AND priority = :priority AND ready_at IS NOT NULL AND ready_at > :now_ms
AND ready_at <= :was_ms AND state = 1;
