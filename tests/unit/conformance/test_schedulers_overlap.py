"""What a tick does when the run before it goes on; runs made by hand count too."""

import pytest

from anvilmq_broker.domain import commands, limits
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import Concurrency, FinishReason, InterruptCause, State
from anvilmq_broker.store import protocol
from tests.support import bundles
from tests.support.bundles import complete, fail, lease, new_job, policy, ref
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.conformance.scheduling import HOUR, MINUTE, SECOND, Schedules

FORBID = int(Concurrency.FORBID)
REPLACE = int(Concurrency.REPLACE)


def states(schedules: Schedules) -> list[State]:
    """Stored states of the runs, oldest first."""
    return [State(run.state) for run in schedules.runs()]


@rule("6.6")
def test_allow_lets_runs_overlap(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define()
    schedules.after(3 * SECOND)
    assert states(schedules) == [State.WAITING] * 3


@rule("6.6")
def test_forbid_skips_ticks_until_the_last_run_has_ended_its_retries_included(
    schedules: Schedules, store: StoreDriver
) -> None:
    schedules.define(concurrency_policy=FORBID, job=new_job(policy=policy(max_attempts=2)))
    schedules.after(2 * SECOND)
    running = store.start()
    schedules.after(SECOND)
    store.settle_one(fail(running, retry_after_ms=1_500))
    schedules.after(SECOND)
    assert (len(schedules.runs()), schedules.get().skipped_count) == (1, 3)
    assert (schedules.get().problem_reason, schedules.get().last_state) == ("", State.DELAYED)
    store.clock.advance(600)
    store.settle_one(complete(store.start()))
    schedules.after(SECOND)
    assert schedules.ticks() == [START_MS + SECOND, START_MS + 5 * SECOND]


@rule("6.6")
def test_replace_cancels_a_run_that_waits_and_names_the_one_that_takes_its_place(
    schedules: Schedules, store: StoreDriver
) -> None:
    schedules.define(concurrency_policy=REPLACE)
    schedules.after(2 * SECOND)
    first, second = schedules.runs()
    assert (first.state, first.finish_reason, first.caused_by) == (State.CANCELLED, FinishReason.REPLACED, ref(second))
    assert (second.state, second.caused_by) == (State.WAITING, None)
    assert [one.number for one in store.claim(5)] == [second.number]


@rule("6.6")
def test_replace_asks_a_run_that_is_active_and_does_not_wait_for_it(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(concurrency_policy=REPLACE)
    schedules.after(SECOND)
    running = store.start()
    store.clock.advance(SECOND)
    effects = schedules.fire()
    told = protocol.Interrupted(running.number, running.created_ms, running.token, InterruptCause.CANCEL_REQUESTED)
    assert told in effects
    assert states(schedules) == [State.ACTIVE, State.WAITING]
    assert store.job(ref(running)).cancel_requested
    assert store.send(commands.Report(lease(running), "1")) == commands.Done()
    # A second tick does not ask again.
    store.clock.advance(SECOND)
    assert told not in schedules.fire()
    assert store.settle_one(complete(running)) is State.CANCELLED
    found = store.job(ref(running))
    assert (found.finish_reason, found.caused_by) == (FinishReason.REPLACED, ref(schedules.runs()[1]))


@rule("6.6")
@pytest.mark.parametrize("end", ["stall", "time out", "undeliver", "fail", "release"])
def test_a_replaced_run_ends_as_replaced_however_its_attempt_ends(
    schedules: Schedules, store: StoreDriver, end: str
) -> None:
    schedules.define(concurrency_policy=REPLACE, every_ms=MINUTE)
    schedules.after(MINUTE, MINUTE)
    running = store.start()
    schedules.after(MINUTE, MINUTE)
    if end in ("fail", "release"):
        store.settle_one(getattr(bundles, end)(running))
    else:
        store.reap(**{{"stall": "stalled", "time out": "timed_out", "undeliver": "undelivered"}[end]: [lease(running)]})
    found = store.job(ref(running))
    assert (found.state, found.finish_reason) == (State.CANCELLED, FinishReason.REPLACED)


@rule("6.6")
def test_a_cancel_by_hand_stays_one_after_a_replacement(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(concurrency_policy=REPLACE)
    schedules.after(SECOND)
    running = store.start()
    store.cancel(ref(running), "by hand")
    schedules.after(SECOND)
    store.settle_one(complete(running))
    found = store.job(ref(running))
    assert (found.finish_reason, found.finish_message) == (FinishReason.CANCEL_REQUESTED, "by hand")


@rule("6.6")
def test_every_run_that_goes_on_counts_not_only_the_last(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(concurrency_policy=FORBID)
    schedules.after(SECOND)
    first = store.start()
    by_hand = schedules.trigger()
    store.settle_one(complete(store.start()))
    assert store.state(by_hand) is State.COMPLETED
    schedules.after(SECOND)
    assert len(schedules.runs()) == 2
    store.settle_one(complete(first))
    schedules.after(SECOND)
    assert len(schedules.runs()) == 3


@rule("6.6")
def test_a_run_by_hand_counts_for_forbid_and_for_replace(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define("forbids", concurrency_policy=FORBID)
    schedules.define("replaces", concurrency_policy=REPLACE)
    schedules.trigger("forbids")
    by_hand = schedules.trigger("replaces")
    schedules.after(SECOND)
    assert (len(schedules.runs("forbids")), schedules.get("forbids").skipped_count) == (1, 1)
    assert store.job(by_hand).finish_reason == FinishReason.REPLACED


@rule("6.6")
def test_caught_up_ticks_follow_the_policy_one_after_the_other(schedules: Schedules, store: StoreDriver) -> None:
    for name, kind in (("forbids", FORBID), ("replaces", REPLACE)):
        schedules.define(name, every_ms=MINUTE, catch_up=3, concurrency_policy=kind)
    schedules.down(3 * MINUTE)
    assert schedules.ticks("forbids") == [START_MS + MINUTE]
    assert schedules.get("forbids").skipped_count == 2
    assert schedules.ticks("replaces") == [START_MS + n * MINUTE for n in (1, 2, 3)]
    runs = schedules.runs("replaces")
    assert [run.state for run in runs] == [State.CANCELLED, State.CANCELLED, State.WAITING]
    assert [run.caused_by for run in runs] == [ref(runs[1]), ref(runs[2]), None]


@rule("6.6")
@pytest.mark.parametrize("bounds", [limits.Limits(max_queue_jobs=1)])
def test_a_run_is_not_cancelled_for_one_that_finds_no_room(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(concurrency_policy=REPLACE)
    schedules.after(SECOND)
    running = store.start()
    schedules.after(SECOND)
    assert not store.job(ref(running)).cancel_requested
    assert (schedules.get().skipped_count, schedules.get().problem_reason) == (1, "QUEUE_FULL")


@rule("6.6")
def test_what_other_definitions_do_does_not_count(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define("a", concurrency_policy=FORBID)
    schedules.define("b", concurrency_policy=FORBID)
    store.add_one()
    schedules.after(SECOND)
    assert len(schedules.runs("a")) == len(schedules.runs("b")) == 1


# ------------------------------------------------------------------------------------------------- triggers


@rule("6.7")
def test_a_trigger_makes_a_run_now_whatever_the_definition_says(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(every_ms=HOUR, suspended=True, limit=1, concurrency_policy=FORBID)
    store.clock.advance(5)
    runs = [schedules.trigger(), schedules.trigger()]
    assert [ref(run) for run in schedules.runs()] == runs
    assert schedules.ticks() == [store.now_ms] * 2
    found = schedules.get()
    assert (found.run_count, found.last_tick_at_ms, found.next_tick_at_ms) == (0, 0, 0)
    assert (found.last_run, found.last_state) == (runs[1], State.WAITING)
    assert store.start().scheduler == "s"


@rule("6.7")
def test_a_trigger_leaves_the_ticks_as_they_are(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(every_ms=MINUTE, limit=1)
    store.clock.advance(MINUTE)
    schedules.trigger()
    schedules.fire()
    assert (len(schedules.runs()), schedules.get().run_count) == (2, 1)


@rule("6.7")
def test_the_same_run_key_gets_the_same_run_for_a_day(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(every_ms=HOUR)
    schedules.define("other", every_ms=HOUR)
    run = schedules.trigger(run_key="k")
    schedules.define(every_ms=2 * HOUR)
    assert schedules.send(commands.TriggerScheduler("s", "k")) == commands.TriggeredScheduler(run, existing=True)
    assert schedules.trigger(run_key="l") != run
    assert schedules.trigger("other", "k") != run
    store.cancel(run)
    store.clock.advance(24 * HOUR - 1)
    store.prune_all()
    assert schedules.send(commands.TriggerScheduler("s", "k")) == commands.TriggeredScheduler(run, existing=True)
    store.clock.advance(1)
    later = schedules.trigger(run_key="k")
    assert later != run
    assert schedules.trigger(run_key="k") == later
    store.prune_all()
    assert schedules.trigger(run_key="k") == later
    assert len(store.rows()["triggers"]) == 1


@rule("6.7")
@pytest.mark.parametrize("bounds", [limits.Limits(max_queue_jobs=1)])
def test_a_trigger_without_room_is_refused_and_writes_nothing(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define()
    store.add_one()
    rows = store.rows()
    refused = schedules.send(commands.TriggerScheduler("s", "k"))
    assert isinstance(refused, Refused)
    assert refused.reason == "QUEUE_FULL"
    assert store.rows() == rows
