-- name: get_scheduler
-- A definition by name.
-- params: name text
SELECT
    s.id, s.uid, s.name, s.suspended, s.anchor_ms, s.next_tick, s.last_tick, s.last_job_id, s.last_job_created_ms, s.run_count,
    s.skipped_count, s.missed_count, s.problem_reason, s.problem_message, s.created_ms, s.updated_ms, c.content_hash, c.owner,
    c.spec
FROM schedulers AS s INNER JOIN scheduler_specs AS c ON c.scheduler_id = s.id
WHERE s.name = :name;

-- name: get_due_schedulers
-- The definitions whose timers have run out, as far as they are still there.
-- rows: uid text
SELECT
    s.id, s.uid, s.name, s.suspended, s.anchor_ms, s.next_tick, s.last_tick, s.last_job_id, s.last_job_created_ms, s.run_count,
    s.skipped_count, s.missed_count, s.problem_reason, s.problem_message, s.created_ms, s.updated_ms, c.content_hash, c.owner,
    c.spec
FROM rows CROSS JOIN schedulers AS s ON s.uid = :uid CROSS JOIN scheduler_specs AS c ON c.scheduler_id = s.id;

-- name: schedulers_after
-- A slice by uid.
-- params: after text, page small
SELECT
    s.id, s.uid, s.name, s.suspended, s.anchor_ms, s.next_tick, s.last_tick, s.last_job_id, s.last_job_created_ms, s.run_count,
    s.skipped_count, s.missed_count, s.problem_reason, s.problem_message, s.created_ms, s.updated_ms, c.content_hash, c.owner,
    c.spec
FROM schedulers AS s INNER JOIN scheduler_specs AS c ON c.scheduler_id = s.id
WHERE s.uid > :after ORDER BY s.uid LIMIT :page;

-- name: all_due
-- At start: when each definition is due.
SELECT uid, due_ms, suspended, problem_reason FROM schedulers ORDER BY id;

-- name: insert_scheduler
-- A new definition; what changes about it follows by `save_schedulers`.
-- params: uid text, name text, now_ms int
INSERT INTO schedulers (uid, name, anchor_ms, created_ms, updated_ms) VALUES (:uid, :name, :now_ms, :now_ms, :now_ms)
RETURNING id;

-- name: put_scheduler_spec
-- What a definition says, and whose it is.
-- params: scheduler_id int, name text, content_hash text, owner_kind text, owner_namespace text, owner_name text, owner blob
-- params: spec blob
INSERT INTO scheduler_specs (scheduler_id, name, content_hash, owner_kind, owner_namespace, owner_name, owner, spec)
VALUES (:scheduler_id, :name, :content_hash, :owner_kind, :owner_namespace, :owner_name, :owner, :spec)
ON CONFLICT (scheduler_id) DO UPDATE SET
    content_hash = excluded.content_hash, owner_kind = excluded.owner_kind, owner_namespace = excluded.owner_namespace,
    owner_name = excluded.owner_name, owner = excluded.owner, spec = excluded.spec;

-- name: save_schedulers
-- How far definitions have come.
-- rows: id int, suspended small, anchor_ms int, next_tick int, due_ms int, last_tick int, last_job_id int
-- rows: last_job_created_ms int, run_count int, skipped_count int, missed_count int, problem_reason text
-- rows: problem_message text, updated_ms int, queue text
UPDATE schedulers SET
    suspended = :suspended, anchor_ms = :anchor_ms, next_tick = :next_tick, due_ms = :due_ms, last_tick = :last_tick,
    last_job_id = :last_job_id, last_job_created_ms = :last_job_created_ms, run_count = :run_count,
    skipped_count = :skipped_count, missed_count = :missed_count, problem_reason = :problem_reason,
    problem_message = :problem_message, updated_ms = :updated_ms, queue = :queue
FROM rows WHERE schedulers.id = :id;

-- name: delete_scheduler
-- A definition, without its jobs; its ticks and triggers go by age.
-- params: id int
DELETE FROM schedulers WHERE id = :id;

-- name: fired_ticks
-- Of these ticks, those that have fired.
-- rows: scheduler_id int, tick_ms int
SELECT t.scheduler_id, t.tick_ms FROM rows CROSS JOIN ticks AS t
WHERE t.scheduler_id = :scheduler_id AND t.tick_ms = :tick_ms;

