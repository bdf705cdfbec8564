from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_ADDED: _ClassVar[EventKind]
    EVENT_KIND_DUPLICATE: _ClassVar[EventKind]
    EVENT_KIND_STARTED: _ClassVar[EventKind]
    EVENT_KIND_PROGRESS: _ClassVar[EventKind]
    EVENT_KIND_COMPLETED: _ClassVar[EventKind]
    EVENT_KIND_RETRYING: _ClassVar[EventKind]
    EVENT_KIND_FAILED: _ClassVar[EventKind]
    EVENT_KIND_CANCELLED: _ClassVar[EventKind]
    EVENT_KIND_STALLED: _ClassVar[EventKind]
    EVENT_KIND_RELEASED: _ClassVar[EventKind]
    EVENT_KIND_AWAITS_CHILDREN: _ClassVar[EventKind]
    EVENT_KIND_CHILDREN_DONE: _ClassVar[EventKind]
    EVENT_KIND_PROMOTED: _ClassVar[EventKind]
    EVENT_KIND_UPDATED: _ClassVar[EventKind]
    EVENT_KIND_RETRIED: _ClassVar[EventKind]
    EVENT_KIND_CANCEL_REQUESTED: _ClassVar[EventKind]
    EVENT_KIND_REMOVED: _ClassVar[EventKind]
    EVENT_KIND_QUEUE_PAUSED: _ClassVar[EventKind]
    EVENT_KIND_QUEUE_RESUMED: _ClassVar[EventKind]
    EVENT_KIND_QUEUE_UPDATED: _ClassVar[EventKind]
    EVENT_KIND_GROUP_PAUSED: _ClassVar[EventKind]
    EVENT_KIND_GROUP_HALTED: _ClassVar[EventKind]
    EVENT_KIND_GROUP_RESUMED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULER_TICKED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULER_SKIPPED: _ClassVar[EventKind]
    EVENT_KIND_SCHEDULER_CHANGED: _ClassVar[EventKind]
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_ADDED: EventKind
EVENT_KIND_DUPLICATE: EventKind
EVENT_KIND_STARTED: EventKind
EVENT_KIND_PROGRESS: EventKind
EVENT_KIND_COMPLETED: EventKind
EVENT_KIND_RETRYING: EventKind
EVENT_KIND_FAILED: EventKind
EVENT_KIND_CANCELLED: EventKind
EVENT_KIND_STALLED: EventKind
EVENT_KIND_RELEASED: EventKind
EVENT_KIND_AWAITS_CHILDREN: EventKind
EVENT_KIND_CHILDREN_DONE: EventKind
EVENT_KIND_PROMOTED: EventKind
EVENT_KIND_UPDATED: EventKind
EVENT_KIND_RETRIED: EventKind
EVENT_KIND_CANCEL_REQUESTED: EventKind
EVENT_KIND_REMOVED: EventKind
EVENT_KIND_QUEUE_PAUSED: EventKind
EVENT_KIND_QUEUE_RESUMED: EventKind
EVENT_KIND_QUEUE_UPDATED: EventKind
EVENT_KIND_GROUP_PAUSED: EventKind
EVENT_KIND_GROUP_HALTED: EventKind
EVENT_KIND_GROUP_RESUMED: EventKind
EVENT_KIND_SCHEDULER_TICKED: EventKind
EVENT_KIND_SCHEDULER_SKIPPED: EventKind
EVENT_KIND_SCHEDULER_CHANGED: EventKind

class Event(_message.Message):
    __slots__ = ("cursor", "kind", "at_ms", "queue", "job_id", "name", "state", "previous_state", "attempt", "worker_id", "group_id", "flow_id", "scheduler", "tick_at_ms", "finish_reason", "error", "due_at_ms", "matched_by", "progress_json", "result", "result_content_type")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_BY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_JSON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    kind: EventKind
    at_ms: int
    queue: str
    job_id: str
    name: str
    state: _types_pb2.JobState
    previous_state: _types_pb2.JobState
    attempt: int
    worker_id: str
    group_id: str
    flow_id: str
    scheduler: str
    tick_at_ms: int
    finish_reason: _types_pb2.FinishReason
    error: _types_pb2.JobError
    due_at_ms: int
    matched_by: _types_pb2.MatchedBy
    progress_json: str
    result: bytes
    result_content_type: str
    def __init__(self, cursor: _Optional[str] = ..., kind: _Optional[_Union[EventKind, str]] = ..., at_ms: _Optional[int] = ..., queue: _Optional[str] = ..., job_id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[_types_pb2.JobState, str]] = ..., previous_state: _Optional[_Union[_types_pb2.JobState, str]] = ..., attempt: _Optional[int] = ..., worker_id: _Optional[str] = ..., group_id: _Optional[str] = ..., flow_id: _Optional[str] = ..., scheduler: _Optional[str] = ..., tick_at_ms: _Optional[int] = ..., finish_reason: _Optional[_Union[_types_pb2.FinishReason, str]] = ..., error: _Optional[_Union[_types_pb2.JobError, _Mapping]] = ..., due_at_ms: _Optional[int] = ..., matched_by: _Optional[_Union[_types_pb2.MatchedBy, str]] = ..., progress_json: _Optional[str] = ..., result: _Optional[bytes] = ..., result_content_type: _Optional[str] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("queues", "kinds", "job_id", "flow_id", "scheduler", "cursor", "include_payload")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[str]
    kinds: _containers.RepeatedScalarFieldContainer[EventKind]
    job_id: str
    flow_id: str
    scheduler: str
    cursor: str
    include_payload: bool
    def __init__(self, queues: _Optional[_Iterable[str]] = ..., kinds: _Optional[_Iterable[_Union[EventKind, str]]] = ..., job_id: _Optional[str] = ..., flow_id: _Optional[str] = ..., scheduler: _Optional[str] = ..., cursor: _Optional[str] = ..., include_payload: bool = ...) -> None: ...

class WatchEventsResponse(_message.Message):
    __slots__ = ("events", "cursor", "gap")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    cursor: str
    gap: bool
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., cursor: _Optional[str] = ..., gap: bool = ...) -> None: ...
