"""Single adds: coalescing, order, what a broken connection does to them, timeouts, limits."""

import asyncio

import pytest

from anvilmq import Handle, JobRef, errors
from anvilmq._backlog import FRAME_JOBS, MAX_BYTES, MAX_JOBS
from anvilmq_proto.v1 import job_service_pb2 as wire
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.fake_broker import OVERLOADED, World, breaks, breaks_after, fails, refuses

Adding = asyncio.Task[Handle[bytes]]


def ref(world: World) -> JobRef[bytes, bytes]:
    """A job with a payload that needs no encoding."""
    return world.app.ref("images", "resize", bytes, bytes)


def add(world: World, *payloads: bytes, timeout: str = "30s") -> list[Adding]:
    """Call add for each, all at the same time."""
    job = ref(world)
    return [asyncio.create_task(job.add(payload, timeout=timeout)) for payload in payloads]


async def ids(adding: list[Adding]) -> list[str]:
    """The ids that the calls return."""
    return [handle.id for handle in await asyncio.gather(*adding)]


async def failure_of(adding: Adding) -> errors.AnvilError:
    """The error that the call raises."""
    with pytest.raises(errors.AnvilError) as caught:
        await adding
    return caught.value


async def test_adds_made_at_the_same_time_share_a_frame_and_keep_their_order(world: World) -> None:
    assert await ids(add(world, b"a", b"b", b"c")) == ["job-1", "job-2", "job-3"]
    assert world.broker.stored == [b"a", b"b", b"c"]
    assert len(world.broker.frames) == 1
    assert world.broker.frames[0].atomic == wire.ATOMICITY_PER_ITEM


async def test_what_is_added_while_a_frame_is_out_makes_the_next(world: World) -> None:
    world.broker.hold()
    adding = add(world, b"a")
    await world.turns()
    adding += add(world, b"b", b"c")
    await world.turns()
    assert len(world.broker.frames) == 1, "one frame without an answer at a time"
    world.broker.release()
    await ids(adding)
    assert [[job.data for job in frame.jobs] for frame in world.broker.frames] == [[b"a"], [b"b", b"c"]]
    assert [frame.seq for frame in world.broker.frames] == [1, 2]
    assert world.broker.streams == 1


async def test_a_frame_has_at_most_256_jobs(world: World) -> None:
    await ids(add(world, *[b"x"] * (FRAME_JOBS + 1)))
    assert [len(frame.jobs) for frame in world.broker.frames] == [FRAME_JOBS, 1]


async def test_a_frame_has_at_most_a_mebibyte_but_for_a_single_job(world: World) -> None:
    large = b"x" * (3 << 20)
    await ids(add(world, b"y" * (600 << 10), b"z" * (600 << 10), large))
    assert [len(frame.jobs) for frame in world.broker.frames] == [1, 1, 1]


@rule("8")
@rule("1.10")
async def test_a_frame_whose_answer_was_lost_goes_again_and_adds_nothing_twice(world: World) -> None:
    world.broker.then(breaks_after)
    adding = add(world, b"a", b"b")
    await world.advance(1)
    assert await ids(adding) == ["job-1", "job-2"]
    assert world.broker.stored == [b"a", b"b"]
    first, second = world.broker.frames
    assert first == second, "the same jobs under the same seq"


@rule("8")
async def test_adds_are_applied_in_order_also_after_a_break(world: World) -> None:
    world.broker.then(breaks, breaks)
    adding = add(world, b"a")
    await world.turns()
    adding += add(world, b"b")
    await world.advance(5)
    await ids(adding)
    assert world.broker.stored == [b"a", b"b"]


async def test_a_stream_that_broke_with_nothing_to_say_is_opened_by_the_next_add(world: World) -> None:
    await ids(add(world, b"a"))
    world.broker.then(breaks)
    await world.advance(60)
    assert world.broker.streams == 1
    adding = add(world, b"b")
    await world.advance(1)
    assert await ids(adding) == ["job-2"]
    assert world.broker.streams == 2


async def test_an_overloaded_broker_is_asked_again_after_the_time_it_names(world: World) -> None:
    world.broker.then(refuses(OVERLOADED))
    adding = add(world, b"a")
    await world.advance(2.9)
    assert len(world.broker.frames) == 1
    await world.advance(0.3)
    assert await ids(adding) == ["job-1"]
    assert [frame.seq for frame in world.broker.frames] == [1, 1], "a refused frame used up no seq"


async def test_an_add_that_found_no_broker_ends_not_sent_at_its_timeout(world: World) -> None:
    world.broker.down = errors.Unavailable("no connection")
    (adding,) = add(world, b"a", timeout="5s")
    await world.advance(4.9)
    assert not adding.done()
    await world.advance(0.1)
    failure = await failure_of(adding)
    assert isinstance(failure, errors.Unavailable)
    assert failure.outcome == "not_sent"
    assert str(failure) == "it could not be sent in time; no connection"


