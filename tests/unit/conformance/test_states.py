"""States, wait reasons, counts, and finding jobs."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.domain.state import FinishReason, State, WaitReason
from anvilmq_broker.store import protocol
from tests.support.bundles import complete, fail, new_job, policy, ref, release
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver


def find(store: StoreDriver, **wanted: Any) -> list[str]:
    """Names of the jobs that a filter lets through, newest first."""
    page = store.query(commands.ListJobs(commands.JobFilter(**wanted)))
    assert page.next is None
    assert page.total == len(page.jobs)
    return [job.name for job in page.jobs]


def spread_of_states(store: StoreDriver) -> dict[str, commands.JobRef]:
    """A queue with one job in each state, each named after it."""
    names = ["completed", "failed", "cancelled", "active", "waiting", "delayed"]
    added = store.add(*(new_job(name=name, delay_ms=60_000 if name == "delayed" else 0) for name in names))
    first, second = store.claim(2)
    store.settle(complete(first), fail(second, non_retryable=True))
    store.cancel(added[2])
    store.start()
    return dict(zip(names, added, strict=True))


# ------------------------------------------------------------------------------------- states and counts


@rule("1.1")
def test_a_job_passes_through_its_states(store: StoreDriver) -> None:
    added = store.add_one(delay_ms=10)
    assert store.state(added) is State.DELAYED
    store.clock.advance(10)
    running = store.start()
    assert store.state(added) is State.ACTIVE
    store.settle_one(release(running))
    assert store.state(added) is State.WAITING
    store.settle_one(complete(store.start()))
    assert store.state(added) is State.COMPLETED


@rule("1.1")
def test_counts_are_told_by_queue_and_state(store: StoreDriver) -> None:
    spread_of_states(store)
    store.add(new_job("other"), new_job("other"))
    assert store.store.counts() == {
        ("mail", State.COMPLETED): 1,
        ("mail", State.FAILED): 1,
        ("mail", State.CANCELLED): 1,
        ("mail", State.ACTIVE): 1,
        ("mail", State.WAITING): 1,
        ("mail", State.DELAYED): 1,
        ("other", State.WAITING): 2,
    }


@rule("1.1")
def test_counts_are_those_of_what_is_stored_after_a_restart(store: StoreDriver) -> None:
    spread_of_states(store)
    before = store.store.counts()
    assert store.reopen().counts == before
    assert store.store.counts() == before


@rule("1.1")
def test_a_due_job_is_stored_as_delayed_until_it_is_claimed(store: StoreDriver) -> None:
    store.add_one(delay_ms=10)
    store.clock.advance(10)
    assert store.store.counts() == {("mail", State.DELAYED): 1}
    assert find(store, states=[int(State.WAITING)]) == ["send"]
    assert find(store, states=[int(State.DELAYED)]) == []


# ------------------------------------------------------------------------------------------ wait reasons


@rule("1.1")
def test_a_delayed_job_waits_for_its_time(store: StoreDriver) -> None:
    added = store.add_one(delay_ms=5_000)
    assert store.job(added).wait == commands.Wait(
        WaitReason.DELAY, since_at_ms=store.now_ms, until_at_ms=store.now_ms + 5_000
    )


@rule("1.1")
def test_a_retried_job_waits_since_its_last_attempt_ended(store: StoreDriver) -> None:
    added = store.add_one()
    store.clock.advance(100)
    running = store.start()
    store.clock.advance(100)
    store.settle_one(fail(running, retry_after_ms=700))
    since = store.now_ms
    store.clock.advance(100)
    assert store.job(added).wait == commands.Wait(WaitReason.DELAY, since_at_ms=since, until_at_ms=since + 700)


@rule("1.1")
def test_a_parked_job_waits_for_its_time(store: StoreDriver) -> None:
    added = store.add_one()
    store.settle_one(release(store.start(), delay_ms=700))
    wait = store.job(added).wait
    assert wait is not None
    assert (wait.reason, wait.until_at_ms) == (WaitReason.DELAY, store.now_ms + 700)


@rule("1.1")
def test_a_claimable_job_is_told_how_many_stand_before_it(store: StoreDriver) -> None:
    jobs = store.add(new_job(priority=1), new_job(), new_job(lifo=True), new_job(delay_ms=10), new_job("other"))
    since = store.now_ms
    store.clock.advance(5)
    assert store.job(jobs[0]).wait == commands.Wait(WaitReason.NEXT, since_at_ms=since, jobs_ahead=2)
    assert [job.wait.jobs_ahead for job in map(store.job, jobs[1:3]) if job.wait] == [1, 0]
    store.clock.advance(5)
    # Due by now: it counts, and is told since when it is.
    assert store.job(jobs[0]).wait == commands.Wait(WaitReason.NEXT, since_at_ms=since, jobs_ahead=3)
    assert store.job(jobs[3]).wait == commands.Wait(WaitReason.NEXT, since_at_ms=since + 10, jobs_ahead=2)


@rule("1.1")
def test_jobs_ahead_are_counted_up_to_a_thousand(store: StoreDriver) -> None:
    store.add(*(new_job() for _ in range(1_000)))
    last = store.add(new_job(), new_job())[1]
    wait = store.job(last).wait
    assert wait is not None
    assert wait.jobs_ahead == 1_000


@rule("1.1")
def test_a_job_that_runs_or_has_ended_waits_for_nothing(store: StoreDriver) -> None:
    jobs = spread_of_states(store)
    for name in ("active", "completed", "failed", "cancelled"):
        assert store.job(jobs[name]).wait is None


@rule("1.1")
def test_the_wait_reason_is_told_when_asked_for_alone(store: StoreDriver) -> None:
    added = store.add_one()
    assert store.query(commands.GetJob(added)).job.wait is None
    assert store.query(commands.GetJob(added, full=False, wait=True)).job.wait.reason == WaitReason.NEXT


# ------------------------------------------------------------------------------------------------ finding


@rule("1.1")
@pytest.mark.parametrize(
    "state", [State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED, State.CANCELLED]
)
def test_jobs_are_found_by_state(store: StoreDriver, state: State) -> None:
    spread_of_states(store)
    assert find(store, queue="mail", states=[int(state)]) == [state.name.lower()]
    assert find(store, states=[int(state)]) == [state.name.lower()]


@rule("1.1")
def test_jobs_are_found_by_what_they_are(store: StoreDriver) -> None:
    store.add(new_job("a", "one", labels={"x": "1", "y": "1"}), new_job("b", "two", labels={"x": "1"}))
    store.clock.advance(10)
    three = store.add_one(queue="b", name="three", key="needle")
    at = store.now_ms
    assert find(store) == ["three", "two", "one"]
    assert find(store, queue="b") == ["three", "two"]
    assert find(store, queue="nobody's") == []
    assert find(store, name="two") == ["two"]
    assert find(store, labels={"x": "1"}) == ["two", "one"]
    assert find(store, labels={"x": "1", "y": "1"}) == ["one"]
    assert find(store, created_after_ms=at - 1) == ["three"]
    assert find(store, created_before_ms=at) == ["two", "one"]
    assert find(store, search="eedl") == ["three"]
    assert find(store, search="tw") == ["two"]
    assert find(store, search=ids.encode(three.created_ms, three.number)) == ["three"]


@rule("1.1")
def test_jobs_are_found_by_how_they_ended(store: StoreDriver) -> None:
    store.add(new_job(name="ok"), new_job(name="bad"), new_job(name="waits"))
    first, second = store.claim(2)
    store.settle_one(complete(first))
    store.clock.advance(10)
    store.settle_one(fail(second, non_retryable=True))
    assert find(store, finish_reason=FinishReason.NON_RETRYABLE) == ["bad"]
    assert find(store, finished_before_ms=store.now_ms) == ["ok"]


@rule("1.1")
def test_only_queues_that_a_token_may_see_are_listed(store: StoreDriver) -> None:
    store.add(*(new_job(queue, name=queue) for queue in ("mail", "mail.bulk", "reports", "mailx")))
    assert find(store, allowed=["mail"]) == ["mail"]
    assert find(store, allowed=["mail.*", "rep*"]) == ["reports", "mail.bulk"]
    assert find(store, allowed=["*"]) == ["mailx", "reports", "mail.bulk", "mail"]
    assert find(store, allowed=[]) == []


@rule("1.1")
@pytest.mark.parametrize("oldest_first", [True, False])
@pytest.mark.parametrize("queue", ["", "mail"])
def test_pages_join_to_the_whole_without_gap_or_repeat(store: StoreDriver, queue: str, *, oldest_first: bool) -> None:
    added = store.add(*(new_job(name="odd" if n % 2 else "even") for n in range(25)))
    for delivery in store.claim(9):
        store.settle_one(complete(delivery))
    wanted = commands.JobFilter(queue=queue, name="odd")
    found: list[int] = []
    after = None
    while True:
        page = store.query(commands.ListJobs(wanted, 4, after, oldest_first))
        assert len(page.jobs) <= 4
        assert page.total == (12 if after is None else 0)
        found += [job.number for job in page.jobs]
        if page.next is None:
            break
        after = page.next
    odd = [job.number for job in added[1::2]]
    assert found == (odd if oldest_first else odd[::-1])


@rule("1.1")
def test_a_list_shows_payloads_when_asked_for_alone(store: StoreDriver) -> None:
    store.add_one(data=b"1", labels={"a": "b"}, headers={"h": "v"})
    basic, full = (store.query(commands.ListJobs(commands.JobFilter(), full=full)).jobs[0] for full in (False, True))
    assert (basic.data, basic.headers, basic.policy, basic.labels) == (b"", None, None, {"a": "b"})
    assert (full.data, full.headers, full.policy, full.labels) == (b"1", {"h": "v"}, commands.Policy(), {"a": "b"})


@rule("1.1")
def test_the_store_leaves_what_only_the_engine_knows_to_the_engine(store: StoreDriver) -> None:
    added = store.add_one()
    for query in (commands.WaitJob(added, 0), commands.ListWorkers(), commands.GetInfo()):
        with pytest.raises(TypeError):
            store.store.query(query, store.now_ms)


@rule("1.1")
def test_the_engine_is_told_where_added_jobs_stand(store: StoreDriver) -> None:
    store.add(new_job(), new_job(delay_ms=700), new_job("other"), new_job(key="k"), new_job(key="k"))
    added = {one for one in store.effects if isinstance(one, protocol.Added)}
    assert added == {protocol.Added("mail", 3, 1), protocol.Added("other", 1, 0)}
    queued = {
        (one.queue, max(one.ready_at_ms, store.now_ms)) for one in store.effects if isinstance(one, protocol.Queued)
    }
    assert queued == {("mail", store.now_ms), ("mail", store.now_ms + 700), ("other", store.now_ms)}


@rule("1.1")
def test_a_record_names_its_job_whatever_it_shows(store: StoreDriver) -> None:
    added = store.add_one(key="k", singleton=True, priority=4, policy=policy(max_attempts=2), expires_after_ms=9_000)
    for full in (False, True):
        found = store.query(commands.GetJob(added, full=full)).job
        assert ref(found) == added
        assert (found.key, found.singleton, found.priority, found.revision) == ("k", True, 4, 0)
        assert found.expires_at_ms == store.now_ms + 9_000
