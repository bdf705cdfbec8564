from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddFlowRequest(_message.Message):
    __slots__ = ("root",)
    ROOT_FIELD_NUMBER: _ClassVar[int]
    root: _types_pb2.FlowNode
    def __init__(self, root: _Optional[_Union[_types_pb2.FlowNode, _Mapping]] = ...) -> None: ...

class AddedNode(_message.Message):
    __slots__ = ("key", "job_id", "children")
    KEY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    key: str
    job_id: str
    children: _containers.RepeatedCompositeFieldContainer[AddedNode]
    def __init__(self, key: _Optional[str] = ..., job_id: _Optional[str] = ..., children: _Optional[_Iterable[_Union[AddedNode, _Mapping]]] = ...) -> None: ...

class AddFlowResponse(_message.Message):
    __slots__ = ("flow_id", "root")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    root: AddedNode
    def __init__(self, flow_id: _Optional[str] = ..., root: _Optional[_Union[AddedNode, _Mapping]] = ...) -> None: ...

class AddFlowBulkRequest(_message.Message):
    __slots__ = ("roots",)
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    roots: _containers.RepeatedCompositeFieldContainer[_types_pb2.FlowNode]
    def __init__(self, roots: _Optional[_Iterable[_Union[_types_pb2.FlowNode, _Mapping]]] = ...) -> None: ...

class AddedFlow(_message.Message):
    __slots__ = ("flow_id", "root")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    root: AddedNode
    def __init__(self, flow_id: _Optional[str] = ..., root: _Optional[_Union[AddedNode, _Mapping]] = ...) -> None: ...

class AddFlowBulkResponse(_message.Message):
    __slots__ = ("flows",)
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    flows: _containers.RepeatedCompositeFieldContainer[AddedFlow]
    def __init__(self, flows: _Optional[_Iterable[_Union[AddedFlow, _Mapping]]] = ...) -> None: ...

class AddFlowMergeRequest(_message.Message):
    __slots__ = ("key", "lease", "children")
    class KeyTarget(_message.Message):
        __slots__ = ("queue", "name", "idempotency_key")
        QUEUE_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
        queue: str
        name: str
        idempotency_key: str
        def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...
    KEY_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    key: AddFlowMergeRequest.KeyTarget
    lease: _types_pb2.Lease
    children: _containers.RepeatedCompositeFieldContainer[_types_pb2.FlowNode]
    def __init__(self, key: _Optional[_Union[AddFlowMergeRequest.KeyTarget, _Mapping]] = ..., lease: _Optional[_Union[_types_pb2.Lease, _Mapping]] = ..., children: _Optional[_Iterable[_Union[_types_pb2.FlowNode, _Mapping]]] = ...) -> None: ...

class AddFlowMergeResponse(_message.Message):
    __slots__ = ("flow_id", "target_job_id", "target_state", "children", "existing")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_STATE_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    target_job_id: str
    target_state: _types_pb2.JobState
    children: _containers.RepeatedCompositeFieldContainer[AddedNode]
    existing: bool
    def __init__(self, flow_id: _Optional[str] = ..., target_job_id: _Optional[str] = ..., target_state: _Optional[_Union[_types_pb2.JobState, str]] = ..., children: _Optional[_Iterable[_Union[AddedNode, _Mapping]]] = ..., existing: bool = ...) -> None: ...

class GetFlowRequest(_message.Message):
    __slots__ = ("job_id", "from_root", "depth", "max_children")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_ROOT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    MAX_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    from_root: bool
    depth: int
    max_children: int
    def __init__(self, job_id: _Optional[str] = ..., from_root: bool = ..., depth: _Optional[int] = ..., max_children: _Optional[int] = ...) -> None: ...

class FlowTree(_message.Message):
    __slots__ = ("job", "children", "truncated")
    JOB_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    job: _types_pb2.Job
    children: _containers.RepeatedCompositeFieldContainer[FlowTree]
    truncated: bool
    def __init__(self, job: _Optional[_Union[_types_pb2.Job, _Mapping]] = ..., children: _Optional[_Iterable[_Union[FlowTree, _Mapping]]] = ..., truncated: bool = ...) -> None: ...

class GetFlowResponse(_message.Message):
    __slots__ = ("root", "counts")
    ROOT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    root: FlowTree
    counts: _types_pb2.JobCounts
    def __init__(self, root: _Optional[_Union[FlowTree, _Mapping]] = ..., counts: _Optional[_Union[_types_pb2.JobCounts, _Mapping]] = ...) -> None: ...

