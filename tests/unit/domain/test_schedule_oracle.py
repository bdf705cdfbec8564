"""Ticks against brute force: every minute or second around a change of the clocks, rule 6.4 to the letter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anvilmq_broker.domain import schedule
from tests.support.rules import rule
from tests.unit.domain import schedule_oracle, schedule_strategies

HOUR_S = 3_600
EXPRESSIONS = (
    "30 2 * * *",
    "*/20 2 * * *",
    "52 1 * * *",
    "12 1-4/2 * * *",
    "0 0 * * *",
    "30 0,1,23 * * *",
    "0 2,3 * * *",
    "*/7 0-3 * * SUN",
    "*/30 */2 * * *",
    "0 * * * *",
    "45 ? L * 5",
)
HISTORY = {
    "Pacific/Apia": (2010, 2011),
    "Pacific/Kiritimati": (1994,),
    "America/Caracas": (2007, 2016),
    "Asia/Pyongyang": (2015, 2018),
    "Africa/Cairo": (2010, 2014),
    "Asia/Gaza": (2023,),
    "Europe/Lisbon": (1992, 1996),
}
"""Zones with years in which clocks changed in ways that they do not any more."""


def walked(when: schedule.Timing, after_s: int, until_s: int) -> list[int]:
    """The ticks of (after_s, until_s] in s, one by one."""
    found: list[int] = []
    at = after_s * 1000
    while (tick := when.next_after(at)) is not None and tick <= until_s * 1000:
        found.append(tick // 1000)
        at = tick
    return found


def agree(text: str, zone_name: str, after_s: int, until_s: int, step_s: int) -> None:
    """Next, count and previous agree with brute force in this window."""
    when = schedule.parse_cron(text, zone_name)
    expected = schedule_oracle.ticks(text, zone_name, after_s, until_s, step_s)
    assert walked(when, after_s, until_s) == expected
    assert when.count(after_s * 1000, until_s * 1000) == len(expected)
    last = when.last_until(until_s * 1000, after_s * 1000)
    assert last == (expected[-1] * 1000 if expected else None)


@rule("6.4")
@pytest.mark.parametrize(
    ("zone_name", "year"),
    [(zone_name, 2027) for zone_name in schedule_oracle.ZONES if schedule_oracle.changes(zone_name, 2027)]
    + [(zone_name, year) for zone_name, years in HISTORY.items() for year in years],
)
def test_every_change_of_a_years_clocks_is_met_as_by_brute_force(zone_name: str, year: int) -> None:
    changes = schedule_oracle.changes(zone_name, year)
    assert changes
    for changed_s in changes:
        for text in EXPRESSIONS:
            agree(text, zone_name, changed_s - 30 * HOUR_S, changed_s + 30 * HOUR_S, 60)


@rule("6.4")
@pytest.mark.parametrize("zone_name", [zone for zone in schedule_oracle.ZONES if schedule_oracle.changes(zone, 2027)])
def test_a_search_may_begin_anywhere_in_a_gap_and_a_fold(zone_name: str) -> None:
    for changed_s in schedule_oracle.changes(zone_name, 2027):
        begin, end = changed_s - 3 * HOUR_S, changed_s + 30 * HOUR_S
        for text in EXPRESSIONS:
            when = schedule.parse_cron(text, zone_name)
            ticks = schedule_oracle.ticks(text, zone_name, begin - 60, end)
            for after_s in range(begin, changed_s + 4 * HOUR_S, 15 * 60):
                for after_ms in (after_s * 1000, after_s * 1000 - 1):
                    coming = [tick * 1000 for tick in ticks if tick * 1000 > after_ms]
                    found = when.next_after(after_ms)
                    assert found == coming[0] if coming else found is None or found > end * 1000
                    assert when.count(after_ms, end * 1000) == len(coming)


@rule("6.4")
@settings(max_examples=250, deadline=None, derandomize=True)
@given(schedule_strategies.EXPRESSIONS, schedule_strategies.changes(), st.integers(-30, 12))
@example("0 12 * * FRI", ("Pacific/Apia", 1_325_239_200), -24)
@example("30 0 * * 0", ("America/Santiago", 1_820_116_800), -12)
@example("*/30 12 * * 0-3", ("Australia/Lord_Howe", 1_822_487_400 // 3600 * 3600), -12)
def test_random_expressions_are_due_as_by_brute_force(text: str, change: tuple[str, int], hours: int) -> None:
    zone_name, changed_s = change
    agree(text, zone_name, changed_s + hours * HOUR_S, changed_s + 30 * HOUR_S, 60)


@rule("6.4")
@settings(max_examples=60, deadline=None, derandomize=True)
@given(schedule_strategies.SECOND_EXPRESSIONS, schedule_strategies.changes(), st.integers(-2 * HOUR_S, HOUR_S))
def test_random_seconds_are_due_as_by_brute_force(text: str, change: tuple[str, int], seconds: int) -> None:
    zone_name, changed_s = change
    # Walls more than a few hours back cannot come again in these years.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule_oracle, "LOOK_BACK_S", 3 * HOUR_S)
        agree(text, zone_name, changed_s + seconds, changed_s + 2 * HOUR_S, 1)


@rule("6.4")
@pytest.mark.parametrize("text", ["*/7 10 23,0 * * *", "30 */2 * * * *", "5 * 0-1 * * *"])
def test_a_shift_that_is_no_whole_minute_is_met_as_by_brute_force(text: str) -> None:
    (changed_s,) = schedule_oracle.changes("Africa/Monrovia", 1972)
    agree(text, "Africa/Monrovia", changed_s - 2 * HOUR_S, changed_s + 3 * HOUR_S, 1)


@rule("6.4")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(schedule_strategies.DAYS, schedule_strategies.MONTHS, schedule_strategies.WEEKDAYS)
@example("31", "2", "*")
@example("*", "2", "1#5")
def test_only_what_never_comes_is_refused_as_such(day: str, month: str, weekday: str) -> None:
    text = f"0 0 {day} {month} {weekday}"
    expression = schedule_oracle.Expression(text)
    # 2028 has a 29 February; 2044 one that is the fifth Monday.
    days = [datetime(year, 1, 1) + timedelta(days=n) for year in (2028, 2044) for n in range(366)]  # noqa: DTZ001
    assert schedule_strategies.comes(text) or not any(expression.is_due(each) for each in days)
    if schedule_strategies.comes(text):
        assert schedule.parse_cron(text).next_after(1_800_000_000_000) is not None


@rule("6.4")
def test_the_rarest_day_is_found_decades_ahead() -> None:
    when = schedule.parse_cron("0 0 * 2 1#5")
    found = [int(datetime(year, 2, 29, tzinfo=UTC).timestamp() * 1000) for year in (2016, 2044, 2072, 2112)]
    assert [when.next_after(at) for at in found] == [
        *found[1:],
        int(datetime(2140, 2, 29, tzinfo=UTC).timestamp() * 1000),
    ]
