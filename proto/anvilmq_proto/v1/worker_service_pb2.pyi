from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InterruptCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERRUPT_CAUSE_UNSPECIFIED: _ClassVar[InterruptCause]
    INTERRUPT_CAUSE_CANCEL_REQUESTED: _ClassVar[InterruptCause]
    INTERRUPT_CAUSE_LEASE_LOST: _ClassVar[InterruptCause]
    INTERRUPT_CAUSE_ATTEMPT_TIMEOUT: _ClassVar[InterruptCause]
    INTERRUPT_CAUSE_CHILD_FAILED: _ClassVar[InterruptCause]
    INTERRUPT_CAUSE_REMOVED: _ClassVar[InterruptCause]

class SettleOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SETTLE_OUTCOME_UNSPECIFIED: _ClassVar[SettleOutcome]
    SETTLE_OUTCOME_COMPLETE: _ClassVar[SettleOutcome]
    SETTLE_OUTCOME_FAIL: _ClassVar[SettleOutcome]
    SETTLE_OUTCOME_RELEASE: _ClassVar[SettleOutcome]
    SETTLE_OUTCOME_AWAIT_CHILDREN: _ClassVar[SettleOutcome]
INTERRUPT_CAUSE_UNSPECIFIED: InterruptCause
INTERRUPT_CAUSE_CANCEL_REQUESTED: InterruptCause
INTERRUPT_CAUSE_LEASE_LOST: InterruptCause
INTERRUPT_CAUSE_ATTEMPT_TIMEOUT: InterruptCause
INTERRUPT_CAUSE_CHILD_FAILED: InterruptCause
INTERRUPT_CAUSE_REMOVED: InterruptCause
SETTLE_OUTCOME_UNSPECIFIED: SettleOutcome
SETTLE_OUTCOME_COMPLETE: SettleOutcome
SETTLE_OUTCOME_FAIL: SettleOutcome
SETTLE_OUTCOME_RELEASE: SettleOutcome
SETTLE_OUTCOME_AWAIT_CHILDREN: SettleOutcome

