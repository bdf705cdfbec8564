"""The seam below everything that talks to a broker: calls by method, over gRPC or within the process.

A method is looked up in the descriptors, which say its name on the wire and whether it streams:

    ADD_JOB = method("JobService", "AddJob", job_service_pb2.AddJobRequest, job_service_pb2.AddJobResponse)

Two classes implement Transport: `_channel.Channel` (grpc.aio) and `_loopback.Loopback` (a broker in this process).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, Protocol, TypeVar

import msgspec
from google.protobuf.message import Message

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)


class Method(msgspec.Struct, Generic[Req, Resp], frozen=True):
    """One RPC. `path` is its full name on the wire, such as "/anvilmq.v1.JobService/AddJob"."""

    path: str
    request: type[Req]
    response: type[Resp]
    client_streaming: bool
    server_streaming: bool


def method(service: str, name: str, request: type[Req], response: type[Resp]) -> Method[Req, Resp]:
    """The RPC `name` of the service, which is declared in the file of its request.

    KeyError when there is no such service or method, TypeError when its messages are others than these two.
    """
    descriptor = request.DESCRIPTOR.file.services_by_name[service].methods_by_name[name]
    if descriptor.input_type is not request.DESCRIPTOR or descriptor.output_type is not response.DESCRIPTOR:
        raise TypeError(f"{service}.{name} takes {descriptor.input_type.name}, answers {descriptor.output_type.name}")
    return Method(
        path=f"/{descriptor.containing_service.full_name}/{name}",
        request=request,
        response=response,
        client_streaming=descriptor.client_streaming,
        server_streaming=descriptor.server_streaming,
    )


class Transport(Protocol):
    """Calls to one broker. Lives on ONE loop, that of the I/O: all of it is to be called there.

    Failures are raised as subclasses of `anvilmq.errors.AnvilError` and nothing else. On UNAUTHENTICATED the transport
    has read the token file again when it raises: a stream may be opened once more, a unary call was repeated already.
    """

    async def unary(self, method: Method[Req, Resp], request: Req, *, timeout_s: float) -> Resp:
        """Call, and wait for the answer at most that long. Nothing else is retried here."""

    def stream(self, method: Method[Req, Resp], requests: AsyncIterator[Req]) -> AsyncGenerator[Resp, None]:
        """The answers of a streaming call, also of one that takes a single request.

        `requests` is asked for the first message once there is a connection, for the next when the one before is
        written; its end half-closes the call, which then ends when the broker has answered. `aclose()` on the answers cancels the call, and the reading of
        `requests` with it.
        """

    async def close(self) -> None:
        """End every call and free the connection. May be called twice."""
