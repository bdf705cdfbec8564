"""A broker for producers: answers adds as the real one does, and fails where the test tells it to."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final

import msgspec

from anvilmq import Anvil, errors
from anvilmq._client import Client
from anvilmq._clock import ManualClock
from anvilmq._iothread import InlineIo
from anvilmq._settings import Settings
from anvilmq._transport import Method
from anvilmq_proto.v1 import job_service_pb2 as wire
from anvilmq_proto.v1 import types_pb2 as types

LOST: Final = errors.Unavailable("the connection broke")

Answer = wire.AddJobStreamResponse | wire.AddJobBulkResponse
Step = Callable[["FakeBroker", Any], Answer]


class FakeBroker:
    """See Transport. `jobs` are those it has stored; `frames` all requests with jobs that reached it."""

    def __init__(self) -> None:
        self.jobs: list[types.JobSpec] = []
        self.frames: list[Any] = []
        self.calls: list[Any] = []
        self.streams = 0
        self.down: errors.AnvilError | None = None
        self.closed = False
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self._steps: deque[Step] = deque()
        self._producers: dict[str, tuple[int, Answer]] = {}
        self._refused: dict[bytes, types.ItemError] = {}
        self._earlier: dict[bytes, wire.EarlierJob] = {}
        self._arrivals: list[tuple[int, asyncio.Event]] = []
        self._open = asyncio.Event()
        self._open.set()
        self._one = False

    # ------------------------------------------------------------------------------------------- what a test says

    def then(self, *steps: Step) -> None:
        """What becomes of the next requests with jobs, one step each; after that they are stored."""
        self._steps.extend(steps)

    def refuse_item(self, data: bytes, error: types.ItemError) -> None:
        """Refuse each job with that payload."""
        self._refused[data] = error

    def meet_item(self, data: bytes, earlier: wire.EarlierJob) -> None:
        """Say that each job with that payload met an earlier one."""
        self._earlier[data] = earlier

    def hold(self) -> None:
        """Take requests, but do not answer, until `release`."""
        self._open.clear()

    def release(self, *, one: bool = False) -> None:
        """Answer again, or just one request."""
        self._one = one
        self._open.set()

    async def until_frames(self, count: int) -> None:
        """Return when that many requests with jobs have come."""
        if len(self.frames) < count:
            come = asyncio.Event()
            self._arrivals.append((count, come))
            await come.wait()

    @property
    def stored(self) -> list[bytes]:
        """The payloads of all jobs, in the order of their adding."""
        return [job.data for job in self.jobs]

    # ------------------------------------------------------------------------------------------------- transport

    async def unary(self, method: Method[Any, Any], request: Any, *, timeout_s: float) -> Any:
        """See Transport."""
        if self.down is not None:
            raise copy.copy(self.down)
        name = method.path.rpartition("/")[2]
        if name == "AddJobBulk":
            return await self._add(request)
        self.calls.append(request)
        return self.answers[name](request)

    async def stream(self, method: Method[Any, Any], requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """See Transport."""
        self.streams += 1
        assert isinstance(requests, AsyncGenerator)
        read: asyncio.Queue[Any] = asyncio.Queue()
        try:
            if self.down is not None:
                raise copy.copy(self.down)
            reading = asyncio.create_task(_read(requests, read))
            try:
                while (request := await read.get()) is not None:
                    yield await self._add(request)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        finally:
            await requests.aclose()

    async def close(self) -> None:
        """See Transport."""
        self.closed = True

    async def _add(self, request: Any) -> Any:
        self.frames.append(request)
        for count, come in self._arrivals:
            if len(self.frames) >= count:
                come.set()
        if self._steps:
            return self._steps.popleft()(self, request)
        answer = self.store(request)
        await self._open.wait()
        if self._one:
            self._open.clear()
        return answer

    def store(self, request: Any) -> Answer:
        """What the real one does: the answer to a `seq` that it knows, else each job for itself."""
        seq, kept = self._producers.get(request.producer_id, (0, None))
        if kept is not None and request.seq == seq:
            return kept
        assert request.seq > seq, "a lower seq is SEQUENCE_STALE"
        answer = (
            wire.AddJobStreamResponse()
            if isinstance(request, wire.AddJobStreamRequest)
            else (wire.AddJobBulkResponse())
        )
        for index, job in enumerate(request.jobs):
            self._store_job(answer, index, job)
        self._producers[request.producer_id] = (request.seq, answer)
        return answer

    def _store_job(self, answer: Answer, index: int, job: types.JobSpec) -> None:
        if job.data in self._refused:
            answer.job_ids.append("")
            refused = answer.errors.add()
            refused.CopyFrom(self._refused[job.data])
            refused.index = index
        elif job.data in self._earlier:
            answer.job_ids.append("earlier")
            earlier = answer.earlier.add()
            earlier.CopyFrom(self._earlier[job.data])
            earlier.index = index
        else:
            self.jobs.append(job)
            answer.job_ids.append(f"job-{len(self.jobs)}")


async def _read(requests: AsyncIterator[Any], read: asyncio.Queue[Any]) -> None:
    """Requests are taken as they come, whatever was answered: as gRPC does."""
    async for request in requests:
        read.put_nowait(request)
    read.put_nowait(None)


def breaks(broker: FakeBroker, request: Any) -> Answer:
    """The connection breaks before the request reaches the broker."""
    raise copy.copy(LOST)


def breaks_after(broker: FakeBroker, request: Any) -> Answer:
    """The connection breaks when the jobs are stored: the answer is lost."""
    broker.store(request)
    raise copy.copy(LOST)


def refuses(error: types.ItemError) -> Step:
    """The request is refused as a whole."""
    return lambda broker, request: wire.AddJobStreamResponse(refused=error)


def fails(error: errors.AnvilError) -> Step:
    """The call ends with that error."""

    def step(broker: FakeBroker, request: Any) -> Answer:
        raise copy.copy(error)

    return step


OVERLOADED: Final = types.ItemError(code=8, reason="OVERLOADED", message="too much to do", retry_after_ms=3_000)


class World(msgspec.Struct, frozen=True):
    """An app on a fake broker, both on the loop of the test, whose clock stands."""

    app: Anvil
    broker: FakeBroker
    clock: ManualClock
    client: Client

    async def turns(self, count: int = 30) -> None:
        """Let everything run that can run without time passing."""
        for _ in range(count):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass, and everything run that falls due on the way."""
        end = self.clock.monotonic() + seconds
        await self.turns()
        while (due_at := self.clock.next_due_at()) is not None and due_at <= end:
            self.clock.advance_to(due_at)
            await self.turns()
        self.clock.advance_to(end)
        await self.turns()


def make_world(chance: float = 0.5) -> World:
    """On the running loop. chance: for all backoffs."""
    clock, broker, app = ManualClock(), FakeBroker(), Anvil()
    client = Client(Settings(address="fake:1"), InlineIo(clock), lambda: broker, chance=lambda: chance)
    app.use_client(client)
    return World(app=app, broker=broker, clock=clock, client=client)
