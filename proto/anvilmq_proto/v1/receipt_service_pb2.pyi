from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Receipt(_message.Message):
    __slots__ = ("queue", "name", "idempotency_key", "mode", "job_id", "flow_id", "job_state", "digest", "created_at_ms", "expires_at_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_STATE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    idempotency_key: str
    mode: _types_pb2.IdempotencyMode
    job_id: str
    flow_id: str
    job_state: _types_pb2.JobState
    digest: str
    created_at_ms: int
    expires_at_ms: int
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., mode: _Optional[_Union[_types_pb2.IdempotencyMode, str]] = ..., job_id: _Optional[str] = ..., flow_id: _Optional[str] = ..., job_state: _Optional[_Union[_types_pb2.JobState, str]] = ..., digest: _Optional[str] = ..., created_at_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ...) -> None: ...

class GetReceiptRequest(_message.Message):
    __slots__ = ("queue", "name", "idempotency_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    idempotency_key: str
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class GetReceiptResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: Receipt
    def __init__(self, receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class ListReceiptsRequest(_message.Message):
    __slots__ = ("queue", "name", "key_prefix", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    key_prefix: str
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., key_prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListReceiptsResponse(_message.Message):
    __slots__ = ("receipts", "next_page_token")
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[Receipt]
    next_page_token: str
    def __init__(self, receipts: _Optional[_Iterable[_Union[Receipt, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReleaseReceiptRequest(_message.Message):
    __slots__ = ("queue", "name", "idempotency_key", "expected_job_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    idempotency_key: str
    expected_job_id: str
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., expected_job_id: _Optional[str] = ...) -> None: ...

class ReleaseReceiptResponse(_message.Message):
    __slots__ = ("released", "job_id")
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    released: bool
    job_id: str
    def __init__(self, released: bool = ..., job_id: _Optional[str] = ...) -> None: ...

class DeleteReceiptRequest(_message.Message):
    __slots__ = ("queue", "name", "idempotency_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    idempotency_key: str
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class DeleteReceiptResponse(_message.Message):
    __slots__ = ("deleted", "job_id")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    job_id: str
    def __init__(self, deleted: bool = ..., job_id: _Optional[str] = ...) -> None: ...
