from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConcurrencyPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONCURRENCY_POLICY_UNSPECIFIED: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_ALLOW: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_FORBID: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_REPLACE: _ClassVar[ConcurrencyPolicy]

class CatchUpPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CATCH_UP_POLICY_UNSPECIFIED: _ClassVar[CatchUpPolicy]
    CATCH_UP_POLICY_LATEST: _ClassVar[CatchUpPolicy]
    CATCH_UP_POLICY_NONE: _ClassVar[CatchUpPolicy]
    CATCH_UP_POLICY_ALL: _ClassVar[CatchUpPolicy]
CONCURRENCY_POLICY_UNSPECIFIED: ConcurrencyPolicy
CONCURRENCY_POLICY_ALLOW: ConcurrencyPolicy
CONCURRENCY_POLICY_FORBID: ConcurrencyPolicy
CONCURRENCY_POLICY_REPLACE: ConcurrencyPolicy
CATCH_UP_POLICY_UNSPECIFIED: CatchUpPolicy
CATCH_UP_POLICY_LATEST: CatchUpPolicy
CATCH_UP_POLICY_NONE: CatchUpPolicy
CATCH_UP_POLICY_ALL: CatchUpPolicy

class Schedule(_message.Message):
    __slots__ = ("cron", "every_ms", "offset_ms", "time_zone", "start_at_ms", "end_at_ms", "limit", "jitter_ms")
    CRON_FIELD_NUMBER: _ClassVar[int]
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_MS_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    START_AT_MS_FIELD_NUMBER: _ClassVar[int]
    END_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    JITTER_MS_FIELD_NUMBER: _ClassVar[int]
    cron: str
    every_ms: int
    offset_ms: int
    time_zone: str
    start_at_ms: int
    end_at_ms: int
    limit: int
    jitter_ms: int
    def __init__(self, cron: _Optional[str] = ..., every_ms: _Optional[int] = ..., offset_ms: _Optional[int] = ..., time_zone: _Optional[str] = ..., start_at_ms: _Optional[int] = ..., end_at_ms: _Optional[int] = ..., limit: _Optional[int] = ..., jitter_ms: _Optional[int] = ...) -> None: ...

class FlowTarget(_message.Message):
    __slots__ = ("template", "parameters_json")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    template: str
    parameters_json: str
    def __init__(self, template: _Optional[str] = ..., parameters_json: _Optional[str] = ...) -> None: ...

class SchedulerSpec(_message.Message):
    __slots__ = ("schedule", "job", "flow", "concurrency_policy", "catch_up", "max_catch_up_runs", "starting_deadline_ms", "suspended", "description")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_POLICY_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCH_UP_RUNS_FIELD_NUMBER: _ClassVar[int]
    STARTING_DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    job: _types_pb2.JobSpec
    flow: FlowTarget
    concurrency_policy: ConcurrencyPolicy
    catch_up: CatchUpPolicy
    max_catch_up_runs: int
    starting_deadline_ms: int
    suspended: bool
    description: str
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., job: _Optional[_Union[_types_pb2.JobSpec, _Mapping]] = ..., flow: _Optional[_Union[FlowTarget, _Mapping]] = ..., concurrency_policy: _Optional[_Union[ConcurrencyPolicy, str]] = ..., catch_up: _Optional[_Union[CatchUpPolicy, str]] = ..., max_catch_up_runs: _Optional[int] = ..., starting_deadline_ms: _Optional[int] = ..., suspended: bool = ..., description: _Optional[str] = ...) -> None: ...

class Scheduler(_message.Message):
    __slots__ = ("name", "spec", "owner", "uid", "content_hash", "next_tick_at_ms", "last_tick_at_ms", "last_job_id", "last_flow_id", "last_state", "run_count", "skipped_count", "missed_count", "problem_reason", "problem_message", "created_at_ms", "updated_at_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    NEXT_TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_STATE_FIELD_NUMBER: _ClassVar[int]
    RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MISSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_REASON_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: SchedulerSpec
    owner: _types_pb2.Owner
    uid: str
    content_hash: str
    next_tick_at_ms: int
    last_tick_at_ms: int
    last_job_id: str
    last_flow_id: str
    last_state: _types_pb2.JobState
    run_count: int
    skipped_count: int
    missed_count: int
    problem_reason: str
    problem_message: str
    created_at_ms: int
    updated_at_ms: int
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[SchedulerSpec, _Mapping]] = ..., owner: _Optional[_Union[_types_pb2.Owner, _Mapping]] = ..., uid: _Optional[str] = ..., content_hash: _Optional[str] = ..., next_tick_at_ms: _Optional[int] = ..., last_tick_at_ms: _Optional[int] = ..., last_job_id: _Optional[str] = ..., last_flow_id: _Optional[str] = ..., last_state: _Optional[_Union[_types_pb2.JobState, str]] = ..., run_count: _Optional[int] = ..., skipped_count: _Optional[int] = ..., missed_count: _Optional[int] = ..., problem_reason: _Optional[str] = ..., problem_message: _Optional[str] = ..., created_at_ms: _Optional[int] = ..., updated_at_ms: _Optional[int] = ...) -> None: ...

