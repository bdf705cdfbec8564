-- The whole schema as first released. Times are Unix ms, durations ms. States: 1 waiting, 2 delayed, 3 active,
-- 4 waiting_children, 5 completed, 6 failed, 7 cancelled; literals in every statement, since a partial index is used only
-- when its condition is spelled out.

CREATE TABLE engine (
    id INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    now_ms INTEGER NOT NULL,
    next_number INTEGER NOT NULL,
    next_front INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    CONSTRAINT engine_single_row CHECK (id = 1)
) STRICT;
-- next
INSERT INTO engine (id, epoch, seq, now_ms, next_number, next_front, next_event) VALUES (1, 0, 0, 0, 1, -1, 1);
-- next
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
-- next
CREATE TABLE queues (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    paused_at INTEGER,
    paused_reason TEXT,
    max_active INTEGER NOT NULL DEFAULT 0,
    group_concurrency INTEGER NOT NULL DEFAULT 1,
    group_failure_policy INTEGER NOT NULL DEFAULT 1,
    ordering_delay_ms INTEGER NOT NULL DEFAULT 0,
    rate_max INTEGER NOT NULL DEFAULT 0,
    rate_window_ms INTEGER NOT NULL DEFAULT 0,
    rate_level INTEGER NOT NULL DEFAULT 0,
    rate_at INTEGER NOT NULL DEFAULT 0,
    group_rate_max INTEGER NOT NULL DEFAULT 0,
    group_rate_window_ms INTEGER NOT NULL DEFAULT 0,
    limited_until INTEGER,
    max_completed INTEGER NOT NULL DEFAULT 10000,
    max_failed INTEGER NOT NULL DEFAULT 0,
    defaults BLOB,
    CONSTRAINT queues_name_unique UNIQUE (name),
    CONSTRAINT queues_limits CHECK (max_active >= 0 AND group_concurrency >= 1 AND ordering_delay_ms >= 0)
) STRICT;
-- next
CREATE TABLE counts (
    id INTEGER PRIMARY KEY,
    jobs INTEGER NOT NULL,
    CONSTRAINT counts_not_negative CHECK (jobs >= 0)
) STRICT;
-- next
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    queue_id INTEGER NOT NULL REFERENCES queues (id),
    name TEXT NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER NOT NULL,
    ready_at INTEGER,
    ready_seq INTEGER,
    traits INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    stalled INTEGER NOT NULL DEFAULT 0,
    token TEXT,
    worker_id TEXT,
    claim_id TEXT,
    started_at INTEGER,
    timeout_at INTEGER,
    finished_at INTEGER,
    finish_reason INTEGER,
    finish_message TEXT,
    caused_by INTEGER,
    caused_by_created_ms INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    last_token TEXT,
    last_outcome INTEGER,
    last_answer INTEGER,
    max_attempts INTEGER NOT NULL DEFAULT 3,
    lease_ms INTEGER NOT NULL DEFAULT 30000,
    attempt_timeout_ms INTEGER NOT NULL DEFAULT 0,
    max_stalled INTEGER NOT NULL DEFAULT 3,
    max_starts INTEGER NOT NULL DEFAULT 100,
    jitter_permille INTEGER NOT NULL DEFAULT 250,
    retain_completed_ms INTEGER,
    retain_failed_ms INTEGER,
    receipt_ttl_ms INTEGER NOT NULL DEFAULT 86400000,
    expires_at INTEGER,
    prune_at INTEGER,
    pinned INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    solo INTEGER NOT NULL DEFAULT 0,
    group_id TEXT,
    order_key INTEGER,
    flow_id INTEGER,
    flow_created_ms INTEGER,
    depth INTEGER NOT NULL DEFAULT 0,
    scheduler_id INTEGER,
    scheduler TEXT,
    tick_ms INTEGER,
    revision INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT jobs_state_known CHECK (state BETWEEN 1 AND 7),
    CONSTRAINT jobs_active_has_token CHECK ((state = 3) = (token IS NOT NULL)),
    CONSTRAINT jobs_terminal_has_end CHECK ((state >= 5) = (finished_at IS NOT NULL)),
    CONSTRAINT jobs_in_line_is_claimable CHECK (ready_at IS NULL OR state IN (1, 2)),
    CONSTRAINT jobs_place_is_whole CHECK ((ready_at IS NULL) = (ready_seq IS NULL)),
    CONSTRAINT jobs_waiting_children_has_pending CHECK (state <> 4 OR pending > 0),
    CONSTRAINT jobs_counters CHECK (pending >= 0 AND pinned >= 0 AND attempt >= 0 AND starts >= attempt AND stalled >= 0),
    CONSTRAINT jobs_priority_range CHECK (priority BETWEEN 0 AND 2097151),
    CONSTRAINT jobs_policy_range CHECK (
        max_attempts BETWEEN 1 AND 1000 AND lease_ms BETWEEN 1000 AND 3600000 AND attempt_timeout_ms >= 0
        AND max_stalled BETWEEN 0 AND 100 AND max_starts BETWEEN 1 AND 10000 AND jitter_permille BETWEEN 0 AND 1000
    ),
    CONSTRAINT jobs_group_has_order CHECK ((group_id IS NULL) = (order_key IS NULL)),
    CONSTRAINT jobs_run_has_tick CHECK ((scheduler_id IS NULL) = (tick_ms IS NULL))
) STRICT;
-- next
CREATE INDEX jobs_line ON jobs (queue_id, priority, ready_at, ready_seq) WHERE ready_at IS NOT NULL;
-- next
CREATE INDEX jobs_group_head ON jobs (queue_id, group_id, order_key, id) WHERE group_id IS NOT NULL AND state IN (1, 2);
-- next
CREATE UNIQUE INDEX jobs_group_one_in_line ON jobs (queue_id, group_id) WHERE group_id IS NOT NULL AND ready_at IS NOT NULL;
-- next
CREATE UNIQUE INDEX jobs_group_one_active ON jobs (queue_id, group_id) WHERE state = 3 AND solo = 1;
-- next
CREATE INDEX jobs_group_active ON jobs (queue_id, group_id) WHERE state = 3 AND group_id IS NOT NULL;
-- next
CREATE INDEX jobs_retention_queue ON jobs (queue_id, state, finished_at)
WHERE finished_at IS NOT NULL AND pinned = 0 AND prune_at IS NULL;
-- next
CREATE INDEX jobs_retention_own ON jobs (prune_at) WHERE prune_at IS NOT NULL AND pinned = 0;
-- next
CREATE INDEX jobs_by_state ON jobs (queue_id, state, id);
-- next
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND starts = 0 AND state IN (1, 2, 4);
-- next
CREATE INDEX jobs_claims ON jobs (claim_id, worker_id) WHERE claim_id IS NOT NULL;
-- next
CREATE INDEX jobs_parked ON jobs (run_at) WHERE state = 2 AND ready_at IS NULL AND group_id IS NULL;
-- next
CREATE INDEX jobs_flow ON jobs (flow_id) WHERE flow_id IS NOT NULL;
-- next
CREATE INDEX jobs_open_runs ON jobs (scheduler_id) WHERE scheduler_id IS NOT NULL AND state IN (1, 2, 3, 4);
-- next
CREATE TABLE job_bodies (
    job_id INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    content_type TEXT,
    headers BLOB,
    labels BLOB,
    backoff BLOB,
    idempotency_key TEXT,
    data BLOB NOT NULL
) STRICT;
-- next
-- Apart from the payload, which each new progress would write again.
CREATE TABLE job_progress (
    job_id INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    progress TEXT NOT NULL
) STRICT;
-- next
CREATE TABLE results (
    job_id INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    content_type TEXT,
    data BLOB NOT NULL
) STRICT;
-- next
CREATE TABLE attempts (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    token TEXT NOT NULL,
    settle_outcome INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    error_type TEXT,
    error_message TEXT,
    error_stack TEXT,
    error_details TEXT,
    PRIMARY KEY (job_id, start)
) STRICT;
-- next
CREATE TABLE job_logs (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    level TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (job_id, line)
) STRICT;
-- next
CREATE TABLE edges (
    parent_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    child_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    policy INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 1,
    added_in_start INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (parent_id, child_id),
    CONSTRAINT edges_key_unique UNIQUE (parent_id, key),
    CONSTRAINT edges_policy_known CHECK (policy BETWEEN 1 AND 4),
    CONSTRAINT edges_held_flag CHECK (held IN (0, 1))
) STRICT;
-- next
CREATE INDEX edges_by_child ON edges (child_id);
-- next
CREATE TABLE groups (
    queue_id INTEGER NOT NULL REFERENCES queues (id),
    group_id TEXT NOT NULL,
    served_at INTEGER NOT NULL DEFAULT 0,
    paused_at INTEGER,
    halted_by INTEGER,
    halted_at INTEGER,
    concurrency INTEGER,
    rate_max INTEGER,
    rate_window_ms INTEGER,
    rate_level INTEGER NOT NULL DEFAULT 0,
    rate_at INTEGER NOT NULL DEFAULT 0,
    limited_until INTEGER,
    revision INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue_id, group_id)
) STRICT;
-- next
CREATE TABLE receipts (
    queue_id INTEGER NOT NULL REFERENCES queues (id),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    singleton INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    job_created_ms INTEGER NOT NULL,
    digest BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (queue_id, name, key),
    CONSTRAINT receipts_singleton_flag CHECK (singleton IN (0, 1)),
    CONSTRAINT receipts_singleton_never_expires CHECK (singleton = 0 OR expires_at IS NULL)
) STRICT;
-- next
CREATE INDEX receipts_singleton ON receipts (job_id) WHERE singleton = 1;
-- next
CREATE INDEX receipts_expiring ON receipts (expires_at) WHERE expires_at IS NOT NULL;
-- next
CREATE TABLE dedup (
    queue_id INTEGER NOT NULL REFERENCES queues (id),
    dedup_id TEXT NOT NULL,
    mode INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    pending_job_id INTEGER,
    expires_at INTEGER,
    PRIMARY KEY (queue_id, dedup_id),
    CONSTRAINT dedup_mode_known CHECK (mode BETWEEN 1 AND 4)
) STRICT;
-- next
CREATE INDEX dedup_expiring ON dedup (expires_at) WHERE expires_at IS NOT NULL;
-- next
CREATE TABLE producers (
    producer_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    answer BLOB NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;
-- next
CREATE INDEX producers_idle ON producers (used_at);
-- next
-- AUTOINCREMENT: the ticks of a deleted definition outlive it, and its number must not come back. due_ms: next_tick with its
-- jitter.
CREATE TABLE schedulers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL,
    name TEXT NOT NULL,
    queue TEXT,
    suspended INTEGER NOT NULL DEFAULT 0,
    anchor_ms INTEGER NOT NULL,
    next_tick INTEGER,
    due_ms INTEGER,
    last_tick INTEGER,
    last_job_id INTEGER,
    last_job_created_ms INTEGER,
    last_flow_id INTEGER,
    run_count INTEGER NOT NULL DEFAULT 0,
    skipped_count INTEGER NOT NULL DEFAULT 0,
    missed_count INTEGER NOT NULL DEFAULT 0,
    problem_reason TEXT,
    problem_message TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    CONSTRAINT schedulers_uid_unique UNIQUE (uid),
    CONSTRAINT schedulers_name_unique UNIQUE (name),
    CONSTRAINT schedulers_suspended_flag CHECK (suspended IN (0, 1)),
    CONSTRAINT schedulers_due_with_tick CHECK ((next_tick IS NULL) = (due_ms IS NULL)),
    CONSTRAINT schedulers_suspended_never_due CHECK (suspended = 0 OR next_tick IS NULL)
) STRICT;
-- next
-- Apart from what each tick writes again. name: that of the definition, for the order of owners' lists.
CREATE TABLE scheduler_specs (
    scheduler_id INTEGER PRIMARY KEY REFERENCES schedulers (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    owner_kind TEXT,
    owner_namespace TEXT,
    owner_name TEXT,
    owner BLOB,
    spec BLOB NOT NULL,
    CONSTRAINT scheduler_specs_owner_is_whole CHECK ((owner IS NULL) = (owner_kind IS NULL))
) STRICT;
-- next
CREATE INDEX scheduler_owners ON scheduler_specs (owner_kind, owner_namespace, owner_name, name) WHERE owner_kind IS NOT NULL;
-- next
CREATE TABLE ticks (
    scheduler_id INTEGER NOT NULL,
    tick_ms INTEGER NOT NULL,
    fired_at INTEGER NOT NULL,
    job_id INTEGER,
    PRIMARY KEY (scheduler_id, tick_ms)
) WITHOUT ROWID, STRICT;
-- next
CREATE INDEX ticks_old ON ticks (fired_at);
-- next
CREATE TABLE triggers (
    scheduler_id INTEGER NOT NULL,
    run_key TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    job_created_ms INTEGER NOT NULL,
    flow_id INTEGER,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (scheduler_id, run_key)
) STRICT;
-- next
CREATE INDEX triggers_old ON triggers (at_ms);
-- next
CREATE TABLE templates (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    spec BLOB NOT NULL,
    content_hash TEXT NOT NULL,
    owner BLOB,
    owner_kind TEXT,
    owner_namespace TEXT,
    owner_name TEXT,
    revision INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    CONSTRAINT templates_name_unique UNIQUE (name)
) STRICT;
-- next
CREATE TABLE events (
    first INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    transitions INTEGER NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT events_not_empty CHECK (transitions > 0)
) STRICT;
-- next
CREATE INDEX events_old ON events (at_ms);
