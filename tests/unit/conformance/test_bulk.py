"""Adding many at once, and adding again what may have been added already."""

import pytest

from anvilmq_broker.domain import commands, limits
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from tests.support.bundles import complete, new_job, slots
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver, refs

TEN_MINUTES = 600_000


def taken(store: StoreDriver) -> commands.AddJobs:
    """A batch of four whose third item asks for a key that another request has."""
    store.add_one(key="taken")
    return commands.AddJobs(
        [new_job(name="a"), new_job(name="b"), new_job(key="taken", data=b"other"), new_job(name="d")]
    )


@rule("1.10")
def test_numbers_come_back_in_item_order(store: StoreDriver) -> None:
    added = store.add(*(new_job(name=f"n{n}", priority=9 - n) for n in range(10)))
    assert [store.job(job).name for job in added] == [f"n{n}" for n in range(10)]


@rule("1.10")
def test_a_thousand_jobs_go_in_one_call(store: StoreDriver) -> None:
    added = store.add(*(new_job(data=b"%d" % n) for n in range(1_000)))
    assert len(set(added)) == 1_000
    assert store.store.counts() == {("mail", State.WAITING): 1_000}
    assert [delivery.data for delivery in store.claim(1_000)] == [b"%d" % n for n in range(1_000)]


@rule("1.10")
def test_one_bad_item_refuses_the_batch_and_is_named(store: StoreDriver) -> None:
    batch = taken(store)
    before = store.rows()
    refused = store.send(batch, idle=slots(9))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.index) == ("IDEMPOTENCY_KEY_REUSED", 2)
    assert store.rows() == before
    assert store.effects == []


@rule("1.10")
def test_a_refused_batch_uses_up_no_numbers(store: StoreDriver) -> None:
    batch = taken(store)
    store.send(batch)
    assert store.add_one().number == 2


@rule("1.10")
def test_without_atomic_each_item_has_its_own_answer(store: StoreDriver) -> None:
    batch = taken(store)
    answer = store.send(commands.AddJobs([*batch.jobs, new_job(key="taken")], atomic=False))
    assert [(refused.reason, refused.index) for refused in answer.refused] == [("IDEMPOTENCY_KEY_REUSED", 2)]
    assert [(earlier.index, earlier.ref.number) for earlier in answer.earlier] == [(4, 1)]
    assert answer.states == bytes([State.WAITING] * 3)
    made = [store.job(commands.JobRef(answer.first_number + n, answer.created_ms)).name for n in range(3)]
    assert made == ["a", "b", "d"]


@rule("1.10")
def test_a_refused_command_spoils_no_other_of_its_transaction(store: StoreDriver) -> None:
    batch = taken(store)
    before, refused, after = store.batch(
        commands.AddJobs([new_job(name="x")]), batch, commands.AddJobs([new_job(name="y")])
    )
    assert isinstance(before.outcome, commands.AddedJobs)
    assert isinstance(refused.outcome, Refused)
    assert isinstance(after.outcome, commands.AddedJobs)
    assert [delivery.name for delivery in store.claim(9)] == ["send", "x", "y"]


@rule("1.10")
def test_two_items_with_one_key_are_one_job(store: StoreDriver) -> None:
    answer = store.send(commands.AddJobs([new_job(key="k"), new_job(name="other"), new_job(key="k")]))
    (earlier,) = answer.earlier
    assert (earlier.index, earlier.ref.number, earlier.matched_by) == (2, answer.first_number, 1)
    assert store.store.counts() == {("mail", State.WAITING): 2}


@rule("1.10")
def test_two_items_with_one_key_and_other_contents_refuse_the_second(store: StoreDriver) -> None:
    refused = store.send(commands.AddJobs([new_job(key="k"), new_job(key="k", data=b"x")]))
    assert (refused.reason, refused.index) == ("IDEMPOTENCY_KEY_REUSED", 1)
    assert store.store.counts() == {}


@rule("1.10")
def test_one_key_in_two_commands_of_a_transaction_is_one_job(store: StoreDriver) -> None:
    command = commands.AddJobs([new_job(key="k")])
    first, second = (one.outcome for one in store.batch(command, command))
    assert isinstance(first, commands.AddedJobs)
    assert isinstance(second, commands.AddedJobs)
    assert refs(second, 1) == refs(first, 1)
    assert store.store.counts() == {("mail", State.WAITING): 1}


# ---------------------------------------------------------------------------------------------- producers


def frame(seq: int, *names: str, producer_id: str = "p1") -> commands.AddJobs:
    """A producer's frame of plain jobs."""
    return commands.AddJobs([new_job(name=name) for name in names], True, producer_id, seq)


@rule("1.10")
def test_a_repeated_frame_gets_the_kept_answer_and_writes_nothing(store: StoreDriver) -> None:
    first = store.send(frame(1, "a", "b"))
    before = store.rows()
    store.clock.advance(1_000)
    again = store.send(frame(1, "a", "b"))
    assert (again.first_number, again.created_ms) == (first.first_number, first.created_ms)
    assert store.rows() == before
    assert store.effects == []


