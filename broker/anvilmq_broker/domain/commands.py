"""Every command, query and notice of the broker, with its answer; the same over a socket, in a test's log, in the model.

Commands are batch-first, atomic, fail alone, and are safe to repeat by what they carry: a receipt, a producer's
seq, a lease token, a claim id. A refusal is the value `errors.Refused`. Instants are Unix ms, durations ms, both
below 2^53. A job is named by (number, created_ms); text ids exist only at the gateway. The file is long because
the whole vocabulary of the broker stands in this one place.

Structs are arrays on the wire: fields are only added at the end, and the link refuses a peer of another build.
"""

from __future__ import annotations

import msgspec

from anvilmq_broker.domain.backoff import Backoff
from anvilmq_broker.domain.errors import Refused


class Value(msgspec.Struct, frozen=True, array_like=True):
    """Base of the plain values inside commands."""


class JobRef(Value, frozen=True):
    """A job by arrival number and creation time; both must match."""

    number: int
    created_ms: int


class LeaseRef(Value, frozen=True):
    """One attempt's right to write to its job."""

    number: int
    created_ms: int
    token: str


# ------------------------------------------------------------------------------------------------ adding


class PolicyPatch(Value, frozen=True):
    """Options of a job as sent; None takes the queue's value, then the broker's (types.proto JobPolicy)."""

    max_attempts: int | None = None
    backoff: Backoff | None = None
    lease_ms: int | None = None
    attempt_timeout_ms: int | None = None
    max_stalled: int | None = None
    max_starts: int | None = None
    retain_completed_ms: int | None = None
    retain_failed_ms: int | None = None
    receipt_ttl_ms: int | None = None


class NewJob(Value, frozen=True):
    """A job to be added, already validated alone (api sections 6 and 9).

    delay_ms and run_at_ms exclude each other, expires_after_ms and expires_at_ms too; 0 = none.
    key: idempotency key, "" = none. singleton: mode RELEASE_ON_FINISH. digest: SHA-256 of the request, empty without
    a key or in singleton mode. content_type "" = application/json.
    """

    queue: str
    name: str
    data: bytes = b""
    content_type: str = ""
    priority: int = 0
    delay_ms: int = 0
    run_at_ms: int = 0
    expires_at_ms: int = 0
    expires_after_ms: int = 0
    lifo: bool = False
    key: str = ""
    singleton: bool = False
    digest: bytes = b""
    headers: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    policy: PolicyPatch | None = None
    group_id: str = ""
    order_key: int | None = None


class Earlier(Value, frozen=True):
    """Item `index` met an earlier job; no job was made. matched_by: 1 receipt, 2 deduplication."""

    index: int
    ref: JobRef
    state: int
    matched_by: int = 1


