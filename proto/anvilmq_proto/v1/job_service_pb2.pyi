from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Atomicity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ATOMICITY_UNSPECIFIED: _ClassVar[Atomicity]
    ATOMICITY_ALL_OR_NOTHING: _ClassVar[Atomicity]
    ATOMICITY_PER_ITEM: _ClassVar[Atomicity]
ATOMICITY_UNSPECIFIED: Atomicity
ATOMICITY_ALL_OR_NOTHING: Atomicity
ATOMICITY_PER_ITEM: Atomicity

class AddJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _types_pb2.JobSpec
    def __init__(self, job: _Optional[_Union[_types_pb2.JobSpec, _Mapping]] = ...) -> None: ...

class AddJobResponse(_message.Message):
    __slots__ = ("job_id", "state", "existing", "matched_by", "replaced_job_id")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    MATCHED_BY_FIELD_NUMBER: _ClassVar[int]
    REPLACED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    state: _types_pb2.JobState
    existing: bool
    matched_by: _types_pb2.MatchedBy
    replaced_job_id: str
    def __init__(self, job_id: _Optional[str] = ..., state: _Optional[_Union[_types_pb2.JobState, str]] = ..., existing: bool = ..., matched_by: _Optional[_Union[_types_pb2.MatchedBy, str]] = ..., replaced_job_id: _Optional[str] = ...) -> None: ...

class AddJobBulkRequest(_message.Message):
    __slots__ = ("jobs", "atomic", "producer_id", "seq")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    ATOMIC_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_types_pb2.JobSpec]
    atomic: Atomicity
    producer_id: str
    seq: int
    def __init__(self, jobs: _Optional[_Iterable[_Union[_types_pb2.JobSpec, _Mapping]]] = ..., atomic: _Optional[_Union[Atomicity, str]] = ..., producer_id: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class EarlierJob(_message.Message):
    __slots__ = ("index", "existing", "matched_by", "state", "replaced_job_id")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    MATCHED_BY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REPLACED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    index: int
    existing: bool
    matched_by: _types_pb2.MatchedBy
    state: _types_pb2.JobState
    replaced_job_id: str
    def __init__(self, index: _Optional[int] = ..., existing: bool = ..., matched_by: _Optional[_Union[_types_pb2.MatchedBy, str]] = ..., state: _Optional[_Union[_types_pb2.JobState, str]] = ..., replaced_job_id: _Optional[str] = ...) -> None: ...

class AddJobBulkResponse(_message.Message):
    __slots__ = ("job_ids", "earlier", "errors")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    earlier: _containers.RepeatedCompositeFieldContainer[EarlierJob]
    errors: _containers.RepeatedCompositeFieldContainer[_types_pb2.ItemError]
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ..., earlier: _Optional[_Iterable[_Union[EarlierJob, _Mapping]]] = ..., errors: _Optional[_Iterable[_Union[_types_pb2.ItemError, _Mapping]]] = ...) -> None: ...

