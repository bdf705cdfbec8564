"""The whole broker in one process: the same calls as over gRPC, time held by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from google.protobuf.message import Message

from anvilmq_broker.app.inproc import DEADLINE_EXCEEDED, Failure, Inproc, in_memory
from anvilmq_broker.engine.inproc import InprocEngine
from anvilmq_broker.gateway.context import LoopTimers
from anvilmq_proto.v1 import job_service_pb2, types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb
from tests.support.clock import FakeClock
from tests.support.rules import rule

JOBS = "/anvilmq.v1.JobService/"
WORKERS = "/anvilmq.v1.WorkerService/"


@asynccontextmanager
async def broker() -> AsyncIterator[tuple[Inproc, InprocEngine]]:
    inproc, engine = in_memory(FakeClock(), LoopTimers())
    await inproc.start()
    try:
        yield inproc, engine
    finally:
        await inproc.stop()
        await inproc.stop()


async def add(inproc: Inproc, **fields: Any) -> Any:
    request = job_service_pb2.AddJobRequest(job=types_pb2.JobSpec(**{"queue": "q", "name": "n", **fields}))
    return await inproc.unary(f"{JOBS}AddJob", request, timeout_s=5)


async def state(inproc: Inproc, job_id: str) -> Any:
    answer: Any = await inproc.unary(f"{JOBS}GetJob", job_service_pb2.GetJobRequest(job_id=job_id))
    return answer.job.state


class Frames:
    """The requests of a stream, as a test sends them."""

    def __init__(self, *first: Message) -> None:
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        for message in first:
            self.send(message)

    def send(self, message: Message | None) -> None:
        self._queue.put_nowait(message)

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self._queue.get()) is not None:
            yield message


OPENING = pb.WorkRequest(
    open=pb.WorkRequest.Open(worker=pb.WorkerIdentity(worker_id="w"), pools=[pb.Pool(id=1, queues=["q"])])
)
CREDIT = pb.WorkRequest(credits=[pb.Credit(pool=1, jobs=1)])


@rule("1.4")
@rule("1.5")
async def test_a_job_whose_worker_falls_silent_is_given_to_it_again_and_the_first_lease_is_dead() -> None:
    async with broker() as (inproc, engine):
        job_id = (await add(inproc)).job_id
        frames = Frames(OPENING, CREDIT)
        async with aclosing(inproc.stream(f"{WORKERS}Work", aiter(frames))) as answers:
            await anext(answers)
            first: Any = (await anext(answers)).deliveries[0]  # type: ignore[attr-defined]
            await engine.advance(31_000)
            frames.send(CREDIT)
            found: list[Any] = []
            while not any(frame.deliveries for frame in found):
                found.append(await anext(answers))
            (again,) = [each for frame in found for each in frame.deliveries]
            assert (again.job_id, again.attempt, again.stalled_count) == (job_id, 1, 1)
            frames.send(
                pb.WorkRequest(
                    settle=pb.SettleJobsRequest(
                        settlements=[
                            pb.Settlement(
                                job_id=job_id, lease_token=each.lease_token, outcome="SETTLE_OUTCOME_COMPLETE"
                            )
                            for each in (first, again)
                        ]
                    )
                )
            )
            settled: Any = (await anext(answers)).settled[0]  # type: ignore[attr-defined]
            assert [(error.index, error.reason) for error in settled.errors] == [(0, "LEASE_LOST")]
            frames.send(None)
        assert await state(inproc, job_id) == types_pb2.JOB_STATE_COMPLETED


@rule("1.1")
async def test_a_delayed_job_is_told_as_waiting_from_its_due_time_on() -> None:
    async with broker() as (inproc, engine):
        job_id = (await add(inproc, delay_ms=1_000)).job_id
        assert await state(inproc, job_id) == types_pb2.JOB_STATE_DELAYED
        await engine.advance(1_000)
        assert await state(inproc, job_id) == types_pb2.JOB_STATE_WAITING


@rule("2.1")
async def test_a_repeat_with_another_trace_is_the_same_request_and_one_with_other_data_is_not() -> None:
    async with broker() as (inproc, _):
        first = await add(inproc, idempotency_key="k", headers={"traceparent": "00-1"})
        again = await add(inproc, idempotency_key="k", headers={"traceparent": "00-2"})
        assert (again.job_id, again.existing) == (first.job_id, True)
        with pytest.raises(Failure) as caught:
            await add(inproc, idempotency_key="k", data=b"other")
        assert caught.value.status.code == 6


async def test_a_failure_has_the_status_that_grpc_would_bring() -> None:
    async with broker() as (inproc, _):
        with pytest.raises(Failure) as caught:
            await add(inproc, queue="!")
        assert caught.value.status.code == 3
        assert len(caught.value.status.details) == 2


async def test_a_call_that_takes_too_long_ends_at_its_deadline() -> None:
    async with broker() as (inproc, _):
        claim = pb.ClaimJobsRequest(worker=pb.WorkerIdentity(worker_id="w"), queues=["q"], max_jobs=1, wait_ms=60_000)
        with pytest.raises(Failure) as caught:
            await inproc.unary(f"{WORKERS}ClaimJobs", claim, timeout_s=0.3)
        assert caught.value.status.code == DEADLINE_EXCEEDED


async def test_closing_the_answers_cancels_the_call_and_its_lease_stays_for_resumption() -> None:
    async with broker() as (inproc, engine):
        job_id = (await add(inproc)).job_id
        answers = inproc.stream(f"{WORKERS}Work", aiter(Frames(OPENING, CREDIT)))
        await anext(answers)
        delivery: Any = (await anext(answers)).deliveries[0]  # type: ignore[attr-defined]
        await answers.aclose()
        resuming = pb.WorkRequest()
        resuming.CopyFrom(OPENING)
        resuming.open.resume.add(job_id=job_id, lease_token=delivery.lease_token)
        async with aclosing(inproc.stream(f"{WORKERS}Work", aiter(Frames(resuming)))) as again:
            opened: Any = (await anext(again)).opened  # type: ignore[attr-defined]
            assert list(opened.interrupts) == []
        await engine.settle()


async def test_a_stopped_broker_ends_its_streams() -> None:
    async with broker() as (inproc, _):
        answers = inproc.stream(f"{WORKERS}Work", aiter(Frames(OPENING)))
        await anext(answers)
        await inproc.stop()
        with pytest.raises(Failure) as caught:
            _ = [answer async for answer in answers]
        assert caught.value.status.code == 14
