"""What one can ask of a job that was added."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from anvilmq import Handle, errors
from anvilmq_proto.v1 import job_service_pb2 as wire
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.fake_broker import World


class Thumb(msgspec.Struct):
    """A result."""

    url: str


def handle(world: World) -> Handle[Thumb]:
    """Of a job that the broker is asked about."""
    return world.app.ref("images", "resize", str, Thumb).handle("job-1")


def answers(world: World, name: str, *given: Any) -> None:
    """What the broker answers, one after the other; the last one again and again. Exceptions are raised."""
    rest = list(given)

    def answer(request: Any) -> Any:
        found = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(found, Exception):
            raise found
        return found

    world.broker.answers[name] = answer


def ended(**fields: Any) -> wire.WaitJobResponse:
    """The job has ended."""
    return wire.WaitJobResponse(finished=True, job=types.Job(job_id="job-1", attempt=2, **fields))


async def test_the_state_is_a_word(world: World) -> None:
    answers(world, "GetJob", wire.GetJobResponse(job=types.Job(state=types.JOB_STATE_WAITING_CHILDREN)))
    assert await handle(world).state() == "waiting_children"
    (request,) = world.broker.calls
    assert (request.job_id, request.view) == ("job-1", types.JOB_VIEW_BASIC)


async def test_a_question_is_asked_again_while_the_broker_is_away(world: World) -> None:
    away = errors.Unavailable("away")
    answers(world, "GetJob", away, away, wire.GetJobResponse(job=types.Job(state=types.JOB_STATE_ACTIVE)))
    asking = asyncio.create_task(handle(world).state())
    await world.advance(2)
    assert await asking == "active"


async def test_a_question_gets_no_answer_after_five_seconds(world: World) -> None:
    world.broker.down = errors.Unavailable("away")
    asking = asyncio.create_task(handle(world).state())
    await world.advance(5)
    with pytest.raises(errors.Unavailable, match="away"):
        await asking


@rule("1.1")
async def test_why_tells_what_holds_a_job(world: World) -> None:
    wait = types.WaitInfo(reason=types.WAIT_REASON_DELAY, since_at_ms=1_000, until_at_ms=2_000, jobs_ahead=3)
    answers(world, "GetJob", wire.GetJobResponse(job=types.Job(wait=wait)), wire.GetJobResponse(job=types.Job()))
    why = await handle(world).why()
    assert why is not None
    assert (why.reason, why.jobs_ahead, why.holder_job_id) == ("delay", 3, "")
    assert why.until == datetime.fromtimestamp(2, UTC)
    assert await handle(world).why() is None


@rule("1.9")
async def test_cancel_returns_the_state_then(world: World) -> None:
    answers(world, "CancelJob", wire.CancelJobResponse(state=types.JOB_STATE_ACTIVE, signalled=True))
    assert await handle(world).cancel("not needed") == "active"
    assert world.broker.calls == [wire.CancelJobRequest(job_id="job-1", reason="not needed")]


@rule("1.8")
async def test_a_result_is_of_the_declared_type(world: World) -> None:
    answers(world, "WaitJob", ended(state=types.JOB_STATE_COMPLETED, result=b'{"url":"u"}'))
    assert await handle(world).result(timeout="60s") == Thumb("u")


async def test_a_result_of_another_type_is_told(world: World) -> None:
    answers(world, "WaitJob", ended(state=types.JOB_STATE_COMPLETED, result=b"5"))
    with pytest.raises(errors.PayloadInvalid):
        await handle(world).result()


async def test_waiting_goes_on_until_the_job_has_ended(world: World) -> None:
    not_yet = wire.WaitJobResponse(job=types.Job(state=types.JOB_STATE_ACTIVE))
    answers(world, "WaitJob", not_yet, errors.Unavailable("away"), not_yet, ended(state=5, result=b'{"url":"u"}'))
    waiting = asyncio.create_task(handle(world).result())
    await world.advance(5)
    assert await waiting == Thumb("u")
    assert [request.wait_ms for request in world.broker.calls] == [60_000] * 4


async def test_a_wait_that_is_over_says_where_the_job_is(world: World) -> None:
    def passes(request: Any) -> wire.WaitJobResponse:
        world.clock.advance(request.wait_ms / 1_000)
        return wire.WaitJobResponse(job=types.Job(state=types.JOB_STATE_DELAYED))

    world.broker.answers["WaitJob"] = passes
    with pytest.raises(errors.WaitTimeout, match="job job-1 is delayed"):
        await handle(world).result(timeout="90s")
    assert [request.wait_ms for request in world.broker.calls] == [60_000, 30_000]


async def test_a_wait_is_over_also_without_a_broker(world: World) -> None:
    world.broker.down = errors.Unavailable("away")
    waiting = asyncio.create_task(handle(world).result(timeout="10s"))
    await world.advance(10)
    with pytest.raises(TimeoutError, match="away"):
        await waiting


async def test_a_job_that_failed_says_how(world: World) -> None:
    attempts = [types.Attempt(number=1, error=types.JobError(type="KeyError", message="a")), types.Attempt(number=2)]
    attempts[1].error.CopyFrom(types.JobError(type="ValueError", message="too wide", stack="..."))
    answers(
        world,
        "WaitJob",
        ended(state=types.JOB_STATE_FAILED, finish_reason=types.FINISH_REASON_ATTEMPTS_EXHAUSTED, attempts=attempts),
    )
    with pytest.raises(errors.JobFailed, match=r"job-1 failed \(attempts_exhausted\): ValueError: too wide") as caught:
        await handle(world).result()
    error = caught.value
    assert (error.job_id, error.finish_reason, error.attempts) == ("job-1", "attempts_exhausted", 2)
    assert (error.error_type, error.error_message, error.error_stack) == ("ValueError", "too wide", "...")


@rule("1.9")
async def test_a_job_that_was_cancelled_says_why(world: World) -> None:
    answers(
        world,
        "WaitJob",
        ended(
            state=types.JOB_STATE_CANCELLED,
            finish_reason=types.FINISH_REASON_CANCEL_REQUESTED,
            finish_message="not needed",
        ),
    )
    with pytest.raises(errors.JobCancelled, match="cancelled: not needed"):
        await handle(world).result()


async def test_a_job_that_is_gone_is_not_found(world: World) -> None:
    answers(world, "WaitJob", errors.JobNotFound("no job-1"))
    with pytest.raises(errors.JobNotFound):
        await handle(world).result()


@pytest.mark.parametrize("name", ["state", "why", "cancel", "result"])
async def test_a_sync_twin_refuses_to_stop_a_loop_and_names_the_async_one(world: World, name: str) -> None:
    with pytest.raises(RuntimeError, match=rf"{name}_sync\(\) blocks.*await {name}\(\)"):
        getattr(handle(world), f"{name}_sync")()


async def test_a_state_of_a_newer_broker_is_unspecified(world: World) -> None:
    job = types.Job()
    job.MergeFromString(b"\x20\x63")  # field 4, value 99
    answers(world, "GetJob", wire.GetJobResponse(job=job))
    assert await handle(world).state() == "unspecified"
