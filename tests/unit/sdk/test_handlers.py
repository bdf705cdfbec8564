"""How async handlers share the loop and its tasks: each as if it had a task of its own from the start."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
import pytest_asyncio

from anvilmq import Anvil
from anvilmq._attempts import Attempt, Cause, Ending
from anvilmq._handlers import Handlers
from anvilmq._pools import Slots
from anvilmq._runner import Runner
from anvilmq.context import Job, current_job
from anvilmq_proto.v1 import worker_service_pb2 as wire
from tests.unit.sdk.scripted import delivery, turns

Handler = Callable[[Job, None], Any]


class Bench:
    """Handlers without a worker around them; `told` are the tokens that were known to have ended at each telling."""

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}
        self.told: list[list[str]] = []
        self.slots = Slots(1, ["images"], 8)
        self.runner = Runner(codec=None, settle=self._settle, observers=(), monotonic=lambda: 1.0)
        self.handlers = Handlers(self.runner, lambda: self.told.append(list(self.outcomes)))
        self._app = Anvil()

    def _settle(self, attempt: Attempt, ending: Ending) -> None:
        assert ending.settlement is not None
        self.outcomes[attempt.token] = ending.settlement.outcome

    def attempts(self, handler: Handler, *tokens: str) -> list[Attempt]:
        """Attempts of that handler, those with a slot; the rest waits for one."""
        definition = self._app.registry.find("images", handler.__name__) or self._app.job(queue="images")(handler)
        made: list[Attempt] = []
        for token in tokens:
            it = delivery(token)
            attempt = Attempt(it, cast("Any", definition), self.slots, cast("Any", None), it.job_id, token, 0.0)
            made += self.slots.offer([attempt])
        return made

    async def run(self, *attempts: Attempt) -> None:
        """Start them in one burst, and let everything run that can."""
        self.handlers.start(attempts)
        await turns()

    @property
    def completed(self) -> list[str]:
        """In the order of their ends."""
        return [token for token, outcome in self.outcomes.items() if outcome == wire.SETTLE_OUTCOME_COMPLETE]


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await turns()


async def test_what_a_burst_ends_at_once_is_told_once(bench: Bench) -> None:
    async def quick(job: Job, args: None) -> None: ...

    await bench.run(*bench.attempts(quick, "a", "b", "c"))
    assert bench.told == [["a", "b", "c"]]


async def test_a_handler_that_waits_does_not_keep_those_behind_it(bench: Bench) -> None:
    go = asyncio.Event()

    async def waiter(job: Job, args: None) -> None:
        if job.id == "job-a":
            await go.wait()

    await bench.run(*bench.attempts(waiter, "a", "b", "c"))
    assert bench.completed == ["b", "c"]
    go.set()
    await turns()
    assert bench.completed == ["b", "c", "a"]
    assert bench.told[-1] == ["b", "c", "a"]


async def test_handlers_that_waited_the_last_time_start_in_one_turn_too(bench: Bench) -> None:
    async def sleeper(job: Job, args: None) -> None:
        await asyncio.sleep(0)

    await bench.run(*bench.attempts(sleeper, "a"))
    await bench.run(*bench.attempts(sleeper, "b", "c"))
    assert bench.completed == ["a", "b", "c"]
    assert bench.told == [["a"], ["a", "b", "c"]]


async def test_those_that_wait_for_a_slot_follow_in_the_next_turn(bench: Bench) -> None:
    async def quick(job: Job, args: None) -> None: ...

    tokens = [f"t{number}" for number in range(20)]
    await bench.run(*bench.attempts(quick, *tokens))
    assert bench.completed == tokens
    assert [len(told) for told in bench.told] == [8, 16, 20]


async def test_handlers_find_a_task_so_that_timeouts_and_groups_work_in_them(bench: Bench) -> None:
    late: list[str] = []

    async def limited(job: Job, args: None) -> None:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            late.append(job.id)

    await bench.run(*bench.attempts(limited, "a", "b"))
    assert late == ["job-a", "job-b"]
    assert bench.completed == ["a", "b"]


async def test_a_handler_that_cancels_its_task_hits_no_other(bench: Bench) -> None:
    async def selfish(job: Job, args: None) -> None:
        if job.id != "job-a":
            await asyncio.sleep(0)
        else:
            cast("asyncio.Task[None]", asyncio.current_task()).cancel()

    await bench.run(*bench.attempts(selfish, "a", "b"))
    assert bench.completed == ["a", "b"]


async def test_a_handler_keeps_its_context_over_every_wait(bench: Bench) -> None:
    mine: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="nothing")
    seen = []

    async def keeper(job: Job, args: None) -> None:
        seen.append(mine.get())
        mine.set(job.id)
        await asyncio.sleep(0)
        seen.append(mine.get())
        assert await asyncio.create_task(_current()) is job

    async def _current() -> Job:
        return current_job()

    await bench.run(*bench.attempts(keeper, "a", "b"))
    assert sorted(seen) == ["job-a", "job-b", "nothing", "nothing"]
    assert bench.completed == ["a", "b"]


async def test_an_interrupt_reaches_the_one_that_waits_and_no_other(bench: Bench) -> None:
    go = asyncio.Event()

    async def waiter(job: Job, args: None) -> None:
        await go.wait()

    first, second = bench.attempts(waiter, "a", "b")
    await bench.run(first, second)
    first.interrupt(Cause.CANCEL_REQUESTED, "")
    bench.handlers.interrupt(first)
    go.set()
    await turns()
    assert bench.outcomes == {"a": wire.SETTLE_OUTCOME_RELEASE, "b": wire.SETTLE_OUTCOME_COMPLETE}


async def test_a_handler_that_is_torn_down_cleans_up_in_its_context(bench: Bench) -> None:
    cleaned = []

    async def waiter(job: Job, args: None) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(current_job() is job)

    (attempt,) = bench.attempts(waiter, "a")
    await bench.run(attempt)
    task, attempt.task = attempt.task, None
    assert task is not None
    cast("Any", task.get_coro()).close()
    assert cleaned == [True]
    assert bench.outcomes == {}


@pytest.mark.parametrize("waits", [False, True])
async def test_an_observer_that_fails_costs_no_other_attempt_its_start(bench: Bench, waits: bool) -> None:
    class Broken:
        def ended(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
            if attempt.token == "a":
                raise ValueError("broken")

    async def handler(job: Job, args: None) -> None:
        if waits:
            await asyncio.sleep(0)

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    bench.runner._observers = (Broken(),)
    await bench.run(*bench.attempts(handler, "a", "b"))
    assert bench.completed == ["a", "b"]
