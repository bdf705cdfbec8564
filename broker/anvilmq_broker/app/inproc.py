"""A whole broker in one process and on one event loop, without gRPC and sockets: for `anvilmq dev` and for tests.

The calls are bytes all the same and run through the gateway's one place, so what works here works over gRPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Final

from google.protobuf.message import Message
from google.rpc import status_pb2

from anvilmq_broker.clock import Clock, SystemClock
from anvilmq_broker.engine.chance import SystemChance
from anvilmq_broker.engine.inproc import HeldClock, InprocBroker, InprocEngine
from anvilmq_broker.gateway.auth import Authenticator, Open
from anvilmq_broker.gateway.context import Context, Identity, LoopTimers, Timers
from anvilmq_broker.gateway.limits import Limits
from anvilmq_broker.gateway.methods import METHODS
from anvilmq_broker.gateway.rpc import Gateway
from anvilmq_broker.gateway.status import Failure
from anvilmq_broker.gateway.telemetry import Telemetry
from anvilmq_broker.gateway.wire import Broken
from anvilmq_broker.store.memory.store import MemoryStore

__all__ = ["Failure", "Inproc", "in_memory"]

DEADLINE_EXCEEDED: Final = 4
PING_EVERY_MS: Final = 10_000
HELD_PING_EVERY_MS: Final = 3_600_000
"""Nothing can vanish silently within a process, and each ping is a stop on the way of a clock that a test turns."""
_READ_AHEAD: Final = 16
"""Answers of a stream that may wait for its reader."""


class Inproc:
    """A gateway over an engine of this process.

    engine: not started; started and stopped by this. clock: the engine's. authenticator: None = everyone may do all.
    Failures are raised as `Failure`, whose `status` is a google.rpc.Status.
    """

    def __init__(
        self,
        engine: InprocEngine,
        *,
        clock: Clock | None = None,
        timers: Timers | None = None,
        authenticator: Authenticator | None = None,
        limits: Limits | None = None,
        namespace: str = "",
        ping_every_ms: int = PING_EVERY_MS,
    ) -> None:
        self._engine = engine
        self._context = Context(
            clock=clock or SystemClock(),
            timers=timers or LoopTimers(),
            identity=Identity.of_this_build(namespace),
            limits=limits or Limits(),
            ping_every_ms=ping_every_ms,
        )
        self.telemetry = Telemetry("inproc")
        self.gateway = Gateway(self._context, authenticator or Open(), self.telemetry)
        self._broker: InprocBroker | None = None

    async def start(self) -> None:
        """Start the engine, and connect. Raises errors.StartRefused."""
        await self._engine.start()
        self._broker = await self._engine.connect()
        self._broker.lost.add_done_callback(lambda _: self._context.lost())
        self._context.connected(self._broker)

    async def stop(self) -> None:
        """End what is open, and stop the engine. Works unstarted and twice."""
        broker, self._broker = self._broker, None
        if broker is None:
            return
        await self.gateway.drain(0)
        await broker.close()
        await self._engine.stop()

    async def unary(
        self,
        method: str,
        request: Message,
        *,
        metadata: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        """One call, named as on the wire: "/anvilmq.v1.JobService/AddJob". Raises Failure."""
        call = self.gateway.unary(method, request.SerializeToString(), metadata or {}, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await call
        except TimeoutError:
            raise Failure(
                status_pb2.Status(code=DEADLINE_EXCEEDED, message=f"{method} was not answered in {timeout_s} s")
            ) from None
        return METHODS[method].response.FromString(answer)

    async def stream(
        self, method: str, requests: AsyncIterator[Message], *, metadata: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Message, None]:
        """The answers of a streaming call. Closing the iterator cancels the call. Raises Failure."""
        wire = _Channel(requests)
        serving = asyncio.create_task(self.gateway.stream(method, wire, metadata or {}))
        serving.add_done_callback(lambda _: wire.end())
        response = METHODS[method].response
        try:
            while (answer := await wire.next_answer()) is not None:
                yield response.FromString(answer)
            await serving
        finally:
            wire.end()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def in_memory(
    clock: HeldClock, timers: Timers, *, draw: Callable[[int], bytes] = os.urandom
) -> tuple[Inproc, InprocEngine]:
    """A broker for tests, and its engine, with which to let time pass: memory is its store, and its time is held.

    draw: so many bytes of chance, for tokens and jitter.
    """
    engine = InprocEngine(MemoryStore(chance=SystemChance(draw)), clock, held=True)
    return Inproc(engine, clock=clock, timers=timers, ping_every_ms=HELD_PING_EVERY_MS), engine


class _Channel:
    """The broker's end of a stream within the process, and the client's ear."""

    def __init__(self, requests: AsyncIterator[Message]) -> None:
        self._requests = requests
        self._answers: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Semaphore(_READ_AHEAD)
        self._ended = False

    async def read(self) -> bytes | None:
        """The client's next message."""
        with contextlib.suppress(StopAsyncIteration):
            return (await anext(self._requests)).SerializeToString()
        return None

    async def write(self, message: bytes) -> None:
        """Hand an answer to the client; waits while it has many to read."""
        await self._room.acquire()
        if self._ended:
            raise Broken
        self._answers.append(message)
        self._changed.set()

    async def next_answer(self) -> bytes | None:
        """The next answer; None when the call has ended and all are read."""
        while not self._answers and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if not self._answers:
            return None
        self._room.release()
        return self._answers.popleft()

    def end(self) -> None:
        """The call is over; nothing more can be written."""
        self._ended = True
        self._changed.set()
        self._room.release()
