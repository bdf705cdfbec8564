from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_WAITING: _ClassVar[JobState]
    JOB_STATE_DELAYED: _ClassVar[JobState]
    JOB_STATE_ACTIVE: _ClassVar[JobState]
    JOB_STATE_WAITING_CHILDREN: _ClassVar[JobState]
    JOB_STATE_COMPLETED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_QUEUE_PAUSED: _ClassVar[WaitReason]
    WAIT_REASON_GROUP_BUSY: _ClassVar[WaitReason]
    WAIT_REASON_GROUP_BACKOFF: _ClassVar[WaitReason]
    WAIT_REASON_GROUP_PAUSED: _ClassVar[WaitReason]
    WAIT_REASON_RATE_LIMITED: _ClassVar[WaitReason]
    WAIT_REASON_CONCURRENCY: _ClassVar[WaitReason]
    WAIT_REASON_DELAY: _ClassVar[WaitReason]
    WAIT_REASON_CHILDREN: _ClassVar[WaitReason]
    WAIT_REASON_NO_WORKER: _ClassVar[WaitReason]
    WAIT_REASON_NEXT: _ClassVar[WaitReason]
    WAIT_REASON_DEDUPLICATION: _ClassVar[WaitReason]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_COMPLETED: _ClassVar[FinishReason]
    FINISH_REASON_ATTEMPTS_EXHAUSTED: _ClassVar[FinishReason]
    FINISH_REASON_NON_RETRYABLE: _ClassVar[FinishReason]
    FINISH_REASON_STALLED: _ClassVar[FinishReason]
    FINISH_REASON_ATTEMPT_TIMEOUT: _ClassVar[FinishReason]
    FINISH_REASON_MAX_STARTS: _ClassVar[FinishReason]
    FINISH_REASON_CHILD_FAILED: _ClassVar[FinishReason]
    FINISH_REASON_CANCEL_REQUESTED: _ClassVar[FinishReason]
    FINISH_REASON_EXPIRED: _ClassVar[FinishReason]
    FINISH_REASON_REPLACED: _ClassVar[FinishReason]

class BackoffKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BACKOFF_KIND_UNSPECIFIED: _ClassVar[BackoffKind]
    BACKOFF_KIND_FIXED: _ClassVar[BackoffKind]
    BACKOFF_KIND_EXPONENTIAL: _ClassVar[BackoffKind]

class IdempotencyMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IDEMPOTENCY_MODE_UNSPECIFIED: _ClassVar[IdempotencyMode]
    IDEMPOTENCY_MODE_RETAIN: _ClassVar[IdempotencyMode]
    IDEMPOTENCY_MODE_RELEASE_ON_FINISH: _ClassVar[IdempotencyMode]

class DeduplicationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEDUPLICATION_MODE_UNSPECIFIED: _ClassVar[DeduplicationMode]
    DEDUPLICATION_MODE_SIMPLE: _ClassVar[DeduplicationMode]
    DEDUPLICATION_MODE_THROTTLE: _ClassVar[DeduplicationMode]
    DEDUPLICATION_MODE_DEBOUNCE: _ClassVar[DeduplicationMode]
    DEDUPLICATION_MODE_KEEP_LAST_IF_ACTIVE: _ClassVar[DeduplicationMode]

class MatchedBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MATCHED_BY_UNSPECIFIED: _ClassVar[MatchedBy]
    MATCHED_BY_RECEIPT: _ClassVar[MatchedBy]
    MATCHED_BY_DEDUPLICATION: _ClassVar[MatchedBy]

class ChildFailurePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHILD_FAILURE_POLICY_UNSPECIFIED: _ClassVar[ChildFailurePolicy]
    CHILD_FAILURE_POLICY_IGNORE: _ClassVar[ChildFailurePolicy]
    CHILD_FAILURE_POLICY_FAIL_PARENT: _ClassVar[ChildFailurePolicy]
    CHILD_FAILURE_POLICY_CONTINUE_PARENT: _ClassVar[ChildFailurePolicy]
    CHILD_FAILURE_POLICY_BLOCK_PARENT: _ClassVar[ChildFailurePolicy]

class AttemptOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATTEMPT_OUTCOME_UNSPECIFIED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_COMPLETED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_FAILED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_TIMED_OUT: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_STALLED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_RELEASED: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_AWAITS_CHILDREN: _ClassVar[AttemptOutcome]
    ATTEMPT_OUTCOME_CANCELLED: _ClassVar[AttemptOutcome]

class JobView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_VIEW_UNSPECIFIED: _ClassVar[JobView]
    JOB_VIEW_BASIC: _ClassVar[JobView]
    JOB_VIEW_FULL: _ClassVar[JobView]

class UpsertOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UPSERT_OUTCOME_UNSPECIFIED: _ClassVar[UpsertOutcome]
    UPSERT_OUTCOME_CREATED: _ClassVar[UpsertOutcome]
    UPSERT_OUTCOME_UPDATED: _ClassVar[UpsertOutcome]
    UPSERT_OUTCOME_UNCHANGED: _ClassVar[UpsertOutcome]
    UPSERT_OUTCOME_STALE_GENERATION: _ClassVar[UpsertOutcome]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_WAITING: JobState
JOB_STATE_DELAYED: JobState
JOB_STATE_ACTIVE: JobState
JOB_STATE_WAITING_CHILDREN: JobState
JOB_STATE_COMPLETED: JobState
JOB_STATE_FAILED: JobState
JOB_STATE_CANCELLED: JobState
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_QUEUE_PAUSED: WaitReason
WAIT_REASON_GROUP_BUSY: WaitReason
WAIT_REASON_GROUP_BACKOFF: WaitReason
WAIT_REASON_GROUP_PAUSED: WaitReason
WAIT_REASON_RATE_LIMITED: WaitReason
WAIT_REASON_CONCURRENCY: WaitReason
WAIT_REASON_DELAY: WaitReason
WAIT_REASON_CHILDREN: WaitReason
WAIT_REASON_NO_WORKER: WaitReason
WAIT_REASON_NEXT: WaitReason
WAIT_REASON_DEDUPLICATION: WaitReason
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_COMPLETED: FinishReason
FINISH_REASON_ATTEMPTS_EXHAUSTED: FinishReason
FINISH_REASON_NON_RETRYABLE: FinishReason
FINISH_REASON_STALLED: FinishReason
FINISH_REASON_ATTEMPT_TIMEOUT: FinishReason
FINISH_REASON_MAX_STARTS: FinishReason
FINISH_REASON_CHILD_FAILED: FinishReason
FINISH_REASON_CANCEL_REQUESTED: FinishReason
FINISH_REASON_EXPIRED: FinishReason
FINISH_REASON_REPLACED: FinishReason
BACKOFF_KIND_UNSPECIFIED: BackoffKind
BACKOFF_KIND_FIXED: BackoffKind
BACKOFF_KIND_EXPONENTIAL: BackoffKind
IDEMPOTENCY_MODE_UNSPECIFIED: IdempotencyMode
IDEMPOTENCY_MODE_RETAIN: IdempotencyMode
IDEMPOTENCY_MODE_RELEASE_ON_FINISH: IdempotencyMode
DEDUPLICATION_MODE_UNSPECIFIED: DeduplicationMode
DEDUPLICATION_MODE_SIMPLE: DeduplicationMode
DEDUPLICATION_MODE_THROTTLE: DeduplicationMode
DEDUPLICATION_MODE_DEBOUNCE: DeduplicationMode
DEDUPLICATION_MODE_KEEP_LAST_IF_ACTIVE: DeduplicationMode
MATCHED_BY_UNSPECIFIED: MatchedBy
MATCHED_BY_RECEIPT: MatchedBy
MATCHED_BY_DEDUPLICATION: MatchedBy
CHILD_FAILURE_POLICY_UNSPECIFIED: ChildFailurePolicy
CHILD_FAILURE_POLICY_IGNORE: ChildFailurePolicy
CHILD_FAILURE_POLICY_FAIL_PARENT: ChildFailurePolicy
CHILD_FAILURE_POLICY_CONTINUE_PARENT: ChildFailurePolicy
CHILD_FAILURE_POLICY_BLOCK_PARENT: ChildFailurePolicy
ATTEMPT_OUTCOME_UNSPECIFIED: AttemptOutcome
ATTEMPT_OUTCOME_COMPLETED: AttemptOutcome
ATTEMPT_OUTCOME_FAILED: AttemptOutcome
ATTEMPT_OUTCOME_TIMED_OUT: AttemptOutcome
ATTEMPT_OUTCOME_STALLED: AttemptOutcome
ATTEMPT_OUTCOME_RELEASED: AttemptOutcome
ATTEMPT_OUTCOME_AWAITS_CHILDREN: AttemptOutcome
ATTEMPT_OUTCOME_CANCELLED: AttemptOutcome
JOB_VIEW_UNSPECIFIED: JobView
JOB_VIEW_BASIC: JobView
JOB_VIEW_FULL: JobView
UPSERT_OUTCOME_UNSPECIFIED: UpsertOutcome
UPSERT_OUTCOME_CREATED: UpsertOutcome
UPSERT_OUTCOME_UPDATED: UpsertOutcome
UPSERT_OUTCOME_UNCHANGED: UpsertOutcome
UPSERT_OUTCOME_STALE_GENERATION: UpsertOutcome

