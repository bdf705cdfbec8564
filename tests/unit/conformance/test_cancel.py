"""Cancelling, by call and by expiry."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import AttemptOutcome, FinishReason, InterruptCause, State
from anvilmq_broker.store import protocol
from tests.support.bundles import NO_BACKOFF, complete, fail, lease, new_job, policy, ref, release
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver


@rule("1.9")
def test_a_waiting_job_is_cancelled_at_once(store: StoreDriver) -> None:
    added, _ = store.add(new_job(), new_job(name="stays"))
    assert store.cancel(added, "not wanted") == commands.CancelledJob(State.CANCELLED, False)
    found = store.job(added)
    assert (found.state, found.finish_reason, found.finish_message) == (
        State.CANCELLED,
        FinishReason.CANCEL_REQUESTED,
        "not wanted",
    )
    assert found.finished_at_ms == store.now_ms
    assert [delivery.name for delivery in store.claim(9)] == ["stays"]


@rule("1.9")
def test_delayed_retried_and_parked_jobs_are_cancelled_at_once(store: StoreDriver) -> None:
    delayed, retried, parked = store.add(new_job(delay_ms=10), new_job(), new_job())
    failing, releasing = store.claim(2)
    store.settle(fail(failing), release(releasing, delay_ms=10))
    for job in (delayed, retried, parked):
        assert store.cancel(job) == commands.CancelledJob(State.CANCELLED, False)
    store.clock.advance(3_600_000)
    store.reap(parked=[parked])
    assert store.claim(9) == []
    assert store.next_ready_at() is None


@rule("1.9")
def test_the_engine_is_told_of_a_cancelled_job(store: StoreDriver) -> None:
    added = store.add_one()
    store.cancel(added)
    assert store.effects == [
        protocol.Ended("mail", added.number, added.created_ms, State.CANCELLED, FinishReason.CANCEL_REQUESTED)
    ]


@rule("1.9")
def test_the_worker_of_an_active_job_is_told_and_keeps_its_lease(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    assert store.cancel(added, "stop") == commands.CancelledJob(State.ACTIVE, True)
    assert store.effects == [
        protocol.Interrupted(added.number, added.created_ms, running.token, InterruptCause.CANCEL_REQUESTED, "stop")
    ]
    found = store.job(added)
    assert (found.state, found.cancel_requested) == (State.ACTIVE, True)
    assert store.send(commands.Report(lease(running), "1")) == commands.Done()


@rule("1.9")
@pytest.mark.parametrize("settle", [complete, fail, release])
def test_a_cancelled_active_job_ends_cancelled_whatever_its_worker_says(store: StoreDriver, settle: object) -> None:
    added = store.add_one()
    running = store.start()
    store.cancel(added, "stop")
    assert store.settle_one(settle(running)) is State.CANCELLED  # type: ignore[operator]  # one of three builders
    found = store.job(added)
    assert (found.finish_reason, found.finish_message) == (FinishReason.CANCEL_REQUESTED, "stop")
    assert [attempt.outcome for attempt in found.attempts] == [AttemptOutcome.CANCELLED]
    assert found.result == b""


@rule("1.9")
def test_a_cancelled_active_job_ends_cancelled_when_its_lease_ends(store: StoreDriver) -> None:
    stalling, slow = store.add(new_job(), new_job())
    first, second = store.claim(2)
    store.cancel(stalling)
    store.cancel(slow)
    store.reap(stalled=[lease(first)], timed_out=[lease(second)])
    assert [store.state(job) for job in (stalling, slow)] == [State.CANCELLED, State.CANCELLED]
    outcomes = [store.job(job).attempts[0].outcome for job in (stalling, slow)]
    assert outcomes == [AttemptOutcome.STALLED, AttemptOutcome.TIMED_OUT]
    assert store.claim(9) == []


@rule("1.9")
def test_a_cancelled_job_whose_delivery_never_left_ends_cancelled(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    store.cancel(added)
    store.reap(undelivered=[lease(running)])
    assert store.state(added) is State.CANCELLED


@rule("1.9")
@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED])
def test_a_job_that_has_ended_is_left_as_it_is(store: StoreDriver, state: State) -> None:
    added = store.add_one()
    if state is State.CANCELLED:
        store.cancel(added, "first")
    else:
        running = store.start()
        store.settle_one(complete(running, b"42") if state is State.COMPLETED else fail(running, non_retryable=True))
    before = store.rows()
    store.clock.advance(5)
    assert store.cancel(added, "second") == commands.CancelledJob(state, False)
    assert store.rows() == before
    assert store.effects == []


@rule("1.9")
def test_cancelling_twice_keeps_the_first_reason(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    store.cancel(added, "first")
    assert store.cancel(added, "second") == commands.CancelledJob(State.ACTIVE, True)
    store.settle_one(complete(running))
    assert store.job(added).finish_message == "first"


@rule("1.9")
def test_cancelling_a_job_that_is_not_there_is_refused(store: StoreDriver) -> None:
    added = store.add_one()
    for absent in (commands.JobRef(99, added.created_ms), commands.JobRef(added.number, added.created_ms - 1)):
        assert store.cancel(absent).reason == "JOB_NOT_FOUND"


@rule("1.9")
@pytest.mark.parametrize("at", [{"expires_after_ms": 1_000}, {"expires_at_ms": 1_000}])
def test_a_job_not_started_by_its_expiry_is_cancelled(store: StoreDriver, at: dict[str, Any]) -> None:
    if "expires_at_ms" in at:
        at = {"expires_at_ms": store.now_ms + at["expires_at_ms"]}
    added = store.add_one(**at)
    expires = store.now_ms + 1_000
    assert protocol.Expires(added.number, added.created_ms, expires) in store.effects
    store.clock.advance(999)
    store.reap(expired=[added])
    assert store.state(added) is State.WAITING
    store.clock.advance(1)
    store.reap(expired=[added])
    found = store.job(added)
    assert (found.state, found.finish_reason, found.expires_at_ms) == (State.CANCELLED, FinishReason.EXPIRED, expires)
    assert store.claim(9) == []


@rule("1.9")
def test_a_delayed_job_expires_too(store: StoreDriver) -> None:
    added = store.add_one(delay_ms=5_000, expires_after_ms=1_000)
    store.clock.advance(1_000)
    store.reap(expired=[added])
    assert store.state(added) is State.CANCELLED


@rule("1.9")
def test_expiry_does_not_concern_a_job_that_was_ever_started(store: StoreDriver) -> None:
    options: dict[str, Any] = {"expires_after_ms": 1_000, "policy": policy(backoff=NO_BACKOFF)}
    active, retried, released, stalled = store.add(*(new_job(**options) for _ in range(4)))
    running = {ref(delivery): delivery for delivery in store.claim(4)}
    store.settle(fail(running[retried]), release(running[released]))
    store.stall(running[stalled])
    store.clock.advance(1_000)
    store.reap(expired=[active, retried, released, stalled])
    assert [store.state(job) for job in (active, retried, released, stalled)] == [State.ACTIVE] + [State.WAITING] * 3


@rule("1.9")
def test_an_undelivered_claim_does_not_count_as_a_start_for_expiry(store: StoreDriver) -> None:
    added = store.add_one(expires_after_ms=1_000)
    store.reap(undelivered=[lease(store.start())])
    assert protocol.Expires(added.number, added.created_ms, store.now_ms + 1_000) in store.effects
    store.clock.advance(1_000)
    store.reap(expired=[added])
    assert store.state(added) is State.CANCELLED


@rule("1.9")
def test_expiries_are_known_again_after_a_restart(store: StoreDriver) -> None:
    waiting, delayed, started = store.add(
        new_job(expires_after_ms=500),
        new_job(delay_ms=100, expires_after_ms=900),
        new_job("other", expires_after_ms=700),
    )
    store.start("other")
    store.add_one()
    at = store.now_ms
    assert sorted(one.at_ms for one in store.reopen().expires) == [at + 500, at + 900]
    assert {one.number for one in store.opening.expires} == {waiting.number, delayed.number}
    assert store.state(started) is State.ACTIVE