class UpsertSchedulerRequest(_message.Message):
    __slots__ = ("scheduler", "dry_run", "adopt")
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    ADOPT_FIELD_NUMBER: _ClassVar[int]
    scheduler: Scheduler
    dry_run: bool
    adopt: bool
    def __init__(self, scheduler: _Optional[_Union[Scheduler, _Mapping]] = ..., dry_run: bool = ..., adopt: bool = ...) -> None: ...

class UpsertSchedulerResponse(_message.Message):
    __slots__ = ("scheduler", "outcome")
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    scheduler: Scheduler
    outcome: _types_pb2.UpsertOutcome
    def __init__(self, scheduler: _Optional[_Union[Scheduler, _Mapping]] = ..., outcome: _Optional[_Union[_types_pb2.UpsertOutcome, str]] = ...) -> None: ...

class GetSchedulerRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetSchedulerResponse(_message.Message):
    __slots__ = ("scheduler",)
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    scheduler: Scheduler
    def __init__(self, scheduler: _Optional[_Union[Scheduler, _Mapping]] = ...) -> None: ...

class ListSchedulersRequest(_message.Message):
    __slots__ = ("name_prefix", "queue", "flow_template", "page_size", "page_token")
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FLOW_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name_prefix: str
    queue: str
    flow_template: str
    page_size: int
    page_token: str
    def __init__(self, name_prefix: _Optional[str] = ..., queue: _Optional[str] = ..., flow_template: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSchedulersResponse(_message.Message):
    __slots__ = ("schedulers", "next_page_token")
    SCHEDULERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedulers: _containers.RepeatedCompositeFieldContainer[Scheduler]
    next_page_token: str
    def __init__(self, schedulers: _Optional[_Iterable[_Union[Scheduler, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteSchedulerRequest(_message.Message):
    __slots__ = ("name", "owner", "allow_missing")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    name: str
    owner: _types_pb2.Owner
    allow_missing: bool
    def __init__(self, name: _Optional[str] = ..., owner: _Optional[_Union[_types_pb2.Owner, _Mapping]] = ..., allow_missing: bool = ...) -> None: ...

class DeleteSchedulerResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: bool = ...) -> None: ...

class SetSchedulerSuspendedRequest(_message.Message):
    __slots__ = ("name", "suspended")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    name: str
    suspended: bool
    def __init__(self, name: _Optional[str] = ..., suspended: bool = ...) -> None: ...

class SetSchedulerSuspendedResponse(_message.Message):
    __slots__ = ("scheduler",)
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    scheduler: Scheduler
    def __init__(self, scheduler: _Optional[_Union[Scheduler, _Mapping]] = ...) -> None: ...

class TriggerSchedulerRequest(_message.Message):
    __slots__ = ("name", "run_key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    run_key: str
    def __init__(self, name: _Optional[str] = ..., run_key: _Optional[str] = ...) -> None: ...

class TriggerSchedulerResponse(_message.Message):
    __slots__ = ("job_id", "flow_id", "existing")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    flow_id: str
    existing: bool
    def __init__(self, job_id: _Optional[str] = ..., flow_id: _Optional[str] = ..., existing: bool = ...) -> None: ...

class PreviewScheduleRequest(_message.Message):
    __slots__ = ("schedule", "after_at_ms", "count")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    AFTER_AT_MS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    after_at_ms: int
    count: int
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., after_at_ms: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class SchedulePreviewTick(_message.Message):
    __slots__ = ("at_ms", "local")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    local: str
    def __init__(self, at_ms: _Optional[int] = ..., local: _Optional[str] = ...) -> None: ...

class PreviewScheduleResponse(_message.Message):
    __slots__ = ("ticks", "description", "warnings")
    TICKS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    ticks: _containers.RepeatedCompositeFieldContainer[SchedulePreviewTick]
    description: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ticks: _Optional[_Iterable[_Union[SchedulePreviewTick, _Mapping]]] = ..., description: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...
