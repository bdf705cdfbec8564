"""Tests of handlers and of what they add: with the broker's real engine, in the test's own process and loop.

    async def test_an_image_survives_a_lost_worker():
        async with testing.env(app) as env:  # memory for a store, a clock that stands, no sockets
            handle = await resize.add(Resize("u"))
            env.crash_worker(on=resize)  # it dies inside; the lease runs out
            await env.advance("31s")  # fires what falls due, in order
            assert await handle.result() == ...

Needs `anvilmq[broker]`. For a handler alone: `Job.stub(attempt=2)`.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from anvilmq import durations
from anvilmq._attempts import Attempt, Cause
from anvilmq._client import Client
from anvilmq._clock import ManualClock
from anvilmq._iothread import InlineIo
from anvilmq._loopback import Loopback
from anvilmq._pools import Slots
from anvilmq._settings import Settings
from anvilmq.admin import Admin
from anvilmq.context import Job
from anvilmq.durations import Duration
from anvilmq.handles import State
from anvilmq.worker import Worker
from anvilmq_proto.v1 import job_service_pb2 as wire
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as work

if TYPE_CHECKING:
    from anvilmq._attempts import Ending
    from anvilmq.app import Anvil
    from anvilmq.jobs import JobDef

START_MS: Final = 1_800_000_000_000
"""The time of day at which every environment begins: 15 January 2027, 08:00 UTC."""
PATIENCE_S: Final = 1.0
"""Real seconds that plain handlers, which run in threads, get to end before the test goes on."""
MOST_TURNS: Final = 200_000
MOST_RUNS: Final = 10_000
_QUIET_TURNS: Final = 3


def env(app: Anvil, *, concurrency: int = 8, work: bool = True, seed: int = 0) -> Env:
    """An environment for one test: `async with testing.env(app) as env`. Until its end the app talks to it.

    concurrency: slots of its worker, which serves all queues of the app; work=False: no worker, jobs only wait.
    seed: of all chance, so that a test repeats itself.
    """
    return Env(app, concurrency=concurrency, work=work, seed=seed)


class Env:
    """A broker and a worker, both on this loop. Made by `env`."""

    def __init__(self, app: Anvil, *, concurrency: int, work: bool, seed: int) -> None:
        self.app = app
        self._concurrency = concurrency
        self._work = work and len(app.registry) > 0
        self._seed = seed
        self._runs: Counter[str] = Counter()
        self._crashes: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._worker: Worker | None = None

    async def __aenter__(self) -> Self:
        from anvilmq_broker.app import inproc

        self._loop = asyncio.get_running_loop()
        self._clock = ManualClock(start_ms=START_MS)
        self._broker, self._engine = inproc.in_memory(
            _HeldClock(self._clock), self._clock, draw=random.Random(self._seed).randbytes
        )
        await self._broker.start()
        self._loopback = Loopback(self._broker)
        # No chance in the waits of the SDK: it connects again at once, so that no test has to let time pass for it.
        self._client = Client(
            Settings(address="testing:1"), InlineIo(self._clock), lambda: self._loopback, chance=lambda: 0.0
        )
        self._before = self.app.use_client(self._client)
        if self._work:
            await self._start_worker()
        await self._settle()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.clear()
        await asyncio.gather(*self._crashes)
        try:
            await self._drive(self._end())
        finally:
            self.app.use_client(self._before)
            await self._broker.stop()

    # -------------------------------------------------------------------------------------------------------- time

    @property
    def now(self) -> datetime:
        """What the broker takes for the time, UTC."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC)

    async def advance(self, duration: Duration) -> None:
        """Let time pass, and whatever falls due on the way happen at its moment, in order. Nothing sleeps.

        Before, between and after, all runs that can run, as `run_until_idle` says.
        """
        end_ms = self._now_ms() + durations.parse_ms(duration)
        await self._settle()
        while (left_ms := end_ms - self._now_ms()) > 0:
            due_at = self._clock.next_due_at()
            until_due_ms = left_ms if due_at is None else math.ceil(due_at * 1_000 - 1e-6) - self._now_ms()
            await self._engine.advance(max(1, min(left_ms, until_due_ms)))
            await self._settle()

    async def run_until_idle(self) -> None:
        """Return when nothing can happen any more without time passing.

        An async handler that waits for something outside (a socket, `asyncio.sleep`, an event that the test sets) is
        left waiting: await what it waits for, or the job's result. Plain handlers get a second of real time to end.
        RuntimeError, naming the job, when handlers go on and on, such as one that adds itself.
        """
        self._runs.clear()
        await self._settle()

    # ------------------------------------------------------------------------------------------------------ faults

    def crash_worker(self, *, on: JobDef[Any, Any], at: Literal["start", "end"] = "start") -> None:
        """Kill the worker inside the next attempt of that job; another one starts at once, as in a Deployment.

        at: before the first line of the handler, or after its last, when all is done but nothing said.
        The job runs again when its lease has run out. Other handlers of that worker are cancelled, unsettled.
        """
        handler = on.fn

        async def dying(job: Job, args: object) -> None:
            on.fn = handler
            if at == "end":
                await handler(job, args)
            self._crash()
            await asyncio.Event().wait()

        def dying_plain(job: Job, args: object) -> None:
            on.fn = handler
            if at == "end":
                handler(job, args)
            asyncio.run_coroutine_threadsafe(self._crash_now(), self._loop).result()
            job.check()

        on.fn = dying if on.is_async else dying_plain

    def lose_answer(self, method: str) -> None:
        """Break the next call of that method, such as "AddJobStream" or "Work", after the broker has acted."""
        self._loopback.lose_answer(method)

    # ------------------------------------------------------------------------------------------------ what there is

    async def jobs(self, of: JobDef[Any, Any] | str | None = None, *, state: State | None = None) -> list[types.Job]:
        """All jobs of a definition or of a queue, or all there are; in that state only. Oldest first, with payloads."""
        filter_ = wire.JobFilter()
        if isinstance(of, str):
            filter_.queue = of
        elif of is not None:
            filter_.queue, filter_.name = of.queue, of.name
        if state is not None:
            filter_.states.append(cast("types.JobState", types.JobState.Value(f"JOB_STATE_{state.upper()}")))
        request = wire.ListJobsRequest(filter=filter_, oldest_first=True, view=types.JOB_VIEW_FULL)
        found: list[types.Job] = []
        while True:
            page = await Admin(self._loopback).list_jobs(request)
            found.extend(page.jobs)
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    def ended(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
        """The worker's observer: not for tests."""
        self._runs[f"{attempt.delivery.queue}/{attempt.delivery.name}"] += 1
        self._loop.call_soon_threadsafe(self._ended.set)

    # ------------------------------------------------------------------------------------------------------ inside

    def _now_ms(self) -> int:
        return round(self._clock.monotonic() * 1_000)

    async def _start_worker(self) -> None:
        self._worker = Worker(self.app, concurrency=self._concurrency, observers=[self])
        await self._worker.start()

    async def _settle(self) -> None:
        await self._take_turns()
        end_at = self._loop.time() + PATIENCE_S
        while self._runs_in_thread() and (left_s := end_at - self._loop.time()) > 0:
            self._ended.clear()
            await asyncio.wait([asyncio.ensure_future(self._ended.wait())], timeout=left_s)
            await self._take_turns()

    async def _take_turns(self) -> None:
        """Until the loop has nothing to call but at a later time."""
        # The only exact sign; a loop without this list, such as uvloop's, is given a number of turns instead.
        ready: Sequence[object] | None = vars(self._loop).get("_ready")
        quiet = 0
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            quiet = 0 if ready else quiet + 1
            if quiet > (_QUIET_TURNS if ready is not None else 10 * _QUIET_TURNS):
                return
            self._check_circles()
        raise RuntimeError(f"something on this loop never comes to rest; ran so far: {dict(self._runs)}")

    def _check_circles(self) -> None:
        for name, runs in self._runs.most_common(1):
            if runs > MOST_RUNS:
                raise RuntimeError(f"{name} ran {runs} times without time passing: does it add or release itself?")

    def _runs_in_thread(self) -> bool:
        crew = None if self._worker is None else self._worker.crew
        return crew is not None and any(not it.definition.is_async for it in crew.dispatcher.running())

    def _crash(self) -> None:
        crash = self._loop.create_task(self._crash_now())
        self._crashes.add(crash)
        crash.add_done_callback(self._crashes.discard)

    async def _crash_now(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None and worker.crew is not None:
            await worker.crew.dispatcher.vanish()
            await self._start_worker()

    async def _end(self) -> None:
        if self._worker is not None:
            await self._worker.stop(grace="0")
        await self._client.close()

    async def _drive(self, work: Any) -> None:
        """Do something that may wait for time to pass, and let it pass."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.wait([task], timeout=0)
            await self._take_turns()
            if not task.done():
                await self._engine.advance(1_000)
        await task


class _HeldClock:
    """The engine's clock: both of a machine, and the SDK's moves along."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def wall_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_ms(self) -> float:
        return round(self._clock.monotonic() * 1_000)

    def advance(self, by_ms: int) -> None:
        self._clock.advance_to((self.monotonic_ms() + by_ms) / 1_000)


# ------------------------------------------------------------------------------------------------------- Job.stub


class Reports:
    """What a handler said about a stub: `progress`, the values; `lines`, the log."""

    def __init__(self) -> None:
        self.progress: list[Any] = []
        self.lines: list[str] = []

    def report_progress(self, attempt: Attempt, progress_json: str) -> None:
        """See _attempts.Reports."""
        self.progress.append(json.loads(progress_json))

    def append_log(self, attempt: Attempt, level: str, line: str) -> None:
        """See _attempts.Reports."""
        self.lines.append(line)


def reports(job: Job) -> Reports:
    """What a handler said about a job made by `Job.stub`."""
    found = job._attempt.reports  # noqa: SLF001 - of the same package
    if not isinstance(found, Reports):
        raise TypeError(f"{job!r} is no stub")
    return found


def stub_attempt(
    *, id: str = "stub", cause: Cause | str | None = None, last_progress: Any = None, **fields: Any
) -> Attempt:
    """The inside of `Job.stub`. cause: the job is to stop. fields: those of the wire's Delivery."""
    attempt_number = fields.get("attempt", 1)
    usual = {
        "queue": "stub",
        "name": "stub",
        "attempt": 1,
        "max_attempts": max(3, attempt_number),
        "starts": attempt_number,
    }
    delivery = work.Delivery(**cast("Any", usual | fields), job_id=id, lease_token="stub")
    if last_progress is not None:
        delivery.progress_json = json.dumps(last_progress)
    return Attempt(
        delivery=delivery,
        definition=cast("Any", SimpleNamespace(name=delivery.name, is_async=True)),
        slots=Slots(1, [delivery.queue], 1),
        reports=Reports(),
        job_id=id,
        token="stub",
        received_at=0.0,
        started_at=0.0,
        cause=None if cause is None else Cause(cause),
    )