class WorkRequest(_message.Message):
    __slots__ = ("open", "settle", "credits", "renew", "progress", "logs", "drain", "ping")
    class Open(_message.Message):
        __slots__ = ("worker", "pools", "resume", "max_frame_bytes")
        WORKER_FIELD_NUMBER: _ClassVar[int]
        POOLS_FIELD_NUMBER: _ClassVar[int]
        RESUME_FIELD_NUMBER: _ClassVar[int]
        MAX_FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
        worker: WorkerIdentity
        pools: _containers.RepeatedCompositeFieldContainer[Pool]
        resume: _containers.RepeatedCompositeFieldContainer[_types_pb2.Lease]
        max_frame_bytes: int
        def __init__(self, worker: _Optional[_Union[WorkerIdentity, _Mapping]] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., resume: _Optional[_Iterable[_Union[_types_pb2.Lease, _Mapping]]] = ..., max_frame_bytes: _Optional[int] = ...) -> None: ...
    class Drain(_message.Message):
        __slots__ = ("pools",)
        POOLS_FIELD_NUMBER: _ClassVar[int]
        pools: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, pools: _Optional[_Iterable[int]] = ...) -> None: ...
    class Ping(_message.Message):
        __slots__ = ("at_ms",)
        AT_MS_FIELD_NUMBER: _ClassVar[int]
        at_ms: int
        def __init__(self, at_ms: _Optional[int] = ...) -> None: ...
    OPEN_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    RENEW_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    open: WorkRequest.Open
    settle: SettleJobsRequest
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    renew: RenewLeasesRequest
    progress: _containers.RepeatedCompositeFieldContainer[ReportProgressRequest]
    logs: _containers.RepeatedCompositeFieldContainer[AppendJobLogsRequest]
    drain: WorkRequest.Drain
    ping: WorkRequest.Ping
    def __init__(self, open: _Optional[_Union[WorkRequest.Open, _Mapping]] = ..., settle: _Optional[_Union[SettleJobsRequest, _Mapping]] = ..., credits: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ..., renew: _Optional[_Union[RenewLeasesRequest, _Mapping]] = ..., progress: _Optional[_Iterable[_Union[ReportProgressRequest, _Mapping]]] = ..., logs: _Optional[_Iterable[_Union[AppendJobLogsRequest, _Mapping]]] = ..., drain: _Optional[_Union[WorkRequest.Drain, _Mapping]] = ..., ping: _Optional[_Union[WorkRequest.Ping, _Mapping]] = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("opened", "settled", "deliveries", "renewed", "interrupts", "drained", "go_away", "pong")
    class Opened(_message.Message):
        __slots__ = ("interrupts", "ping_every_ms", "max_frame_bytes", "broker_version", "features")
        INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
        PING_EVERY_MS_FIELD_NUMBER: _ClassVar[int]
        MAX_FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
        BROKER_VERSION_FIELD_NUMBER: _ClassVar[int]
        FEATURES_FIELD_NUMBER: _ClassVar[int]
        interrupts: _containers.RepeatedCompositeFieldContainer[Interrupt]
        ping_every_ms: int
        max_frame_bytes: int
        broker_version: str
        features: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, interrupts: _Optional[_Iterable[_Union[Interrupt, _Mapping]]] = ..., ping_every_ms: _Optional[int] = ..., max_frame_bytes: _Optional[int] = ..., broker_version: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ...) -> None: ...
    class Drained(_message.Message):
        __slots__ = ("pools",)
        POOLS_FIELD_NUMBER: _ClassVar[int]
        pools: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, pools: _Optional[_Iterable[int]] = ...) -> None: ...
    class GoAway(_message.Message):
        __slots__ = ("within_ms", "reason", "drain")
        WITHIN_MS_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        DRAIN_FIELD_NUMBER: _ClassVar[int]
        within_ms: int
        reason: str
        drain: bool
        def __init__(self, within_ms: _Optional[int] = ..., reason: _Optional[str] = ..., drain: bool = ...) -> None: ...
    class Pong(_message.Message):
        __slots__ = ("at_ms",)
        AT_MS_FIELD_NUMBER: _ClassVar[int]
        at_ms: int
        def __init__(self, at_ms: _Optional[int] = ...) -> None: ...
    OPENED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    GO_AWAY_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    opened: WorkResponse.Opened
    settled: _containers.RepeatedCompositeFieldContainer[SettleJobsResponse]
    deliveries: _containers.RepeatedCompositeFieldContainer[Delivery]
    renewed: RenewLeasesResponse
    interrupts: _containers.RepeatedCompositeFieldContainer[Interrupt]
    drained: WorkResponse.Drained
    go_away: WorkResponse.GoAway
    pong: WorkResponse.Pong
    def __init__(self, opened: _Optional[_Union[WorkResponse.Opened, _Mapping]] = ..., settled: _Optional[_Iterable[_Union[SettleJobsResponse, _Mapping]]] = ..., deliveries: _Optional[_Iterable[_Union[Delivery, _Mapping]]] = ..., renewed: _Optional[_Union[RenewLeasesResponse, _Mapping]] = ..., interrupts: _Optional[_Iterable[_Union[Interrupt, _Mapping]]] = ..., drained: _Optional[_Union[WorkResponse.Drained, _Mapping]] = ..., go_away: _Optional[_Union[WorkResponse.GoAway, _Mapping]] = ..., pong: _Optional[_Union[WorkResponse.Pong, _Mapping]] = ...) -> None: ...

