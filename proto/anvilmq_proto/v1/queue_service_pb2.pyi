from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupFailurePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_FAILURE_POLICY_UNSPECIFIED: _ClassVar[GroupFailurePolicy]
    GROUP_FAILURE_POLICY_CONTINUE: _ClassVar[GroupFailurePolicy]
    GROUP_FAILURE_POLICY_HALT: _ClassVar[GroupFailurePolicy]
GROUP_FAILURE_POLICY_UNSPECIFIED: GroupFailurePolicy
GROUP_FAILURE_POLICY_CONTINUE: GroupFailurePolicy
GROUP_FAILURE_POLICY_HALT: GroupFailurePolicy

class QueueConfig(_message.Message):
    __slots__ = ("max_active", "rate_limit", "group_concurrency", "group_rate_limit", "on_group_failure", "ordering_delay_ms", "defaults", "max_completed", "max_failed", "max_jobs", "paused")
    MAX_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    GROUP_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    GROUP_RATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    ON_GROUP_FAILURE_FIELD_NUMBER: _ClassVar[int]
    ORDERING_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    MAX_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILED_FIELD_NUMBER: _ClassVar[int]
    MAX_JOBS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    max_active: int
    rate_limit: _types_pb2.RateLimit
    group_concurrency: int
    group_rate_limit: _types_pb2.RateLimit
    on_group_failure: GroupFailurePolicy
    ordering_delay_ms: int
    defaults: _types_pb2.JobPolicy
    max_completed: int
    max_failed: int
    max_jobs: int
    paused: bool
    def __init__(self, max_active: _Optional[int] = ..., rate_limit: _Optional[_Union[_types_pb2.RateLimit, _Mapping]] = ..., group_concurrency: _Optional[int] = ..., group_rate_limit: _Optional[_Union[_types_pb2.RateLimit, _Mapping]] = ..., on_group_failure: _Optional[_Union[GroupFailurePolicy, str]] = ..., ordering_delay_ms: _Optional[int] = ..., defaults: _Optional[_Union[_types_pb2.JobPolicy, _Mapping]] = ..., max_completed: _Optional[int] = ..., max_failed: _Optional[int] = ..., max_jobs: _Optional[int] = ..., paused: bool = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("queue", "config", "counts", "pause_reason", "oldest_waiting_age_ms", "connected_workers", "group_count", "blocked_group_count", "rate_limited_until_at_ms", "revision")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_WORKERS_FIELD_NUMBER: _ClassVar[int]
    GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_GROUP_COUNT_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMITED_UNTIL_AT_MS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    queue: str
    config: QueueConfig
    counts: _types_pb2.JobCounts
    pause_reason: str
    oldest_waiting_age_ms: int
    connected_workers: int
    group_count: int
    blocked_group_count: int
    rate_limited_until_at_ms: int
    revision: int
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., counts: _Optional[_Union[_types_pb2.JobCounts, _Mapping]] = ..., pause_reason: _Optional[str] = ..., oldest_waiting_age_ms: _Optional[int] = ..., connected_workers: _Optional[int] = ..., group_count: _Optional[int] = ..., blocked_group_count: _Optional[int] = ..., rate_limited_until_at_ms: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ("name_prefix", "page_size", "page_token")
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name_prefix: str
    page_size: int
    page_token: str
    def __init__(self, name_prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "next_page_token")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    next_page_token: str
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ...) -> None: ...

class UpdateQueueRequest(_message.Message):
    __slots__ = ("queue", "config", "if_revision")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    IF_REVISION_FIELD_NUMBER: _ClassVar[int]
    queue: str
    config: QueueConfig
    if_revision: int
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., if_revision: _Optional[int] = ...) -> None: ...

class UpdateQueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ...) -> None: ...

