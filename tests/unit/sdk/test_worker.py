"""A worker with real handlers, against a scripted broker: starting, interrupting, leaving."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from anvilmq import Anvil, errors, outcomes
from anvilmq._client import Client
from anvilmq._clock import ManualClock
from anvilmq._iothread import InlineIo
from anvilmq._settings import Settings
from anvilmq.context import Job
from anvilmq.worker import Worker
from anvilmq_proto.v1 import worker_service_pb2 as wire
from tests.support.rules import rule
from tests.unit.sdk.scripted import ScriptedBroker, delivery, turns


class Bench:
    """An app, its scripted broker, and handlers that the test holds and lets go."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = ScriptedBroker()
        self.app = Anvil()
        self.app.use_client(Client(Settings(address="nowhere:1"), InlineIo(self.clock), lambda: self.broker))
        self.started: list[str] = []
        self.causes: list[Any] = []
        self.over = False
        self.go = asyncio.Event()
        self.thread_go = threading.Event()
        self.thread_started = threading.Event()
        self._define()
        self.worker = self.made(concurrency=2)

    def _define(self) -> None:
        @self.app.job(queue="images")
        async def resize(job: Job, args: None) -> str:
            self.started.append(job.id)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.causes.append(job.cause)
                raise
            return "done"

        @self.app.job(queue="images")
        async def stubborn(job: Job, args: None) -> None:
            self.started.append(job.id)
            while not self.over:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

        @self.app.job(queue="images")
        def plain(job: Job, args: None) -> str:
            self.started.append(threading.current_thread().name)
            self.thread_started.set()
            self.thread_go.wait()
            job.check()
            return "in a thread"

    def made(self, **options: Any) -> Worker:
        return Worker(self.app, **{"queues": ["images"], "grace": "25s"} | options)

    @property
    def settlements(self) -> dict[str, wire.Settlement]:
        return {it.lease_token: it for stream in self.broker.streams for it in stream.settlements}

    async def start(self) -> None:
        await self.worker.start()
        await turns()

    async def deliver(self, *tokens: str, **fields: Any) -> None:
        self.broker.stream_now.deliver(*(delivery(token, **fields) for token in tokens))
        await turns()

    async def advance(self, seconds: float) -> None:
        await turns()
        end = self.clock.monotonic() + seconds
        while (due_at := self.clock.next_due_at()) is not None and due_at <= end:
            self.clock.advance_to(due_at)
            await turns()
        self.clock.advance_to(end)
        await turns()

    async def until_settled(self, token: str) -> wire.Settlement:
        """For handlers in threads, which end at a time of their own."""
        while token not in self.settlements:
            await self.broker.stream_now.next_frame()
        return self.settlements[token]


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.over = True
    made.go.set()
    made.thread_go.set()
    stopping = asyncio.create_task(made.worker.stop(grace="0"))
    await turns()
    await made.advance(10)
    await stopping
    await made.app.close()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await turns()