@rule("1.10")
def test_a_kept_answer_has_its_exceptions(store: StoreDriver) -> None:
    batch = taken(store)
    sent = commands.AddJobs([*batch.jobs, new_job(key="taken")], False, "p1", 4)
    first, again = store.send(sent), store.send(sent)
    assert (again.earlier, again.refused) == (first.earlier, first.refused)
    assert len(again.refused) == 1


@rule("1.10")
def test_the_same_seq_is_answered_whatever_the_frame_says(store: StoreDriver) -> None:
    first = store.send(frame(1, "a"))
    again = store.send(frame(1, "quite", "another"))
    assert again.first_number == first.first_number
    assert store.store.counts() == {("mail", State.WAITING): 1}


@rule("1.10")
def test_a_repeated_frame_is_answered_within_one_transaction_too(store: StoreDriver) -> None:
    first, again = (one.outcome for one in store.batch(frame(1, "a"), frame(1, "a")))
    assert isinstance(first, commands.AddedJobs)
    assert isinstance(again, commands.AddedJobs)
    assert again.first_number == first.first_number
    assert store.store.counts() == {("mail", State.WAITING): 1}


@rule("1.10")
def test_an_older_seq_is_stale(store: StoreDriver) -> None:
    store.send(frame(1, "a"))
    store.send(frame(5, "b"))
    before = store.rows()
    refused = store.send(frame(4, "c"))
    assert isinstance(refused, Refused)
    assert refused.reason == "SEQUENCE_STALE"
    assert store.rows() == before


@rule("1.10")
def test_a_refused_frame_uses_up_no_seq(store: StoreDriver) -> None:
    batch = taken(store)
    store.send(commands.AddJobs(batch.jobs, True, "p1", 1))
    assert isinstance(store.send(frame(1, "a")), commands.AddedJobs)
    assert store.store.counts() == {("mail", State.WAITING): 2}


@rule("1.10")
def test_producers_do_not_share_their_seqs(store: StoreDriver) -> None:
    store.send(frame(5, "a"))
    assert isinstance(store.send(frame(1, "b", producer_id="p2")), commands.AddedJobs)
    assert store.store.counts() == {("mail", State.WAITING): 2}


@rule("1.10")
def test_a_kept_answer_survives_a_restart_and_the_end_of_its_jobs(store: StoreDriver) -> None:
    first = store.send(frame(3, "a"))
    store.settle_one(complete(store.start()))
    store.reopen()
    assert store.send(frame(3, "a")).first_number == first.first_number
    assert store.store.counts() == {("mail", State.COMPLETED): 1}


@rule("1.10")
def test_a_producer_is_forgotten_ten_minutes_after_its_last_use(store: StoreDriver) -> None:
    store.send(frame(1, "a"))
    store.clock.advance(TEN_MINUTES - 1)
    store.send(frame(1, "a", producer_id="p2"))
    store.prune_all()
    assert store.send(frame(1, "a")).first_number == 1
    store.clock.advance(2)
    store.prune_all()
    assert store.send(frame(1, "a")).first_number == 3
    assert store.send(frame(1, "a", producer_id="p2")).first_number == 2


# ----------------------------------------------------------------------------------------------- a full queue


@rule("7")
@pytest.mark.parametrize("bounds", [limits.Limits(max_queue_jobs=3)])
def test_a_full_queue_refuses_and_says_when_to_try_again(store: StoreDriver, bounds: limits.Limits) -> None:
    store.add(new_job(), new_job(delay_ms=5_000))
    store.start()
    store.add_one()
    before = store.rows()
    refused = store.send(commands.AddJobs([new_job()]))
    assert (refused.reason, refused.metadata) == ("QUEUE_FULL", {"queue": "mail", "limit": "3"})
    assert refused.retry_after_ms > 0
    assert store.rows() == before
    assert isinstance(store.send(commands.AddJobs([new_job("another")])), commands.AddedJobs)


@rule("7")
@pytest.mark.parametrize("bounds", [limits.Limits(max_queue_jobs=3)])
def test_the_items_of_one_batch_fill_a_queue_together(store: StoreDriver, bounds: limits.Limits) -> None:
    refused = store.send(commands.AddJobs([new_job() for _ in range(4)]))
    assert (refused.reason, refused.index) == ("QUEUE_FULL", 3)
    answer = store.send(commands.AddJobs([new_job() for _ in range(5)], atomic=False))
    assert [refused.index for refused in answer.refused] == [3, 4]
    assert store.store.counts() == {("mail", State.WAITING): 3}


@rule("7")
@pytest.mark.parametrize("bounds", [limits.Limits(max_queue_jobs=1)])
def test_ended_jobs_and_earlier_ones_take_no_room(store: StoreDriver, bounds: limits.Limits) -> None:
    store.add_one(key="k")
    # No job is made, so none is refused.
    assert len(store.send(commands.AddJobs([new_job(key="k")])).earlier) == 1
    store.settle_one(complete(store.start()))
    assert isinstance(store.send(commands.AddJobs([new_job()])), commands.AddedJobs)
