"""Claims, lease tokens, attempts' second clock and stalls."""

import msgspec
import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import AttemptOutcome, FinishReason, State
from anvilmq_broker.store import protocol
from tests.support.bundles import (
    NO_BACKOFF,
    WORKER,
    complete,
    fail,
    identity,
    lease,
    new_job,
    policy,
    ref,
    release,
    slots,
)
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver


def claim(store: StoreDriver, claim_id: str, jobs: int = 9, worker_id: str = WORKER) -> list[commands.Delivery]:
    """A claim by a caller without a session."""
    claimed = store.send(commands.Claim(identity(worker_id), ["mail"], jobs, claim_id=claim_id))
    assert isinstance(claimed, commands.Claimed)
    return claimed.deliveries


def assert_lease_lost(store: StoreDriver, item: commands.Settlement) -> None:
    """The settlement is refused for its token and changes nothing."""
    before = store.rows()
    settled = store.settle(item)
    assert [(refused.reason, refused.index) for refused in settled.refused] == [("LEASE_LOST", 0)]
    assert settled.states == b"\x00"
    assert store.effects == []
    assert store.rows() == before


# ------------------------------------------------------------------------------------------------- claims


@rule("1.4")
def test_a_claim_makes_the_job_active_and_counts_the_attempt(store: StoreDriver) -> None:
    added = store.add_one()
    delivery = store.start(worker_id="w7")
    found = store.job(added)
    assert (delivery.attempt, delivery.starts, delivery.lease_ms) == (1, 1, 30_000)
    assert (found.state, found.attempt, found.starts, found.worker_id) == (State.ACTIVE, 1, 1, "w7")
    assert found.started_at_ms == store.now_ms
    assert found.attempts == [commands.AttemptRecord(1, 1, "w7", store.now_ms, 0, 0)]


@rule("1.4")
def test_every_attempt_has_a_fresh_token(store: StoreDriver) -> None:
    store.add(*(new_job(policy=policy(max_attempts=5, backoff=NO_BACKOFF)) for _ in range(3)))
    tokens = []
    for _ in range(3):
        running = store.claim(3)
        tokens += [delivery.token for delivery in running]
        store.settle(*(fail(delivery) for delivery in running))
    assert len(set(tokens)) == 9
    assert all(tokens)


@rule("1.4")
def test_an_active_job_is_given_to_nobody_else(store: StoreDriver) -> None:
    store.add_one()
    store.start()
    store.clock.advance(3_600_000)
    assert store.claim(worker_id="another") == []


@rule("1.4")
def test_a_claim_starts_no_more_than_it_asks_for(store: StoreDriver) -> None:
    store.add(*(new_job() for _ in range(5)))
    assert len(claim(store, "", jobs=2)) == 2
    assert len(claim(store, "", jobs=9)) == 3


@rule("1.4")
def test_a_bulk_starts_as_many_jobs_as_there_are_idle_workers(store: StoreDriver) -> None:
    answer = store.send(commands.AddJobs([new_job() for _ in range(5)]), idle=slots(3))
    assert list(answer.states).count(State.ACTIVE) == 3
    started = [effect for effect in store.effects if isinstance(effect, protocol.Started)]
    assert [one.delivery.number for one in started] == [answer.first_number + n for n in range(3)]


@rule("1.4")
def test_a_lost_claim_answer_is_answered_with_the_same_jobs(store: StoreDriver) -> None:
    store.add(*(new_job() for _ in range(5)))
    first = claim(store, "c1", jobs=2)
    assert claim(store, "c1", jobs=2) == first
    assert len(claim(store, "c2", jobs=2)) == 2
    assert store.store.counts()["mail", State.ACTIVE] == 4


@rule("1.4")
def test_a_claim_id_is_its_worker_s_own(store: StoreDriver) -> None:
    store.add(new_job(), new_job())
    mine = claim(store, "c1", jobs=1)
    others = claim(store, "c1", jobs=1, worker_id="another")
    assert others[0].number != mine[0].number


