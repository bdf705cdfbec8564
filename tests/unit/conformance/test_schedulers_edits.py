"""Making, changing and deleting recurring definitions: idempotent by content, and the owner's alone."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.definitions import Outcome
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.store import protocol
from tests.support import bundles
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.conformance.scheduling import HOUR, MINUTE, SECOND, Schedules, owner, spec


def refused(outcome: object) -> tuple[str, str]:
    """Reason and message of a refusal."""
    assert isinstance(outcome, Refused), outcome
    return outcome.reason, outcome.message


@rule("6.1")
def test_a_new_definition_is_stored_as_sent_and_waits_for_its_first_tick(
    schedules: Schedules, store: StoreDriver
) -> None:
    job = bundles.new_job(
        "reports",
        "nightly",
        data=b"\x00\xff",
        labels={"l": "1"},
        headers={"h": "1"},
        policy=bundles.policy(max_attempts=1),
    )
    wanted = spec(
        cron="0 3 * * *", time_zone="Europe/Berlin", job=job, start_at_ms=5, end_at_ms=1 << 52, limit=9, jitter_ms=HOUR,
        concurrency_policy=2, catch_up=3, max_catch_up_runs=7, starting_deadline_ms=3, suspended=False, description="täglich",
    )  # fmt: skip
    made = schedules.send(commands.UpsertScheduler("n", wanted))
    assert made.outcome == Outcome.CREATED
    found = schedules.get("n")
    assert (found, found.spec, found.name, found.owner) == (made.scheduler, wanted, "n", None)
    assert found.next_tick_at_ms == store.now_ms + 18 * HOUR
    assert (found.last_tick_at_ms, found.last_run, found.run_count, found.problem_reason) == (0, None, 0, "")
    assert found.created_at_ms == found.updated_at_ms == store.now_ms
    (told,) = store.effects
    assert isinstance(told, protocol.Ticks)
    assert told.due_ms is not None
    assert 0 <= told.due_ms - found.next_tick_at_ms <= HOUR


@rule("6.7")
def test_an_unchanged_upsert_writes_nothing(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define()
    schedules.after(5 * SECOND)
    rows = store.rows()
    again = schedules.upsert()
    assert (again.outcome, again.scheduler) == (Outcome.UNCHANGED, schedules.get())
    assert store.effects == []
    assert store.rows() == rows


@rule("6.7")
def test_racing_upserts_make_one_definition_with_one_next_tick(schedules: Schedules, store: StoreDriver) -> None:
    command = commands.UpsertScheduler("s", spec())
    outcomes = [one.outcome for one in store.batch(command, command, command)]
    assert [one.outcome for one in outcomes if isinstance(one, commands.UpsertedScheduler)] == [1, 3, 3]
    assert len(store.effects) == 1
    assert len(store.rows()["schedulers"]) == 1
    schedules.due = {schedules.get().uid: store.now_ms + SECOND}
    schedules.after(SECOND)
    assert len(schedules.runs()) == 1


@rule("6.7")
def test_defaults_spelled_out_are_the_same_content(schedules: Schedules) -> None:
    schedules.define()
    assert schedules.upsert(catch_up=1, concurrency_policy=1, suspended=False).outcome == Outcome.UNCHANGED


@rule("6.5")
@pytest.mark.parametrize(
    "change", [{"every_ms": 7 * SECOND}, {"cron": "*/7 * * * * *"}, {"every_ms": SECOND, "offset_ms": 1}]
)
def test_a_changed_timing_counts_from_the_edit(
    schedules: Schedules, store: StoreDriver, change: dict[str, Any]
) -> None:
    schedules.define()
    store.clock.advance(10 * MINUTE + 500)
    edited = schedules.upsert(**change)
    assert edited.outcome == Outcome.UPDATED
    assert store.now_ms < edited.scheduler.next_tick_at_ms <= store.now_ms + 7 * SECOND
    schedules.fire()
    assert schedules.runs() == []
    assert schedules.get().missed_count == 0


@rule("6.5")
def test_any_other_change_keeps_the_next_tick_and_concerns_later_runs_alone(
    schedules: Schedules, store: StoreDriver
) -> None:
    first = schedules.define(every_ms=MINUTE, job=bundles.new_job(data=b"old"))
    schedules.after(MINUTE, MINUTE)
    changed = schedules.upsert(every_ms=MINUTE, job=bundles.new_job(data=b"new"))
    assert changed.outcome == Outcome.UPDATED
    assert changed.scheduler.next_tick_at_ms == first.next_tick_at_ms + MINUTE
    assert changed.scheduler.uid == first.uid
    assert changed.scheduler.run_count == 1
    schedules.after(MINUTE, MINUTE)
    assert [one.data for one in store.claim(2)] == [b"old", b"new"]


@rule("6.7")
def test_a_dry_run_answers_as_if_done_and_writes_nothing(schedules: Schedules, store: StoreDriver) -> None:
    made = schedules.upsert(dry_run=True)
    assert (made.outcome, made.scheduler.next_tick_at_ms) == (Outcome.CREATED, store.now_ms + SECOND)
    assert store.effects == []
    assert store.rows()["schedulers"] == []
    schedules.define()
    rows = store.rows()
    edited = schedules.upsert(every_ms=MINUTE, dry_run=True)
    assert (edited.outcome, edited.scheduler.spec.every_ms) == (Outcome.UPDATED, MINUTE)
    assert store.rows() == rows


# ------------------------------------------------------------------------------------------------- suspension


@rule("6.5")
def test_a_suspended_definition_is_not_due_and_a_resumed_one_counts_from_now(
    schedules: Schedules, store: StoreDriver
) -> None:
    schedules.define()
    found = schedules.send(commands.SuspendScheduler("s", True))
    assert (found.scheduler.spec.suspended, found.scheduler.next_tick_at_ms) == (True, 0)
    assert store.effects == [protocol.Ticks(found.scheduler.uid, None, "suspended")]
    schedules.after(HOUR, MINUTE)
    schedules.down(HOUR)
    found = schedules.send(commands.SuspendScheduler("s", False))
    assert found.scheduler.next_tick_at_ms == store.now_ms + SECOND
    schedules.after(SECOND)
    assert schedules.ticks() == [store.now_ms]
    assert schedules.get().missed_count == 0


@rule("6.7")
def test_suspending_what_is_suspended_writes_nothing(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(suspended=True)
    rows = store.rows()
    assert schedules.send(commands.SuspendScheduler("s", True)).scheduler == schedules.get()
    assert store.rows() == rows


@rule("6.7")
def test_a_deploy_does_not_wake_what_an_operator_has_suspended(schedules: Schedules) -> None:
    schedules.define()
    schedules.send(commands.SuspendScheduler("s", True))
    assert schedules.upsert().outcome == Outcome.UNCHANGED
    assert schedules.upsert(every_ms=MINUTE).scheduler.spec.suspended is True
    assert schedules.upsert(every_ms=MINUTE, suspended=False).scheduler.spec.suspended is False


# ----------------------------------------------------------------------------------------------------- owners


@rule("6.7")
def test_an_owned_definition_refuses_edits_by_others_and_says_what_to_do(
    schedules: Schedules, store: StoreDriver
) -> None:
    schedules.upsert(of=owner())
    rows = store.rows()
    for command, remedy in (
        (commands.UpsertScheduler("s", spec(every_ms=MINUTE)), "kubectl -n team edit jobscheduler nightly"),
        (commands.UpsertScheduler("s", spec()), "kubectl -n team edit jobscheduler nightly"),
        (commands.DeleteScheduler("s"), "kubectl -n team delete jobscheduler nightly"),
        (commands.SuspendScheduler("s", True), "kubectl -n team patch jobscheduler nightly"),
        (commands.SuspendScheduler("s", False), "kubectl -n team patch jobscheduler nightly"),
    ):
        reason, message = refused(schedules.send(command))
        assert reason == "OWNED_BY_CRD"
        assert "JobScheduler team/nightly" in message
        assert remedy in message
    assert store.rows() == rows
    schedules.trigger()


@rule("6.7")
def test_an_owner_does_not_get_what_is_not_its_own(schedules: Schedules, store: StoreDriver) -> None:
    schedules.upsert("free")
    schedules.upsert("owned", owner())
    rows = store.rows()
    other = owner("u2", name="other")
    for name, of, adopt in (("free", owner(), False), ("owned", other, False), ("owned", other, True)):
        reason, _ = refused(schedules.send(commands.UpsertScheduler(name, spec(), of, adopt=adopt)))
        assert reason == "NAME_CONFLICT"
    assert store.rows() == rows


@rule("6.7")
def test_an_owner_adopts_what_has_none_and_its_next_tick_stays(schedules: Schedules, store: StoreDriver) -> None:
    before = schedules.define(every_ms=MINUTE)
    store.clock.advance(MINUTE // 2)
    adopted = schedules.upsert(of=owner(), adopt=True, every_ms=MINUTE)
    assert (adopted.outcome, adopted.scheduler.owner) == (Outcome.UPDATED, owner())
    assert adopted.scheduler.next_tick_at_ms == before.next_tick_at_ms
    assert schedules.upsert(of=owner(), adopt=True, every_ms=MINUTE).outcome == Outcome.UNCHANGED


@rule("6.7")
def test_a_lower_generation_of_the_same_owner_is_ignored(schedules: Schedules, store: StoreDriver) -> None:
    schedules.upsert(of=owner(generation=5))
    rows = store.rows()
    stale = schedules.upsert(of=owner(generation=4), every_ms=MINUTE)
    assert (stale.outcome, stale.scheduler) == (Outcome.STALE_GENERATION, schedules.get())
    assert store.rows() == rows
    assert schedules.upsert(of=owner(generation=5), every_ms=MINUTE).outcome == Outcome.UPDATED


@rule("6.7")
def test_a_higher_generation_with_the_same_content_writes_the_owner_alone(
    schedules: Schedules, store: StoreDriver
) -> None:
    before = schedules.upsert(of=owner()).scheduler
    store.clock.advance(10)
    newer = owner(generation=2, spec_hash="h", retain=True)
    again = schedules.upsert(of=newer)
    assert again.outcome == Outcome.UNCHANGED
    after = schedules.get()
    assert after.owner == newer
    assert (after.next_tick_at_ms, after.updated_at_ms) == (before.next_tick_at_ms, before.updated_at_ms)
    assert schedules.upsert(of=owner(generation=1)).outcome == Outcome.STALE_GENERATION


@rule("6.7")
def test_an_owner_is_taken_off_by_itself_alone(schedules: Schedules, store: StoreDriver) -> None:
    schedules.upsert(of=owner())
    assert schedules.send(commands.ReleaseDefinition("s", owner("u2"))) == commands.ReleasedDefinition(False)
    assert schedules.send(commands.ReleaseDefinition("none", owner())) == commands.ReleasedDefinition(False)
    assert schedules.send(commands.ReleaseDefinition("s", owner())) == commands.ReleasedDefinition(True)
    assert schedules.get().owner is None
    schedules.after(SECOND)
    assert len(schedules.runs()) == 1
    assert schedules.upsert(every_ms=MINUTE).outcome == Outcome.UPDATED


# --------------------------------------------------------------------------------------------------- deletion


@rule("6.7")
def test_a_deleted_definition_ticks_no_more_and_its_jobs_go_on(schedules: Schedules, store: StoreDriver) -> None:
    made = schedules.define()
    schedules.after(2 * SECOND)
    running = store.start()
    assert schedules.send(commands.DeleteScheduler("s")) == commands.DeletedScheduler(True)
    assert store.effects == [protocol.Ticks(made.uid, None)]
    schedules.fire(made.uid)
    assert len(schedules.runs()) == 2
    assert store.settle_one(bundles.complete(running)).name == "COMPLETED"
    assert store.start().scheduler == "s"
    assert refused(store.query(commands.GetScheduler("s")))[0] == "SCHEDULER_NOT_FOUND"


@rule("6.7")
def test_what_is_not_there_is_told_unless_that_is_fine(schedules: Schedules) -> None:
    for command in (
        commands.DeleteScheduler("s"),
        commands.SuspendScheduler("s", True),
        commands.TriggerScheduler("s"),
    ):
        assert refused(schedules.send(command))[0] == "SCHEDULER_NOT_FOUND"
    assert schedules.send(commands.DeleteScheduler("s", allow_missing=True)) == commands.DeletedScheduler(False)


@rule("6.7")
def test_an_owner_deletes_its_own_definition_alone(schedules: Schedules) -> None:
    schedules.upsert("free")
    schedules.upsert("owned", owner())
    for name, of in (("free", owner()), ("owned", owner("u2"))):
        assert schedules.send(commands.DeleteScheduler(name, of)) == commands.DeletedScheduler(False)
    assert schedules.send(commands.DeleteScheduler("owned", owner(generation=9))) == commands.DeletedScheduler(True)
    schedules.get("free")


@rule("6.2")
def test_a_name_that_is_made_again_is_another_definition(schedules: Schedules, store: StoreDriver) -> None:
    first = schedules.define(concurrency_policy=2)
    schedules.after(3 * SECOND)
    assert (len(schedules.runs()), schedules.get().skipped_count) == (1, 2)
    schedules.send(commands.DeleteScheduler("s"))
    # Back to before the ticks that the first one has fired: they are not this one's.
    store.clock.set_wall(store.now_ms - 90 * SECOND)
    second = schedules.define(concurrency_policy=2)
    assert second.uid != first.uid
    assert (second.run_count, second.skipped_count, second.last_run) == (0, 0, None)
    store.clock.set_wall(store.now_ms + 88 * SECOND)
    schedules.fire()
    assert schedules.get().run_count == 1
    # The first one's run goes on, and forbids nothing.
    assert len(schedules.runs()) == 2