class AddJobs(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Add 1..1000 jobs in one transaction [1.10].

    atomic: one refused item refuses all, and the Refused has its index. producer_id and seq ("" and 0 = none): the
    answer to the highest seq of a producer is kept; the same seq again gets it and writes nothing.
    Answer: AddedJobs, or Refused for the whole (nothing written, no seq used up).
    """

    jobs: list[NewJob]
    atomic: bool = True
    producer_id: str = ""
    seq: int = 0


class AddedJobs(msgspec.Struct, frozen=True, array_like=True, tag=101):
    """New jobs have the numbers first_number, +1, … in item order, leaving out the items in earlier and refused.

    created_ms is common to them. states: the state after the commit of each *new* job, one byte each; empty in a kept
    answer.
    """

    first_number: int
    created_ms: int
    earlier: list[Earlier] = []
    refused: list[Refused] = []
    states: bytes = b""


# ----------------------------------------------------------------------------------------------- working


class WorkerIdentity(Value, frozen=True):
    """Who works; worker_id is new at each start of a process and kept over its reconnects."""

    worker_id: str
    name: str = ""
    pod: str = ""
    node: str = ""
    sdk: str = ""
    sdk_version: str = ""


class Delivery(Value, frozen=True):
    """One started attempt. pool: set by the engine for sessions. progress_json: of an earlier attempt.

    scheduler, tick_at_ms: of a run: the name of its definition and its tick without jitter, or the time of the call.
    """

    number: int
    created_ms: int
    token: str
    queue: str
    name: str
    data: bytes
    content_type: str
    attempt: int
    max_attempts: int
    lease_ms: int
    attempt_timeout_ms: int
    headers: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    priority: int = 0
    key: str = ""
    starts: int = 1
    stalled: int = 0
    progress_json: str = ""
    group_id: str = ""
    order_key: int = 0
    pool: int = 0
    scheduler: str = ""
    tick_at_ms: int = 0


class Claim(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Start up to max_jobs (1..256) jobs of the queues for a caller without a session [1.4].

    The engine turns wait_ms into a session of one grant. claim_id ("" = none): the same one from the same worker
    returns the same jobs while one of their leases lives.
    Answer: Claimed, possibly empty.
    """

    worker: WorkerIdentity
    queues: list[str]
    max_jobs: int
    wait_ms: int = 0
    claim_id: str = ""


class Claimed(msgspec.Struct, frozen=True, array_like=True, tag=102):
    """The started attempts."""

    deliveries: list[Delivery]


class ErrorInfo(Value, frozen=True):
    """What a failed attempt reports, already cut to its limits."""

    type: str = ""
    message: str = ""
    stack: str = ""
    details_json: str = ""


class Settlement(Value, frozen=True):
    """The end of one attempt. outcome: state.SettleOutcome. retry_after_ms: None = by policy."""

    number: int
    created_ms: int
    token: str
    outcome: int
    result: bytes = b""
    result_content_type: str = ""
    error: ErrorInfo | None = None
    non_retryable: bool = False
    retry_after_ms: int | None = None
    delay_ms: int = 0
    reason: str = ""


class Settle(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Settle 1..1000 attempts, each for itself. Answer: Settled. Same token, same outcome: the first answer again."""

    items: list[Settlement]


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=103):
    """states[i]: job's state after items[i], 0 where refused has i (reason LEASE_LOST, CHILDREN_PENDING)."""

    states: bytes
    refused: list[Refused] = []


class Renew(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Extend each lease to its own lease_ms from now; held in the engine's memory, nothing is written. Answer: Renewed."""

    leases: list[LeaseRef]
    worker_id: str = ""


class Interrupt(Value, frozen=True):
    """Tells the holder of a lease to stop. cause: state.InterruptCause."""

    number: int
    created_ms: int
    token: str
    cause: int
    reason: str = ""


class Renewed(msgspec.Struct, frozen=True, array_like=True, tag=104):
    """Only what is lost or cancelled is named; CANCEL_REQUESTED is renewed too."""

    interrupts: list[Interrupt]


class LogLine(Value, frozen=True):
    """One line of a job's log. attempt is set by the store."""

    at_ms: int
    level: str
    line: str
    attempt: int = 0


class Report(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Progress (None = leave) and log lines (at most 100) of a running attempt. Answer: Done, or Refused LEASE_LOST."""

    lease: LeaseRef
    progress_json: str | None = None
    lines: list[LogLine] = []


class Done(msgspec.Struct, frozen=True, array_like=True, tag=100):
    """Done, with nothing more to say."""


# ------------------------------------------------------------------------------------- time, by the engine


class Reap(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """What the engine's timers found, each entry still checked against its row: a late one changes nothing.

    stalled: leases that ran out [1.5]. timed_out: attempts past attempt_timeout [1.4]. expired: jobs not started by
    expires_at [1.9]. parked: released jobs whose delay is over, now to the front of their class [1.7].
    undelivered: claims whose frame never left, put back uncounted. Answer: Done.
    """

    stalled: list[LeaseRef] = []
    timed_out: list[LeaseRef] = []
    expired: list[JobRef] = []
    parked: list[JobRef] = []
    undelivered: list[LeaseRef] = []


class Prune(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Remove at most `limit` rows that retention has passed: jobs, receipts, producers, events [1.12]. Answer: Pruned."""

    limit: int = 500


class Pruned(msgspec.Struct, frozen=True, array_like=True, tag=107):
    """jobs: ended jobs removed; rows: all rows removed; more: another slice would find work."""

    jobs: int
    rows: int
    more: bool


# ------------------------------------------------------------------------------------------------- admin


class CancelJob(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Cancel from any state [1.9]; a terminal job is left as it is. Answer: CancelledJob, or Refused JOB_NOT_FOUND."""

    ref: JobRef
    reason: str = ""
    cascade: bool = False


class CancelledJob(msgspec.Struct, frozen=True, array_like=True, tag=108):
    """State after the commit. signalled: it is active, and its worker is told."""

    state: int
    signalled: bool


class ReleaseReceipt(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Free the key if the job `expected` has it; absent or another job's: released=False. Answer: FreedReceipt."""

    queue: str
    name: str
    key: str
    expected: JobRef


class DeleteReceipt(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Free the key whoever has it; a missing one is no error. Answer: FreedReceipt."""

    queue: str
    name: str
    key: str


class FreedReceipt(msgspec.Struct, frozen=True, array_like=True, tag=109):
    """holder: who had it; for a release that found another holder, that one. None: nobody."""

    freed: bool
    holder: JobRef | None = None


# --------------------------------------------------------------------------------------------- schedulers


class Owner(Value, frozen=True):
    """The custom resource that owns a definition; generation is compared within one uid."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int = 0
    spec_hash: str = ""
    manager: str = ""
    retain: bool = False


class SchedulerSpec(Value, frozen=True):
    """A recurring definition, already checked alone. Either cron (with time_zone) or every_ms (with offset_ms).

    job: None when a flow template is the target, which is not built. policies: state.Concurrency, state.CatchUp.
    starting_deadline_ms, limit, start_at_ms, end_at_ms: 0 = none. suspended: None leaves the stored value.
    """

    cron: str = ""
    every_ms: int = 0
    offset_ms: int = 0
    time_zone: str = ""
    start_at_ms: int = 0
    end_at_ms: int = 0
    limit: int = 0
    jitter_ms: int = 0
    job: NewJob | None = None
    concurrency_policy: int = 1
    catch_up: int = 1
    max_catch_up_runs: int = 100
    starting_deadline_ms: int = 0
    suspended: bool | None = None
    description: str = ""


class SchedulerRecord(Value, frozen=True):
    """A definition as readers see it; 0 and "" where there is none. last_state: of the last run, 0 when it is gone."""

    name: str
    spec: SchedulerSpec
    owner: Owner | None
    uid: str
    content_hash: str
    next_tick_at_ms: int
    last_tick_at_ms: int
    last_run: JobRef | None
    last_state: int
    run_count: int
    skipped_count: int
    missed_count: int
    problem_reason: str
    problem_message: str
    created_at_ms: int
    updated_at_ms: int


class UpsertScheduler(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """Make or change a definition, idempotent by content [6.7]. Answer: UpsertedScheduler.

    Refused: OWNED_BY_CRD (owned, and no owner sent), NAME_CONFLICT (an owner, of a definition that is not its own).
    adopt: an owner takes over one that has none. dry_run: check and answer as if done.
    """

    name: str
    spec: SchedulerSpec
    owner: Owner | None = None
    dry_run: bool = False
    adopt: bool = False


class UpsertedScheduler(msgspec.Struct, frozen=True, array_like=True, tag=110):
    """outcome: 1 created, 2 updated, 3 unchanged, 4 stale generation (ignored; the stored definition is answered)."""

    scheduler: SchedulerRecord
    outcome: int


class DeleteScheduler(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Its jobs go on. An owned one needs its owner; another uid than the stored one deletes nothing.

    Answer: DeletedScheduler, or Refused SCHEDULER_NOT_FOUND unless allow_missing.
    """

    name: str
    owner: Owner | None = None
    allow_missing: bool = False


class DeletedScheduler(msgspec.Struct, frozen=True, array_like=True, tag=111):
    """Whether a definition was deleted."""

    deleted: bool


class SuspendScheduler(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Suspend or resume; suspended time is never caught up [6.5]. Already so: nothing is written.

    Answer: SchedulerFound, with the definition after the commit, or Refused SCHEDULER_NOT_FOUND, OWNED_BY_CRD.
    """

    name: str
    suspended: bool


class TriggerScheduler(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """One run now, whatever suspended, limit and policy say; run_key: the same key within 24 h, the same run.

    Answer: TriggeredScheduler, or Refused SCHEDULER_NOT_FOUND, or what refuses an add, such as QUEUE_FULL.
    """

    name: str
    run_key: str = ""


class TriggeredScheduler(msgspec.Struct, frozen=True, array_like=True, tag=112):
    """The run; existing: made by an earlier call with the same key."""

    run: JobRef
    existing: bool = False


class FireDue(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """From the engine's timers: fire the due ticks of these definitions (uids) [6.2]. Answer: Done.

    serving_since_ms: ticks due before it fell into downtime. A definition that is gone or not due changes nothing.
    """

    uids: list[str]
    serving_since_ms: int


class ReanchorSchedulers(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """After a long step back of the clock: count the next tick of up to `limit` definitions, after uid `after`, from now
    where it lies later than it should [6.4]. Answer: Reanchored."""

    after: str = ""
    limit: int = 500


class Reanchored(msgspec.Struct, frozen=True, array_like=True, tag=113):
    """next: `after` of the next call, "" at the end."""

    next: str = ""


class ReleaseDefinition(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """Take the owner off; the definition goes on. Another uid changes nothing. Answer: ReleasedDefinition."""

    name: str
    owner: Owner


class ReleasedDefinition(msgspec.Struct, frozen=True, array_like=True, tag=114):
    """Whether the owner was taken off."""

    released: bool


class SchedulerFound(msgspec.Struct, frozen=True, array_like=True, tag=158):
    """The definition; also the outcome of SuspendScheduler."""

    scheduler: SchedulerRecord


SchedulerCommand = (
    UpsertScheduler
    | DeleteScheduler
    | SuspendScheduler
    | TriggerScheduler
    | FireDue
    | ReanchorSchedulers
    | ReleaseDefinition
)
SchedulerOutcome = (
    UpsertedScheduler | DeletedScheduler | SchedulerFound | TriggeredScheduler | Reanchored | ReleasedDefinition
)
Command = (
    AddJobs
    | Claim
    | Settle
    | Renew
    | Report
    | Reap
    | Prune
    | CancelJob
    | ReleaseReceipt
    | DeleteReceipt
    | SchedulerCommand
)
Outcome = (
    AddedJobs | Claimed | Settled | Renewed | Done | Pruned | CancelledJob | FreedReceipt | SchedulerOutcome | Refused
)


# ----------------------------------------------------------------------------------------------- queries


class Policy(Value, frozen=True):
    """Options of a job in effect: job, queue and defaults merged at the add [9.23].

    retain_*_ms: None = the queue's retention, live.
    """

    max_attempts: int = 3
    backoff: Backoff = Backoff()
    lease_ms: int = 30_000
    attempt_timeout_ms: int = 0
    max_stalled: int = 3
    max_starts: int = 100
    retain_completed_ms: int | None = None
    retain_failed_ms: int | None = None
    receipt_ttl_ms: int = 86_400_000


class AttemptRecord(Value, frozen=True):
    """One ended attempt. outcome: state.AttemptOutcome, 0 = still running. start: the job's start counter then."""

    number: int
    start: int
    worker_id: str
    started_at_ms: int
    ended_at_ms: int
    outcome: int
    error: ErrorInfo | None = None


class Wait(Value, frozen=True):
    """Why a job that is neither active nor terminal does not run. reason: state.WaitReason."""

    reason: int
    holder: JobRef | None = None
    holder_worker_id: str = ""
    since_at_ms: int = 0
    until_at_ms: int = 0
    jobs_ahead: int = 0
    pending_children: int = 0
    by_group: bool = False


class JobRecord(Value, frozen=True):
    """A job as the store shows it. `state` is the stored one; a due delayed job is reported as waiting by the reader.

    full-only fields are empty in lists: data, content_type, headers, policy, result*, progress_json, attempts, wait.
    lease_expires_at_ms is filled in by the engine. scheduler, tick_at_ms: as in Delivery, in lists too.
    caused_by: of a run that REPLACE cancelled, the run that took its place.
    """

    number: int
    created_ms: int
    queue: str
    name: str
    state: int
    priority: int
    attempt: int
    starts: int
    stalled: int
    due_at_ms: int
    started_at_ms: int
    finished_at_ms: int
    expires_at_ms: int
    worker_id: str
    finish_reason: int
    finish_message: str
    cancel_requested: bool
    revision: int
    labels: dict[str, str] | None = None
    key: str = ""
    singleton: bool = False
    group_id: str = ""
    order_key: int = 0
    data: bytes = b""
    content_type: str = ""
    headers: dict[str, str] | None = None
    policy: Policy | None = None
    result: bytes = b""
    result_content_type: str = ""
    progress_json: str = ""
    attempts: list[AttemptRecord] = []
    wait: Wait | None = None
    lease_expires_at_ms: int = 0
    scheduler: str = ""
    tick_at_ms: int = 0
    caused_by: JobRef | None = None


class GetJob(msgspec.Struct, frozen=True, array_like=True, tag=50):
    """Answer: JobFound or Refused JOB_NOT_FOUND. full: with data, result, attempts, policy. wait: with the wait reason."""

    ref: JobRef
    full: bool = True
    wait: bool = False


class JobFound(msgspec.Struct, frozen=True, array_like=True, tag=150):
    """The job."""

    job: JobRecord


class WaitJob(msgspec.Struct, frozen=True, array_like=True, tag=51):
    """Answered with JobFound when the job is terminal or after wait_ms (0..60000), whichever comes first."""

    ref: JobRef
    wait_ms: int
    full: bool = True


class JobFilter(Value, frozen=True):
    """Joined by AND; empty matches all. states: reported states. allowed: queue patterns of the token, None = all.

    search: substring of the text id, the name or the key. scheduler: name of the definition that made the job,
    exact; jobs of an earlier definition of that name match too.
    """

    queue: str = ""
    states: list[int] = []
    name: str = ""
    labels: dict[str, str] = {}
    created_after_ms: int = 0
    created_before_ms: int = 0
    finished_before_ms: int = 0
    finish_reason: int = 0
    search: str = ""
    group_id: str = ""
    allowed: list[str] | None = None
    scheduler: str = ""


class ListJobs(msgspec.Struct, frozen=True, array_like=True, tag=52):
    """One keyset page of at most `limit` (1..1000) jobs by number; walks at most 10 000 rows. Answer: JobPage.

    after: number of the last row looked at, None = first page, which also counts the matches up to 10 000.
    """

    filter: JobFilter
    limit: int = 100
    after: int | None = None
    oldest_first: bool = False
    full: bool = False


class JobPage(msgspec.Struct, frozen=True, array_like=True, tag=152):
    """next: `after` of the next page, None at the end. total: of the first page, else 0."""

    jobs: list[JobRecord]
    next: int | None
    total: int = 0
    total_is_capped: bool = False


class ListJobLogs(msgspec.Struct, frozen=True, array_like=True, tag=53):
    """Lines oldest first, after line number `after` (0 = from the start). Answer: LogPage or Refused JOB_NOT_FOUND."""

    ref: JobRef
    limit: int = 100
    after: int = 0


class LogPage(msgspec.Struct, frozen=True, array_like=True, tag=153):
    """next: `after` of the next page, None at the end."""

    lines: list[LogLine]
    next: int | None


class ReceiptRecord(Value, frozen=True):
    """A receipt. job_state: 0 when the job is removed. expires_at_ms: 0 while the job is not terminal."""

    queue: str
    name: str
    key: str
    singleton: bool
    ref: JobRef
    job_state: int
    digest: bytes
    created_at_ms: int
    expires_at_ms: int


class GetReceipt(msgspec.Struct, frozen=True, array_like=True, tag=54):
    """Answer: ReceiptFound or Refused RECEIPT_NOT_FOUND."""

    queue: str
    name: str
    key: str


class ReceiptFound(msgspec.Struct, frozen=True, array_like=True, tag=154):
    """The receipt."""

    receipt: ReceiptRecord


class ListReceipts(msgspec.Struct, frozen=True, array_like=True, tag=55):
    """By (name, key), after that pair (None = from the start). name "" = every name. Answer: ReceiptPage."""

    queue: str
    name: str = ""
    key_prefix: str = ""
    limit: int = 100
    after: tuple[str, str] | None = None


class ReceiptPage(msgspec.Struct, frozen=True, array_like=True, tag=155):
    """next: `after` of the next page, None at the end."""

    receipts: list[ReceiptRecord]
    next: tuple[str, str] | None


class ListWorkers(msgspec.Struct, frozen=True, array_like=True, tag=56):
    """Sessions and recent callers of Claim, by worker_id after `after`. Answer: WorkerPage."""

    queue: str = ""
    limit: int = 100
    after: str = ""
    allowed: list[str] | None = None


class Pool(Value, frozen=True):
    """Slots that serve queues; id from 1."""

    id: int
    queues: list[str]
    concurrency: int = 0


class WorkerRecord(Value, frozen=True):
    """One worker as the engine sees it. session: False for callers of Claim."""

    identity: WorkerIdentity
    pools: list[Pool]
    running: int
    open_credit: int
    connected_at_ms: int
    last_seen_at_ms: int
    draining: bool
    session: bool


class WorkerPage(msgspec.Struct, frozen=True, array_like=True, tag=156):
    """next: `after` of the next page, "" at the end."""

    workers: list[WorkerRecord]
    next: str = ""


class GetInfo(msgspec.Struct, frozen=True, array_like=True, tag=57):
    """Answer: Info."""


class Info(msgspec.Struct, frozen=True, array_like=True, tag=157):
    """What GetServerInfo tells beyond the gateway's own knowledge. durability: 1 full, 2 relaxed."""

    now_ms: int
    schema_version: int
    durability: int


class GetScheduler(msgspec.Struct, frozen=True, array_like=True, tag=58):
    """Answer: SchedulerFound or Refused SCHEDULER_NOT_FOUND. suspended in the record's spec is the stored value, not None;
    last_state is the reported one (a due delayed run is waiting)."""

    name: str


class ListSchedulers(msgspec.Struct, frozen=True, array_like=True, tag=59):
    """One keyset page of definitions by name, in order of code points, after name `after`. Answer: SchedulerPage.

    The filters are joined by AND, empty ones match all. name_prefix: compared byte for byte, `_` and `%` are letters of
    it. queue: of the job template, exact. flow_template: name of the target template, exact; a definition with a job
    never matches. allowed: queue patterns of the token for the queue of the job template (view.queue_allowed), None = all.
    The page ends after `limit` (1..1000) definitions, after 10 000 looked at, or before the first whose job data would
    take the page above 3 MiB (one definition always fits), whichever comes first; it may so be empty with a `next`.
    """

    name_prefix: str = ""
    queue: str = ""
    flow_template: str = ""
    limit: int = 100
    after: str = ""
    allowed: list[str] | None = None


class SchedulerPage(msgspec.Struct, frozen=True, array_like=True, tag=159):
    """Records as GetScheduler answers them. next: `after` of the next page, the last name looked at; "" at the end."""

    schedulers: list[SchedulerRecord]
    next: str = ""


class DefinitionRecord(Value, frozen=True):
    """A definition that has an owner, without its content. type: 1 scheduler, 2 flow template (none yet).

    Times, last_run, problem_*: as in SchedulerRecord.
    """

    type: int
    name: str
    owner: Owner
    next_tick_at_ms: int = 0
    last_tick_at_ms: int = 0
    last_run: JobRef | None = None
    problem_reason: str = ""
    problem_message: str = ""


class ListDefinitions(msgspec.Struct, frozen=True, array_like=True, tag=60):
    """One keyset page of at most `limit` (1..1000) definitions that have an owner. Answer: DefinitionPage.

    By (owner's kind, namespace, name, type, definition's name), in order of code points, after that tuple (None = from
    the start); one owner may have several definitions. namespace, kind, manager: exact, "" = every one. Owners are
    answered as stored, with uid, generation, spec_hash, manager, retain: an operator compares them after a restart.
    """

    namespace: str = ""
    kind: str = ""
    manager: str = ""
    limit: int = 100
    after: tuple[str, str, str, int, str] | None = None


class DefinitionPage(msgspec.Struct, frozen=True, array_like=True, tag=160):
    """next: `after` of the next page, None at the end."""

    definitions: list[DefinitionRecord]
    next: tuple[str, str, str, int, str] | None = None


Query = (
    GetJob
    | WaitJob
    | ListJobs
    | ListJobLogs
    | GetReceipt
    | ListReceipts
    | ListWorkers
    | GetInfo
    | GetScheduler
    | ListSchedulers
    | ListDefinitions
)
Answer = (
    JobFound
    | JobPage
    | LogPage
    | ReceiptFound
    | ReceiptPage
    | WorkerPage
    | Info
    | SchedulerFound
    | SchedulerPage
    | DefinitionPage
    | Refused
)


# ---------------------------------------------------------------------------------------- worker sessions


class OpenSession(msgspec.Struct, frozen=True, array_like=True, tag=70):
    """First word of a worker's stream. session: number unique in the gateway's connection. Answered by Opened.

    resume: every lease the worker still holds; its other session leases go back as undelivered. A second session of
    one worker_id replaces the first, which gets SessionEnded SESSION_REPLACED.
    """

    session: int
    worker: WorkerIdentity
    pools: list[Pool]
    resume: list[LeaseRef] = []


class AddCredit(msgspec.Struct, frozen=True, array_like=True, tag=71):
    """Credit as (pool, jobs) pairs, added to what is left, at most 1000 open a pool. No answer."""

    session: int
    credits: list[tuple[int, int]]


class DrainSession(msgspec.Struct, frozen=True, array_like=True, tag=72):
    """Take the credit of these pools back (empty: all, and list the worker as draining). Answered by Drained."""

    session: int
    pools: list[int] = []


class CloseSession(msgspec.Struct, frozen=True, array_like=True, tag=73):
    """The stream is gone: its credit goes, its leases stay for resumption. No answer."""

    session: int


class Undeliver(msgspec.Struct, frozen=True, array_like=True, tag=74):
    """These deliveries could not be written to the stream; the engine puts them back uncounted. No answer."""

    session: int
    leases: list[LeaseRef]


class SessionSeen(msgspec.Struct, frozen=True, array_like=True, tag=75):
    """The gateway heard from this session (at most once a ping interval); feeds last_seen. No answer."""

    session: int


class DrainWorker(msgspec.Struct, frozen=True, array_like=True, tag=76):
    """Ask the worker, wherever it is connected, to finish and leave. Answer: Done or Refused WORKER_NOT_FOUND."""

    worker_id: str
    reason: str = ""


SessionMessage = OpenSession | AddCredit | DrainSession | CloseSession | Undeliver | SessionSeen


class Opened(msgspec.Struct, frozen=True, array_like=True, tag=170):
    """The session stands. interrupts: those of `resume` that are lost or cancelled."""

    session: int
    interrupts: list[Interrupt]


class Deliveries(msgspec.Struct, frozen=True, array_like=True, tag=171):
    """Started attempts for a session; their leases run from the handing over of this frame."""

    session: int
    deliveries: list[Delivery]


class Interrupts(msgspec.Struct, frozen=True, array_like=True, tag=172):
    """Attempts of a session that must stop."""

    session: int
    interrupts: list[Interrupt]


class Drained(msgspec.Struct, frozen=True, array_like=True, tag=173):
    """No delivery against the credit of these pools follows."""

    session: int
    pools: list[int]


class GoAway(msgspec.Struct, frozen=True, array_like=True, tag=174):
    """Ask the worker to leave this stream; drain: to finish and exit."""

    session: int
    reason: str
    drain: bool = False


class SessionEnded(msgspec.Struct, frozen=True, array_like=True, tag=175):
    """The engine ended the session. reason: SESSION_REPLACED."""

    session: int
    reason: str


Notice = Opened | Deliveries | Interrupts | Drained | GoAway | SessionEnded
