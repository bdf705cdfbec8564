from anvilmq_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ParameterType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARAMETER_TYPE_UNSPECIFIED: _ClassVar[ParameterType]
    PARAMETER_TYPE_STRING: _ClassVar[ParameterType]
    PARAMETER_TYPE_INTEGER: _ClassVar[ParameterType]
    PARAMETER_TYPE_NUMBER: _ClassVar[ParameterType]
    PARAMETER_TYPE_BOOLEAN: _ClassVar[ParameterType]
    PARAMETER_TYPE_OBJECT: _ClassVar[ParameterType]
    PARAMETER_TYPE_ARRAY: _ClassVar[ParameterType]
PARAMETER_TYPE_UNSPECIFIED: ParameterType
PARAMETER_TYPE_STRING: ParameterType
PARAMETER_TYPE_INTEGER: ParameterType
PARAMETER_TYPE_NUMBER: ParameterType
PARAMETER_TYPE_BOOLEAN: ParameterType
PARAMETER_TYPE_OBJECT: ParameterType
PARAMETER_TYPE_ARRAY: ParameterType

class FlowParameter(_message.Message):
    __slots__ = ("name", "type", "default_json", "description", "enum_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_JSON_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ENUM_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ParameterType
    default_json: str
    description: str
    enum_json: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ParameterType, str]] = ..., default_json: _Optional[str] = ..., description: _Optional[str] = ..., enum_json: _Optional[_Iterable[str]] = ...) -> None: ...

class FlowTemplate(_message.Message):
    __slots__ = ("name", "description", "parameters", "root", "owner", "content_hash", "node_count", "created_at_ms", "updated_at_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters: _containers.RepeatedCompositeFieldContainer[FlowParameter]
    root: _types_pb2.FlowNode
    owner: _types_pb2.Owner
    content_hash: str
    node_count: int
    created_at_ms: int
    updated_at_ms: int
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[FlowParameter, _Mapping]]] = ..., root: _Optional[_Union[_types_pb2.FlowNode, _Mapping]] = ..., owner: _Optional[_Union[_types_pb2.Owner, _Mapping]] = ..., content_hash: _Optional[str] = ..., node_count: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., updated_at_ms: _Optional[int] = ...) -> None: ...

class UpsertFlowTemplateRequest(_message.Message):
    __slots__ = ("template", "dry_run", "adopt")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    ADOPT_FIELD_NUMBER: _ClassVar[int]
    template: FlowTemplate
    dry_run: bool
    adopt: bool
    def __init__(self, template: _Optional[_Union[FlowTemplate, _Mapping]] = ..., dry_run: bool = ..., adopt: bool = ...) -> None: ...

class UpsertFlowTemplateResponse(_message.Message):
    __slots__ = ("template", "outcome")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    template: FlowTemplate
    outcome: _types_pb2.UpsertOutcome
    def __init__(self, template: _Optional[_Union[FlowTemplate, _Mapping]] = ..., outcome: _Optional[_Union[_types_pb2.UpsertOutcome, str]] = ...) -> None: ...

class GetFlowTemplateRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetFlowTemplateResponse(_message.Message):
    __slots__ = ("template",)
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    template: FlowTemplate
    def __init__(self, template: _Optional[_Union[FlowTemplate, _Mapping]] = ...) -> None: ...

class ListFlowTemplatesRequest(_message.Message):
    __slots__ = ("name_prefix", "page_size", "page_token")
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name_prefix: str
    page_size: int
    page_token: str
    def __init__(self, name_prefix: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFlowTemplatesResponse(_message.Message):
    __slots__ = ("templates", "next_page_token")
    TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    templates: _containers.RepeatedCompositeFieldContainer[FlowTemplate]
    next_page_token: str
    def __init__(self, templates: _Optional[_Iterable[_Union[FlowTemplate, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteFlowTemplateRequest(_message.Message):
    __slots__ = ("name", "owner", "allow_missing", "force")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    owner: _types_pb2.Owner
    allow_missing: bool
    force: bool
    def __init__(self, name: _Optional[str] = ..., owner: _Optional[_Union[_types_pb2.Owner, _Mapping]] = ..., allow_missing: bool = ..., force: bool = ...) -> None: ...

class DeleteFlowTemplateResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: bool = ...) -> None: ...

class RunFlowTemplateRequest(_message.Message):
    __slots__ = ("template", "parameters_json", "run_key", "headers", "dry_run", "expected_spec_hash")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SPEC_HASH_FIELD_NUMBER: _ClassVar[int]
    template: str
    parameters_json: str
    run_key: str
    headers: _containers.ScalarMap[str, str]
    dry_run: bool
    expected_spec_hash: str
    def __init__(self, template: _Optional[str] = ..., parameters_json: _Optional[str] = ..., run_key: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., dry_run: bool = ..., expected_spec_hash: _Optional[str] = ...) -> None: ...

class RunFlowTemplateResponse(_message.Message):
    __slots__ = ("flow_id", "existing", "content_hash", "rendered")
    FLOW_ID_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    RENDERED_FIELD_NUMBER: _ClassVar[int]
    flow_id: str
    existing: bool
    content_hash: str
    rendered: _types_pb2.FlowNode
    def __init__(self, flow_id: _Optional[str] = ..., existing: bool = ..., content_hash: _Optional[str] = ..., rendered: _Optional[_Union[_types_pb2.FlowNode, _Mapping]] = ...) -> None: ...
