"""A gateway over a broker that records what it is handed and answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import msgspec
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.engine.link import EngineLost, Hello
from anvilmq_broker.gateway.auth import Authenticator, Open
from anvilmq_broker.gateway.context import Context, Identity
from anvilmq_broker.gateway.limits import Limits
from anvilmq_broker.gateway.methods import METHODS
from anvilmq_broker.gateway.rpc import Gateway
from anvilmq_broker.gateway.status import Failure
from anvilmq_broker.gateway.telemetry import Telemetry
from anvilmq_broker.gateway.wire import Broken
from anvilmq_proto.v1 import types_pb2
from tests.support.clock import START_MS, FakeClock

JOB_ID = ids.encode(START_MS, 7)
TOKEN = "t" * 24
T = TypeVar("T")


def spec(**fields: Any) -> types_pb2.JobSpec:
    """A JobSpec of queue q and name n, with these fields."""
    return types_pb2.JobSpec(**{"queue": "q", "name": "n", **fields})


def record(**fields: Any) -> commands.JobRecord:
    """A stored job: number 7, of queue q, waiting."""
    values: dict[str, Any] = {
        "number": 7,
        "created_ms": START_MS,
        "queue": "q",
        "name": "n",
        "state": 1,
        "priority": 0,
        "attempt": 0,
        "starts": 0,
        "stalled": 0,
        "due_at_ms": 0,
        "started_at_ms": 0,
        "finished_at_ms": 0,
        "expires_at_ms": 0,
        "worker_id": "",
        "finish_reason": 0,
        "finish_message": "",
        "cancel_requested": False,
        "revision": 0,
    }
    return commands.JobRecord(**{**values, **fields})


def delivery(number: int = 7, **fields: Any) -> commands.Delivery:
    """A started attempt of a job of queue q."""
    values: dict[str, Any] = {
        "number": number,
        "created_ms": START_MS,
        "token": f"token-{number}",
        "queue": "q",
        "name": "n",
        "data": b"{}",
        "content_type": "",
        "attempt": 1,
        "max_attempts": 3,
        "lease_ms": 30_000,
        "attempt_timeout_ms": 0,
        "pool": 1,
    }
    return commands.Delivery(**{**values, **fields})


def receipt(**fields: Any) -> commands.ReceiptRecord:
    """A receipt of queue q, name n, key k, of a waiting job."""
    values: dict[str, Any] = {
        "queue": "q",
        "name": "n",
        "key": "k",
        "singleton": False,
        "ref": commands.JobRef(7, START_MS),
        "job_state": 1,
        "digest": b"\x01\x02",
        "created_at_ms": START_MS,
        "expires_at_ms": 0,
    }
    return commands.ReceiptRecord(**{**values, **fields})


def scheduler(**fields: Any) -> commands.SchedulerRecord:
    """The stored definition `nightly`, whose job is of queue q."""
    values: dict[str, Any] = {
        "name": "nightly",
        "spec": commands.SchedulerSpec(
            cron="@daily", time_zone="Etc/UTC", job=commands.NewJob("q", "n"), suspended=False
        ),
        "owner": None,
        "uid": "uid-1",
        "content_hash": "hash",
        "next_tick_at_ms": 0,
        "last_tick_at_ms": 0,
        "last_run": None,
        "last_state": 0,
        "run_count": 0,
        "skipped_count": 0,
        "missed_count": 0,
        "problem_reason": "",
        "problem_message": "",
        "created_at_ms": START_MS,
        "updated_at_ms": START_MS + 1,
    }
    return commands.SchedulerRecord(**{**values, **fields})


class FakeTimers:
    """Timers that fire when the test's clock passes them."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._planned: list[tuple[float, Callable[[], None], FakeHandle]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeHandle:
        """Plan a call."""
        handle = FakeHandle()
        self._planned.append((self._clock.monotonic_ms() + delay_s * 1_000, callback, handle))
        return handle

    def advance(self, by_ms: int) -> None:
        """Let time pass, and make the calls that fall due, in order."""
        until = self._clock.monotonic_ms() + by_ms
        while due := min((each for each in self._planned if each[0] <= until), default=None, key=lambda each: each[0]):
            self._planned.remove(due)
            self._clock.advance(max(0, round(due[0] - self._clock.monotonic_ms())))
            if not due[2].cancelled:
                due[1]()
        self._clock.advance(round(until - self._clock.monotonic_ms()))


