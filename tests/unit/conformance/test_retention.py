"""What has ended is removed by age and number, in small slices, also on an idle queue."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import State
from tests.support.bundles import complete, fail, lease, new_job, policy, slots
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver

HOUR = 3_600_000
DAY = 24 * HOUR
MOST_COMPLETED = 10_000


def end(store: StoreDriver, state: State, **fields: Any) -> commands.JobRef:
    """Add a job and end it in this state."""
    added = store.add_one(**fields)
    if state is State.CANCELLED:
        store.cancel(added)
    else:
        running = store.start(fields.get("queue", "mail"))
        store.settle_one(complete(running, b"1") if state is State.COMPLETED else fail(running, non_retryable=True))
    assert store.state(added) is state
    return added


@rule("1.12")
@pytest.mark.parametrize(
    ("state", "age"), [(State.COMPLETED, DAY), (State.FAILED, 7 * DAY), (State.CANCELLED, 7 * DAY)]
)
def test_a_job_is_kept_for_the_age_of_its_state_and_then_removed(store: StoreDriver, state: State, age: int) -> None:
    added = end(store, state)
    store.clock.advance(age - 1)
    assert store.prune_all() == 0
    assert store.exists(added)
    store.clock.advance(2)
    assert store.prune_all() == 1
    assert not store.exists(added)
    assert store.store.counts() == {}


@rule("1.12")
def test_age_counts_from_the_end_and_not_from_the_add(store: StoreDriver) -> None:
    added = store.add_one()
    store.clock.advance(30 * DAY)
    running = store.start()
    store.clock.advance(30 * DAY)
    store.settle_one(complete(running))
    store.clock.advance(DAY - 1)
    assert store.prune_all() == 0
    assert store.exists(added)


@rule("1.12")
def test_what_has_not_ended_is_never_removed(store: StoreDriver) -> None:
    store.add(new_job(delay_ms=1), new_job(name="waits"), new_job("other", delay_ms=400 * DAY), new_job())
    store.start()
    store.clock.advance(365 * DAY)
    assert store.prune_all() == 0
    assert store.store.counts() == {
        ("mail", State.ACTIVE): 1,
        ("mail", State.DELAYED): 1,
        ("mail", State.WAITING): 1,
        ("other", State.DELAYED): 1,
    }


@rule("1.12")
def test_a_queue_keeps_its_newest_ten_thousand_completed_jobs(store: StoreDriver) -> None:
    store.send(commands.AddJobs([new_job("other")]))
    store.settle_one(complete(store.start("other")))
    for _ in range(11):
        store.clock.advance(1)
        store.send(commands.AddJobs([new_job() for _ in range(1_000)]), idle=slots(1_000))
        active = [one.delivery for one in store.effects if hasattr(one, "delivery")]
        store.send(commands.Settle([complete(delivery) for delivery in active]))
    store.clock.advance(1)
    failed = end(store, State.FAILED)
    assert store.prune_all() == 1_000
    assert store.store.counts() == {
        ("other", State.COMPLETED): 1,
        ("mail", State.COMPLETED): MOST_COMPLETED,
        ("mail", State.FAILED): 1,
    }
    oldest = store.query(commands.ListJobs(commands.JobFilter(queue="mail"), limit=1, oldest_first=True)).jobs[0]
    assert oldest.number == 1_002
    assert store.exists(failed)


@rule("1.12")
def test_a_job_s_own_retention_binds_it_alone(store: StoreDriver) -> None:
    short = end(store, State.COMPLETED, policy=policy(retain_completed_ms=1_000))
    usual = end(store, State.COMPLETED)
    long = end(store, State.COMPLETED, policy=policy(retain_completed_ms=30 * DAY))
    store.clock.advance(1_000)
    assert store.prune_all() == 1
    assert [store.exists(job) for job in (short, usual, long)] == [False, True, True]
    store.clock.advance(DAY)
    assert store.prune_all() == 1
    assert [store.exists(job) for job in (usual, long)] == [False, True]
    store.clock.advance(29 * DAY)
    assert store.prune_all() == 1
    assert not store.exists(long)


@rule("1.12")
@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_a_job_s_own_retention_of_failure_concerns_its_failure_alone(store: StoreDriver, state: State) -> None:
    own = policy(retain_failed_ms=1_000)
    failed = end(store, state, policy=own)
    completed = end(store, State.COMPLETED, policy=own)
    store.clock.advance(1_000)
    assert store.prune_all() == 1
    assert [store.exists(job) for job in (failed, completed)] == [False, True]


@rule("1.12")
def test_a_job_that_is_not_to_be_kept_goes_with_the_next_slice(store: StoreDriver) -> None:
    added = end(store, State.COMPLETED, policy=policy(retain_completed_ms=0))
    assert store.exists(added)
    assert store.prune() == commands.Pruned(1, 1, False)
    assert not store.exists(added)


@rule("1.12")
def test_a_slice_is_bounded_and_says_when_there_is_more(store: StoreDriver) -> None:
    for _ in range(5):
        end(store, State.COMPLETED, policy=policy(retain_completed_ms=0))
    first, second, third = store.prune(2), store.prune(2), store.prune(2)
    assert [slice_.jobs for slice_ in (first, second, third)] == [2, 2, 1]
    assert (first.more, second.more, third.more) == (True, True, False)


@rule("1.12")
def test_all_that_hangs_on_a_job_goes_with_it(store: StoreDriver) -> None:
    store.add_one(policy=policy(retain_completed_ms=0, backoff=None), labels={"a": "b"})
    running = store.start()
    store.send(commands.Report(lease(running), "1", [commands.LogLine(1, "info", "line")]))
    store.stall(running)
    store.settle_one(complete(store.start(), b"result"))
    store.prune_all()
    rows = store.rows()
    assert [rows[table] for table in ("jobs", "attempts", "job_logs")] == [[], [], []]


@rule("1.12")
def test_events_and_receipts_are_removed_when_their_time_is_over(store: StoreDriver) -> None:
    end(store, State.COMPLETED, key="k")
    assert (len(store.rows()["receipts"]), len(store.rows()["events"])) == (1, 3)
    store.clock.advance(DAY + 1)
    store.prune_all()
    rows = store.rows()
    assert {table: len(rows[table]) for table in rows} == dict.fromkeys(rows, 0)


@rule("1.12")
def test_an_idle_queue_is_pruned_after_a_restart_too(store: StoreDriver) -> None:
    end(store, State.COMPLETED)
    store.reopen()
    store.clock.advance(DAY + 1)
    assert store.prune_all() == 1
    assert store.store.counts() == {}
