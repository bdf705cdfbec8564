"""Ticks and the jobs they make: one transaction, once each, never early, whatever restarts and clocks do."""

import pytest

from anvilmq_broker.domain import commands, events, limits
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from tests.support import bundles
from tests.support.bundles import complete, fail, policy, ref
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.conformance.scheduling import DAY, HOUR, MINUTE, SECOND, Schedules

ONE_JOB = limits.Limits(max_queue_jobs=1)


@rule("6.2")
def test_a_tick_makes_the_job_of_the_template(schedules: Schedules, store: StoreDriver) -> None:
    job = bundles.new_job(
        "reports", "n", data=b"\x00", labels={"l": "1"}, headers={"h": "1"}, priority=7, content_type="t/t"
    )
    made = schedules.define(job=job)
    schedules.after(SECOND)
    (run,) = schedules.runs()
    assert (run.created_ms, run.tick_at_ms, run.scheduler) == (store.now_ms, START_MS + SECOND, "s")
    delivery = store.start("reports")
    assert (delivery.name, delivery.data, delivery.content_type, delivery.priority) == ("n", b"\x00", "t/t", 7)
    assert (delivery.labels, delivery.headers) == ({"l": "1"}, {"h": "1"})
    assert (delivery.scheduler, delivery.tick_at_ms) == ("s", START_MS + SECOND)
    found = schedules.get()
    assert (found.run_count, found.last_run, found.last_tick_at_ms) == (1, ref(run), START_MS + SECOND)
    assert (found.last_state, found.next_tick_at_ms) == (State.ACTIVE, START_MS + 2 * SECOND)
    assert found.uid == made.uid


@rule("6.2")
def test_the_engine_is_told_of_jobs_and_of_the_next_tick(schedules: Schedules, store: StoreDriver) -> None:
    uid = schedules.define().uid
    store.clock.advance(SECOND + 5)
    effects = schedules.fire()
    assert protocol.Queued("mail", store.now_ms) in effects
    assert protocol.Added("mail", 1, source="scheduler") in effects
    assert protocol.Ticks(uid, START_MS + 2 * SECOND, "active") in effects
    assert protocol.Ticked([5]) in effects