class FakeHandle:
    """A planned call."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Do not make it."""
        self.cancelled = True


class FakeBroker:
    """Records commands, queries and session messages. `answers` says what a kind of command is answered with:

    a value, a function of the command, or an exception to raise; a Future is waited for.
    """

    def __init__(self) -> None:
        self.hello = Hello("", "instance", START_MS, 1, 1, b"k" * 32)
        self.asked: list[Any] = []
        self.messages: list[Any] = []
        self.notify: Callable[[commands.Notice], None] | None = None
        self.answers: dict[type, Any] = {
            commands.AddJobs: lambda command: commands.AddedJobs(1, START_MS, states=b"\1" * len(command.jobs)),
            commands.Settle: lambda command: commands.Settled(b"\5" * len(command.items)),
            commands.Renew: commands.Renewed([]),
            commands.Report: commands.Done(),
            commands.DrainWorker: commands.Done(),
            commands.Claim: commands.Claimed([]),
            commands.CancelJob: commands.CancelledJob(7, False),
            commands.ReleaseReceipt: commands.FreedReceipt(True),
            commands.DeleteReceipt: commands.FreedReceipt(False),
            commands.GetJob: commands.JobFound(record()),
            commands.WaitJob: commands.JobFound(record(state=5)),
            commands.ListJobs: commands.JobPage([], None),
            commands.ListJobLogs: commands.LogPage([], None),
            commands.ListReceipts: commands.ReceiptPage([], None),
            commands.GetReceipt: commands.ReceiptFound(receipt()),
            commands.ListWorkers: commands.WorkerPage([]),
            commands.GetInfo: commands.Info(START_MS, 1, 1),
            commands.UpsertScheduler: lambda command: commands.UpsertedScheduler(scheduler(name=command.name), 1),
            commands.DeleteScheduler: commands.DeletedScheduler(True),
            commands.SuspendScheduler: commands.SchedulerFound(scheduler()),
            commands.TriggerScheduler: commands.TriggeredScheduler(commands.JobRef(7, START_MS)),
            commands.ReleaseDefinition: commands.ReleasedDefinition(True),
            commands.GetScheduler: commands.SchedulerFound(scheduler()),
            commands.ListSchedulers: commands.SchedulerPage([]),
            commands.ListDefinitions: commands.DefinitionPage([]),
        }

    async def submit(self, command: Any) -> Any:
        """Records and answers."""
        return await self.ask(command)

    query = submit

    def ask(self, command: Any) -> asyncio.Future[Any]:
        """Records and answers."""
        self.asked.append(command)
        return asyncio.ensure_future(self._answer(command))

    async def _answer(self, command: Any) -> Any:
        answer = self.answers[type(command)]
        if callable(answer):
            answer = answer(command)
        if isinstance(answer, asyncio.Future):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    def attach(self, message: Any, on_notice: Callable[[commands.Notice], None] | None = None) -> None:
        """Records; an opened session is told so at once."""
        self.messages.append(message)
        if isinstance(message, commands.OpenSession):
            self.notify = on_notice
            assert on_notice is not None
            on_notice(commands.Opened(message.session, []))

    def of(self, kind: type[T]) -> list[T]:
        """What was handed over of one kind."""
        return [each for each in [*self.asked, *self.messages] if isinstance(each, kind)]

    def one(self, kind: type[T]) -> T:
        """The only one of a kind."""
        (found,) = self.of(kind)
        return found


LOST = EngineLost("gone")


