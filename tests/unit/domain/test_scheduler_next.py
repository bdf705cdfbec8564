"""When a definition is due next: start, end, limit, edits, suspension, a clock set back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from anvilmq_broker.domain import commands, schedule, scheduler
from tests.support.rules import rule
from tests.unit.domain.definitions_made import NOON, RUN, at, fire, made, spec, with_run_count

# ------------------------------------------------------------------------------------------ what is let through


@rule("6.1")
def test_a_new_definition_is_due_at_the_first_tick_after_it_was_made() -> None:
    assert made().next_tick_ms == at("02T02:00")
    assert made(now_ms=at("02T02:00")).next_tick_ms == at("03T02:00")
    assert made(now_ms=at("02T02:00") - 1).next_tick_ms == at("02T02:00")
    assert made(every_ms=1_000, now_ms=5_500).next_tick_ms == 6_000


@rule("6.1")
def test_nothing_is_due_before_the_start_and_after_the_end_both_inclusive() -> None:
    assert made(start_at_ms=at("05T02:00")).next_tick_ms == at("05T02:00")
    assert made(start_at_ms=at("05T02:00") + 1).next_tick_ms == at("06T02:00")
    assert made(end_at_ms=at("02T02:00")).next_tick_ms == at("02T02:00")
    assert made(end_at_ms=at("02T02:00") - 1).next_tick_ms is None


@rule("6.1")
def test_the_last_tick_before_the_end_is_followed_by_none() -> None:
    ticks, after = fire(made(end_at_ms=at("02T02:00")), at("02T02:00"))
    assert (ticks, after.next_tick_ms) == ([at("02T02:00")], None)
    # However late it is looked at.
    ticks, after = fire(made(end_at_ms=at("03T12:00")), at("20T02:00"))
    assert (ticks, after.next_tick_ms) == ([at("02T02:00"), at("03T02:00")], None)


@rule("6.1")
def test_the_last_run_of_the_limit_is_followed_by_none() -> None:
    it = made(limit=2)
    ticks, it = fire(it, at("02T02:00"))
    assert (ticks, it.next_tick_ms, it.run_count) == ([at("02T02:00")], at("03T02:00"), 1)
    ticks, it = fire(it, at("03T02:00"))
    assert (ticks, it.next_tick_ms, it.run_count) == ([at("03T02:00")], None, 2)
    assert scheduler.plan(it, at("09T02:00"), 0).ticks == []


@rule("6.1")
def test_no_more_ticks_fire_in_one_turn_than_the_limit_has_left() -> None:
    ticks, it = fire(with_run_count(made(limit=5), 3), at("20T12:00"))
    assert ticks == [at("02T02:00"), at("03T02:00")]
    assert (it.next_tick_ms, it.run_count) == (None, 5)


@rule("6.1")
def test_a_skipped_tick_uses_up_nothing_of_the_limit() -> None:
    plan = scheduler.plan(with_run_count(made(limit=5), 3), at("04T12:00"), 0)
    assert plan.ticks == [at("02T02:00"), at("03T02:00")]
    after = scheduler.skipped(scheduler.fired(plan.after, plan.ticks[0], RUN))
    # One run is left: the tick that the limit had cut off is still to come, in the next turn.
    assert (after.run_count, after.skipped_count, after.next_tick_ms) == (4, 1, at("04T02:00"))
    assert fire(after, at("04T12:00"))[0] == [at("04T02:00")]


@rule("6.4")
def test_a_schedule_that_does_not_move_on_stops_alone_instead_of_spinning(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(schedule.Every, frozen=True):
        def next_after(self, after_ms: int) -> int | None:
            return after_ms

    it = made(every_ms=1_000)
    monkeypatch.setattr(scheduler, "_asked", lambda _: Stuck(1_000))
    plan = scheduler.plan(it, it.next_tick_ms or 0, 0)
    assert (plan.ticks, plan.after.next_tick_ms, plan.after.problem_reason) == ([], None, "SCHEDULE_INVALID")
    assert "is not later" in plan.after.problem_message


# -------------------------------------------------------------------------------------------------- edits


@rule("6.5")
@pytest.mark.parametrize(
    "changed",
    [
        {"cron": "0 3 * * *"},
        {"cron": "0 2 * * *", "time_zone": "Asia/Tokyo"},
        {"every_ms": 3_600_000},
        {"every_ms": 3_600_000, "offset_ms": 60_000},
    ],
    ids=str,
)
def test_an_edit_of_schedule_zone_or_interval_counts_from_now(changed: dict[str, object]) -> None:
    # The tick of 02:00 has passed without a turn, as in the turn of the edit itself: it is before the edit, and over.
    now = at("02T09:00:30")
    after = scheduler.edited(made(), spec(**changed), False, now)  # type: ignore[arg-type]
    assert after.anchor_ms == now
    assert after.next_tick_ms == scheduler.timing(after.spec).next_after(now)


@rule("6.5")
def test_an_edit_of_the_offset_counts_from_now() -> None:
    it = made(every_ms=3_600_000)
    assert scheduler.edited(it, spec(every_ms=3_600_000, offset_ms=1), False, NOON).next_tick_ms == NOON + 1


@rule("6.5")
@pytest.mark.parametrize(
    "changed",
    [
        {"description": "other"},
        {"catch_up": 2},
        {"concurrency_policy": 2},
        {"starting_deadline_ms": 1},
        {"jitter_ms": 60_000},
        {"limit": 9},
        {"end_at_ms": at("30T00:00")},
        {"start_at_ms": at("01T00:00")},
        {"job": commands.NewJob("mail", "send")},
    ],
    ids=str,
)
def test_any_other_edit_leaves_a_tick_that_is_still_to_fire(changed: dict[str, object]) -> None:
    it = made()
    after = scheduler.edited(it, spec(**changed), False, at("02T02:00:30"))  # type: ignore[arg-type]
    assert after.next_tick_ms == at("02T02:00")
    assert after.anchor_ms == it.anchor_ms
    assert after.updated_ms == at("02T02:00:30")


@rule("6.5")
def test_an_edit_of_start_or_end_is_obeyed() -> None:
    it = made()
    assert scheduler.edited(it, spec(start_at_ms=at("10T00:00")), False, NOON).next_tick_ms == at("10T02:00")
    assert scheduler.edited(it, spec(end_at_ms=at("01T23:00")), False, NOON).next_tick_ms is None
    # A start that was still to come and now lies in the past brings back nothing of the past.
    late = made(start_at_ms=at("20T00:00"))
    assert scheduler.edited(late, spec(start_at_ms=at("02T00:00")), False, at("05T12:00")).next_tick_ms == at(
        "06T02:00"
    )


@rule("6.5")
def test_a_higher_limit_or_a_later_end_wakes_a_definition_from_now_on() -> None:
    spent = fire(made(limit=1), at("02T02:00"))[1]
    assert spent.next_tick_ms is None
    assert scheduler.edited(spent, spec(limit=2), False, at("09T12:00")).next_tick_ms == at("10T02:00")
    ended = made(end_at_ms=at("02T00:00"))
    assert ended.next_tick_ms is None
    assert scheduler.edited(ended, spec(), False, at("09T12:00")).next_tick_ms == at("10T02:00")


@rule("6.5")
def test_an_edit_keeps_the_counts_and_the_name_of_the_last_run() -> None:
    it = fire(made(), at("02T02:00"))[1]
    after = scheduler.edited(it, spec("0 4 * * *"), False, at("02T03:00"))
    assert (after.uid, after.run_count, after.last_tick_ms, after.last_run) == (it.uid, 1, at("02T02:00"), RUN)


@rule("6.7")
def test_the_hash_of_a_definition_tells_content_apart_and_nothing_else() -> None:
    content = spec(job=commands.NewJob("mail", "send", b"{}", headers={"a": "1", "b": "2"}))
    same = spec(job=commands.NewJob("mail", "send", b"{}", headers={"b": "2", "a": "1"}), suspended=True)
    assert scheduler.content_hash(content, False) == scheduler.content_hash(same, False)
    others = [
        scheduler.content_hash(content, True),
        *(
            scheduler.content_hash(replace(content, **changed), False)
            for changed in (
                {"cron": "0 3 * * *"},
                {"time_zone": "Asia/Tokyo"},
                {"limit": 1},
                {"jitter_ms": 1},
                {"catch_up": 2},
                {"description": "x"},
                {"job": None},
            )
        ),
    ]
    assert len({scheduler.content_hash(content, False), *others}) == 1 + len(others)


# -------------------------------------------------------------------------------------------------- suspension


@rule("6.5")
def test_a_suspended_definition_is_not_due_and_what_it_misses_is_not_caught_up() -> None:
    it = scheduler.edited(made(), spec(), True, at("01T13:00"))
    assert (it.suspended, it.next_tick_ms) == (True, None)
    assert scheduler.plan(it, at("09T12:00"), 0) == scheduler.Plan([], it)
    resumed = scheduler.edited(it, spec(), False, at("09T12:00"))
    assert (resumed.anchor_ms, resumed.next_tick_ms) == (at("09T12:00"), at("10T02:00"))
    assert fire(resumed, at("09T12:00"))[0] == []
    ticks, after = fire(resumed, at("10T02:00"))
    assert (ticks, after.missed_count) == ([at("10T02:00")], 0)


@rule("6.5")
def test_a_definition_that_is_suspended_with_a_tick_still_to_fire_loses_it() -> None:
    it = made(jitter_ms=3_600_000)
    suspended = scheduler.edited(it, it.spec, True, at("02T02:00:01"))
    assert scheduler.edited(suspended, it.spec, False, at("02T02:00:02")).next_tick_ms == at("03T02:00")


@rule("6.5")
def test_an_edit_while_suspended_does_not_wake() -> None:
    it = made(suspended=True)
    assert it.next_tick_ms is None
    after = scheduler.edited(it, spec("0 3 * * *"), True, at("03T00:00"))
    assert after.next_tick_ms is None
    assert scheduler.edited(after, after.spec, False, at("05T12:00")).next_tick_ms == at("06T03:00")


# ------------------------------------------------------------------------------------------------ clocks


@rule("6.4")
def test_a_clock_set_back_silences_nothing_and_takes_back_nothing() -> None:
    # The clock ran ahead by a year, and a tick fired there.
    it = fire(made(now_ms=at("2028-06-01T12:00")), at("2028-06-02T02:00"))[1]
    assert it.next_tick_ms == at("2028-06-03T02:00")
    back = scheduler.anchored(it, NOON)
    assert back.next_tick_ms == at("02T02:00")
    assert (back.last_tick_ms, back.run_count, back.missed_count) == (at("2028-06-02T02:00"), 1, 0)
    ticks, _ = fire(back, at("02T02:00"))
    assert ticks == [at("02T02:00")]


@rule("6.4")
def test_a_tick_never_fires_early() -> None:
    it = made()
    assert fire(it, at("02T02:00") - 1) == ([], it)
    assert fire(it, 0) == ([], it)


# ------------------------------------------------------------------------------------------------ problems


@rule("6.4")
def test_a_definition_whose_zone_has_left_the_data_stops_alone_and_says_why() -> None:
    gone = replace(made(), spec=spec(time_zone="Atlantis/Capital"))
    assert scheduler.due_ms(gone) == gone.next_tick_ms
    plan = scheduler.plan(gone, at("02T02:00"), 0)
    assert (plan.ticks, plan.after.next_tick_ms, plan.after.problem_reason) == ([], None, "TIME_ZONE_UNKNOWN")
    assert "Atlantis/Capital" in plan.after.problem_message
    # Counted anew with data that has the zone, it goes on, and has no problem any more.
    back = scheduler.anchored(replace(plan.after, spec=spec()), at("05T12:00"))
    assert (back.next_tick_ms, back.problem_reason, back.problem_message) == (at("06T02:00"), "", "")
    assert scheduler.anchored(plan.after, at("05T12:00")).problem_reason == "TIME_ZONE_UNKNOWN"


@rule("6.4")
def test_a_stored_tick_that_newer_zone_data_does_not_know_does_not_stay_due() -> None:
    it = replace(made(), next_tick_ms=at("02T01:30"))
    assert fire(it, at("02T01:29")) == ([], it)
    ticks, after = fire(it, at("02T01:45"))
    assert (ticks, after.next_tick_ms, after.missed_count) == ([], at("02T02:00"), 0)
    assert fire(it, at("02T02:00"))[0] == [at("02T02:00")]


@rule("6.5")
def test_a_refused_tick_is_counted_and_its_reason_stands_until_one_makes_a_run() -> None:
    it = scheduler.skipped(made(), "QUEUE_FULL", "the queue mail is full")
    assert (it.skipped_count, it.problem_reason, it.problem_message) == (1, "QUEUE_FULL", "the queue mail is full")
    forbidden = scheduler.skipped(it)
    assert (forbidden.skipped_count, forbidden.problem_reason) == (2, "QUEUE_FULL")
    assert scheduler.anchored(forbidden, NOON).problem_reason == "QUEUE_FULL"
    ran = scheduler.fired(forbidden, at("02T02:00"), RUN)
    assert (ran.run_count, ran.problem_reason, ran.problem_message) == (1, "", "")
    assert (ran.last_tick_ms, ran.last_run) == (at("02T02:00"), RUN)


@rule("6.5")
def test_an_edit_forgets_a_problem() -> None:
    it = scheduler.skipped(made(), "QUEUE_FULL", "the queue mail is full")
    after = scheduler.edited(it, spec(description="other"), False, NOON)
    assert (after.problem_reason, after.problem_message, after.skipped_count) == ("", "", 1)
