"""What was answered stays, what was refused or rolled back was never there."""

from collections.abc import Callable

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from tests.support.bundles import NAME, QUEUE, complete, fail, identity, lease, new_job, policy, release, slots
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver


def busy(store: StoreDriver) -> commands.Delivery:
    """A store with something in every table; the one attempt that runs."""
    store.add(new_job(key="k"), new_job(), new_job(), new_job(delay_ms=5_000, expires_after_ms=9_000))
    first, second, third = store.claim(3)
    store.send(commands.Report(lease(first), "1", [commands.LogLine(1, "info", "line")]))
    store.settle(complete(first, b"1"), fail(second))
    store.send(commands.AddJobs([new_job()], True, "p1", 1))
    return third


@rule("8")
def test_everything_is_there_after_a_restart(store: StoreDriver) -> None:
    busy(store)
    before, counts = store.store.export(), store.store.counts()
    store.clock.advance(86_400_000)
    opening = store.reopen()
    assert store.store.export() == before
    assert (store.store.counts(), opening.counts) == (counts, counts)
    assert opening.now_ms == store.now_ms - 86_400_000


@rule("8")
def test_a_restart_tells_the_engine_when_each_line_is_to_be_looked_at(store: StoreDriver) -> None:
    store.add(new_job("now"), new_job("later", delay_ms=700), new_job("later", delay_ms=300), new_job("never"))
    store.settle_one(complete(store.start("never")))
    queues = store.reopen().queues
    assert queues["now"] is not None
    assert queues["now"] <= store.now_ms
    assert queues["later"] == store.now_ms + 300
    assert queues.get("never") is None


@rule("8")
def test_numbers_are_not_used_again_after_a_restart(store: StoreDriver) -> None:
    first = store.add_one(policy=policy(retain_completed_ms=0))
    store.settle_one(complete(store.start()))
    store.prune_all()
    store.reopen()
    assert store.add_one().number > first.number


@rule("8")
def test_the_number_of_a_job_that_came_and_went_in_one_transaction_is_not_used_again(store: StoreDriver) -> None:
    gone = commands.JobRef(1, store.now_ms)
    store.batch(
        commands.AddJobs([new_job(policy=policy(retain_failed_ms=0))]), commands.CancelJob(gone), commands.Prune()
    )
    assert store.store.counts() == {}
    store.reopen()
    assert store.add_one().number == 2
    assert not store.exists(gone)


@rule("8")
def test_the_order_of_a_line_survives_a_restart(store: StoreDriver) -> None:
    store.add(new_job(name="tail"), new_job(name="front", lifo=True), new_job(name="due", delay_ms=10))
    store.reopen()
    store.add_one(name="newest front", lifo=True)
    store.clock.advance(10)
    assert [delivery.name for delivery in store.claim(9)] == ["newest front", "front", "tail", "due"]


@rule("8")
def test_a_batch_that_is_rolled_back_leaves_no_trace(store: StoreDriver) -> None:
    running = busy(store)
    before, counts, opened_now = store.store.export(), store.store.counts(), store.now_ms
    store.clock.advance(1_000)
    batch = store.store.begin(store.now_ms)
    batch.apply(
        [
            commands.AddJobs([new_job(lifo=True, key="new"), new_job("new queue")], True, "p1", 2),
            commands.Settle([release(running, delay_ms=5)]),
            commands.DeleteReceipt(QUEUE, NAME, "k"),
            commands.CancelJob(commands.JobRef(4, opened_now)),
        ],
        lambda _: None,
    )
    batch.claim(QUEUE, slots(9))
    batch.rollback()
    assert store.store.export() == before
    assert store.store.counts() == counts
    assert store.add_one().number == 6
    assert store.settle_one(complete(running)) is State.COMPLETED


@rule("8")
def test_a_batch_open_at_a_crash_leaves_no_trace(store: StoreDriver) -> None:
    running = busy(store)
    before = store.store.export()
    batch = store.store.begin(store.now_ms + 1)
    batch.apply([commands.Settle([complete(running)]), commands.AddJobs([new_job()])], lambda _: None)
    del batch
    store.reopen()
    assert store.store.export() == before
    assert store.settle_one(complete(running)) is State.COMPLETED


@rule("8")
def test_a_store_can_be_stopped_twice(store: StoreDriver) -> None:
    store.store.stop()
    store.store.stop()


# -------------------------------------------------------------------------------------- refusals write nothing


REFUSED: list[Callable[[commands.Delivery], commands.Command]] = [
    lambda _: commands.AddJobs([new_job("brand new"), new_job(key="k", data=b"other")]),
    lambda _: commands.AddJobs([new_job("brand new")], True, "p1", 0),
    lambda it: commands.Settle([complete(commands.Delivery(it.number, it.created_ms, "stolen", *[None] * 8))]),  # type: ignore[arg-type]  # no more is looked at
    lambda _: commands.Settle([commands.Settlement(99, 1, "t", 2)]),
    lambda it: commands.Report(commands.LeaseRef(it.number, it.created_ms, "stolen"), "2"),
    lambda _: commands.CancelJob(commands.JobRef(99, 1)),
    lambda _: commands.ReleaseReceipt(QUEUE, NAME, "k", commands.JobRef(99, 1)),
    lambda _: commands.DeleteReceipt(QUEUE, NAME, "nobody's"),
    lambda _: commands.Claim(identity(), ["nobody's"], 5),
    lambda it: commands.Reap([commands.LeaseRef(it.number, it.created_ms, "stolen")]),
    lambda _: commands.Reap(expired=[commands.JobRef(4, 1)], parked=[commands.JobRef(4, 1)]),
    lambda _: commands.Prune(500),
]


@rule("7")
@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_is_refused_or_finds_nothing_writes_nothing(store: StoreDriver, place: int) -> None:
    running = busy(store)
    before, counts = store.rows(), store.store.counts()
    store.send(REFUSED[place](running))
    assert store.effects == []
    assert store.rows() == before
    assert store.store.counts() == counts


@rule("7")
def test_a_job_that_is_not_there_is_not_found_by_any_question(store: StoreDriver) -> None:
    absent = commands.JobRef(1, store.now_ms)
    for query in (commands.GetJob(absent), commands.GetJob(absent, full=False), commands.ListJobLogs(absent)):
        assert store.query(query).reason == "JOB_NOT_FOUND"


@rule("1.1")
def test_every_change_is_an_event_of_its_own_transaction(store: StoreDriver) -> None:
    added = store.add_one(idle=slots(1))
    events = [row for row in store.rows()["events"] if row[2] == added.number]
    assert [(row[5], row[8], row[9]) for row in events] == [(1, State.WAITING, 0), (3, State.ACTIVE, State.WAITING)]


@rule("1.1")
def test_a_claim_by_a_slot_names_the_slot(store: StoreDriver) -> None:
    store.add_one()
    slot = protocol.Slot("w1", "c1", 77)
    batch = store.store.begin(store.now_ms)
    (started,) = batch.claim(QUEUE, [slot])
    batch.commit()
    assert started.slot == slot
