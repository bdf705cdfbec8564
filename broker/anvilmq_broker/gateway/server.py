"""The gRPC server of one gateway: handlers made from the descriptors, bytes in and out; health; TLS; limits; drain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NoReturn

import grpc
import msgspec
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from anvilmq_broker.gateway import limits, status, tls
from anvilmq_broker.gateway.methods import METHODS, SERVICES, Method
from anvilmq_broker.gateway.refusals import malformed
from anvilmq_broker.gateway.rpc import Gateway
from anvilmq_broker.gateway.status import Failure
from anvilmq_broker.gateway.wire import Broken

DETAILS_KEY: Final = "grpc-status-details-bin"
STREAMS_END_MS: Final = 1_000
"""How long streams may go on once the broker is shutting down; leases outlive them."""
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING

Context = grpc.aio.ServicerContext[bytes, bytes]

OPTIONS: Final[tuple[tuple[str, Any], ...]] = (
    ("grpc.so_reuseport", 1),
    ("grpc.max_receive_message_length", limits.MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", limits.MAX_MESSAGE_BYTES),
    # Clients ping every 10 s, also without calls: a dead node is never noticed otherwise.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class Binding(msgspec.Struct, frozen=True):
    """Where to listen. port 0 = any. files: None = without TLS."""

    host: str = "127.0.0.1"
    port: int = 0
    files: tls.TlsFiles | None = None

    @property
    def address(self) -> str:
        """As gRPC wants it; an IPv6 host is put in brackets."""
        bare = ":" in self.host and not self.host.startswith("[")
        return f"[{self.host}]:{self.port}" if bare else f"{self.host}:{self.port}"


class BindFailed(Exception):
    """The address cannot be listened on."""


class Server:
    """Serves a gateway over gRPC. `start` binds; `serving` says whether calls can be answered now."""

    def __init__(self, gateway: Gateway, binding: Binding) -> None:
        self._gateway = gateway
        self._binding = binding
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> int:
        """Listen, and answer the port. Raises BindFailed, tls.TlsInvalid."""
        server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=None)
        server.add_generic_rpc_handlers((_Handlers(self._gateway), _health_handlers(self._health)))
        port = self._bind(server)
        await self._health.set("", _SERVING)
        await self.serving(False)
        await server.start()
        self._server = server
        return port

    async def serving(self, ready: bool) -> None:
        """Tell by grpc.health.v1 whether the services are ready; "" stays alive."""
        for service in SERVICES:
            await self._health.set(service, _SERVING if ready else _NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Drain: no new calls, streams end soon, unary calls may end within grace_s. Works unstarted and twice."""
        server, self._server = self._server, None
        if server is None:
            return
        await self.serving(False)
        # Once stopped, the server takes no new connection; the grace is for what is open.
        stopped = asyncio.ensure_future(server.stop(grace_s))
        await self._gateway.drain(int(min(STREAMS_END_MS, grace_s * 1_000)))
        await stopped

    def _bind(self, server: grpc.aio.Server) -> int:
        address, files = self._binding.address, self._binding.files
        try:
            if files is None:
                return server.add_insecure_port(address)
            return server.add_secure_port(address, tls.credentials(files))
        except RuntimeError as error:
            raise BindFailed(f"{address} cannot be listened on: {error}") from error


class _Handlers(grpc.GenericRpcHandler):
    """A handler for each RPC of the contract."""

    def __init__(self, gateway: Gateway) -> None:
        self._by_path = {path: _handler(gateway, method) for path, method in METHODS.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """gRPC's: the handler of a call, None for one that is not of the contract."""
        return self._by_path.get(handler_call_details.method)


class _GrpcWire:
    """The broker's end of a stream over gRPC."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    async def greet(self) -> None:
        """Send the head of the answer by itself.

        Left to the first message, it would travel twice, and gRPC refuse the status, when a call ends with that
        message still on its way.
        """
        try:
            await self._context.send_initial_metadata(())
        except Exception as error:
            raise Broken from error

    async def read(self) -> bytes | None:
        """The client's next message."""
        try:
            message = await self._context.read()
        except Exception as error:
            raise Broken from error
        return message if isinstance(message, bytes) else None

    async def write(self, message: bytes) -> None:
        """Hand a message to gRPC."""
        try:
            await self._context.write(message)
        except Exception as error:
            raise Broken from error


def _handler(gateway: Gateway, method: Method) -> Any:
    # Without serializers gRPC hands over bytes: parsing is the gateway's, whose answer to bad bytes is a code.
    if not method.streams:
        return grpc.unary_unary_rpc_method_handler(_unary(gateway, method.path))
    if method.client_streaming:
        return grpc.stream_stream_rpc_method_handler(_stream(gateway, method.path))
    return grpc.unary_stream_rpc_method_handler(_answers(gateway, method.path))


def _unary(gateway: Gateway, path: str) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def call(data: bytes, context: Context) -> bytes:
        try:
            return await gateway.unary(path, data, _metadata(context), context.time_remaining())
        except Failure as failure:
            await _abort(context, failure)

    return call


def _stream(gateway: Gateway, path: str) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    async def call(_requests: AsyncIterator[bytes], context: Context) -> None:
        await _serve(gateway, path, _GrpcWire(context), context)

    return call


def _answers(gateway: Gateway, path: str) -> Callable[[bytes, Context], Awaitable[None]]:
    async def call(data: bytes, context: Context) -> None:
        await _serve(gateway, path, _OneRequest(context, data), context)

    return call


class _OneRequest(_GrpcWire):
    """A stream of answers to a single request."""

    __slots__ = ("_request",)

    def __init__(self, context: Context, request: bytes) -> None:
        super().__init__(context)
        self._request: bytes | None = request

    async def read(self) -> bytes | None:
        """The request, once."""
        request, self._request = self._request, None
        return request


async def _serve(gateway: Gateway, path: str, wire: _GrpcWire, context: Context) -> None:
    try:
        await wire.greet()
        await gateway.stream(path, wire, _metadata(context))
    except Failure as failure:
        await _abort(context, failure)
    except Broken:
        # The client is gone; whatever the call ends with, nobody reads it.
        return


def _health_handlers(servicer: Any) -> grpc.GenericRpcHandler:
    """grpc.health.v1, whose own handlers answer UNKNOWN to bytes that are no request, and print a traceback."""

    def parsed(answer: Callable[..., Awaitable[Any]], label: str) -> Callable[[bytes, Any], Awaitable[Any]]:
        async def call(data: bytes, context: Any) -> Any:
            try:
                request = health_pb2.HealthCheckRequest.FromString(data)
            except DecodeError:
                await _abort(context, status.failure(malformed(label).refused))
            return await answer(request, context)

        return call

    written: Any = health_pb2.HealthCheckResponse.SerializeToString
    check: Any = grpc.unary_unary_rpc_method_handler(
        parsed(servicer.Check, "Health/Check"), response_serializer=written
    )
    watch: Any = grpc.unary_stream_rpc_method_handler(
        parsed(servicer.Watch, "Health/Watch"), response_serializer=written
    )
    return grpc.method_handlers_generic_handler(health.SERVICE_NAME, {"Check": check, "Watch": watch})


def _metadata(context: Context) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


async def _abort(context: Context, failure: Failure) -> NoReturn:
    details = ((DETAILS_KEY, failure.status.SerializeToString()),)
    await context.abort(_CODES[failure.code], failure.status.message, trailing_metadata=details)
    raise AssertionError("abort raises")