class WaitInfo(_message.Message):
    __slots__ = ("reason", "holder_job_id", "holder_worker_id", "since_at_ms", "until_at_ms", "jobs_ahead", "pending_children", "by_group")
    REASON_FIELD_NUMBER: _ClassVar[int]
    HOLDER_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    HOLDER_WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_AT_MS_FIELD_NUMBER: _ClassVar[int]
    JOBS_AHEAD_FIELD_NUMBER: _ClassVar[int]
    PENDING_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    BY_GROUP_FIELD_NUMBER: _ClassVar[int]
    reason: WaitReason
    holder_job_id: str
    holder_worker_id: str
    since_at_ms: int
    until_at_ms: int
    jobs_ahead: int
    pending_children: int
    by_group: bool
    def __init__(self, reason: _Optional[_Union[WaitReason, str]] = ..., holder_job_id: _Optional[str] = ..., holder_worker_id: _Optional[str] = ..., since_at_ms: _Optional[int] = ..., until_at_ms: _Optional[int] = ..., jobs_ahead: _Optional[int] = ..., pending_children: _Optional[int] = ..., by_group: bool = ...) -> None: ...

class Backoff(_message.Message):
    __slots__ = ("kind", "delay_ms", "max_delay_ms", "jitter")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    kind: BackoffKind
    delay_ms: int
    max_delay_ms: int
    jitter: float
    def __init__(self, kind: _Optional[_Union[BackoffKind, str]] = ..., delay_ms: _Optional[int] = ..., max_delay_ms: _Optional[int] = ..., jitter: _Optional[float] = ...) -> None: ...

class JobPolicy(_message.Message):
    __slots__ = ("max_attempts", "backoff", "lease_ms", "attempt_timeout_ms", "max_stalled", "max_starts", "retain_completed_ms", "retain_failed_ms", "receipt_ttl_ms")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_STALLED_FIELD_NUMBER: _ClassVar[int]
    MAX_STARTS_FIELD_NUMBER: _ClassVar[int]
    RETAIN_COMPLETED_MS_FIELD_NUMBER: _ClassVar[int]
    RETAIN_FAILED_MS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    backoff: Backoff
    lease_ms: int
    attempt_timeout_ms: int
    max_stalled: int
    max_starts: int
    retain_completed_ms: int
    retain_failed_ms: int
    receipt_ttl_ms: int
    def __init__(self, max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[Backoff, _Mapping]] = ..., lease_ms: _Optional[int] = ..., attempt_timeout_ms: _Optional[int] = ..., max_stalled: _Optional[int] = ..., max_starts: _Optional[int] = ..., retain_completed_ms: _Optional[int] = ..., retain_failed_ms: _Optional[int] = ..., receipt_ttl_ms: _Optional[int] = ...) -> None: ...

