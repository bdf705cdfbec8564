-- name: insert_waiting_jobs
-- Jobs with default options that join the line.
-- common: created_ms int
-- params: id int, queue_id small, name text, state small, priority small, run_at int, ready_at int, ready_seq int
INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, ready_at, ready_seq)
VALUES /*row*/(:id, :created_ms, :queue_id, :name, :state, :priority, :run_at, :ready_at, :ready_seq)/*row*/
RETURNING NULL;

-- name: insert_started_jobs
-- Jobs with default options that met an idle worker: one write instead of two.
-- common: created_ms int
-- params: id int, queue_id small, name text, priority small, token text, worker_id text
INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, attempt, starts, token, worker_id, started_at)
VALUES /*row*/(:id, :created_ms, :queue_id, :name, 3, :priority, :created_ms, 1, 1, :token, :worker_id, :created_ms)/*row*/
RETURNING NULL;

-- name: insert_jobs
-- Jobs of any shape.
-- common: created_ms int
-- params: id int, queue_id small, name text, state small, priority small, run_at int, ready_at int
-- params: ready_seq int, traits small, attempt small, starts small, token text, worker_id text, claim_id text
-- params: started_at int, timeout_at int, max_attempts small, lease_ms int, attempt_timeout_ms int, max_stalled small
-- params: max_starts small, jitter_permille small, retain_completed_ms int, retain_failed_ms int
-- params: receipt_ttl_ms int, expires_at int
INSERT INTO jobs (
    id, created_ms, queue_id, name, state, priority, run_at, ready_at, ready_seq, traits, attempt, starts, token, worker_id,
    claim_id, started_at, timeout_at, max_attempts, lease_ms, attempt_timeout_ms, max_stalled, max_starts, jitter_permille,
    retain_completed_ms, retain_failed_ms, receipt_ttl_ms, expires_at
)
VALUES /*row*/(
    :id, :created_ms, :queue_id, :name, :state, :priority, :run_at, :ready_at, :ready_seq, :traits, :attempt, :starts,
    :token, :worker_id, :claim_id, :started_at, :timeout_at, :max_attempts, :lease_ms, :attempt_timeout_ms, :max_stalled,
    :max_starts, :jitter_permille, :retain_completed_ms, :retain_failed_ms, :receipt_ttl_ms, :expires_at
)/*row*/
RETURNING NULL;

-- name: insert_bodies
-- Payloads without headers, labels, key or backoff of their own.
-- params: job_id int, content_type text, data blob
INSERT INTO job_bodies (job_id, content_type, data) VALUES /*row*/(:job_id, :content_type, :data)/*row*/ RETURNING NULL;

-- name: insert_full_bodies
-- Payloads with any of them.
-- params: job_id int, content_type text, headers blob, labels blob, backoff blob, idempotency_key text, data blob
INSERT INTO job_bodies (job_id, content_type, headers, labels, backoff, idempotency_key, data)
VALUES /*row*/(:job_id, :content_type, :headers, :labels, :backoff, :idempotency_key, :data)/*row*/
RETURNING NULL;

-- name: get_producer
-- The producer's last answered frame.
-- params: producer_id text
SELECT seq, answer FROM producers WHERE producer_id = :producer_id;

-- name: put_producer
-- The answer to a producer's newest frame, in the frame's own transaction.
-- params: producer_id text, seq int, answer blob, used_at int
INSERT INTO producers (producer_id, seq, answer, used_at) VALUES (:producer_id, :seq, :answer, :used_at)
ON CONFLICT (producer_id) DO UPDATE SET seq = excluded.seq, answer = excluded.answer, used_at = excluded.used_at
RETURNING seq;