class AddJobStreamRequest(_message.Message):
    __slots__ = ("jobs", "atomic", "producer_id", "seq")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    ATOMIC_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_types_pb2.JobSpec]
    atomic: Atomicity
    producer_id: str
    seq: int
    def __init__(self, jobs: _Optional[_Iterable[_Union[_types_pb2.JobSpec, _Mapping]]] = ..., atomic: _Optional[_Union[Atomicity, str]] = ..., producer_id: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class AddJobStreamResponse(_message.Message):
    __slots__ = ("job_ids", "earlier", "errors", "refused")
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    earlier: _containers.RepeatedCompositeFieldContainer[EarlierJob]
    errors: _containers.RepeatedCompositeFieldContainer[_types_pb2.ItemError]
    refused: _types_pb2.ItemError
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ..., earlier: _Optional[_Iterable[_Union[EarlierJob, _Mapping]]] = ..., errors: _Optional[_Iterable[_Union[_types_pb2.ItemError, _Mapping]]] = ..., refused: _Optional[_Union[_types_pb2.ItemError, _Mapping]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id", "view")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    view: _types_pb2.JobView
    def __init__(self, job_id: _Optional[str] = ..., view: _Optional[_Union[_types_pb2.JobView, str]] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _types_pb2.Job
    def __init__(self, job: _Optional[_Union[_types_pb2.Job, _Mapping]] = ...) -> None: ...

class JobFilter(_message.Message):
    __slots__ = ("queue", "states", "name", "group_id", "scheduler", "flow_id", "labels", "created_after_at_ms", "created_before_at_ms", "finished_before_at_ms", "finish_reason", "search")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AFTER_AT_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_BEFORE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_BEFORE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    queue: str
    states: _containers.RepeatedScalarFieldContainer[_types_pb2.JobState]
    name: str
    group_id: str
    scheduler: str
    flow_id: str
    labels: _containers.ScalarMap[str, str]
    created_after_at_ms: int
    created_before_at_ms: int
    finished_before_at_ms: int
    finish_reason: _types_pb2.FinishReason
    search: str
    def __init__(self, queue: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_types_pb2.JobState, str]]] = ..., name: _Optional[str] = ..., group_id: _Optional[str] = ..., scheduler: _Optional[str] = ..., flow_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., created_after_at_ms: _Optional[int] = ..., created_before_at_ms: _Optional[int] = ..., finished_before_at_ms: _Optional[int] = ..., finish_reason: _Optional[_Union[_types_pb2.FinishReason, str]] = ..., search: _Optional[str] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("filter", "oldest_first", "view", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    oldest_first: bool
    view: _types_pb2.JobView
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., oldest_first: bool = ..., view: _Optional[_Union[_types_pb2.JobView, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token", "total", "total_is_capped")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    TOTAL_IS_CAPPED_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_types_pb2.Job]
    next_page_token: str
    total: int
    total_is_capped: bool
    def __init__(self, jobs: _Optional[_Iterable[_Union[_types_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total: _Optional[int] = ..., total_is_capped: bool = ...) -> None: ...

class WaitJobRequest(_message.Message):
    __slots__ = ("job_id", "wait_ms", "view")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    wait_ms: int
    view: _types_pb2.JobView
    def __init__(self, job_id: _Optional[str] = ..., wait_ms: _Optional[int] = ..., view: _Optional[_Union[_types_pb2.JobView, str]] = ...) -> None: ...

class WaitJobResponse(_message.Message):
    __slots__ = ("job", "finished")
    JOB_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    job: _types_pb2.Job
    finished: bool
    def __init__(self, job: _Optional[_Union[_types_pb2.Job, _Mapping]] = ..., finished: bool = ...) -> None: ...

class ListJobLogsRequest(_message.Message):
    __slots__ = ("job_id", "page_size", "page_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListJobLogsResponse(_message.Message):
    __slots__ = ("lines", "next_page_token")
    LINES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[_types_pb2.JobLogLine]
    next_page_token: str
    def __init__(self, lines: _Optional[_Iterable[_Union[_types_pb2.JobLogLine, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateJobRequest(_message.Message):
    __slots__ = ("job_id", "data", "content_type", "priority", "lifo", "delay_ms", "run_at_ms", "if_revision", "lease_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LIFO_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_AT_MS_FIELD_NUMBER: _ClassVar[int]
    IF_REVISION_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    data: bytes
    content_type: str
    priority: int
    lifo: bool
    delay_ms: int
    run_at_ms: int
    if_revision: int
    lease_token: str
    def __init__(self, job_id: _Optional[str] = ..., data: _Optional[bytes] = ..., content_type: _Optional[str] = ..., priority: _Optional[int] = ..., lifo: bool = ..., delay_ms: _Optional[int] = ..., run_at_ms: _Optional[int] = ..., if_revision: _Optional[int] = ..., lease_token: _Optional[str] = ...) -> None: ...

class UpdateJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _types_pb2.Job
    def __init__(self, job: _Optional[_Union[_types_pb2.Job, _Mapping]] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id", "reason", "cascade")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CASCADE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    reason: str
    cascade: bool
    def __init__(self, job_id: _Optional[str] = ..., reason: _Optional[str] = ..., cascade: bool = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("state", "signalled")
    STATE_FIELD_NUMBER: _ClassVar[int]
    SIGNALLED_FIELD_NUMBER: _ClassVar[int]
    state: _types_pb2.JobState
    signalled: bool
    def __init__(self, state: _Optional[_Union[_types_pb2.JobState, str]] = ..., signalled: bool = ...) -> None: ...

class RetryJobRequest(_message.Message):
    __slots__ = ("job_id", "reset_attempts")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RESET_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    reset_attempts: bool
    def __init__(self, job_id: _Optional[str] = ..., reset_attempts: bool = ...) -> None: ...

class RetryJobResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _types_pb2.JobState
    def __init__(self, state: _Optional[_Union[_types_pb2.JobState, str]] = ...) -> None: ...

class PromoteJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class PromoteJobResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: _types_pb2.JobState
    def __init__(self, state: _Optional[_Union[_types_pb2.JobState, str]] = ...) -> None: ...

class DeleteJobRequest(_message.Message):
    __slots__ = ("job_id", "force", "allow_missing")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    force: bool
    allow_missing: bool
    def __init__(self, job_id: _Optional[str] = ..., force: bool = ..., allow_missing: bool = ...) -> None: ...

class DeleteJobResponse(_message.Message):
    __slots__ = ("deleted_count",)
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    def __init__(self, deleted_count: _Optional[int] = ...) -> None: ...

class RetryJobsRequest(_message.Message):
    __slots__ = ("filter", "reset_attempts", "limit", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RESET_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    reset_attempts: bool
    limit: int
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., reset_attempts: bool = ..., limit: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class RetryJobsResponse(_message.Message):
    __slots__ = ("retried_count", "skipped_count", "more")
    RETRIED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    retried_count: int
    skipped_count: int
    more: bool
    def __init__(self, retried_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., more: bool = ...) -> None: ...

class PromoteJobsRequest(_message.Message):
    __slots__ = ("filter", "limit", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    limit: int
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., limit: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class PromoteJobsResponse(_message.Message):
    __slots__ = ("promoted_count", "more")
    PROMOTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    promoted_count: int
    more: bool
    def __init__(self, promoted_count: _Optional[int] = ..., more: bool = ...) -> None: ...

class CancelJobsRequest(_message.Message):
    __slots__ = ("filter", "reason", "limit", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    reason: str
    limit: int
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., reason: _Optional[str] = ..., limit: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class CancelJobsResponse(_message.Message):
    __slots__ = ("cancelled_count", "signalled_count", "more")
    CANCELLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIGNALLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    cancelled_count: int
    signalled_count: int
    more: bool
    def __init__(self, cancelled_count: _Optional[int] = ..., signalled_count: _Optional[int] = ..., more: bool = ...) -> None: ...

class DeleteJobsRequest(_message.Message):
    __slots__ = ("filter", "limit", "dry_run")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    filter: JobFilter
    limit: int
    dry_run: bool
    def __init__(self, filter: _Optional[_Union[JobFilter, _Mapping]] = ..., limit: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class DeleteJobsResponse(_message.Message):
    __slots__ = ("deleted_count", "skipped_count", "more")
    DELETED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    deleted_count: int
    skipped_count: int
    more: bool
    def __init__(self, deleted_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., more: bool = ...) -> None: ...
