-- name: insert_waiting_jobs
-- Jobs with default options that join the line.
-- params: created_ms int
-- rows: id int, queue_id small, name text, state small, priority small, run_at int, ready_at int, ready_seq int
INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, ready_at, ready_seq)
SELECT :id, :created_ms, :queue_id, :name, :state, :priority, :run_at, :ready_at, :ready_seq
FROM rows WHERE true;

-- name: insert_waiting_jobs_of_a_kind
-- The same for jobs of one queue, name and priority that are claimable from now on.
-- params: created_ms int, queue_id small, name text, priority small
-- each: id int
INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, ready_at, ready_seq)
SELECT :id, :created_ms, :queue_id, :name, 1, :priority, :created_ms, :created_ms, :id
FROM rows WHERE true;

-- name: insert_started_jobs_of_a_kind
-- Jobs with default options, of one queue, name and priority, that met an idle worker: one write instead of two. place: the
-- job's id, a space, the worker.
-- params: created_ms int, queue_id small, name text, priority small
-- pairs: token text, place text
INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, attempt, starts, token, worker_id, started_at)
SELECT CAST(:place AS INTEGER), :created_ms, :queue_id, :name, 3, :priority, :created_ms, 1, 1, :token,
    substr(:place, instr(:place, ' ') + 1), :created_ms
FROM rows WHERE true;

-- name: insert_started_jobs
-- The same for jobs of several kinds.
-- params: created_ms int
-- rows: id int, queue_id small, name text, priority small, token text, worker_id text
INSERT INTO jobs (id, created_ms, queue_id, name, state, priority, run_at, attempt, starts, token, worker_id, started_at)
SELECT :id, :created_ms, :queue_id, :name, 3, :priority, :created_ms, 1, 1, :token, :worker_id, :created_ms
FROM rows WHERE true;

-- name: insert_jobs
-- Jobs of any shape.
-- params: created_ms int
-- rows: id int, queue_id small, name text, state small, priority small, run_at int, ready_at int
-- rows: ready_seq int, traits small, attempt small, starts small, token text, worker_id text, claim_id text
-- rows: started_at int, timeout_at int, max_attempts small, lease_ms int, attempt_timeout_ms int, max_stalled small
-- rows: max_starts small, jitter_permille small, retain_completed_ms int, retain_failed_ms int
-- rows: receipt_ttl_ms int, expires_at int, scheduler_id int, scheduler text, tick_ms int
INSERT INTO jobs (
    id, created_ms, queue_id, name, state, priority, run_at, ready_at, ready_seq, traits, attempt, starts, token, worker_id,
    claim_id, started_at, timeout_at, max_attempts, lease_ms, attempt_timeout_ms, max_stalled, max_starts, jitter_permille,
    retain_completed_ms, retain_failed_ms, receipt_ttl_ms, expires_at, scheduler_id, scheduler, tick_ms
)
SELECT :id, :created_ms, :queue_id, :name, :state, :priority, :run_at, :ready_at, :ready_seq, :traits, :attempt, :starts,
    :token, :worker_id, :claim_id, :started_at, :timeout_at, :max_attempts, :lease_ms, :attempt_timeout_ms, :max_stalled,
    :max_starts, :jitter_permille, :retain_completed_ms, :retain_failed_ms, :receipt_ttl_ms, :expires_at, :scheduler_id,
    :scheduler, :tick_ms
FROM rows WHERE true;

-- name: insert_bodies
-- Payloads of one type without headers, labels, key or backoff of their own. place: where in `data` the payload starts,
-- times 2^26, and its length.
-- params: content_type text, data blob
-- pairs: job_id int, place int
INSERT INTO job_bodies (job_id, content_type, data)
SELECT :job_id, :content_type, substr(:data, :place >> 26, :place & 67108863)
FROM rows WHERE true;

-- name: insert_full_bodies
-- Payloads with any of them.
-- rows: job_id int, content_type text, headers blob, labels blob, backoff blob, idempotency_key text, data blob
INSERT INTO job_bodies (job_id, content_type, headers, labels, backoff, idempotency_key, data)
SELECT :job_id, :content_type, :headers, :labels, :backoff, :idempotency_key, :data
FROM rows WHERE true;

-- name: get_producers
-- The producers' last answered frames.
-- each: producer_id text
SELECT producer_id, seq, answer FROM producers WHERE producer_id IN (SELECT :producer_id FROM rows);

-- name: put_producers
-- The answers to producers' newest frames, in the frames' own transaction.
-- params: used_at int
-- rows: producer_id text, seq int, answer blob
INSERT INTO producers (producer_id, seq, answer, used_at) SELECT :producer_id, :seq, :answer, :used_at FROM rows WHERE true
ON CONFLICT (producer_id) DO UPDATE SET seq = excluded.seq, answer = excluded.answer, used_at = excluded.used_at;