@rule("6.2")
def test_a_run_that_meets_an_idle_worker_starts_at_once(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define()
    store.clock.advance(SECOND)
    effects = schedules.fire(idle=bundles.slots(1))
    (started,) = (one for one in effects if isinstance(one, protocol.Started))
    assert (started.delivery.scheduler, started.delivery.tick_at_ms) == ("s", START_MS + SECOND)
    assert store.settle_one(complete(started.delivery)) is State.COMPLETED
    assert schedules.get().last_state == State.COMPLETED


@rule("6.3")
def test_no_tick_fires_before_its_time(schedules: Schedules, store: StoreDriver) -> None:
    uid = schedules.define().uid
    store.clock.advance(SECOND - 1)
    schedules.fire(uid)
    assert schedules.runs() == []
    assert store.effects == [protocol.Ticks(uid, START_MS + SECOND, "active")]
    store.clock.advance(1)
    schedules.fire(uid)
    assert schedules.ticks() == [START_MS + SECOND]


@rule("6.3")
def test_jitter_delays_a_run_by_the_same_time_after_a_restart(schedules: Schedules, store: StoreDriver) -> None:
    made = schedules.define(every_ms=HOUR, jitter_ms=10 * MINUTE)
    due = schedules.due[made.uid]
    assert due is not None
    assert made.next_tick_at_ms <= due <= made.next_tick_at_ms + 10 * MINUTE
    schedules.down(0)
    assert schedules.due[made.uid] == due
    store.clock.set_wall(due - 1)
    schedules.fire(made.uid)
    assert schedules.runs() == []
    store.clock.advance(1)
    assert protocol.Ticked([0]) in schedules.fire()
    assert schedules.ticks() == [made.next_tick_at_ms]


@rule("6.1")
def test_runs_do_not_drift_however_late_they_are_looked_at(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(offset_ms=300)
    schedules.after(10_300, step_ms=730)
    assert schedules.ticks() == [START_MS + 300 + n * SECOND for n in range(11)]


@rule("6.1")
def test_start_end_and_limit_are_kept(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define("started", start_at_ms=START_MS + 3 * SECOND)
    schedules.define("ended", end_at_ms=START_MS + 2 * SECOND)
    schedules.define("limited", limit=2)
    schedules.after(5 * SECOND)
    assert schedules.ticks("started") == [START_MS + n * SECOND for n in (3, 4, 5)]
    assert schedules.ticks("ended") == schedules.ticks("limited") == [START_MS + n * SECOND for n in (1, 2)]
    for name in ("ended", "limited"):
        assert schedules.get(name).next_tick_at_ms == 0
        assert schedules.due[schedules.get(name).uid] is None
    assert schedules.get("limited").problem_reason == ""


# ------------------------------------------------------------------------------------------------ once each


@rule("6.2")
def test_a_tick_that_is_fired_again_makes_no_second_job(schedules: Schedules, store: StoreDriver) -> None:
    uid = schedules.define().uid
    store.clock.advance(SECOND)
    command = commands.FireDue([uid, uid], schedules.serving_since_ms)
    store.batch(command, command)
    store.reopen()
    schedules.fire(uid)
    assert schedules.ticks() == [START_MS + SECOND]


@rule("6.2")
def test_a_rolled_back_tick_leaves_nothing_and_fires_again(schedules: Schedules, store: StoreDriver) -> None:
    uid = schedules.define().uid
    store.clock.advance(SECOND)
    rows = store.rows()
    opened = store.store.begin(store.now_ms)
    opened.apply([commands.FireDue([uid], START_MS)], lambda _: None)
    opened.rollback()
    assert store.rows() == rows
    schedules.fire()
    assert schedules.ticks() == [START_MS + SECOND]


@rule("6.2")
@pytest.mark.parametrize("back_ms", [90 * SECOND, 3 * HOUR])
def test_a_clock_set_back_and_forth_fires_no_tick_twice(schedules: Schedules, store: StoreDriver, back_ms: int) -> None:
    schedules.define(every_ms=30 * SECOND)
    schedules.after(4 * HOUR, 30 * SECOND)
    fired = schedules.ticks()
    store.clock.set_wall(store.now_ms - back_ms)
    assert schedules.send(commands.ReanchorSchedulers()) == commands.Reanchored()
    schedules.after(back_ms + MINUTE, 30 * SECOND)
    assert schedules.ticks() == [*fired, fired[-1] + 30 * SECOND, fired[-1] + 60 * SECOND]


@rule("6.4")
def test_a_clock_that_ran_ahead_and_is_set_back_silences_nothing(schedules: Schedules, store: StoreDriver) -> None:
    store.clock.set_wall(START_MS + 30 * DAY)
    for name, fields in (("a", {}), ("b", {"limit": 1, "start_at_ms": START_MS}), ("c", {"suspended": True})):
        schedules.define(name, **fields)
    store.clock.set_wall(START_MS)
    after, told = "", []
    while True:
        outcome = schedules.send(commands.ReanchorSchedulers(after, 1))
        told += store.effects
        after = outcome.next
        if not after:
            break
    assert sorted(it.due_ms for it in told if isinstance(it, protocol.Ticks) and it.due_ms) == [START_MS + SECOND] * 2
    schedules.after(SECOND)
    assert [len(schedules.runs(name)) for name in ("a", "b", "c")] == [1, 1, 0]


@rule("6.4")
def test_counting_anew_leaves_a_tick_that_comes_in_time(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(every_ms=HOUR)
    store.clock.advance(10 * MINUTE)
    rows = store.rows()
    assert schedules.send(commands.ReanchorSchedulers()) == commands.Reanchored()
    assert store.effects == []
    assert store.rows() == rows


@rule("6.2")
def test_retrying_the_job_of_a_tick_makes_no_second_tick(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(every_ms=MINUTE, job=bundles.new_job(policy=policy(max_attempts=3)))
    schedules.after(MINUTE, MINUTE)
    store.settle_one(fail(store.start(), retry_after_ms=5))
    store.clock.advance(10)
    schedules.fire(*schedules.due)
    again = store.start()
    assert (again.attempt, again.tick_at_ms) == (2, START_MS + MINUTE)
    assert (len(schedules.runs()), schedules.get().run_count) == (1, 1)


# ------------------------------------------------------------------------------------- what cannot be added


@rule("6.4")
@pytest.mark.parametrize("bounds", [ONE_JOB])
def test_a_tick_that_a_full_queue_refuses_is_skipped_and_told_until_one_succeeds(
    schedules: Schedules, store: StoreDriver
) -> None:
    uid = schedules.define().uid
    store.add_one()
    store.clock.advance(SECOND)
    effects = schedules.fire()
    assert protocol.Ticked([], skipped=1) in effects
    assert protocol.Ticks(uid, START_MS + 2 * SECOND, "problem") in effects
    found = schedules.get()
    assert (found.skipped_count, found.run_count, found.problem_reason) == (1, 0, "QUEUE_FULL")
    assert "mail" in found.problem_message
    assert (found.last_tick_at_ms, found.next_tick_at_ms) == (0, START_MS + 2 * SECOND)
    store.settle_one(complete(store.start()))
    schedules.after(SECOND)
    found = schedules.get()
    assert (found.run_count, found.problem_reason, found.problem_message) == (1, "", "")
    assert schedules.ticks() == [START_MS + 2 * SECOND]


@rule("6.4")
@pytest.mark.parametrize("bounds", [limits.Limits(max_queue_jobs=3)])
def test_a_full_queue_takes_as_many_of_the_due_as_it_has_room_for(schedules: Schedules, store: StoreDriver) -> None:
    for n in range(5):
        schedules.define(f"s{n}")
    schedules.define("elsewhere", job=bundles.new_job("post"))
    schedules.after(SECOND)
    assert store.store.counts() == {("mail", State.WAITING): 3, ("post", State.WAITING): 1}
    assert sum(schedules.get(f"s{n}").skipped_count for n in range(5)) == 2


@rule("6.4")
def test_a_definition_without_a_job_skips_its_ticks_and_says_so(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(job=None)
    schedules.after(2 * SECOND)
    found = schedules.get()
    assert (found.skipped_count, found.problem_reason) == (2, "TEMPLATE_NOT_FOUND")


@rule("6.4")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"cron": "no cron"}, "SCHEDULE_INVALID"), ({"cron": "* * * * *", "time_zone": "Gone/Away"}, "TIME_ZONE_UNKNOWN")],
)
def test_a_schedule_that_cannot_be_counted_stands_still_and_stops_no_other(
    schedules: Schedules, store: StoreDriver, fields: dict[str, str], reason: str
) -> None:
    bad = schedules.define("bad", **fields)
    assert (bad.next_tick_at_ms, bad.problem_reason) == (0, reason)
    assert store.effects == [protocol.Ticks(bad.uid, None, "problem")]
    good = schedules.define("good")
    store.clock.advance(SECOND)
    schedules.fire(bad.uid, good.uid)
    assert protocol.Ticks(bad.uid, None, "problem") in store.effects
    assert len(schedules.runs("good")) == 1
    schedules.down(HOUR + 1)
    assert schedules.due[bad.uid] is None
    assert len(schedules.runs("good")) == 2


@rule("6.2")
def test_definitions_that_are_gone_are_passed_over(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define()
    store.clock.advance(SECOND)
    schedules.fire("gone", *schedules.due, "also gone")
    assert len(schedules.runs()) == 1


# ------------------------------------------------------------------------------------------ what else is kept


@rule("6.2")
def test_ticks_are_kept_for_eight_days_after_their_firing(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(limit=3)
    schedules.after(3 * SECOND)
    assert len(store.rows()["ticks"]) == 3
    store.clock.advance(8 * DAY - 2 * SECOND)
    store.prune_all()
    assert [row[1] for row in store.rows()["ticks"]] == [START_MS + n * SECOND for n in (1, 2, 3)]
    store.clock.advance(SECOND + 1)
    store.prune_all()
    assert [row[1] for row in store.rows()["ticks"]] == [START_MS + n * SECOND for n in (3,)]
    assert schedules.get().run_count == 3


@rule("6.2")
def test_the_log_tells_what_definitions_did(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(concurrency_policy=2)
    schedules.after(2 * SECOND)
    schedules.send(commands.DeleteScheduler("s"))
    kinds = [row[5] for row in store.rows()["events"]]
    assert kinds == [
        events.Kind.SCHEDULER_CHANGED,
        events.Kind.ADDED,
        events.Kind.SCHEDULER_TICKED,
        events.Kind.SCHEDULER_SKIPPED,
        events.Kind.SCHEDULER_CHANGED,
    ]
    ticked = store.rows()["events"][2]
    assert {"s", START_MS + SECOND, "mail", schedules.runs()[0].number} <= set(ticked)
