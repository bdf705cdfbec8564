-- name: first_of_next_class
-- The earliest place of the next priority class in the line, so a claim costs a seek a class in use.
-- params: queue_id small, above small
SELECT priority, ready_at FROM jobs
WHERE queue_id = :queue_id AND ready_at IS NOT NULL AND priority > :above
ORDER BY priority, ready_at LIMIT 1;

-- name: claim_heads
-- The first due jobs of one class, with what a delivery carries.
-- params: queue_id small, priority small, now_ms int, jobs small
SELECT
    j.id, j.created_ms, j.name, j.state, j.attempt, j.max_attempts, j.lease_ms, j.attempt_timeout_ms, j.starts, j.stalled,
    b.content_type, b.headers, b.labels, b.idempotency_key, p.progress, b.data, j.run_at, j.scheduler, j.tick_ms, j.traits
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id LEFT JOIN job_progress AS p ON p.job_id = j.id
WHERE j.queue_id = :queue_id AND j.priority = :priority AND j.ready_at IS NOT NULL AND j.ready_at <= :now_ms
ORDER BY j.ready_at, j.ready_seq LIMIT :jobs;

-- name: held_by_claim
-- What a claim has got and still holds, as a delivery carries it.
-- params: worker_id text, claim_id text
SELECT
    j.id, j.created_ms, j.name, j.state, j.attempt, j.max_attempts, j.lease_ms, j.attempt_timeout_ms, j.starts, j.stalled,
    b.content_type, b.headers, b.labels, b.idempotency_key, p.progress, b.data, j.token, j.queue_id, j.priority,
    j.scheduler, j.tick_ms
FROM jobs AS j INNER JOIN job_bodies AS b ON b.job_id = j.id LEFT JOIN job_progress AS p ON p.job_id = j.id
WHERE j.claim_id IS NOT NULL AND j.claim_id = :claim_id AND j.worker_id = :worker_id ORDER BY j.id;

-- name: start_jobs
-- Claimed jobs become active. place: the job's id, a space, the worker.
-- params: now_ms int, claim_id text
-- pairs: token text, place text
UPDATE jobs SET
    state = 3, ready_at = NULL, ready_seq = NULL, attempt = attempt + 1, starts = starts + 1, token = :token,
    worker_id = substr(:place, instr(:place, ' ') + 1), claim_id = :claim_id, started_at = :now_ms,
    timeout_at = CASE WHEN attempt_timeout_ms > 0 THEN :now_ms + attempt_timeout_ms END
FROM rows
WHERE jobs.id = CAST(:place AS INTEGER) AND jobs.state IN (1, 2) AND jobs.ready_at IS NOT NULL;

-- name: complete_jobs
-- Completions of running attempts whose tokens memory has compared: jobs that have no retention of their own and are not to
-- be cancelled. The statement `changed_rows` tells that memory was right.
-- params: now_ms int
-- each: id int
UPDATE jobs SET
    state = 5, token = NULL, claim_id = NULL, timeout_at = NULL, finished_at = :now_ms, finish_reason = 1,
    last_token = token, last_outcome = 1, last_answer = 5
WHERE id IN (SELECT :id FROM rows) AND state = 3 AND traits < 4 AND cancel_requested = 0;

-- name: changed_rows
-- How many rows the last statement has changed; cheaper than RETURNING when that is all one wants to know.
SELECT changes();

-- name: insert_results
-- Values of completed jobs; an empty one has no row.
-- rows: job_id int, content_type text, data blob
INSERT INTO results (job_id, content_type, data) SELECT :job_id, :content_type, :data
FROM rows WHERE true
ON CONFLICT (job_id) DO UPDATE SET content_type = excluded.content_type, data = excluded.data;

-- name: save_job
-- Everything a decision may change, if the row is still as it was loaded.
-- params: id int, was_state small, was_token text, state small, run_at int, ready_at int, ready_seq int, attempt small
-- params: starts small, stalled small, token text, worker_id text, claim_id text, started_at int, timeout_at int
-- params: finished_at int, finish_reason small, finish_message text, cancel_requested small, last_token text
-- params: last_outcome small, last_answer small, prune_at int
UPDATE jobs SET
    state = :state, run_at = :run_at, ready_at = :ready_at, ready_seq = :ready_seq, attempt = :attempt, starts = :starts,
    stalled = :stalled, token = :token, worker_id = :worker_id, claim_id = :claim_id, started_at = :started_at,
    timeout_at = :timeout_at, finished_at = :finished_at, finish_reason = :finish_reason,
    finish_message = :finish_message, cancel_requested = :cancel_requested, last_token = :last_token,
    last_outcome = :last_outcome, last_answer = :last_answer, prune_at = :prune_at
WHERE id = :id AND state = :was_state AND token IS :was_token
RETURNING id;

-- name: insert_attempt
-- An attempt that ended other than by completion.
-- params: job_id int, start small, number small, worker_id text, started_at int, ended_at int, outcome small, token text
-- params: settle_outcome small, answer small, error_type text, error_message text, error_stack text, error_details text
INSERT INTO attempts (
    job_id, start, number, worker_id, started_at, ended_at, outcome, token, settle_outcome, answer, error_type,
    error_message, error_stack, error_details
)
VALUES (
    :job_id, :start, :number, :worker_id, :started_at, :ended_at, :outcome, :token, :settle_outcome, :answer, :error_type,
    :error_message, :error_stack, :error_details
);

-- name: trim_attempts
-- Only the last attempts are kept: those after the start that `kept` newer ones follow.
-- params: job_id int, kept small
DELETE FROM attempts WHERE job_id = :job_id AND start <= (
    SELECT start FROM attempts WHERE job_id = :job_id ORDER BY start DESC LIMIT 1 OFFSET :kept
);

-- name: settled_attempt
-- The answer first given to a settled token of an earlier attempt.
-- params: job_id int, token text, settle_outcome small
SELECT answer FROM attempts WHERE job_id = :job_id AND token = :token AND settle_outcome = :settle_outcome;

-- name: set_progress
-- The newest progress of a running attempt.
-- params: job_id int, progress text
INSERT INTO job_progress (job_id, progress) VALUES (:job_id, :progress)
ON CONFLICT (job_id) DO UPDATE SET progress = excluded.progress;

-- name: last_log_line
-- Number of the newest line, none for a job without a log.
-- params: job_id int
SELECT line FROM job_logs WHERE job_id = :job_id ORDER BY line DESC LIMIT 1;

-- name: insert_log_lines
-- Lines of a running attempt.
-- params: job_id int, attempt small
-- rows: line int, at_ms int, level text, text text
INSERT INTO job_logs (job_id, line, at_ms, level, attempt, text)
SELECT :job_id, :line, :at_ms, :level, :attempt, :text
FROM rows WHERE true;

-- name: trim_log
-- Only the last lines are kept.
-- params: job_id int, up_to int
DELETE FROM job_logs WHERE job_id = :job_id AND line <= :up_to;
