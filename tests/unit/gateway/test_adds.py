"""AddJobStream: batches are handed on at once, answers come in order, a refused batch does not end the stream."""

from __future__ import annotations

import asyncio
from typing import Any

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.gateway.adds import AHEAD
from anvilmq_proto.v1 import job_service_pb2
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import LOST, Bundle, Streaming, spec, turns

METHOD = "JobService/AddJobStream"


def batch(count: int = 1, **fields: Any) -> job_service_pb2.AddJobStreamRequest:
    return job_service_pb2.AddJobStreamRequest(jobs=[spec()] * count, **fields)


def held(bundle: Bundle) -> list[asyncio.Future[Any]]:
    """Makes the engine hold its answers to adds; one future each."""
    futures: list[asyncio.Future[Any]] = []

    def hold(_command: commands.AddJobs) -> asyncio.Future[Any]:
        futures.append(asyncio.get_running_loop().create_future())
        return futures[-1]

    bundle.broker.answers[commands.AddJobs] = hold
    return futures


@rule("1.10")
async def test_answers_come_in_the_order_of_the_batches_whichever_was_ready_first() -> None:
    bundle = Bundle()
    answers = held(bundle)
    async with Streaming(bundle, METHOD) as stream:
        stream.wire.send(batch(2, producer_id="p", seq=1))
        stream.wire.send(batch(1, producer_id="p", seq=2))
        await turns()
        assert [command.seq for command in bundle.broker.of(commands.AddJobs)] == [1, 2], "handed on without waiting"
        answers[1].set_result(commands.AddedJobs(3, START_MS))
        await turns()
        assert stream.wire.unread == 0
        answers[0].set_result(commands.AddedJobs(1, START_MS))
        assert list((await stream.wire.answer()).job_ids) == [ids.encode(START_MS, 1), ids.encode(START_MS, 2)]
        assert list((await stream.wire.answer()).job_ids) == [ids.encode(START_MS, 3)]


async def test_at_most_64_batches_are_read_ahead_of_their_answers() -> None:
    bundle = Bundle()
    answers = held(bundle)
    async with Streaming(bundle, METHOD) as stream:
        for _ in range(AHEAD + 9):
            stream.wire.send(batch())
        await turns(200)
        assert len(answers) == AHEAD
        answers[0].set_result(commands.AddedJobs(1, START_MS))
        await stream.wire.answer()
        await turns()
        assert len(answers) == AHEAD + 1


async def test_a_refused_batch_is_answered_and_the_stream_goes_on() -> None:
    bundle = Bundle()
    async with Streaming(bundle, METHOD) as stream:
        bad = batch(1)
        bad.jobs.append(spec(priority=-1))
        stream.wire.send(bad)
        stream.wire.send(batch(0))
        stream.wire.send(batch(1, seq=1))
        refused = [(await stream.wire.answer()).refused for _ in range(3)]
        assert [(each.reason, each.index, each.field) for each in refused] == [
            ("INVALID_FIELD", 1, "priority"),
            ("INVALID_FIELD", 0, "jobs"),
            ("INVALID_FIELD", 0, "producer_id"),
        ]
        bundle.broker.answers[commands.AddJobs] = Refused("SEQUENCE_STALE", "late", "seq", {"seq": "5"})
        stream.wire.send(batch(producer_id="p", seq=1))
        answer = await stream.wire.answer()
        assert (answer.refused.reason, answer.refused.code, len(answer.job_ids)) == ("SEQUENCE_STALE", 9, 0)
        bundle.broker.answers[commands.AddJobs] = commands.AddedJobs(1, START_MS)
        stream.wire.send(batch())
        assert len((await stream.wire.answer()).job_ids) == 1


async def test_per_item_a_bad_item_has_its_own_answer() -> None:
    bundle = Bundle()
    async with Streaming(bundle, METHOD) as stream:
        mixed = batch(1, atomic=job_service_pb2.ATOMICITY_PER_ITEM)
        mixed.jobs.append(spec(queue="!"))
        stream.wire.send(mixed)
        answer = await stream.wire.answer()
        assert [bool(job_id) for job_id in answer.job_ids] == [True, False]
        assert [(each.index, each.field) for each in answer.errors] == [(1, "queue")]


async def test_a_stream_that_the_client_closes_ends_with_all_its_answers() -> None:
    bundle = Bundle()
    answers = held(bundle)
    async with Streaming(bundle, METHOD) as stream:
        stream.wire.send(batch())
        stream.wire.close()
        await turns()
        assert not stream.task.done()
        answers[0].set_result(commands.AddedJobs(1, START_MS))
        await stream.ends()
        assert stream.wire.unread == 1


async def test_bytes_that_are_no_batch_end_the_stream() -> None:
    bundle = Bundle()
    async with Streaming(bundle, METHOD) as stream:
        stream.wire.send(b"\xff\xff")
        assert (await stream.refusal()).reason == "MALFORMED_MESSAGE"


async def test_a_lost_engine_ends_the_stream_as_unavailable() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = LOST
    async with Streaming(bundle, METHOD) as stream:
        stream.wire.send(batch())
        refused = await stream.refusal()
        assert (refused.code, refused.reason) == (14, "NOT_READY")


async def test_a_client_that_is_gone_leaves_nothing_behind() -> None:
    bundle = Bundle()
    answers = held(bundle)
    async with Streaming(bundle, METHOD) as stream:
        for _ in range(3):
            stream.wire.send(batch())
        await turns()
        stream.task.cancel()
        await turns()
        assert all(answer.cancelled() for answer in answers)


async def test_a_broker_that_leaves_answers_what_it_has_read_and_ends_the_stream() -> None:
    bundle = Bundle()
    answers = held(bundle)
    async with Streaming(bundle, METHOD) as stream:
        stream.wire.send(batch())
        await turns()
        draining = asyncio.ensure_future(bundle.gateway.drain(1_000))
        await turns()
        stream.wire.send(batch())
        answers[0].set_result(commands.AddedJobs(1, START_MS))
        assert len((await stream.wire.answer()).job_ids) == 1
        assert (await stream.refusal()).reason == "DRAINING"
        await draining
        assert len(answers) == 1
