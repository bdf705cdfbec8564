from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_FULL: _ClassVar[Durability]
    DURABILITY_RELAXED: _ClassVar[Durability]

class DefinitionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEFINITION_TYPE_UNSPECIFIED: _ClassVar[DefinitionType]
    DEFINITION_TYPE_SCHEDULER: _ClassVar[DefinitionType]
    DEFINITION_TYPE_FLOW_TEMPLATE: _ClassVar[DefinitionType]
DURABILITY_UNSPECIFIED: Durability
DURABILITY_FULL: Durability
DURABILITY_RELAXED: Durability
DEFINITION_TYPE_UNSPECIFIED: DefinitionType
DEFINITION_TYPE_SCHEDULER: DefinitionType
DEFINITION_TYPE_FLOW_TEMPLATE: DefinitionType

class Limits(_message.Message):
    __slots__ = ("max_message_bytes", "max_payload_bytes", "max_result_bytes", "max_progress_bytes", "max_log_line_bytes", "max_bulk_jobs", "max_bulk_bytes", "max_flow_depth", "max_flow_nodes", "max_flow_bulk", "max_settle_batch", "max_page_size", "max_admin_batch", "max_wait_ms")
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROGRESS_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_LOG_LINE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BULK_JOBS_FIELD_NUMBER: _ClassVar[int]
    MAX_BULK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_FLOW_DEPTH_FIELD_NUMBER: _ClassVar[int]
    MAX_FLOW_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_FLOW_BULK_FIELD_NUMBER: _ClassVar[int]
    MAX_SETTLE_BATCH_FIELD_NUMBER: _ClassVar[int]
    MAX_PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_ADMIN_BATCH_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    max_message_bytes: int
    max_payload_bytes: int
    max_result_bytes: int
    max_progress_bytes: int
    max_log_line_bytes: int
    max_bulk_jobs: int
    max_bulk_bytes: int
    max_flow_depth: int
    max_flow_nodes: int
    max_flow_bulk: int
    max_settle_batch: int
    max_page_size: int
    max_admin_batch: int
    max_wait_ms: int
    def __init__(self, max_message_bytes: _Optional[int] = ..., max_payload_bytes: _Optional[int] = ..., max_result_bytes: _Optional[int] = ..., max_progress_bytes: _Optional[int] = ..., max_log_line_bytes: _Optional[int] = ..., max_bulk_jobs: _Optional[int] = ..., max_bulk_bytes: _Optional[int] = ..., max_flow_depth: _Optional[int] = ..., max_flow_nodes: _Optional[int] = ..., max_flow_bulk: _Optional[int] = ..., max_settle_batch: _Optional[int] = ..., max_page_size: _Optional[int] = ..., max_admin_batch: _Optional[int] = ..., max_wait_ms: _Optional[int] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "features", "namespace", "instance_id", "started_at_ms", "now_at_ms", "durability", "limits", "maintenance", "maintenance_reason", "schema_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    NOW_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MAINTENANCE_FIELD_NUMBER: _ClassVar[int]
    MAINTENANCE_REASON_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: str
    features: _containers.RepeatedScalarFieldContainer[str]
    namespace: str
    instance_id: str
    started_at_ms: int
    now_at_ms: int
    durability: Durability
    limits: Limits
    maintenance: bool
    maintenance_reason: str
    schema_version: int
    def __init__(self, version: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., namespace: _Optional[str] = ..., instance_id: _Optional[str] = ..., started_at_ms: _Optional[int] = ..., now_at_ms: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., maintenance: bool = ..., maintenance_reason: _Optional[str] = ..., schema_version: _Optional[int] = ...) -> None: ...

class GetStorageInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetStorageInfoResponse(_message.Message):
    __slots__ = ("database_bytes", "wal_bytes", "reclaimable_bytes", "disk_free_bytes", "last_backup_at_ms", "job_count", "receipt_count", "event_count")
    DATABASE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECLAIMABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_BACKUP_AT_MS_FIELD_NUMBER: _ClassVar[int]
    JOB_COUNT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    database_bytes: int
    wal_bytes: int
    reclaimable_bytes: int
    disk_free_bytes: int
    last_backup_at_ms: int
    job_count: int
    receipt_count: int
    event_count: int
    def __init__(self, database_bytes: _Optional[int] = ..., wal_bytes: _Optional[int] = ..., reclaimable_bytes: _Optional[int] = ..., disk_free_bytes: _Optional[int] = ..., last_backup_at_ms: _Optional[int] = ..., job_count: _Optional[int] = ..., receipt_count: _Optional[int] = ..., event_count: _Optional[int] = ...) -> None: ...

class CreateBackupRequest(_message.Message):
    __slots__ = ("label",)
    LABEL_FIELD_NUMBER: _ClassVar[int]
    label: str
    def __init__(self, label: _Optional[str] = ...) -> None: ...

class CreateBackupResponse(_message.Message):
    __slots__ = ("path", "size_bytes", "sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    size_bytes: int
    sha256: str
    def __init__(self, path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class CompactStorageRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompactStorageResponse(_message.Message):
    __slots__ = ("freed_bytes",)
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    freed_bytes: int
    def __init__(self, freed_bytes: _Optional[int] = ...) -> None: ...

class SetMaintenanceRequest(_message.Message):
    __slots__ = ("enabled", "reason")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    reason: str
    def __init__(self, enabled: bool = ..., reason: _Optional[str] = ...) -> None: ...

class SetMaintenanceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Definition(_message.Message):
    __slots__ = ("type", "name", "owner", "last_tick_at_ms", "next_tick_at_ms", "last_job_id", "last_flow_id", "problem_reason", "problem_message")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    LAST_TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    NEXT_TICK_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_REASON_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    type: DefinitionType
    name: str
    owner: _types_pb2.Owner
    last_tick_at_ms: int
    next_tick_at_ms: int
    last_job_id: str
    last_flow_id: str
    problem_reason: str
    problem_message: str
    def __init__(self, type: _Optional[_Union[DefinitionType, str]] = ..., name: _Optional[str] = ..., owner: _Optional[_Union[_types_pb2.Owner, _Mapping]] = ..., last_tick_at_ms: _Optional[int] = ..., next_tick_at_ms: _Optional[int] = ..., last_job_id: _Optional[str] = ..., last_flow_id: _Optional[str] = ..., problem_reason: _Optional[str] = ..., problem_message: _Optional[str] = ...) -> None: ...

class ListDefinitionsRequest(_message.Message):
    __slots__ = ("owner_namespace", "owner_kind", "owner_manager", "page_size", "page_token")
    OWNER_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OWNER_KIND_FIELD_NUMBER: _ClassVar[int]
    OWNER_MANAGER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owner_namespace: str
    owner_kind: str
    owner_manager: str
    page_size: int
    page_token: str
    def __init__(self, owner_namespace: _Optional[str] = ..., owner_kind: _Optional[str] = ..., owner_manager: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDefinitionsResponse(_message.Message):
    __slots__ = ("definitions", "next_page_token")
    DEFINITIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    definitions: _containers.RepeatedCompositeFieldContainer[Definition]
    next_page_token: str
    def __init__(self, definitions: _Optional[_Iterable[_Union[Definition, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReleaseDefinitionRequest(_message.Message):
    __slots__ = ("type", "name", "owner")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    type: DefinitionType
    name: str
    owner: _types_pb2.Owner
    def __init__(self, type: _Optional[_Union[DefinitionType, str]] = ..., name: _Optional[str] = ..., owner: _Optional[_Union[_types_pb2.Owner, _Mapping]] = ...) -> None: ...

class ReleaseDefinitionResponse(_message.Message):
    __slots__ = ("released",)
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    released: bool
    def __init__(self, released: bool = ...) -> None: ...