-- name: insert_ticks
-- Ticks that fire now; the key refuses a second firing.
-- params: fired_at int
-- rows: scheduler_id int, tick_ms int, job_id int
INSERT INTO ticks (scheduler_id, tick_ms, fired_at, job_id) SELECT :scheduler_id, :tick_ms, :fired_at, :job_id
FROM rows WHERE true;

-- name: open_runs
-- Jobs of these definitions that have not ended.
-- rows: scheduler_id int
SELECT j.scheduler_id, j.id, j.created_ms FROM rows CROSS JOIN jobs AS j
WHERE j.scheduler_id = :scheduler_id AND j.scheduler_id IS NOT NULL AND j.state IN (1, 2, 3, 4);

-- name: set_cause
-- A run gives way to another.
-- params: id int, caused_by int, caused_by_created_ms int
UPDATE jobs SET caused_by = :caused_by, caused_by_created_ms = :caused_by_created_ms WHERE id = :id;

-- name: get_trigger
-- The run that a run_key stands for.
-- params: scheduler_id int, run_key text
SELECT job_id, job_created_ms, at_ms FROM triggers WHERE scheduler_id = :scheduler_id AND run_key = :run_key;

-- name: put_trigger
-- A run_key stands for a run; one that is over is taken again.
-- params: scheduler_id int, run_key text, job_id int, job_created_ms int, at_ms int
INSERT INTO triggers (scheduler_id, run_key, job_id, job_created_ms, at_ms)
VALUES (:scheduler_id, :run_key, :job_id, :job_created_ms, :at_ms)
ON CONFLICT (scheduler_id, run_key) DO UPDATE SET
    job_id = excluded.job_id, job_created_ms = excluded.job_created_ms, at_ms = excluded.at_ms;

-- name: list_scheduler_names
-- A page of names with the queues of their jobs; from_name and below_name bound a prefix.
-- params: after text, from_name text, below_name text, page small
SELECT name, queue FROM schedulers
WHERE name > :after AND name >= :from_name AND name < :below_name ORDER BY name LIMIT :page;

-- name: list_owned
-- A page of definitions with an owner.
-- params: kind text, namespace text, owner_name text, name text, page small
SELECT
    c.owner_kind, c.owner_namespace, c.owner_name, c.name, c.owner, s.next_tick, s.last_tick, s.last_job_id,
    s.last_job_created_ms, s.problem_reason, s.problem_message
FROM scheduler_specs AS c CROSS JOIN schedulers AS s ON s.id = c.scheduler_id
WHERE c.owner_kind IS NOT NULL
AND (c.owner_kind, c.owner_namespace, c.owner_name, c.name) > (:kind, :namespace, :owner_name, :name)
ORDER BY c.owner_kind, c.owner_namespace, c.owner_name, c.name LIMIT :page;

-- name: job_state
-- As much of a job as its reported state needs.
-- params: id int, created_ms int
SELECT state, run_at FROM jobs WHERE id = :id AND created_ms = :created_ms;

-- name: old_ticks
-- Ticks that no clock set back will bring again.
-- params: before int, page small
SELECT scheduler_id, tick_ms FROM ticks WHERE fired_at < :before AND tick_ms < :before ORDER BY fired_at LIMIT :page;

-- name: delete_ticks
-- Ticks that were found old.
-- rows: scheduler_id int, tick_ms int
DELETE FROM ticks WHERE (scheduler_id, tick_ms) IN (SELECT :scheduler_id, :tick_ms FROM rows);

-- name: old_triggers
-- Keys of triggers that stand for nothing any more.
-- params: until int, page small
SELECT scheduler_id, run_key FROM triggers WHERE at_ms <= :until ORDER BY at_ms LIMIT :page;

-- name: delete_triggers
-- Keys of triggers that were found old.
-- rows: scheduler_id int, run_key text
DELETE FROM triggers WHERE rowid IN (
    SELECT t.rowid FROM rows CROSS JOIN triggers AS t ON t.scheduler_id = :scheduler_id AND t.run_key = :run_key
);
