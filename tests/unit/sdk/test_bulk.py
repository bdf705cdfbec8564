"""Bulks: batches, an answer an item, lanes."""

import asyncio
from collections.abc import Iterator

import pytest

from anvilmq import Spec, errors
from anvilmq_proto.v1 import job_service_pb2 as wire
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.fake_broker import World, breaks, breaks_after, fails


def specs(world: World, *payloads: bytes) -> list[Spec[bytes]]:
    """A job of each payload."""
    job = world.app.ref("images", "resize", bytes, bytes)
    return [job.spec(payload) for payload in payloads]


async def test_a_bulk_is_cut_into_batches_that_keep_its_order(world: World) -> None:
    told: list[tuple[int, int | None]] = []
    payloads = [b"%d" % number for number in range(2_500)]
    done = await world.app.add_bulk(specs(world, *payloads), on_progress=lambda *seen: told.append(seen))
    assert world.broker.stored == payloads
    assert [len(frame.jobs) for frame in world.broker.frames] == [1_000, 1_000, 500]
    assert told == [(1_000, 2_500), (2_000, 2_500), (2_500, 2_500)]
    assert (len(done), done.ids[0], done[2_499].id, done.existing) == (2_500, "job-1", "job-2500", 0)


async def test_a_batch_is_cut_by_its_bytes_too(world: World) -> None:
    await world.app.add_bulk(specs(world, *[b"x" * (3 << 20)] * 5))
    assert [len(frame.jobs) for frame in world.broker.frames] == [2, 2, 1]


async def test_jobs_are_made_one_batch_at_a_time(world: World) -> None:
    made: list[int] = []

    def make() -> Iterator[Spec[bytes]]:
        job = world.app.ref("images", "resize", bytes, bytes)
        for number in range(3_000):
            made.append(number)
            yield job.spec(b"x")

    world.broker.hold()
    adding = asyncio.create_task(world.app.add_bulk(make()))
    await world.turns()
    assert len(made) == 1_001
    world.broker.release()
    assert len(await adding) == 3_000


async def test_an_empty_bulk_asks_nobody(world: World) -> None:
    assert len(await world.app.add_bulk([])) == 0
    assert world.broker.frames == []


async def test_each_item_has_its_answer(world: World) -> None:
    world.broker.refuse_item(b"b", types.ItemError(code=3, reason="INVALID_FIELD", field="priority", message="no"))
    world.broker.meet_item(b"c", wire.EarlierJob(existing=True, matched_by=types.MATCHED_BY_RECEIPT))
    done = await world.app.add_bulk(specs(world, b"a", b"b", b"c"))
    assert done.ids == ["job-1", "", "earlier"]
    assert done.existing == 1
    assert repr(done) == "<bulk of 3 jobs, 1 refused>"
    assert [(index, error.fields) for index, error in done.errors.items()] == [(1, {"priority": "no"})]
    assert done[2].existing
    for look in (lambda: done[1], done.raise_for_errors, lambda: list(done)):
        with pytest.raises(errors.InvalidArgument):
            look()


@rule("1.10")
@rule("8")
async def test_a_batch_whose_answer_was_lost_goes_again_and_adds_nothing_twice(world: World) -> None:
    world.broker.then(breaks_after, breaks)
    adding = asyncio.create_task(world.app.add_bulk(specs(world, b"a", b"b")))
    await world.advance(2)
    assert (await adding).ids == ["job-1", "job-2"]
    assert world.broker.stored == [b"a", b"b"]
    assert len({(frame.producer_id, frame.seq) for frame in world.broker.frames}) == 1


async def test_a_lane_is_used_again_and_bulks_at_one_time_have_their_own(world: World) -> None:
    await world.app.add_bulk(specs(world, b"a"))
    await world.app.add_bulk(specs(world, b"b"))
    await asyncio.gather(world.app.add_bulk(specs(world, b"c")), world.app.add_bulk(specs(world, b"d")))
    lanes = [(frame.producer_id, frame.seq) for frame in world.broker.frames]
    assert [seq for _, seq in lanes] == [1, 2, 3, 1]
    assert len({producer for producer, _ in lanes}) == 2


async def test_a_batch_that_does_not_come_through_stops_the_bulk_and_says_how_far_it_came(world: World) -> None:
    adding = asyncio.create_task(world.app.add_bulk(specs(world, *[b"x"] * 1_500), timeout="5s"))
    world.broker.then(lambda broker, request: broker.store(request), *[breaks] * 50)
    await world.advance(6)
    with pytest.raises(errors.BulkStopped, match="after 1000 jobs") as caught:
        await adding
    assert len(caught.value.done) == 1_000
    assert isinstance(caught.value.error, errors.Unavailable)
    assert caught.value.error.outcome == "unknown"


@rule("1.10")
async def test_an_atomic_bulk_is_one_batch_that_is_refused_as_a_whole(world: World) -> None:
    world.broker.then(fails(errors.InvalidArgument("no", reason="INVALID_FIELD", metadata={"index": "1"})))
    with pytest.raises(errors.InvalidArgument) as caught:
        await world.app.add_bulk(specs(world, b"a", b"b"), atomic=True)
    assert caught.value.index == 1
    assert world.broker.frames[0].atomic == wire.ATOMICITY_ALL_OR_NOTHING
    with pytest.raises(ValueError, match="at most 1000 jobs"):
        await world.app.add_bulk(specs(world, *[b"x"] * 1_001), atomic=True)
    assert world.broker.stored == []


async def test_the_sync_twin_refuses_to_stop_a_loop(world: World) -> None:
    with pytest.raises(RuntimeError, match=r"await add_bulk\(\)"):
        world.app.add_bulk_sync([])
