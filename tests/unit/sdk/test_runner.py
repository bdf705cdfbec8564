"""What each end of a handler becomes: the table of outcomes, row by row, for async and plain handlers."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from anvilmq import outcomes
from anvilmq._attempts import Attempt, Cause, Ending
from anvilmq._outbox import Said
from anvilmq._pools import Slots
from anvilmq._runner import Runner, refused
from anvilmq.context import Interrupted, Job, current_job
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire
from tests.support.rules import rule
from tests.unit.sdk.scripted import delivery


class Args(msgspec.Struct):
    width: int


class Quota(Exception):
    """One that is final by definition."""


class Bench:
    """A runner that keeps what it settles."""

    def __init__(self) -> None:
        self.endings: list[Ending] = []
        self.seen: list[tuple[str, float | None]] = []
        self.slots = Slots(1, ["images"], 1)
        self.ticks = iter(range(1, 1_000))
        self.runner = Runner(
            codec=None,
            settle=lambda _, ending: self.endings.append(ending),
            observers=[self],
            monotonic=lambda: float(next(self.ticks)),
        )

    def ended(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
        self.seen.append((attempt.token, run_s))

    def attempt(self, fn: Callable[..., Any], payload_type: Any = None, **fields: Any) -> Attempt:
        definition = SimpleNamespace(
            fn=fn,
            payload_type=payload_type or type(None),
            is_async=asyncio.iscoroutinefunction(fn),
            no_retry_on=(Quota,),
            name="f",
        )
        it = delivery(**fields)
        attempt = Attempt(
            delivery=it,
            definition=cast("Any", definition),
            slots=self.slots,
            reports=cast("Any", self),
            job_id=it.job_id,
            token=it.lease_token,
            received_at=0.0,
        )
        self.slots.offer([attempt])
        return attempt

    async def run(self, attempt: Attempt) -> Ending:
        await self.runner.run(attempt)
        return self.endings[-1]

    def run_plain(self, attempt: Attempt) -> Ending:
        contextvars.copy_context().run(self.runner.run_plain, attempt)
        return self.endings[-1]


def settlement(ending: Ending) -> wire.Settlement:
    assert ending.settlement is not None
    return ending.settlement


@pytest.fixture
def bench() -> Bench:
    return Bench()


def raising(error: BaseException) -> Callable[..., Any]:
    async def handler(job: Job, args: None) -> None:
        raise error

    return handler


@rule("1.8")
async def test_what_the_handler_returns_is_the_result(bench: Bench) -> None:
    async def handler(job: Job, args: Args) -> dict[str, int]:
        return {"doubled": args.width * 2}

    it = settlement(await bench.run(bench.attempt(handler, Args, data=b'{"width": 21}')))
    assert it.outcome == wire.SETTLE_OUTCOME_COMPLETE
    assert it.result == b'{"doubled":42}'
    assert it.result_content_type == "application/json"
    assert (it.job_id, it.lease_token) == ("job-t1", "t1")


@rule("1.8")
def test_a_plain_handler_completes_alike(bench: Bench) -> None:
    it = settlement(bench.run_plain(bench.attempt(lambda job, args: args.width, Args, data=b'{"width": 3}')))
    assert (it.outcome, it.result) == (wire.SETTLE_OUTCOME_COMPLETE, b"3")


async def test_returning_nothing_completes_without_a_result(bench: Bench) -> None:
    async def handler(job: Job, args: None) -> None: ...

    it = settlement(await bench.run(bench.attempt(handler)))
    assert (it.outcome, it.result, it.result_content_type) == (wire.SETTLE_OUTCOME_COMPLETE, b"", "")


async def test_a_result_that_cannot_be_encoded_fails_for_good(bench: Bench) -> None:
    async def handler(job: Job, args: None) -> object:
        return object()

    it = settlement(await bench.run(bench.attempt(handler)))
    assert (it.outcome, it.non_retryable) == (wire.SETTLE_OUTCOME_FAIL, True)
    assert it.error.type == "anvilmq.errors.PayloadInvalid"


async def test_a_result_the_broker_finds_too_large_fails_for_good(bench: Bench) -> None:
    async def handler(job: Job, args: None) -> str:
        return "x"

    attempt = bench.attempt(handler)
    ending = await bench.run(attempt)
    said = Said(cast("Any", SimpleNamespace(owner=attempt, job_id=attempt.job_id)), settlement(ending), ending.size)
    replacement = refused(said, types.ItemError(code=3, reason="PAYLOAD_TOO_LARGE", message="result of 300000 bytes"))
    assert replacement is not None
    it, _ = replacement
    assert (it.outcome, it.non_retryable) == (wire.SETTLE_OUTCOME_FAIL, True)
    assert "result of 300000 bytes" in it.error.message
    again = Said(said.lease, it, 0)
    assert refused(again, types.ItemError(code=3, reason="INVALID_FIELD")) is None


@rule("1.6")
async def test_any_exception_fails_and_leaves_the_rest_to_the_policy(bench: Bench) -> None:
    it = settlement(await bench.run(bench.attempt(raising(ValueError("no such file")))))
    assert (it.outcome, it.non_retryable) == (wire.SETTLE_OUTCOME_FAIL, False)
    assert not it.HasField("retry_after_ms")
    assert (it.error.type, it.error.message) == ("ValueError", "no such file")
    assert "in handler" in it.error.stack
    assert "anvilmq/_runner.py" not in it.error.stack


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), StopAsyncIteration()])
async def test_nothing_that_a_handler_raises_leaves_the_runner(bench: Bench, error: BaseException) -> None:
    it = settlement(await bench.run(bench.attempt(raising(error))))
    assert (it.outcome, it.non_retryable) == (wire.SETTLE_OUTCOME_FAIL, False)


async def test_an_exception_named_in_no_retry_on_is_final(bench: Bench) -> None:
    ending = await bench.run(bench.attempt(raising(Quota("used up"))))
    assert settlement(ending).non_retryable
    assert ending.is_final


@rule("1.6")
async def test_retry_sets_the_delay_of_the_next_attempt(bench: Bench) -> None:
    it = settlement(await bench.run(bench.attempt(raising(outcomes.Retry("busy", after="30s")))))
    assert (it.outcome, it.retry_after_ms, it.non_retryable) == (wire.SETTLE_OUTCOME_FAIL, 30_000, False)
    assert (it.error.type, it.error.message) == ("Retry", "busy")


async def test_a_retry_at_once_is_told_from_one_by_policy(bench: Bench) -> None:
    it = settlement(await bench.run(bench.attempt(raising(outcomes.Retry(after="0")))))
    assert it.HasField("retry_after_ms")


@rule("1.6")
async def test_fail_ends_the_job(bench: Bench) -> None:
    it = settlement(await bench.run(bench.attempt(raising(outcomes.Fail("no such user")))))
    assert (it.outcome, it.non_retryable, it.error.message) == (wire.SETTLE_OUTCOME_FAIL, True, "no such user")


async def test_a_payload_that_does_not_fit_fails_for_good_and_names_the_field(bench: Bench) -> None:
    async def handler(job: Job, args: Args) -> None:
        raise AssertionError("is not called")

    it = settlement(await bench.run(bench.attempt(handler, Args, data=b'{"width": "wide"}')))
    assert (it.outcome, it.non_retryable) == (wire.SETTLE_OUTCOME_FAIL, True)
    assert "$.width" in it.error.message


@rule("1.7")
async def test_release_hands_the_job_back(bench: Bench) -> None:
    it = settlement(await bench.run(bench.attempt(raising(outcomes.Release("not ready", delay="10s")))))
    assert (it.outcome, it.delay_ms, it.reason) == (wire.SETTLE_OUTCOME_RELEASE, 10_000, "not ready")


@rule("1.9")
async def test_a_cancelled_handler_cleans_up_and_settles(bench: Bench) -> None:
    cleaned = []
    entered = asyncio.Event()

    async def handler(job: Job, args: None) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(job.cause)

    attempt = bench.attempt(handler)
    running = asyncio.create_task(bench.run(attempt))
    await entered.wait()
    attempt.interrupt(Cause.CANCEL_REQUESTED, "by the user")
    running.cancel()
    it = settlement(await running)
    assert it.outcome == wire.SETTLE_OUTCOME_RELEASE
    assert cleaned == [Cause.CANCEL_REQUESTED]


@rule("1.9")
def test_a_plain_handler_is_cancelled_where_it_asks(bench: Bench) -> None:
    def handler(job: Job, args: None) -> None:
        attempt.interrupt(Cause.SHUTDOWN, "")
        assert job.cancelled
        job.check()

    attempt = bench.attempt(handler)
    it = settlement(bench.run_plain(attempt))
    assert (it.outcome, it.reason) == (wire.SETTLE_OUTCOME_RELEASE, "shutdown")


@pytest.mark.parametrize("cause", [Cause.LEASE_LOST, Cause.ATTEMPT_TIMEOUT, Cause.REMOVED, Cause.CHILD_FAILED])
@pytest.mark.parametrize("end", ["return", "raise"])
def test_once_the_lease_is_dead_nothing_is_settled_however_the_handler_ends(
    bench: Bench, cause: Cause, end: str
) -> None:
    def handler(job: Job, args: None) -> str:
        attempt.interrupt(cause, "")
        if end == "raise":
            job.check()
        return "too late"

    attempt = bench.attempt(handler)
    assert bench.run_plain(attempt).settlement is None


def test_check_tells_the_cause(bench: Bench) -> None:
    causes: list[Cause] = []

    def handler(job: Job, args: None) -> None:
        job.check()
        attempt.interrupt(Cause.LEASE_LOST, "ran out")
        try:
            job.check()
        except Interrupted as error:
            causes.append(error.cause)
            raise

    attempt = bench.attempt(handler)
    bench.run_plain(attempt)
    assert causes == [Cause.LEASE_LOST]


def test_a_dead_lease_replaces_an_earlier_cause_but_not_the_other_way_round(bench: Bench) -> None:
    attempt = bench.attempt(raising(ValueError()))
    assert attempt.interrupt(Cause.CANCEL_REQUESTED, "")
    assert not attempt.interrupt(Cause.SHUTDOWN, "")
    assert attempt.interrupt(Cause.REMOVED, "")
    assert not attempt.interrupt(Cause.LEASE_LOST, "")
    assert attempt.cause is Cause.REMOVED


async def test_an_attempt_interrupted_before_its_start_never_calls_the_handler(bench: Bench) -> None:
    attempt = bench.attempt(raising(AssertionError("is not called")))
    attempt.interrupt(Cause.CANCEL_REQUESTED, "")
    assert settlement(await bench.run(attempt)).outcome == wire.SETTLE_OUTCOME_RELEASE
    assert bench.seen == [("t1", None)]
    assert bench.slots.running == 0


async def test_the_slot_is_free_before_the_settlement_is_said(bench: Bench) -> None:
    running = []

    async def handler(job: Job, args: None) -> None: ...

    bench.runner._settle = lambda *_: running.append(bench.slots.running)
    await bench.runner.run(bench.attempt(handler))
    assert running == [0]


async def test_the_next_attempt_of_the_slot_is_returned(bench: Bench) -> None:
    async def handler(job: Job, args: None) -> None: ...

    first, second = bench.attempt(handler), bench.attempt(handler, token="t2")
    assert await bench.runner.run(first) is second


async def test_the_handler_finds_its_job_in_the_context(bench: Bench) -> None:
    found = []

    async def handler(job: Job, args: None) -> None:
        found.append(current_job() is job)

    with pytest.raises(LookupError):
        current_job()
    await asyncio.create_task(bench.run(bench.attempt(handler)))
    assert found == [True]


async def test_a_monstrous_exception_is_cut_and_cleaned_so_that_it_can_be_said(bench: Bench) -> None:
    it = settlement(await bench.run(bench.attempt(raising(ValueError("é\0\ud800" * 10_000)))))
    assert len(it.error.message.encode()) <= 4 << 10
    assert len(it.error.stack.encode()) <= 32 << 10
    assert "\0" not in it.error.message


async def test_an_exception_that_cannot_say_what_it_is_still_fails_its_attempt(bench: Bench) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    it = settlement(await bench.run(bench.attempt(raising(Mute()))))
    assert it.error.type.endswith("Mute")


async def test_the_last_attempt_is_final_and_earlier_ones_are_not(bench: Bench) -> None:
    assert not (await bench.run(bench.attempt(raising(ValueError()), attempt=1, max_attempts=2))).is_final
    assert (await bench.run(bench.attempt(raising(ValueError()), attempt=2, max_attempts=2))).is_final


def test_a_plain_function_that_returns_a_coroutine_says_so(bench: Bench) -> None:
    async def inner() -> None: ...

    it = settlement(bench.run_plain(bench.attempt(lambda job, args: inner())))
    assert "returned a coroutine" in it.error.message