class Bundle:
    """A gateway with everything it is given in a test's hand."""

    def __init__(self, *, authenticator: Authenticator | None = None, limits: Limits | None = None) -> None:
        self.clock = FakeClock()
        self.timers = FakeTimers(self.clock)
        self.broker = FakeBroker()
        self.context = Context(
            clock=self.clock, timers=self.timers, identity=Identity("1.2.3", "shop"), limits=limits or Limits()
        )
        self.context.connected(self.broker)
        self.telemetry = Telemetry("0")
        self.gateway = Gateway(self.context, authenticator or Open(), self.telemetry)

    async def call(
        self, name: str, request: Message, *, metadata: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> Any:
        """A unary call, named "JobService/AddJob"."""
        path = f"/anvilmq.v1.{name}"
        answer = await self.gateway.unary(path, request.SerializeToString(), metadata or {}, timeout_s)
        return METHODS[path].response.FromString(answer)

    async def refusal(self, name: str, request: Message, **options: Any) -> Refusal:
        """How a unary call is refused; nothing must have been handed to the engine by it that writes."""
        with pytest.raises(Failure) as caught:
            await self.call(name, request, **options)
        return Refusal.of(caught.value)


class Refusal(msgspec.Struct, frozen=True):
    """A status taken apart."""

    code: int
    reason: str
    message: str
    metadata: dict[str, str]
    fields: list[str]
    retry_ms: int

    @classmethod
    def of(cls, failure: Failure) -> Refusal:
        """The parts of a failure's status."""
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        for detail in failure.status.details:
            assert any(detail.Unpack(kind) for kind in (info, bad, retry)), detail
        assert info.domain == "anvilmq.io"
        return cls(
            failure.code,
            info.reason,
            failure.status.message,
            dict(info.metadata),
            [violation.field for violation in bad.field_violations],
            retry.retry_delay.ToMilliseconds(),
        )

    @property
    def field(self) -> str:
        """The one field that is wrong."""
        (field,) = self.fields
        return field


class FakeWire:
    """The client of a stream. `send` and `close` speak to the broker; `received` are its answers."""

    def __init__(self, response: type[Message]) -> None:
        self._response = response
        self._incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answers: asyncio.Queue[Any] = asyncio.Queue()
        self.broken = False
        self.slow: asyncio.Event | None = None
        self.sizes: list[int] = []

    def send(self, message: Message | bytes) -> None:
        """A request."""
        self._incoming.put_nowait(message if isinstance(message, bytes) else message.SerializeToString())

    def close(self) -> None:
        """No more requests."""
        self._incoming.put_nowait(None)

    async def answer(self) -> Any:
        """The next answer."""
        async with asyncio.timeout(5):
            return await self._answers.get()

    @property
    def unread(self) -> int:
        """Answers that the test has not looked at."""
        return self._answers.qsize()

    async def read(self) -> bytes | None:
        """The broker reads."""
        return await self._incoming.get()

    async def write(self, message: bytes) -> None:
        """The broker writes."""
        if self.slow is not None:
            await self.slow.wait()
        if self.broken:
            raise Broken
        self.sizes.append(len(message))
        self._answers.put_nowait(self._response.FromString(message))


class Streaming:
    """A streaming call under way; ends with the block."""

    def __init__(self, bundle: Bundle, name: str, metadata: Mapping[str, str] | None = None) -> None:
        path = f"/anvilmq.v1.{name}"
        self.wire = FakeWire(METHODS[path].response)
        self._serving = bundle.gateway.stream(path, self.wire, metadata or {})

    async def __aenter__(self) -> Self:
        self.task = asyncio.ensure_future(self._serving)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def ends(self) -> None:
        """Wait until it has ended well."""
        async with asyncio.timeout(5):
            await self.task

    async def refusal(self) -> Refusal:
        """Wait until it was refused."""
        with pytest.raises(Failure) as caught:
            await self.ends()
        return Refusal.of(caught.value)


async def turns(count: int = 20) -> None:
    """Let everything that is ready on the loop run."""
    for _ in range(count):
        await asyncio.sleep(0)