class Deduplication(_message.Message):
    __slots__ = ("id", "mode", "ttl_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    id: str
    mode: DeduplicationMode
    ttl_ms: int
    def __init__(self, id: _Optional[str] = ..., mode: _Optional[_Union[DeduplicationMode, str]] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class JobSpec(_message.Message):
    __slots__ = ("queue", "name", "data", "content_type", "headers", "labels", "priority", "delay_ms", "idempotency_key", "idempotency_mode", "group_id", "order_key", "policy", "deduplication", "lifo", "run_at_ms", "expires_at_ms", "expires_after_ms")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_MODE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATION_FIELD_NUMBER: _ClassVar[int]
    LIFO_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    data: bytes
    content_type: str
    headers: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    priority: int
    delay_ms: int
    idempotency_key: str
    idempotency_mode: IdempotencyMode
    group_id: str
    order_key: int
    policy: JobPolicy
    deduplication: Deduplication
    lifo: bool
    run_at_ms: int
    expires_at_ms: int
    expires_after_ms: int
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., data: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., delay_ms: _Optional[int] = ..., idempotency_key: _Optional[str] = ..., idempotency_mode: _Optional[_Union[IdempotencyMode, str]] = ..., group_id: _Optional[str] = ..., order_key: _Optional[int] = ..., policy: _Optional[_Union[JobPolicy, _Mapping]] = ..., deduplication: _Optional[_Union[Deduplication, _Mapping]] = ..., lifo: bool = ..., run_at_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., expires_after_ms: _Optional[int] = ...) -> None: ...

class FlowNode(_message.Message):
    __slots__ = ("job", "children", "key", "on_failure")
    JOB_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    job: JobSpec
    children: _containers.RepeatedCompositeFieldContainer[FlowNode]
    key: str
    on_failure: ChildFailurePolicy
    def __init__(self, job: _Optional[_Union[JobSpec, _Mapping]] = ..., children: _Optional[_Iterable[_Union[FlowNode, _Mapping]]] = ..., key: _Optional[str] = ..., on_failure: _Optional[_Union[ChildFailurePolicy, str]] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("job_id", "lease_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[str] = ...) -> None: ...

class JobError(_message.Message):
    __slots__ = ("type", "message", "stack", "details_json")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    DETAILS_JSON_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    stack: str
    details_json: str
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., stack: _Optional[str] = ..., details_json: _Optional[str] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("number", "worker_id", "started_at_ms", "ended_at_ms", "outcome", "error")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    number: int
    worker_id: str
    started_at_ms: int
    ended_at_ms: int
    outcome: AttemptOutcome
    error: JobError
    def __init__(self, number: _Optional[int] = ..., worker_id: _Optional[str] = ..., started_at_ms: _Optional[int] = ..., ended_at_ms: _Optional[int] = ..., outcome: _Optional[_Union[AttemptOutcome, str]] = ..., error: _Optional[_Union[JobError, _Mapping]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("job_id", "queue", "name", "state", "data", "content_type", "headers", "labels", "priority", "group_id", "order_key", "policy", "attempt", "starts", "stalled_count", "created_at_ms", "due_at_ms", "started_at_ms", "finished_at_ms", "expires_at_ms", "lease_expires_at_ms", "worker_id", "result", "result_content_type", "progress_json", "finish_reason", "finish_message", "caused_by_job_id", "attempts", "wait", "flow_id", "node_key", "parent_ids", "child_count", "pending_children", "on_failure", "scheduler", "tick_at_ms", "idempotency_key", "idempotency_mode", "deduplication_id", "cancel_requested", "revision")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    STALLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_JSON_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    FINISH_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CAUSED_BY_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_KEY_FIELD_NUMBER: _ClassVar[int]
    PARENT_IDS_FIELD_NUMBER: _ClassVar[int]
    CHILD_COUNT_FIELD_NUMBER: _ClassVar[int]
    PENDING_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_MODE_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    queue: str
    name: str
    state: JobState
    data: bytes
    content_type: str
    headers: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    priority: int
    group_id: str
    order_key: int
    policy: JobPolicy
    attempt: int
    starts: int
    stalled_count: int
    created_at_ms: int
    due_at_ms: int
    started_at_ms: int
    finished_at_ms: int
    expires_at_ms: int
    lease_expires_at_ms: int
    worker_id: str
    result: bytes
    result_content_type: str
    progress_json: str
    finish_reason: FinishReason
    finish_message: str
    caused_by_job_id: str
    attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    wait: WaitInfo
    flow_id: str
    node_key: str
    parent_ids: _containers.RepeatedScalarFieldContainer[str]
    child_count: int
    pending_children: int
    on_failure: ChildFailurePolicy
    scheduler: str
    tick_at_ms: int
    idempotency_key: str
    idempotency_mode: IdempotencyMode
    deduplication_id: str
    cancel_requested: bool
    revision: int
    def __init__(self, job_id: _Optional[str] = ..., queue: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., data: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., group_id: _Optional[str] = ..., order_key: _Optional[int] = ..., policy: _Optional[_Union[JobPolicy, _Mapping]] = ..., attempt: _Optional[int] = ..., starts: _Optional[int] = ..., stalled_count: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., due_at_ms: _Optional[int] = ..., started_at_ms: _Optional[int] = ..., finished_at_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., lease_expires_at_ms: _Optional[int] = ..., worker_id: _Optional[str] = ..., result: _Optional[bytes] = ..., result_content_type: _Optional[str] = ..., progress_json: _Optional[str] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., finish_message: _Optional[str] = ..., caused_by_job_id: _Optional[str] = ..., attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., wait: _Optional[_Union[WaitInfo, _Mapping]] = ..., flow_id: _Optional[str] = ..., node_key: _Optional[str] = ..., parent_ids: _Optional[_Iterable[str]] = ..., child_count: _Optional[int] = ..., pending_children: _Optional[int] = ..., on_failure: _Optional[_Union[ChildFailurePolicy, str]] = ..., scheduler: _Optional[str] = ..., tick_at_ms: _Optional[int] = ..., idempotency_key: _Optional[str] = ..., idempotency_mode: _Optional[_Union[IdempotencyMode, str]] = ..., deduplication_id: _Optional[str] = ..., cancel_requested: bool = ..., revision: _Optional[int] = ...) -> None: ...

class JobCounts(_message.Message):
    __slots__ = ("waiting", "delayed", "active", "waiting_children", "completed", "failed", "cancelled")
    WAITING_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    WAITING_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    waiting: int
    delayed: int
    active: int
    waiting_children: int
    completed: int
    failed: int
    cancelled: int
    def __init__(self, waiting: _Optional[int] = ..., delayed: _Optional[int] = ..., active: _Optional[int] = ..., waiting_children: _Optional[int] = ..., completed: _Optional[int] = ..., failed: _Optional[int] = ..., cancelled: _Optional[int] = ...) -> None: ...

class ItemError(_message.Message):
    __slots__ = ("index", "code", "reason", "message", "field", "metadata", "retry_after_ms")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INDEX_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    index: int
    code: int
    reason: str
    message: str
    field: str
    metadata: _containers.ScalarMap[str, str]
    retry_after_ms: int
    def __init__(self, index: _Optional[int] = ..., code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...

class Owner(_message.Message):
    __slots__ = ("kind", "namespace", "name", "uid", "generation", "spec_hash", "manager", "retain")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SPEC_HASH_FIELD_NUMBER: _ClassVar[int]
    MANAGER_FIELD_NUMBER: _ClassVar[int]
    RETAIN_FIELD_NUMBER: _ClassVar[int]
    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    spec_hash: str
    manager: str
    retain: bool
    def __init__(self, kind: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., generation: _Optional[int] = ..., spec_hash: _Optional[str] = ..., manager: _Optional[str] = ..., retain: bool = ...) -> None: ...

class RateLimit(_message.Message):
    __slots__ = ("max", "window_ms")
    MAX_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    max: int
    window_ms: int
    def __init__(self, max: _Optional[int] = ..., window_ms: _Optional[int] = ...) -> None: ...

class JobLogLine(_message.Message):
    __slots__ = ("at_ms", "level", "line", "attempt")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    level: str
    line: str
    attempt: int
    def __init__(self, at_ms: _Optional[int] = ..., level: _Optional[str] = ..., line: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...
