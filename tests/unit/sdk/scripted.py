"""A broker that says what the test tells it to, on the Work stream; and what a worker says, to look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from anvilmq import errors
from anvilmq._transport import Method
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire


async def turns(count: int = 30) -> None:
    """Let everything run that can run without time passing."""
    for _ in range(count):
        await asyncio.sleep(0)


class Stream:
    """One Work stream as the broker sees it."""

    def __init__(self) -> None:
        self.frames: list[wire.WorkRequest] = []
        self.closed = False
        self._answering = False
        self._spoken = asyncio.Event()
        self._answers: asyncio.Queue[wire.WorkResponse | Exception | None] = asyncio.Queue()

    def say(self, response: wire.WorkResponse | Exception | None) -> None:
        """Answer with a frame; an exception breaks the stream, None ends it."""
        self._answers.put_nowait(response)

    def opened(self, **fields: Any) -> None:
        """Accept the session."""
        self.say(wire.WorkResponse(opened=wire.WorkResponse.Opened(**{"ping_every_ms": 10_000} | fields)))

    def deliver(self, *deliveries: wire.Delivery) -> None:
        """Hand out jobs."""
        self.say(wire.WorkResponse(deliveries=deliveries))

    def settled(self, seq: int, count: int = 1, errors: list[types.ItemError] | None = None) -> None:
        """Answer a settlement."""
        states = [types.JOB_STATE_COMPLETED] * count
        self.say(wire.WorkResponse(settled=[wire.SettleJobsResponse(seq=seq, states=states, errors=errors or [])]))

    def interrupt(self, cause: wire.InterruptCause, *tokens: str) -> None:
        """Interrupt attempts."""
        self.say(wire.WorkResponse(interrupts=[wire.Interrupt(lease_token=token, cause=cause) for token in tokens]))

    def answer_all(self) -> None:
        """Say yes to every settlement and drain of the frames so far, and of those to come."""
        self._answering = True
        for frame in self.frames:
            self._answer(frame)

    async def next_frame(self) -> None:
        """Wait until the worker says something."""
        self._spoken.clear()
        await self._spoken.wait()

    @property
    def settlements(self) -> list[wire.Settlement]:
        """All that were sent."""
        return [settlement for frame in self.frames for settlement in frame.settle.settlements]

    async def serve(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """The two directions at once."""
        reading = asyncio.create_task(self._read(requests))
        try:
            while (answer := await self._answers.get()) is not None:
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            self.closed = True
            reading.cancel()
            await asyncio.wait([reading])

    async def _read(self, requests: AsyncIterator[wire.WorkRequest]) -> None:
        async for frame in requests:
            self.frames.append(frame)
            self._spoken.set()
            if self._answering:
                self._answer(frame)

    def _answer(self, frame: wire.WorkRequest) -> None:
        if frame.HasField("settle"):
            self.settled(frame.settle.seq, len(frame.settle.settlements))
        if frame.HasField("drain"):
            self.say(wire.WorkResponse(drained=wire.WorkResponse.Drained()))


class ScriptedBroker:
    """A transport on which only Work is called. With `accepts` each session is opened at once."""

    def __init__(self, *, accepts: bool = True) -> None:
        self.accepts = accepts
        self.streams: list[Stream] = []
        self.refuse_with: list[Exception] = []

    @property
    def stream_now(self) -> Stream:
        """The newest stream."""
        return self.streams[-1]

    async def unary(self, method: Method[Any, Any], request: Any, *, timeout_s: float) -> Any:
        """No unary call is expected."""
        raise errors.Unimplemented(method.path)

    def stream(self, method: Method[Any, Any], requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """See Transport."""
        assert method.path == "/anvilmq.v1.WorkerService/Work"
        stream = Stream()
        self.streams.append(stream)
        if self.refuse_with:
            stream.say(self.refuse_with.pop(0))
        elif self.accepts:
            stream.opened()
        return stream.serve(requests)

    async def close(self) -> None:
        """See Transport."""


def delivery(token: str = "t1", **fields: Any) -> wire.Delivery:
    """A delivery with the usual fields; its job is called after its token."""
    usual: dict[str, Any] = {
        "job_id": f"job-{token}",
        "lease_token": token,
        "queue": "images",
        "name": "resize",
        "data": b"null",
        "attempt": 1,
        "max_attempts": 3,
        "lease_ms": 30_000,
        "pool": 1,
        "starts": 1,
    }
    return wire.Delivery(**usual | fields)