async def test_as_many_jobs_run_as_there_are_slots_and_the_next_starts_when_one_ends(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", "b", "c")
    assert bench.started == ["job-a", "job-b"]
    bench.go.set()
    await turns()
    assert bench.started == ["job-a", "job-b", "job-c"]
    assert {token: it.result for token, it in bench.settlements.items()} == dict.fromkeys("abc", b'"done"')


async def test_jobs_that_come_in_one_frame_and_end_at_once_are_settled_in_one_frame(bench: Bench) -> None:
    bench.go.set()
    bench.worker = bench.made(concurrency=50)
    await bench.start()
    before = len(bench.broker.stream_now.frames)
    await bench.deliver(*(f"t{number}" for number in range(50)))
    (frame,) = bench.broker.stream_now.frames[before:]
    assert len(frame.settle.settlements) == 50
    assert [it.jobs for it in frame.credits] == [50]


async def test_a_plain_handler_runs_in_a_thread_and_leaves_the_loop_alone(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", name="plain")
    await asyncio.to_thread(bench.thread_started.wait)
    assert bench.started == ["anvilmq-handler-1"]
    bench.thread_go.set()
    assert (await bench.until_settled("a")).result == b'"in a thread"'


async def test_a_job_that_nobody_knows_is_handed_back_for_five_seconds_and_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.start()
    await bench.deliver("a", "b", name="unknown")
    assert [(it.outcome, it.delay_ms) for it in bench.settlements.values()] == [
        (wire.SETTLE_OUTCOME_RELEASE, 5_000),
        (wire.SETTLE_OUTCOME_RELEASE, 5_000),
    ]
    assert [record.getMessage() for record in caplog.records if "job_not_known" in record.msg] == [
        "job_not_known: images/unknown: handed back"
    ]


@rule("1.9")
async def test_a_cancel_reaches_the_handler_which_settles(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a")
    bench.broker.stream_now.interrupt(wire.INTERRUPT_CAUSE_CANCEL_REQUESTED, "a")
    await turns()
    assert bench.causes == ["cancel_requested"]
    assert bench.settlements["a"].outcome == wire.SETTLE_OUTCOME_RELEASE


async def test_a_cancel_of_a_job_that_waits_for_a_slot_is_settled_at_once(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", "b", "c")
    bench.broker.stream_now.interrupt(wire.INTERRUPT_CAUSE_CANCEL_REQUESTED, "c")
    await turns()
    assert list(bench.settlements) == ["c"]
    bench.go.set()
    await turns()
    assert bench.started == ["job-a", "job-b"]


async def test_a_cancel_between_delivery_and_start_does_not_lose_the_settlement(bench: Bench) -> None:
    await bench.start()
    bench.broker.stream_now.say(
        wire.WorkResponse(
            deliveries=[delivery("a")],
            interrupts=[wire.Interrupt(lease_token="a", cause=wire.INTERRUPT_CAUSE_CANCEL_REQUESTED)],
        )
    )
    await turns()
    assert bench.started == []
    assert bench.settlements["a"].outcome == wire.SETTLE_OUTCOME_RELEASE


async def test_a_lost_lease_interrupts_and_nothing_is_settled(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a")
    bench.broker.stream_now.interrupt(wire.INTERRUPT_CAUSE_REMOVED, "a")
    await turns()
    assert bench.causes == ["removed"]
    assert bench.settlements == {}
    assert sum(it.jobs for frame in bench.broker.stream_now.frames for it in frame.credits) == 3


async def test_a_prefetched_job_that_waits_too_long_goes_back(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", "b", "c")
    await bench.advance(2.5)
    assert list(bench.settlements) == ["c"]
    assert bench.settlements["c"].outcome == wire.SETTLE_OUTCOME_RELEASE


async def test_handlers_do_not_see_what_others_left_in_their_context(bench: Bench) -> None:
    left: contextvars.ContextVar[str] = contextvars.ContextVar("left", default="nothing")
    seen = []

    @bench.app.job(queue="images")
    async def leaver(job: Job, args: None) -> None:
        seen.append(left.get())
        left.set(job.id)

    await bench.start()
    await bench.deliver("a", "b", "c", "d", name="leaver")
    assert seen == ["nothing"] * 4


async def test_a_failed_attempt_is_one_line_and_the_stack_comes_with_the_last(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    @bench.app.job(queue="images")
    async def failing(job: Job, args: None) -> None:
        raise ValueError("nope")

    await bench.start()
    await bench.deliver("a", name="failing", attempt=1)
    await bench.deliver("b", name="failing", attempt=3)
    lines = [
        (record.levelno, record.exc_info is not None) for record in caplog.records if "attempt_failed" in record.msg
    ]
    assert lines == [(logging.WARNING, False), (logging.ERROR, True)]


# ------------------------------------------------------------------------------------------------------------ leaving


@rule("1.7")
async def test_a_drain_lets_running_jobs_end_and_hands_back_those_that_wait(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", "b", "c")
    assert bench.worker.ready
    stopping = asyncio.create_task(bench.worker.stop())
    await turns()
    assert not bench.worker.ready
    assert {token: it.outcome for token, it in bench.settlements.items()} == {"c": wire.SETTLE_OUTCOME_RELEASE}
    await bench.advance(12)
    renewed = [it.lease_token for frame in bench.broker.stream_now.frames for it in frame.renew.leases]
    assert renewed == ["a", "b"]
    bench.go.set()
    await turns()
    assert bench.settlements["a"].outcome == wire.SETTLE_OUTCOME_COMPLETE
    bench.broker.stream_now.answer_all()
    await turns()
    await stopping
    await bench.worker.wait()


@rule("1.7")
async def test_near_the_end_of_the_grace_handlers_are_cancelled_and_their_jobs_handed_back(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a")
    stopping = asyncio.create_task(bench.worker.stop())
    await bench.advance(19.9)
    assert bench.causes == []
    await bench.advance(0.2)
    assert bench.causes == ["shutdown"]
    assert bench.settlements["a"].outcome == wire.SETTLE_OUTCOME_RELEASE
    bench.broker.stream_now.answer_all()
    await turns()
    await stopping


@rule("1.7")
async def test_a_handler_that_does_not_end_is_left_behind_and_its_job_handed_back(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", name="stubborn")
    stopping = asyncio.create_task(bench.worker.stop())
    await bench.advance(24.9)
    assert bench.settlements == {}
    await bench.advance(0.2)
    assert bench.settlements["a"].outcome == wire.SETTLE_OUTCOME_RELEASE
    bench.broker.stream_now.answer_all()
    await turns()
    await stopping


async def test_the_second_signal_hands_everything_back_at_once(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a", name="stubborn")
    bench.worker.drain()
    await turns()
    assert bench.settlements == {}
    bench.worker.drain()
    await turns()
    assert bench.settlements["a"].outcome == wire.SETTLE_OUTCOME_RELEASE
    bench.broker.stream_now.answer_all()
    await turns()
    await bench.worker.wait()


async def test_leaving_does_not_hang_on_a_broker_that_is_away(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a")
    bench.broker.refuse_with = [errors.Unavailable("away") for _ in range(100)]
    bench.broker.stream_now.say(errors.Unavailable("away"))
    stopping = asyncio.create_task(bench.worker.stop(grace="10s"))
    await bench.advance(14.1)
    await stopping


async def test_a_job_delivered_after_the_drain_began_is_handed_back(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a")
    bench.worker.drain()
    await bench.deliver("b")
    assert bench.started == ["job-a"]
    assert bench.settlements["b"].outcome == wire.SETTLE_OUTCOME_RELEASE


async def test_the_broker_can_ask_a_worker_to_leave(bench: Bench) -> None:
    await bench.start()
    bench.broker.stream_now.say(wire.WorkResponse(go_away=wire.WorkResponse.GoAway(drain=True, reason="by hand")))
    await turns()
    bench.broker.stream_now.answer_all()
    await turns()
    await bench.worker.wait()


async def test_what_keeps_a_worker_from_ever_working_is_raised_where_it_is_waited_for(bench: Bench) -> None:
    bench.broker.refuse_with = [errors.Unimplemented("this address does not speak gRPC")]
    await bench.start()
    with pytest.raises(errors.Unimplemented, match="does not speak gRPC"):
        await bench.worker.wait()


async def test_a_worker_without_a_session_any_more_interrupts_what_it_runs(bench: Bench) -> None:
    await bench.start()
    await bench.deliver("a")
    bench.broker.stream_now.say(errors.InvalidArgument("bad frame", reason="SESSION_PROTOCOL"))
    await turns()
    assert bench.causes == ["lease_lost"]
    with pytest.raises(errors.InvalidArgument):
        await bench.worker.wait()


async def test_leaving_twice_is_leaving_once_and_an_unstarted_worker_leaves_at_once(bench: Bench) -> None:
    await bench.made().stop()
    await bench.start()
    stopping = [asyncio.create_task(bench.worker.stop()) for _ in range(2)]
    await turns()
    bench.broker.stream_now.answer_all()
    await turns()
    await asyncio.gather(*stopping)


async def test_a_worker_that_could_not_start_can_be_left(bench: Bench) -> None:
    worker = bench.made(http="192.0.2.1:1")  # an address of nobody
    with pytest.raises(errors.SettingInvalid):
        await worker.start()
    await worker.stop()


async def test_a_worker_starts_once(bench: Bench) -> None:
    await bench.start()
    with pytest.raises(RuntimeError):
        await bench.worker.start()


async def test_a_handler_whose_annotation_has_no_meaning_is_told_at_the_start(bench: Bench) -> None:
    async def odd(job: Job, args: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    bench.app.job(queue="images")(odd)
    with pytest.raises(TypeError, match="Nowhere"):
        await bench.worker.start()


async def test_outcomes_take_durations_with_a_unit_only() -> None:
    with pytest.raises(TypeError):
        outcomes.Retry(after=30)  # type: ignore[arg-type]
    with pytest.raises(errors.FeatureNotBuilt):
        outcomes.AwaitChildren()