class PauseQueueRequest(_message.Message):
    __slots__ = ("queue", "reason")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    queue: str
    reason: str
    def __init__(self, queue: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ResumeQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RateLimitForRequest(_message.Message):
    __slots__ = ("queue", "group_id", "duration_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group_id: str
    duration_ms: int
    def __init__(self, queue: _Optional[str] = ..., group_id: _Optional[str] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class RateLimitForResponse(_message.Message):
    __slots__ = ("until_at_ms",)
    UNTIL_AT_MS_FIELD_NUMBER: _ClassVar[int]
    until_at_ms: int
    def __init__(self, until_at_ms: _Optional[int] = ...) -> None: ...

class DrainQueueRequest(_message.Message):
    __slots__ = ("queue", "include_delayed", "limit", "dry_run")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_DELAYED_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    include_delayed: bool
    limit: int
    dry_run: bool
    def __init__(self, queue: _Optional[str] = ..., include_delayed: bool = ..., limit: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class DrainQueueResponse(_message.Message):
    __slots__ = ("removed_count", "more")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    more: bool
    def __init__(self, removed_count: _Optional[int] = ..., more: bool = ...) -> None: ...

class CleanQueueRequest(_message.Message):
    __slots__ = ("queue", "states", "older_than_ms", "name", "group_id", "limit", "dry_run")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_MS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    states: _containers.RepeatedScalarFieldContainer[_types_pb2.JobState]
    older_than_ms: int
    name: str
    group_id: str
    limit: int
    dry_run: bool
    def __init__(self, queue: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_types_pb2.JobState, str]]] = ..., older_than_ms: _Optional[int] = ..., name: _Optional[str] = ..., group_id: _Optional[str] = ..., limit: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class CleanQueueResponse(_message.Message):
    __slots__ = ("removed_count", "skipped_count", "more")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    skipped_count: int
    more: bool
    def __init__(self, removed_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., more: bool = ...) -> None: ...

class ObliterateQueueRequest(_message.Message):
    __slots__ = ("queue", "confirm", "force", "limit")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    confirm: str
    force: bool
    limit: int
    def __init__(self, queue: _Optional[str] = ..., confirm: _Optional[str] = ..., force: bool = ..., limit: _Optional[int] = ...) -> None: ...

class ObliterateQueueResponse(_message.Message):
    __slots__ = ("removed_count", "more")
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    more: bool
    def __init__(self, removed_count: _Optional[int] = ..., more: bool = ...) -> None: ...

class GetQueueMetricsRequest(_message.Message):
    __slots__ = ("queue", "start_at_ms", "end_at_ms", "step_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    START_AT_MS_FIELD_NUMBER: _ClassVar[int]
    END_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STEP_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    start_at_ms: int
    end_at_ms: int
    step_ms: int
    def __init__(self, queue: _Optional[str] = ..., start_at_ms: _Optional[int] = ..., end_at_ms: _Optional[int] = ..., step_ms: _Optional[int] = ...) -> None: ...

class QueueMetricPoint(_message.Message):
    __slots__ = ("at_ms", "added", "completed", "failed", "wait_p95_ms", "run_p95_ms")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    WAIT_P95_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_P95_MS_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    added: int
    completed: int
    failed: int
    wait_p95_ms: int
    run_p95_ms: int
    def __init__(self, at_ms: _Optional[int] = ..., added: _Optional[int] = ..., completed: _Optional[int] = ..., failed: _Optional[int] = ..., wait_p95_ms: _Optional[int] = ..., run_p95_ms: _Optional[int] = ...) -> None: ...

class GetQueueMetricsResponse(_message.Message):
    __slots__ = ("points",)
    POINTS_FIELD_NUMBER: _ClassVar[int]
    points: _containers.RepeatedCompositeFieldContainer[QueueMetricPoint]
    def __init__(self, points: _Optional[_Iterable[_Union[QueueMetricPoint, _Mapping]]] = ...) -> None: ...

class GetDeduplicationRequest(_message.Message):
    __slots__ = ("queue", "deduplication_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    deduplication_id: str
    def __init__(self, queue: _Optional[str] = ..., deduplication_id: _Optional[str] = ...) -> None: ...

class GetDeduplicationResponse(_message.Message):
    __slots__ = ("job_id", "mode", "expires_at_ms", "pending_job_id")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    PENDING_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    mode: _types_pb2.DeduplicationMode
    expires_at_ms: int
    pending_job_id: str
    def __init__(self, job_id: _Optional[str] = ..., mode: _Optional[_Union[_types_pb2.DeduplicationMode, str]] = ..., expires_at_ms: _Optional[int] = ..., pending_job_id: _Optional[str] = ...) -> None: ...

class ReleaseDeduplicationRequest(_message.Message):
    __slots__ = ("queue", "deduplication_id", "expected_job_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    DEDUPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    deduplication_id: str
    expected_job_id: str
    def __init__(self, queue: _Optional[str] = ..., deduplication_id: _Optional[str] = ..., expected_job_id: _Optional[str] = ...) -> None: ...

class ReleaseDeduplicationResponse(_message.Message):
    __slots__ = ("released", "job_id")
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    released: bool
    job_id: str
    def __init__(self, released: bool = ..., job_id: _Optional[str] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("group_id", "head_job_id", "head_wait", "pending", "active", "oldest_waiting_age_ms", "paused", "halted_by_job_id", "concurrency", "rate_limit")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    HEAD_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    HEAD_WAIT_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    HALTED_BY_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    head_job_id: str
    head_wait: _types_pb2.WaitInfo
    pending: int
    active: int
    oldest_waiting_age_ms: int
    paused: bool
    halted_by_job_id: str
    concurrency: int
    rate_limit: _types_pb2.RateLimit
    def __init__(self, group_id: _Optional[str] = ..., head_job_id: _Optional[str] = ..., head_wait: _Optional[_Union[_types_pb2.WaitInfo, _Mapping]] = ..., pending: _Optional[int] = ..., active: _Optional[int] = ..., oldest_waiting_age_ms: _Optional[int] = ..., paused: bool = ..., halted_by_job_id: _Optional[str] = ..., concurrency: _Optional[int] = ..., rate_limit: _Optional[_Union[_types_pb2.RateLimit, _Mapping]] = ...) -> None: ...

class ListGroupsRequest(_message.Message):
    __slots__ = ("queue", "group_id_prefix", "blocked_only", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_ONLY_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group_id_prefix: str
    blocked_only: bool
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., group_id_prefix: _Optional[str] = ..., blocked_only: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGroupsResponse(_message.Message):
    __slots__ = ("groups", "next_page_token")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    next_page_token: str
    def __init__(self, groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetGroupRequest(_message.Message):
    __slots__ = ("queue", "group_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group_id: str
    def __init__(self, queue: _Optional[str] = ..., group_id: _Optional[str] = ...) -> None: ...

class GetGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: Group
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ...) -> None: ...

class UpdateGroupRequest(_message.Message):
    __slots__ = ("queue", "group_id", "concurrency", "rate_limit")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    RATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group_id: str
    concurrency: int
    rate_limit: _types_pb2.RateLimit
    def __init__(self, queue: _Optional[str] = ..., group_id: _Optional[str] = ..., concurrency: _Optional[int] = ..., rate_limit: _Optional[_Union[_types_pb2.RateLimit, _Mapping]] = ...) -> None: ...

class UpdateGroupResponse(_message.Message):
    __slots__ = ("group",)
    GROUP_FIELD_NUMBER: _ClassVar[int]
    group: Group
    def __init__(self, group: _Optional[_Union[Group, _Mapping]] = ...) -> None: ...

class PauseGroupRequest(_message.Message):
    __slots__ = ("queue", "group_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group_id: str
    def __init__(self, queue: _Optional[str] = ..., group_id: _Optional[str] = ...) -> None: ...

class PauseGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeGroupRequest(_message.Message):
    __slots__ = ("queue", "group_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    group_id: str
    def __init__(self, queue: _Optional[str] = ..., group_id: _Optional[str] = ...) -> None: ...

class ResumeGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