@rule("1.4")
def test_a_claim_id_starts_new_jobs_once_none_of_its_leases_lives(store: StoreDriver) -> None:
    store.add(new_job(), new_job())
    (first,) = claim(store, "c1", jobs=1)
    store.settle_one(complete(first))
    (second,) = claim(store, "c1", jobs=1)
    assert second.number != first.number


# ------------------------------------------------------------------------------------------------- tokens


@rule("1.4")
def test_a_foreign_token_is_refused_and_the_holder_is_undisturbed(store: StoreDriver) -> None:
    store.add(new_job(), new_job())
    mine, other = store.claim(2)
    stolen = msgspec.structs.replace(mine, token=other.token)
    for item in (complete(stolen), fail(stolen), release(stolen)):
        assert_lease_lost(store, item)
    assert store.settle_one(complete(mine)) is State.COMPLETED


@rule("1.4")
def test_a_refused_settlement_says_who_holds_the_job_now(store: StoreDriver) -> None:
    store.add_one()
    zombie = store.start(worker_id="zombie")
    store.stall(zombie)
    store.start(worker_id="holder")
    (refused,) = store.settle(complete(zombie)).refused
    assert refused.metadata["worker_id"] == "holder"


@rule("1.4")
def test_a_zombie_s_settlement_is_refused_and_the_holder_completes(store: StoreDriver) -> None:
    added = store.add_one()
    zombie = store.start(worker_id="zombie")
    store.stall(zombie)
    holder = store.start(worker_id="holder")
    for item in (complete(zombie, b"late"), fail(zombie), release(zombie)):
        assert_lease_lost(store, item)
    assert store.settle_one(complete(holder, b"right")) is State.COMPLETED
    assert store.job(added).result == b"right"


@rule("1.4")
def test_a_lost_lease_concerns_its_item_alone(store: StoreDriver) -> None:
    store.add(*(new_job() for _ in range(3)))
    a, b, c = store.claim(3)
    store.stall(b)
    settled = store.settle(complete(a), complete(b), complete(c))
    assert settled.states == bytes([State.COMPLETED, 0, State.COMPLETED])
    assert [(refused.reason, refused.index) for refused in settled.refused] == [("LEASE_LOST", 1)]


@rule("1.4")
def test_progress_and_logs_need_the_token_too(store: StoreDriver) -> None:
    store.add_one()
    zombie = store.start()
    store.stall(zombie)
    before = store.rows()
    lines = [commands.LogLine(store.now_ms, "info", "late")]
    refused = store.send(commands.Report(lease(zombie), '{"at":1}', lines))
    assert refused.reason == "LEASE_LOST"
    assert store.rows() == before


@rule("1.4")
@pytest.mark.parametrize("settle", [complete, fail, release])
def test_a_repeated_settlement_gets_the_first_answer_and_changes_nothing(store: StoreDriver, settle: object) -> None:
    store.add_one()
    item = settle(store.start())  # type: ignore[operator]  # one of three builders
    first = store.settle_one(item)
    before = store.rows()
    store.clock.advance(10_000)
    assert store.settle_one(item) is first
    assert store.effects == []
    assert store.rows() == before


@rule("1.4")
def test_a_settlement_is_answered_the_same_after_later_attempts(store: StoreDriver) -> None:
    store.add_one(policy=policy(max_attempts=4, backoff=NO_BACKOFF))
    items = []
    for _ in range(3):
        items.append(fail(store.start()))
        assert store.settle_one(items[-1]) is State.WAITING
    last = complete(store.start())
    assert store.settle_one(last) is State.COMPLETED
    assert [store.settle_one(item) for item in items] == [State.WAITING] * 3
    assert store.settle_one(last) is State.COMPLETED