async def test_an_add_that_was_sent_and_not_answered_ends_unknown(world: World) -> None:
    world.broker.hold()
    first, *_ = add(world, b"a", timeout="5s")
    await world.turns()
    (second,) = add(world, b"b", timeout="5s")
    await world.advance(5)
    failures = [await failure_of(first), await failure_of(second)]
    assert [getattr(failure, "outcome", None) for failure in failures] == ["unknown", "not_sent"]


async def test_a_job_whose_caller_was_told_not_sent_is_never_added(world: World) -> None:
    world.broker.down = errors.Unavailable("no connection")
    hasty, patient = *add(world, b"a", timeout="5s"), *add(world, b"b")
    await world.advance(6)
    assert getattr(await failure_of(hasty), "outcome", None) == "not_sent"
    world.broker.down = None
    await world.advance(20)
    await patient
    assert world.broker.stored == [b"b"]


async def test_a_job_that_ran_out_of_time_while_the_broker_was_overloaded_is_never_added(world: World) -> None:
    world.broker.then(refuses(OVERLOADED))
    hasty, patient = *add(world, b"a", timeout="1s"), *add(world, b"b")
    await world.advance(1)
    assert getattr(await failure_of(hasty), "outcome", None) == "not_sent"
    await world.advance(3)
    await patient
    assert world.broker.stored == [b"b"]
    assert world.client.adds.pending == 0


async def test_what_ran_out_of_time_is_held_no_longer(world: World) -> None:
    world.broker.hold()
    adding = add(world, b"a", timeout="5s")
    await world.turns()
    adding += add(world, b"b", timeout="5s")
    await world.advance(5)
    await asyncio.gather(*adding, return_exceptions=True)
    await world.turns()
    assert world.client.adds.pending == 0


async def test_a_stream_that_says_nothing_is_left_when_nobody_waits_for_its_frame(world: World) -> None:
    world.broker.hold()
    (silent,) = add(world, b"a", timeout="5s")
    await world.turns()
    (patient,) = add(world, b"b")
    await world.advance(5)
    await failure_of(silent)
    world.broker.release()
    assert (await patient).id == "job-2"
    assert world.broker.streams == 2


async def test_a_frame_that_the_broker_has_forgotten_is_not_sent_again(world: World) -> None:
    world.broker.then(breaks_after)
    (adding,) = add(world, b"a", timeout="1h")
    await world.turns()
    world.broker.down = errors.Unavailable("no connection")
    await world.advance(541)
    world.broker.down = None
    await world.advance(20)
    failure = await failure_of(adding)
    assert isinstance(failure, errors.Unavailable)
    assert failure.outcome == "unknown"
    assert len(world.broker.frames) == 1


async def test_the_refusal_of_one_job_reaches_its_caller_alone(world: World) -> None:
    refusal = types.ItemError(
        code=8, reason="QUEUE_FULL", message="queue images is full", metadata={"queue": "images"}, retry_after_ms=500
    )
    world.broker.refuse_item(b"b", refusal)
    first, second, third = add(world, b"a", b"b", b"c")
    assert (await first).id == "job-1"
    assert (await third).id == "job-2"
    failure = await failure_of(second)
    assert isinstance(failure, errors.QueueFull)
    assert failure.metadata == {"queue": "images"}
    assert failure.retry_after is not None
    assert failure.retry_after.total_seconds() == 0.5


@rule("2.1")
async def test_a_handle_says_that_the_add_met_an_earlier_job(world: World) -> None:
    world.broker.meet_item(b"b", wire.EarlierJob(existing=True, matched_by=types.MATCHED_BY_RECEIPT))
    new, met = await asyncio.gather(*add(world, b"a", b"b"))
    assert (new.existing, new.matched_by) == (False, None)
    assert (met.id, met.existing, met.matched_by) == ("earlier", True, "receipt")


async def test_a_frame_refused_for_one_item_goes_again_without_it(world: World) -> None:
    world.broker.then(refuses(types.ItemError(code=3, reason="INVALID_FIELD", metadata={"index": "1"})))
    first, second, third = add(world, b"a", b"b", b"c")
    assert (await first).id == "job-1"
    assert (await third).id == "job-2"
    assert isinstance(await failure_of(second), errors.InvalidArgument)


async def test_a_frame_refused_as_a_whole_fails_each_of_its_calls(world: World) -> None:
    world.broker.then(refuses(types.ItemError(code=8, reason="STORAGE_FULL", message="the disk is full")))
    first, second = add(world, b"a", b"b")
    failures = [await failure_of(first), await failure_of(second)]
    assert [type(failure) for failure in failures] == [errors.StorageFull] * 2
    assert failures[0] is not failures[1]
    assert await ids(add(world, b"c")) == ["job-1"]


