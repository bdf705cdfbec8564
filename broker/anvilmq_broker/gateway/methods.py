"""Every RPC of the contract, from the descriptors of the generated code; nothing here is written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from anvilmq_proto.v1 import (
    event_service_pb2,
    flow_service_pb2,
    flow_template_service_pb2,
    job_service_pb2,
    queue_service_pb2,
    receipt_service_pb2,
    scheduler_service_pb2,
    system_service_pb2,
    worker_service_pb2,
)

_FILES: Final[tuple[FileDescriptor, ...]] = (
    job_service_pb2.DESCRIPTOR,
    worker_service_pb2.DESCRIPTOR,
    receipt_service_pb2.DESCRIPTOR,
    system_service_pb2.DESCRIPTOR,
    queue_service_pb2.DESCRIPTOR,
    flow_service_pb2.DESCRIPTOR,
    flow_template_service_pb2.DESCRIPTOR,
    scheduler_service_pb2.DESCRIPTOR,
    event_service_pb2.DESCRIPTOR,
)


class Method(msgspec.Struct, frozen=True):
    """One RPC. path: as on the wire, "/anvilmq.v1.JobService/AddJob". label: "JobService/AddJob", for metrics."""

    path: str
    label: str
    request: type[Message]
    response: type[Message]
    client_streaming: bool
    server_streaming: bool

    @property
    def streams(self) -> bool:
        """Whether it streams in any direction."""
        return self.client_streaming or self.server_streaming


SERVICES: Final[tuple[str, ...]] = tuple(
    service.full_name for file in _FILES for service in file.services_by_name.values()
)
"""Full names of the services."""

METHODS: Final[Mapping[str, Method]] = {
    path: Method(
        path=path,
        label=f"{service.name}/{method.name}",
        request=GetMessageClass(method.input_type),
        response=GetMessageClass(method.output_type),
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
    )
    for file in _FILES
    for service in file.services_by_name.values()
    for method in service.methods
    if (path := f"/{service.full_name}/{method.name}")
}
"""The RPCs by path."""
