-- name: begin_batch
-- First write of every batch: fence, clock and counters in one. No row back: another broker has the file.
-- params: now_ms int, next_number int, next_front int, next_event int, epoch int
UPDATE engine SET
    seq = seq + 1, now_ms = :now_ms, next_number = :next_number, next_front = :next_front, next_event = :next_event
WHERE id = 1 AND epoch = :epoch
RETURNING seq;

-- name: take_epoch
-- At start: from here on an older broker's batches find no row.
UPDATE engine SET epoch = epoch + 1 WHERE id = 1 RETURNING epoch, now_ms, next_number, next_front, next_event;

-- name: set_counters
-- At the end of a batch that put jobs to the front of their class, or removed jobs.
-- params: next_number int, next_front int
UPDATE engine SET next_number = :next_number, next_front = :next_front WHERE id = 1 RETURNING id;

-- name: highest_job_id
-- At start: the last batch's own numbers are not yet in `engine`.
SELECT coalesce(max(id), 0) FROM jobs;

-- name: highest_event
-- At start: the number after the log's last transition.
SELECT first + transitions FROM events WHERE first = (SELECT max(first) FROM events);

-- name: insert_events
-- The transitions of one commit.
-- params: first int, at_ms int, transitions small, body blob
INSERT INTO events (first, at_ms, transitions, body) VALUES (:first, :at_ms, :transitions, :body);

-- name: set_counts
-- Jobs by queue and state; id is queue_id * 16 + state. Whole values, not changes: a CHECK is asked before the conflict is
-- seen, and would refuse a change below 0.
-- pairs: id int, jobs int
INSERT INTO counts (id, jobs) SELECT :id, :jobs
FROM rows WHERE true
ON CONFLICT (id) DO UPDATE SET jobs = excluded.jobs;

-- name: all_counts
-- At start; one row a queue and state.
SELECT id, jobs FROM counts ORDER BY id;

-- name: all_queues
-- At start; one row a queue.
SELECT id, name, max_completed, max_failed, defaults FROM queues ORDER BY id;

-- name: insert_queue
-- The queue is made by its first job.
-- params: id small, name text, created_ms int
INSERT INTO queues (id, name, created_ms) VALUES (:id, :name, :created_ms);
