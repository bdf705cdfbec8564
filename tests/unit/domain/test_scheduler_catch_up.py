"""Which ticks fire after a time without a broker, which are dropped, and by how much jitter delays them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvilmq_broker.domain import schedule, scheduler
from anvilmq_broker.domain.state import CatchUp
from tests.support.rules import rule
from tests.unit.domain import schedule_strategies
from tests.unit.domain.definitions_made import NOON, at, fire, made

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000

# ---------------------------------------------------------------------------------------------------- downtime


@rule("6.5")
@pytest.mark.parametrize(
    ("catch_up", "ticks", "missed"),
    [
        (CatchUp.LATEST, ["06T02:00"], 4),
        (CatchUp.NONE, [], 5),
        (CatchUp.ALL, ["02T02:00", "03T02:00", "04T02:00", "05T02:00", "06T02:00"], 0),
    ],
)
def test_ticks_of_a_downtime_follow_catch_up(catch_up: CatchUp, ticks: list[str], missed: int) -> None:
    back = at("06T12:00")
    found, after = fire(made(catch_up=catch_up), back, serving_since_ms=back)
    assert found == [at(tick) for tick in ticks]
    assert (after.missed_count, after.run_count, after.next_tick_ms) == (missed, len(ticks), at("07T02:00"))


@rule("6.5")
def test_latest_is_the_default() -> None:
    assert made().spec.catch_up == CatchUp.LATEST
    assert made().spec.max_catch_up_runs == 100


@rule("6.5")
@pytest.mark.parametrize("most", [1, 2, 1_000])
def test_all_catches_up_the_latest_so_many_oldest_first(most: int) -> None:
    back = at("11T12:00")
    found, after = fire(made(catch_up=CatchUp.ALL, max_catch_up_runs=most), back, serving_since_ms=back)
    assert found == [at(f"{day:02}T02:00") for day in range(2, 12)][-most:]
    assert after.missed_count == 10 - len(found)


@rule("6.5")
@pytest.mark.parametrize("catch_up", list(CatchUp))
def test_years_of_a_tick_a_second_are_missed_without_being_walked(
    catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = 0
    next_after, last_until = schedule.Cron.next_after, schedule.Cron.last_until

    def counted_next(when: schedule.Cron, after_ms: int) -> int | None:
        nonlocal walked
        walked += 1
        return next_after(when, after_ms)

    def counted_last(when: schedule.Cron, until_ms: int, after_ms: int) -> int | None:
        nonlocal walked
        walked += 1
        return last_until(when, until_ms, after_ms)

    monkeypatch.setattr(schedule.Cron, "next_after", counted_next)
    monkeypatch.setattr(schedule.Cron, "last_until", counted_last)
    it = made("* * * * * *", catch_up=catch_up, time_zone="Europe/Berlin")
    back = NOON + 5 * 365 * DAY_MS
    found, after = fire(it, back, serving_since_ms=back + 1)
    wanted = {CatchUp.LATEST: 1, CatchUp.NONE: 0, CatchUp.ALL: 100}[catch_up]
    assert found == [back - 1_000 * n for n in range(wanted)][::-1]
    assert after.missed_count == 5 * 365 * 86_400 - wanted
    assert walked < 120


@rule("6.5")
def test_ticks_that_fall_due_while_the_broker_serves_all_fire_however_late() -> None:
    found, after = fire(made("* * * * *", catch_up=CatchUp.NONE), NOON + 10 * MINUTE_MS, serving_since_ms=NOON)
    assert found == [NOON + n * MINUTE_MS for n in range(1, 11)]
    assert (after.missed_count, after.next_tick_ms) == (0, NOON + 11 * MINUTE_MS)


@rule("6.5")
def test_ticks_before_and_after_the_start_of_the_broker_are_told_apart() -> None:
    since = NOON + 5 * MINUTE_MS
    found, after = fire(made("* * * * *"), NOON + 7 * MINUTE_MS, serving_since_ms=since)
    # The tick of the very start is live; of the four before, the latest is caught up.
    assert found == [NOON + n * MINUTE_MS for n in (4, 5, 6, 7)]
    assert after.missed_count == 3


@rule("6.5")
def test_more_live_ticks_than_a_turn_takes_come_in_the_next_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MOST_LIVE_RUNS", 3)
    it, found = made("* * * * *"), list[list[int]]()
    while (it.next_tick_ms or 0) <= NOON + 7 * MINUTE_MS:
        ticks, it = fire(it, NOON + 7 * MINUTE_MS, serving_since_ms=NOON)
        found.append([(tick - NOON) // MINUTE_MS for tick in ticks])
    assert found == [[1, 2, 3], [4, 5, 6], [7]]
    assert it.missed_count == 0


@rule("6.5")
def test_a_second_turn_catches_up_nothing_again() -> None:
    back = at("06T12:00")
    _, after = fire(made(catch_up=CatchUp.ALL), back, serving_since_ms=back)
    assert fire(after, back, serving_since_ms=back) == ([], after)


@rule("6.5")
def test_downtime_without_a_tick_changes_nothing() -> None:
    it = made()
    assert fire(it, at("01T23:00"), serving_since_ms=at("01T23:00")) == ([], it)


@rule("6.5")
@pytest.mark.parametrize("catch_up", list(CatchUp))
def test_what_was_missed_after_the_end_does_not_count(catch_up: CatchUp) -> None:
    back = at("20T12:00")
    found, after = fire(made(catch_up=catch_up, end_at_ms=at("04T02:00")), back, serving_since_ms=back)
    assert len(found) + after.missed_count == 3
    assert max(found, default=0) <= at("04T02:00")
    assert after.next_tick_ms is None


# -------------------------------------------------------------------------------------------------- deadline


@rule("6.5")
def test_ticks_older_than_the_starting_deadline_are_dropped() -> None:
    back = at("06T12:00")
    it = made(catch_up=CatchUp.ALL, starting_deadline_ms=2 * DAY_MS)
    found, after = fire(it, back, serving_since_ms=back)
    assert found == [at("05T02:00"), at("06T02:00")]
    assert after.missed_count == 3


@rule("6.5")
@pytest.mark.parametrize(("late_ms", "fires"), [(0, True), (10 * HOUR_MS, True), (10 * HOUR_MS + 1, False)])
def test_the_starting_deadline_holds_to_the_millisecond_also_for_a_live_tick(late_ms: int, fires: bool) -> None:
    it = made(starting_deadline_ms=10 * HOUR_MS)
    found, after = fire(it, at("02T02:00") + late_ms, serving_since_ms=0)
    assert (bool(found), after.missed_count) == (fires, 0 if fires else 1)
    assert after.next_tick_ms == at("03T02:00")


@rule("6.5")
def test_the_starting_deadline_counts_from_the_end_of_the_jitter() -> None:
    it = made(jitter_ms=12 * HOUR_MS, starting_deadline_ms=1)
    due = scheduler.due_ms(it)
    assert due is not None
    assert due > at("02T02:00") + 1
    assert fire(it, due + 1)[0] == [at("02T02:00")]
    assert fire(it, due + 2)[0] == []


# --------------------------------------------------------------------------------------------------- jitter


@rule("6.1")
def test_jitter_delays_a_tick_by_the_same_time_after_a_restart() -> None:
    it = made(jitter_ms=HOUR_MS)
    due = scheduler.due_ms(it)
    assert due is not None
    assert at("02T02:00") <= due <= at("02T02:00") + HOUR_MS
    # Written down, so that no other process or release comes to another time.
    assert due == at("02T02:00") + 2_611_429
    assert fire(it, due - 1) == ([], it)
    ticks, after = fire(it, due)
    assert (ticks, after.last_tick_ms) == ([at("02T02:00")], at("02T02:00"))


@rule("6.1")
def test_jitter_spreads_definitions_and_ticks() -> None:
    many = {scheduler.jitter_ms(str(uid), NOON, HOUR_MS, DAY_MS) for uid in range(200)}
    assert len(many) > 190
    assert min(many) < HOUR_MS // 10
    assert max(many) > HOUR_MS - HOUR_MS // 10
    assert len({scheduler.jitter_ms("3f9c", NOON + day, HOUR_MS, DAY_MS) for day in range(200)}) > 190


@rule("6.1")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=9), schedule_strategies.INSTANTS_MS, st.integers(0, 10**9), st.integers(1, 10**9))
def test_jitter_is_cut_below_the_time_to_the_next_tick(uid: str, tick: int, most: int, until_next: int) -> None:
    assert 0 <= scheduler.jitter_ms(uid, tick, most, until_next) <= min(most, until_next - 1)
    assert 0 <= scheduler.jitter_ms(uid, tick, most, None) <= most


@rule("6.1")
@settings(max_examples=100, deadline=None, derandomize=True)
@given(schedule_strategies.EXPRESSIONS, schedule_strategies.ZONES, st.integers(1, 30 * DAY_MS))
def test_ticks_with_jitter_are_due_in_the_order_of_the_ticks(text: str, zone: str, jitter: int) -> None:
    it = made(text, time_zone=zone, jitter_ms=jitter)
    dues: list[int] = []
    for _ in range(5):
        due = scheduler.due_ms(it)
        assert due is not None
        assert it.next_tick_ms is not None
        dues.append(due)
        ticks, it = fire(it, due)
        assert len(ticks) == 1
    assert dues == sorted(set(dues))


@rule("6.5")
def test_a_tick_whose_jitter_ends_after_the_start_of_the_broker_is_not_missed() -> None:
    it = made(jitter_ms=12 * HOUR_MS, catch_up=CatchUp.NONE)
    due = scheduler.due_ms(it)
    assert due is not None
    since = (at("02T02:00") + due) // 2
    assert fire(it, since, serving_since_ms=since) == ([], it)
    ticks, after = fire(it, due, serving_since_ms=since)
    assert (ticks, after.missed_count) == ([at("02T02:00")], 0)
    ticks, after = fire(it, due + 1, serving_since_ms=due + 1)
    assert (ticks, after.missed_count) == ([], 1)


# ------------------------------------------------------------------------------------------------ properties


@rule("6.5")
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    schedule_strategies.EXPRESSIONS,
    schedule_strategies.changes(),
    st.sampled_from(CatchUp),
    st.integers(1, 5),
    st.sampled_from([0, MINUTE_MS, 3 * HOUR_MS]),
    st.sampled_from([0, HOUR_MS]),
    st.lists(st.tuples(st.integers(0, 40 * HOUR_MS), st.booleans()), min_size=1, max_size=5),
)
def test_every_tick_fires_once_or_is_missed_whatever_stops_come_between(
    text: str,
    change: tuple[str, int],
    catch_up: CatchUp,
    most: int,
    jitter: int,
    deadline: int,
    turns: list[tuple[int, bool]],
) -> None:
    zone, changed_s = change
    begin = changed_s * 1000 - 24 * HOUR_MS
    it = made(
        text,
        now_ms=begin,
        time_zone=zone,
        catch_up=catch_up,
        max_catch_up_runs=most,
        jitter_ms=jitter,
        starting_deadline_ms=deadline,
    )
    now, since, fired = begin, begin, list[int]()
    for passes, restarts in turns:
        now += passes
        since = now if restarts else since
        while True:
            ticks, after = fire(it, now, serving_since_ms=since)
            fired += ticks
            if after == it:
                break
            it = after
    assert fired == sorted(set(fired))
    passed = scheduler.timing(it.spec).count(begin, now)
    # The last tick may still wait for the end of its jitter.
    waiting = int(it.next_tick_ms is not None and it.next_tick_ms <= now)
    assert len(fired) + it.missed_count + waiting == passed
    assert it.run_count == len(fired)