@rule("1.4")
def test_a_settlement_older_than_ten_attempts_is_lost(store: StoreDriver) -> None:
    store.add_one(policy=policy(max_attempts=50, backoff=NO_BACKOFF))
    items = []
    for _ in range(12):
        items.append(fail(store.start()))
        store.settle_one(items[-1])
    assert_lease_lost(store, items[0])
    assert_lease_lost(store, items[1])
    assert store.settle_one(items[2]) is State.WAITING


@rule("1.4")
def test_the_same_token_with_another_outcome_is_lost(store: StoreDriver) -> None:
    store.add_one()
    running = store.start()
    store.settle_one(complete(running))
    assert_lease_lost(store, fail(running))
    assert_lease_lost(store, release(running))


@rule("1.4")
def test_complete_and_fail_race_with_one_token_and_one_wins(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    first, second = store.batch(commands.Settle([fail(running)]), commands.Settle([complete(running)]))
    refused = [len(one.outcome.refused) for one in (first, second)]  # type: ignore[union-attr]  # both Settled
    assert sorted(refused) == [0, 1]
    assert store.state(added) is (State.DELAYED if refused == [0, 1] else State.COMPLETED)


@rule("1.4")
def test_one_token_twice_in_a_command_is_answered_twice_and_counts_once(store: StoreDriver) -> None:
    store.add_one()
    running = store.start()
    assert store.settle(complete(running), complete(running)).states == bytes([State.COMPLETED] * 2)
    assert store.store.counts() == {("mail", State.COMPLETED): 1}


@rule("1.4")
def test_a_token_of_a_job_that_is_gone_is_lost(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(retain_completed_ms=0))
    running = store.start()
    store.settle_one(complete(running))
    store.prune_all()
    assert not store.exists(added)
    assert_lease_lost(store, complete(running))


# ----------------------------------------------------------------------------------- the second clock


@rule("1.4")
def test_an_attempt_is_told_when_it_times_out(store: StoreDriver) -> None:
    store.add_one(policy=policy(attempt_timeout_ms=5_000))
    store.clock.advance(100)
    delivery = store.start()
    (started,) = store.effects
    assert isinstance(started, protocol.Started)
    assert started.timeout_at_ms == store.now_ms + 5_000
    assert delivery.attempt_timeout_ms == 5_000


@rule("1.4")
def test_an_attempt_past_its_timeout_is_a_failed_try(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(attempt_timeout_ms=5_000, max_attempts=2, backoff=NO_BACKOFF))
    first = store.start()
    store.reap(timed_out=[lease(first)])
    assert store.state(added) is State.WAITING
    second = store.start()
    assert second.attempt == 2
    store.reap(timed_out=[lease(second)])
    found = store.job(added)
    assert (found.state, found.finish_reason) == (State.FAILED, FinishReason.ATTEMPT_TIMEOUT)
    assert [attempt.outcome for attempt in found.attempts] == [AttemptOutcome.TIMED_OUT] * 2


@rule("1.4")
def test_an_attempt_that_timed_out_cannot_settle(store: StoreDriver) -> None:
    store.add_one(policy=policy(attempt_timeout_ms=5_000))
    running = store.start()
    store.reap(timed_out=[lease(running)])
    assert_lease_lost(store, complete(running))


@rule("1.4")
def test_a_timeout_that_comes_late_changes_nothing(store: StoreDriver) -> None:
    store.add_one()
    running = store.start()
    store.settle_one(complete(running))
    before = store.rows()
    store.reap(timed_out=[lease(running)], stalled=[lease(running)], undelivered=[lease(running)])
    assert store.rows() == before


# ------------------------------------------------------------------------------------------------- stalls


@rule("1.5")
def test_a_stalled_job_runs_again_first_and_keeps_its_attempt(store: StoreDriver) -> None:
    added, *_ = store.add(*(new_job(name=f"n{n}") for n in range(3)))
    running = store.start()
    store.clock.advance(30_000)
    store.stall(running)
    found = store.job(added)
    assert (found.state, found.attempt, found.stalled) == (State.WAITING, 0, 1)
    again = store.start()
    assert (ref(again), again.attempt, again.stalled, again.starts) == (added, 1, 1, 2)


@rule("1.5")
def test_a_stall_puts_a_job_first_in_its_own_class_alone(store: StoreDriver) -> None:
    store.add(new_job(name="low", priority=5), new_job(name="low too", priority=5))
    running = store.start()
    store.add_one(name="high")
    store.stall(running)
    assert [delivery.name for delivery in store.claim(9)] == ["high", "low", "low too"]


@rule("1.5")
def test_stalls_use_up_no_attempt_of_a_job_that_has_one(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(max_attempts=1))
    for _ in range(3):
        store.stall(store.start())
    assert store.settle_one(complete(store.start())) is State.COMPLETED
    assert store.job(added).attempt == 1


@rule("1.5")
@pytest.mark.parametrize("max_stalled", [0, 1, 3])
def test_one_stall_too_many_fails_the_job(store: StoreDriver, max_stalled: int) -> None:
    added = store.add_one(policy=policy(max_stalled=max_stalled))
    for _ in range(max_stalled):
        store.stall(store.start())
        assert store.state(added) is State.WAITING
    store.stall(store.start())
    found = store.job(added)
    assert (found.state, found.finish_reason, found.stalled) == (State.FAILED, FinishReason.STALLED, max_stalled + 1)
    assert found.finished_at_ms == store.now_ms


@rule("1.5")
def test_a_stalled_attempt_is_kept_in_the_history(store: StoreDriver) -> None:
    added = store.add_one()
    store.clock.advance(5)
    store.start(worker_id="w1")
    began = store.now_ms
    store.clock.advance(30_000)
    running = store.job(added)
    assert [attempt.outcome for attempt in running.attempts] == [0]
    store.reap(stalled=[_lease_of(store)])
    (attempt,) = store.job(added).attempts
    assert attempt == commands.AttemptRecord(1, 1, "w1", began, store.now_ms, AttemptOutcome.STALLED)


@rule("1.5")
def test_the_engine_is_told_that_the_lease_ended_and_the_job_is_back(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    store.stall(running)
    freed, queued = store.effects
    assert freed == protocol.Freed("mail", added.number, running.token, AttemptOutcome.STALLED, store.now_ms)
    assert isinstance(queued, protocol.Queued)
    assert queued.ready_at_ms <= store.now_ms


@rule("1.5")
def test_a_claim_that_was_never_delivered_is_as_if_it_had_not_been(store: StoreDriver) -> None:
    added, _ = store.add(new_job(name="first"), new_job(name="second"))
    running = store.start()
    store.reap(undelivered=[lease(running)])
    found = store.job(added)
    assert (found.state, found.attempt, found.starts, found.stalled, found.attempts) == (State.WAITING, 0, 0, 0, [])
    again = store.start()
    assert (again.name, again.attempt, again.starts) == ("first", 1, 1)
    assert_lease_lost(store, complete(running))


@rule("1.5")
def test_a_reopened_store_names_every_lease_that_was_held(store: StoreDriver) -> None:
    store.add(new_job(policy=policy(lease_ms=7_000, attempt_timeout_ms=60_000)), new_job(), new_job())
    (first,) = claim(store, "c1", jobs=1)
    second = store.start(worker_id="w2")
    store.cancel(ref(second))
    began = store.now_ms
    store.clock.advance(3_600_000)
    held = {one.token: one for one in store.reopen().leases}
    assert held == {
        first.token: protocol.HeldLease(
            first.number, first.created_ms, first.token, "mail", WORKER, "c1", 7_000, began + 60_000, began
        ),
        second.token: protocol.HeldLease(
            second.number, second.created_ms, second.token, "mail", "w2", "", 30_000, 0, began, cancel_requested=True
        ),
    }
    assert store.settle_one(complete(first)) is State.COMPLETED


def _lease_of(store: StoreDriver) -> commands.LeaseRef:
    (held,) = store.reopen().leases
    return commands.LeaseRef(held.number, held.created_ms, held.token)