class BatchGetFlowsRequest(_message.Message):
    __slots__ = ("flow_ids",)
    FLOW_IDS_FIELD_NUMBER: _ClassVar[int]
    flow_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, flow_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class FlowSummary(_message.Message):
    __slots__ = ("flow_id", "state", "finish_reason", "finish_message", "created_at_ms", "started_at_ms", "finished_at_ms", "counts")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    FINISH_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    state: _types_pb2.JobState
    finish_reason: _types_pb2.FinishReason
    finish_message: str
    created_at_ms: int
    started_at_ms: int
    finished_at_ms: int
    counts: _types_pb2.JobCounts
    def __init__(self, flow_id: _Optional[str] = ..., state: _Optional[_Union[_types_pb2.JobState, str]] = ..., finish_reason: _Optional[_Union[_types_pb2.FinishReason, str]] = ..., finish_message: _Optional[str] = ..., created_at_ms: _Optional[int] = ..., started_at_ms: _Optional[int] = ..., finished_at_ms: _Optional[int] = ..., counts: _Optional[_Union[_types_pb2.JobCounts, _Mapping]] = ...) -> None: ...

class BatchGetFlowsResponse(_message.Message):
    __slots__ = ("flows",)
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    flows: _containers.RepeatedCompositeFieldContainer[FlowSummary]
    def __init__(self, flows: _Optional[_Iterable[_Union[FlowSummary, _Mapping]]] = ...) -> None: ...

class GetChildrenValuesRequest(_message.Message):
    __slots__ = ("job_id", "page_size", "page_token")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    page_size: int
    page_token: str
    def __init__(self, job_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ChildValue(_message.Message):
    __slots__ = ("key", "job_id", "queue", "name", "state", "value", "value_content_type", "finish_reason", "error")
    KEY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VALUE_CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    key: str
    job_id: str
    queue: str
    name: str
    state: _types_pb2.JobState
    value: bytes
    value_content_type: str
    finish_reason: _types_pb2.FinishReason
    error: _types_pb2.JobError
    def __init__(self, key: _Optional[str] = ..., job_id: _Optional[str] = ..., queue: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[_types_pb2.JobState, str]] = ..., value: _Optional[bytes] = ..., value_content_type: _Optional[str] = ..., finish_reason: _Optional[_Union[_types_pb2.FinishReason, str]] = ..., error: _Optional[_Union[_types_pb2.JobError, _Mapping]] = ...) -> None: ...

class GetChildrenValuesResponse(_message.Message):
    __slots__ = ("children", "next_page_token")
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    children: _containers.RepeatedCompositeFieldContainer[ChildValue]
    next_page_token: str
    def __init__(self, children: _Optional[_Iterable[_Union[ChildValue, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListFlowsRequest(_message.Message):
    __slots__ = ("queue", "template", "root_states", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    ROOT_STATES_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    template: str
    root_states: _containers.RepeatedScalarFieldContainer[_types_pb2.JobState]
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., template: _Optional[str] = ..., root_states: _Optional[_Iterable[_Union[_types_pb2.JobState, str]]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFlowsResponse(_message.Message):
    __slots__ = ("roots", "next_page_token")
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    roots: _containers.RepeatedCompositeFieldContainer[_types_pb2.Job]
    next_page_token: str
    def __init__(self, roots: _Optional[_Iterable[_Union[_types_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RetryFlowRequest(_message.Message):
    __slots__ = ("flow_id", "reset_attempts")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    RESET_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    reset_attempts: bool
    def __init__(self, flow_id: _Optional[str] = ..., reset_attempts: bool = ...) -> None: ...

class RetryFlowResponse(_message.Message):
    __slots__ = ("retried_count",)
    RETRIED_COUNT_FIELD_NUMBER: _ClassVar[int]
    retried_count: int
    def __init__(self, retried_count: _Optional[int] = ...) -> None: ...

class CancelFlowRequest(_message.Message):
    __slots__ = ("flow_id", "reason")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    reason: str
    def __init__(self, flow_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelFlowResponse(_message.Message):
    __slots__ = ("cancelled_count", "signalled_count")
    CANCELLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIGNALLED_COUNT_FIELD_NUMBER: _ClassVar[int]
    cancelled_count: int
    signalled_count: int
    def __init__(self, cancelled_count: _Optional[int] = ..., signalled_count: _Optional[int] = ...) -> None: ...