async def test_a_refused_token_is_tried_once_more_and_then_told(world: World) -> None:
    world.broker.down = errors.Unauthenticated("no", reason="TOKEN_INVALID")
    (adding,) = add(world, b"a")
    assert (await failure_of(adding)).message == "no"
    assert world.broker.streams == 2


async def test_a_token_that_was_renewed_goes_unnoticed(world: World) -> None:
    await ids(add(world, b"a"))
    for _ in range(2):
        world.broker.then(fails(errors.Unauthenticated("no", reason="TOKEN_INVALID")))
        await ids(add(world, b"b"))
    assert len(world.broker.stored) == 3


async def test_an_address_that_is_no_broker_is_told_at_once(world: World) -> None:
    world.broker.down = errors.Unimplemented("no broker there")
    (adding,) = add(world, b"a")
    assert isinstance(await failure_of(adding), errors.Unimplemented)


async def test_an_add_that_is_cancelled_while_it_waits_is_not_sent(world: World) -> None:
    world.broker.hold()
    first, second, third = *add(world, b"a"), *(await waiting_behind(world))
    second.cancel()
    await world.turns()
    world.broker.release()
    await ids([first, third])
    assert world.broker.stored == [b"a", b"c"]


async def waiting_behind(world: World) -> list[Adding]:
    """Two adds behind a frame that is out."""
    await world.turns()
    adding = add(world, b"b", b"c")
    await world.turns()
    return adding


async def test_beyond_10_000_jobs_an_add_waits_for_room_in_turn(world: World) -> None:
    world.broker.hold()
    adding = add(world, *[b"x"] * MAX_JOBS)
    await world.turns()
    assert world.client.adds.pending == MAX_JOBS
    adding += add(world, b"y", b"z")
    await world.turns()
    assert world.client.adds.pending == MAX_JOBS
    world.broker.release()
    await ids(adding)
    assert world.broker.stored[-2:] == [b"y", b"z"]


async def test_beyond_64_mebibytes_an_add_waits_for_room(world: World) -> None:
    world.broker.hold()
    size = 1 << 20
    adding = add(world, *[b"x" * size] * (MAX_BYTES // size + 5))
    await world.turns()
    assert world.client.adds.pending <= MAX_BYTES // size
    world.broker.release()
    assert len(await ids(adding)) == MAX_BYTES // size + 5


async def test_an_add_that_finds_no_room_in_time_was_not_sent(world: World) -> None:
    world.broker.hold()
    adding = add(world, *[b"x"] * MAX_JOBS)
    await world.turns()
    (late,) = add(world, b"y", timeout="1s")
    await world.advance(1)
    failure = await failure_of(late)
    assert isinstance(failure, errors.Unavailable)
    assert failure.outcome == "not_sent"
    world.broker.release()
    await ids(adding)


async def test_those_who_wait_for_room_go_on_when_what_was_ahead_ran_out_of_time(world: World) -> None:
    world.broker.hold()
    adding = add(world, *[b"x"] * MAX_JOBS, timeout="1s")
    await world.turns()
    (next_one,) = add(world, b"y")
    await world.advance(1)
    await asyncio.gather(*adding, return_exceptions=True)
    world.broker.release()
    await world.turns()
    assert (await next_one).id


async def test_flush_waits_for_what_was_added_before_it_and_for_no_more(world: World) -> None:
    world.broker.hold()
    adding = add(world, b"a")
    await world.turns()
    flushing = asyncio.create_task(world.app.flush())
    await world.turns()
    adding += add(world, b"b")
    await world.turns()
    assert not flushing.done()
    world.broker.release(one=True)
    await flushing
    assert not adding[1].done()
    world.broker.release()
    await ids(adding)


async def test_flush_of_nothing_returns(world: World) -> None:
    await world.app.flush()
    await ids(add(world, b"a"))
    await world.app.flush()


async def test_close_waits_for_the_answers_and_closes_the_connection(world: World) -> None:
    adding = add(world, b"a", b"b")
    await world.turns(1)
    await world.app.close()
    assert world.broker.stored == [b"a", b"b"]
    assert world.broker.closed
    await ids(adding)


async def test_an_add_to_what_is_closed_is_refused(world: World) -> None:
    await world.client.adds.close()
    (adding,) = add(world, b"a")
    assert isinstance(await failure_of(adding), errors.Closed)


async def test_a_mistake_of_the_transport_is_told_and_the_next_add_starts_afresh(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def is_wrong(broker: object, request: object) -> wire.AddJobStreamResponse:
        raise ZeroDivisionError

    world.broker.then(is_wrong)
    (adding,) = add(world, b"a")
    assert isinstance(await failure_of(adding), errors.Internal)
    assert "add_stream_failed" in caplog.text
    assert await ids(add(world, b"b")) == ["job-1"]