class WorkerIdentity(_message.Message):
    __slots__ = ("worker_id", "name", "pod", "node", "sdk", "sdk_version")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    SDK_VERSION_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    name: str
    pod: str
    node: str
    sdk: str
    sdk_version: str
    def __init__(self, worker_id: _Optional[str] = ..., name: _Optional[str] = ..., pod: _Optional[str] = ..., node: _Optional[str] = ..., sdk: _Optional[str] = ..., sdk_version: _Optional[str] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("id", "queues", "concurrency")
    ID_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    id: int
    queues: _containers.RepeatedScalarFieldContainer[str]
    concurrency: int
    def __init__(self, id: _Optional[int] = ..., queues: _Optional[_Iterable[str]] = ..., concurrency: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("pool", "jobs")
    POOL_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    pool: int
    jobs: int
    def __init__(self, pool: _Optional[int] = ..., jobs: _Optional[int] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("job_id", "lease_token", "queue", "name", "data", "content_type", "attempt", "max_attempts", "lease_ms", "attempt_timeout_ms", "headers", "created_at_ms", "group_id", "pool", "flow_id", "node_key", "child_count", "failed_children", "priority", "labels", "order_key", "idempotency_key", "scheduler", "tick_at_ms", "starts", "stalled_count", "progress_json")
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
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_KEY_FIELD_NUMBER: _ClassVar[int]
    CHILD_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILED_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ORDER_KEY_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    STALLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_JSON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: str
    queue: str
    name: str
    data: bytes
    content_type: str
    attempt: int
    max_attempts: int
    lease_ms: int
    attempt_timeout_ms: int
    headers: _containers.ScalarMap[str, str]
    created_at_ms: int
    group_id: str
    pool: int
    flow_id: str
    node_key: str
    child_count: int
    failed_children: int
    priority: int
    labels: _containers.ScalarMap[str, str]
    order_key: int
    idempotency_key: str
    scheduler: str
    tick_at_ms: int
    starts: int
    stalled_count: int
    progress_json: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., queue: _Optional[str] = ..., name: _Optional[str] = ..., data: _Optional[bytes] = ..., content_type: _Optional[str] = ..., attempt: _Optional[int] = ..., max_attempts: _Optional[int] = ..., lease_ms: _Optional[int] = ..., attempt_timeout_ms: _Optional[int] = ..., headers: _Optional[_Mapping[str, str]] = ..., created_at_ms: _Optional[int] = ..., group_id: _Optional[str] = ..., pool: _Optional[int] = ..., flow_id: _Optional[str] = ..., node_key: _Optional[str] = ..., child_count: _Optional[int] = ..., failed_children: _Optional[int] = ..., priority: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., order_key: _Optional[int] = ..., idempotency_key: _Optional[str] = ..., scheduler: _Optional[str] = ..., tick_at_ms: _Optional[int] = ..., starts: _Optional[int] = ..., stalled_count: _Optional[int] = ..., progress_json: _Optional[str] = ...) -> None: ...

class Interrupt(_message.Message):
    __slots__ = ("job_id", "lease_token", "cause", "reason")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: str
    cause: InterruptCause
    reason: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., cause: _Optional[_Union[InterruptCause, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ClaimJobsRequest(_message.Message):
    __slots__ = ("worker", "queues", "max_jobs", "wait_ms", "claim_id")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MAX_JOBS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_ID_FIELD_NUMBER: _ClassVar[int]
    worker: WorkerIdentity
    queues: _containers.RepeatedScalarFieldContainer[str]
    max_jobs: int
    wait_ms: int
    claim_id: str
    def __init__(self, worker: _Optional[_Union[WorkerIdentity, _Mapping]] = ..., queues: _Optional[_Iterable[str]] = ..., max_jobs: _Optional[int] = ..., wait_ms: _Optional[int] = ..., claim_id: _Optional[str] = ...) -> None: ...

class ClaimJobsResponse(_message.Message):
    __slots__ = ("deliveries",)
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[Delivery]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[Delivery, _Mapping]]] = ...) -> None: ...

class Settlement(_message.Message):
    __slots__ = ("job_id", "lease_token", "outcome", "result", "result_content_type", "error", "non_retryable", "retry_after_ms", "delay_ms", "reason")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: str
    outcome: SettleOutcome
    result: bytes
    result_content_type: str
    error: _types_pb2.JobError
    non_retryable: bool
    retry_after_ms: int
    delay_ms: int
    reason: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., outcome: _Optional[_Union[SettleOutcome, str]] = ..., result: _Optional[bytes] = ..., result_content_type: _Optional[str] = ..., error: _Optional[_Union[_types_pb2.JobError, _Mapping]] = ..., non_retryable: bool = ..., retry_after_ms: _Optional[int] = ..., delay_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class SettleJobsRequest(_message.Message):
    __slots__ = ("seq", "settlements")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SETTLEMENTS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    settlements: _containers.RepeatedCompositeFieldContainer[Settlement]
    def __init__(self, seq: _Optional[int] = ..., settlements: _Optional[_Iterable[_Union[Settlement, _Mapping]]] = ...) -> None: ...

class SettleJobsResponse(_message.Message):
    __slots__ = ("seq", "states", "errors")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    states: _containers.RepeatedScalarFieldContainer[_types_pb2.JobState]
    errors: _containers.RepeatedCompositeFieldContainer[_types_pb2.ItemError]
    def __init__(self, seq: _Optional[int] = ..., states: _Optional[_Iterable[_Union[_types_pb2.JobState, str]]] = ..., errors: _Optional[_Iterable[_Union[_types_pb2.ItemError, _Mapping]]] = ...) -> None: ...

class RenewLeasesRequest(_message.Message):
    __slots__ = ("seq", "leases")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    seq: int
    leases: _containers.RepeatedCompositeFieldContainer[_types_pb2.Lease]
    def __init__(self, seq: _Optional[int] = ..., leases: _Optional[_Iterable[_Union[_types_pb2.Lease, _Mapping]]] = ...) -> None: ...

class RenewLeasesResponse(_message.Message):
    __slots__ = ("seq", "interrupts")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    seq: int
    interrupts: _containers.RepeatedCompositeFieldContainer[Interrupt]
    def __init__(self, seq: _Optional[int] = ..., interrupts: _Optional[_Iterable[_Union[Interrupt, _Mapping]]] = ...) -> None: ...

class ReportProgressRequest(_message.Message):
    __slots__ = ("job_id", "lease_token", "progress_json")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_JSON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: str
    progress_json: str
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., progress_json: _Optional[str] = ...) -> None: ...

class ReportProgressResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AppendJobLogsRequest(_message.Message):
    __slots__ = ("job_id", "lease_token", "lines")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    lease_token: str
    lines: _containers.RepeatedCompositeFieldContainer[_types_pb2.JobLogLine]
    def __init__(self, job_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., lines: _Optional[_Iterable[_Union[_types_pb2.JobLogLine, _Mapping]]] = ...) -> None: ...

class AppendJobLogsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Worker(_message.Message):
    __slots__ = ("identity", "pools", "running", "open_credit", "connected_at_ms", "last_seen_at_ms", "draining", "session")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    OPEN_CREDIT_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    identity: WorkerIdentity
    pools: _containers.RepeatedCompositeFieldContainer[Pool]
    running: int
    open_credit: int
    connected_at_ms: int
    last_seen_at_ms: int
    draining: bool
    session: bool
    def __init__(self, identity: _Optional[_Union[WorkerIdentity, _Mapping]] = ..., pools: _Optional[_Iterable[_Union[Pool, _Mapping]]] = ..., running: _Optional[int] = ..., open_credit: _Optional[int] = ..., connected_at_ms: _Optional[int] = ..., last_seen_at_ms: _Optional[int] = ..., draining: bool = ..., session: bool = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ("queue", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "next_page_token")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    next_page_token: str
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DrainWorkerRequest(_message.Message):
    __slots__ = ("worker_id", "reason")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    reason: str
    def __init__(self, worker_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class DrainWorkerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
