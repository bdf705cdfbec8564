"""A gateway that listens on a port of this machine, over an engine in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from anvilmq_broker.app.inproc import Inproc
from anvilmq_broker.clock import SystemClock
from anvilmq_broker.engine.chance import SystemChance
from anvilmq_broker.engine.inproc import InprocEngine
from anvilmq_broker.gateway.methods import METHODS
from anvilmq_broker.gateway.server import Binding, Server
from anvilmq_broker.gateway.tls import TlsFiles
from anvilmq_broker.store.memory import MemoryStore

TIMEOUT_S = 20.0


class Serving:
    """A server, and how to reach it."""

    def __init__(self, broker: Inproc, server: Server, port: int) -> None:
        self.broker = broker
        self.server = server
        self.address = f"localhost:{port}"

    def channel(self, credentials: grpc.ChannelCredentials | None = None) -> grpc.aio.Channel:
        """A connection; a context manager."""
        # A channel of its own each time: connections are not shared between tests or certificates.
        options = [("grpc.use_local_subchannel_pool", 1)]
        if credentials is None:
            return grpc.aio.insecure_channel(self.address, options=options)
        return grpc.aio.secure_channel(self.address, credentials, options=options)


@asynccontextmanager
async def serving(files: TlsFiles | None = None) -> AsyncIterator[Serving]:
    """A broker with a memory store behind a port of its own."""
    broker = Inproc(InprocEngine(MemoryStore(chance=SystemChance()), SystemClock()))
    await broker.start()
    server = Server(broker.gateway, Binding("127.0.0.1", 0, files))
    try:
        port = await server.start()
        await server.serving(True)
        yield Serving(broker, server, port)
    finally:
        await server.stop(0)
        await broker.stop()


async def call(channel: grpc.aio.Channel, name: str, request: Message | bytes, **options: Any) -> Any:
    """A unary call, named "JobService/AddJob"; bytes are sent as they are."""
    path = f"/anvilmq.v1.{name}"
    data = request if isinstance(request, bytes) else request.SerializeToString()
    calling: Any = channel.unary_unary(path)
    answer = await calling(data, **{"timeout": TIMEOUT_S, **options})
    return METHODS[path].response.FromString(answer)


def stream(channel: grpc.aio.Channel, name: str) -> Any:
    """A stream in both directions."""
    method = METHODS[f"/anvilmq.v1.{name}"]
    return channel.stream_stream(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )(timeout=TIMEOUT_S)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The reason in the details of a failed call."""
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    status = status_pb2.Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    return str(info.reason)
