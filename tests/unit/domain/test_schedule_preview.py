"""What a preview shows: the next ticks, the words, and what daylight saving time does to the ticks shown."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvilmq_broker.domain import commands, schedule, schedule_words
from anvilmq_broker.domain.commands import SchedulerSpec
from tests.support.rules import rule
from tests.unit.domain import schedule_strategies

BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    """An instant in ms."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def shown(spec: commands.SchedulerSpec, after: str, count: int = 5) -> list[str]:
    """The local times of a preview."""
    return [tick.local for tick in schedule_words.preview(spec, at(after), count).ticks]


def warnings(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The warnings of a preview."""
    return schedule_words.preview(SchedulerSpec(cron=cron, time_zone=zone), at(after), count).warnings


@rule("6.8")
def test_a_preview_shows_the_next_ticks_in_local_time_and_in_words() -> None:
    found = schedule_words.preview(SchedulerSpec(cron="30 2 * * *", time_zone=BERLIN), at("2027-01-01T00:00+01:00"), 2)
    assert found == schedule_words.Preview(
        ticks=[
            schedule_words.Tick(at("2027-01-01T02:30+01:00"), "2027-01-01T02:30:00+01:00"),
            schedule_words.Tick(at("2027-01-02T02:30+01:00"), "2027-01-02T02:30:00+01:00"),
        ],
        description="At 02:30 every day",
        warnings=[],
    )


@rule("6.8")
def test_an_interval_is_shown_in_utc() -> None:
    assert shown(SchedulerSpec(every_ms=90_000), "2027-01-01T00:00+01:00", 2) == [
        "2026-12-31T23:01:30+00:00",
        "2026-12-31T23:03:00+00:00",
    ]
    assert shown(SchedulerSpec(every_ms=250), "2027-01-01T00:00+00:00", 4)[-2:] == [
        "2027-01-01T00:00:00.750+00:00",
        "2027-01-01T00:00:01+00:00",
    ]


@rule("6.8")
def test_after_is_exclusive_and_start_and_end_are_inclusive() -> None:
    minutely = SchedulerSpec(cron="* * * * *", start_at_ms=at("2027-01-01T00:02Z"), end_at_ms=at("2027-01-01T00:04Z"))
    assert [tick[14:16] for tick in shown(minutely, "2027-01-01T00:00Z")] == ["02", "03", "04"]
    assert [tick[14:16] for tick in shown(minutely, "2027-01-01T00:02Z")] == ["03", "04"]
    assert shown(minutely, "2027-01-01T00:04Z") == []
    every = SchedulerSpec(every_ms=100, start_at_ms=1_000, end_at_ms=1_200)
    assert [tick.at_ms for tick in schedule_words.preview(every, 0, 9).ticks] == [1_000, 1_100, 1_200]


@rule("6.8")
@pytest.mark.parametrize(("limit", "count", "expected"), [(0, 3, 3), (2, 3, 2), (9, 3, 3), (1, 100, 1)])
def test_a_limit_is_obeyed(limit: int, count: int, expected: int) -> None:
    assert len(shown(SchedulerSpec(cron="* * * * *", limit=limit), "2027-01-01T00:00Z", count)) == expected


@rule("6.8")
def test_a_schedule_whose_end_is_over_shows_its_words_alone() -> None:
    over = SchedulerSpec(cron="0 2 * * *", end_at_ms=1_000)
    assert schedule_words.preview(over, at("2027-01-01T00:00Z"), 5) == schedule_words.Preview(
        [], "At 02:00 every day", []
    )


@rule("6.8")
def test_a_preview_of_what_is_not_accepted_is_refused() -> None:
    with pytest.raises(schedule.Invalid) as refused:
        schedule_words.preview(SchedulerSpec(cron="0 0 31 2 *"), 0, 5)
    assert refused.value.field == "cron"


@rule("6.8")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        (
            "30 2 * * *",
            BERLIN,
            "2027-03-27T12:00+01:00",
            "The tick of 28 March 2027 at 02:30 is moved out of the gap to 03:00.",
        ),
        (
            "*/20 2 * * *",
            BERLIN,
            "2027-03-27T12:00+01:00",
            "The ticks of 28 March 2027 from 02:00 to 02:40 are moved out of the gap to one at 03:00.",
        ),
        (
            "0 2,3 * * *",
            BERLIN,
            "2027-03-27T12:00+01:00",
            "The tick of 28 March 2027 at 02:00 is moved out of the gap to 03:00.",
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2027-10-02T12:00+10:30",
            "The tick of 3 October 2027 at 02:15 is moved out of the gap to 02:30.",
        ),
        (
            "0 0 * * *",
            "America/Santiago",
            "2027-09-04T12:00-04:00",
            "The tick of 5 September 2027 at 00:00 is moved out of the gap to 01:00.",
        ),
        (
            "0 12 30 * *",
            "Pacific/Apia",
            "2011-12-01T00:00-10:00",
            "The tick of 30 December 2011 at 12:00 is moved out of the gap to 31 December 2011, 00:00.",
        ),
        (
            "30 2 * * *",
            BERLIN,
            "2027-10-30T12:00+02:00",
            "The tick of 31 October 2027 runs once although 02:30 comes twice.",
        ),
        (
            "15 30 2 * * *",
            BERLIN,
            "2027-10-30T12:00+02:00",
            "The tick of 31 October 2027 runs once although 02:30:15 comes twice.",
        ),
        (
            "*/20 1-3 * * *",
            BERLIN,
            "2027-10-31T00:00+02:00",
            "The ticks of 31 October 2027 run once although 02:00 to 02:40 come twice.",
        ),
        (
            "0 */2 * * *",
            BERLIN,
            "2027-10-31T00:00+02:00",
            "The tick of 31 October 2027 runs twice because 02:00 comes twice.",
        ),
        (
            "*/20 * * * *",
            BERLIN,
            "2027-10-31T00:00+02:00",
            "The ticks of 31 October 2027 run twice because 02:00 to 02:40 come twice.",
        ),
    ],
)
def test_what_the_clocks_do_to_the_ticks_shown_is_said(cron: str, zone: str, after: str, expected: str) -> None:
    assert warnings(cron, zone, after, 12) == [expected]


@rule("6.8")
def test_warnings_are_in_the_order_of_time() -> None:
    assert warnings("30 2 * 3,10 SUNL", BERLIN, "2027-01-01T00:00Z", 4) == [
        "The tick of 28 March 2027 at 02:30 is moved out of the gap to 03:00.",
        "The tick of 31 October 2027 runs once although 02:30 comes twice.",
        "The tick of 26 March 2028 at 02:30 is moved out of the gap to 03:00.",
        "The tick of 29 October 2028 runs once although 02:30 comes twice.",
    ]


@rule("6.8")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "count"),
    [
        ("30 2 * * *", BERLIN, "2027-03-29T00:00+02:00", 100),  # After the gap.
        ("30 2 * * *", BERLIN, "2027-03-26T12:00+01:00", 1),  # The tick that is moved is not shown.
        ("0 * * * *", BERLIN, "2027-03-28T00:00+01:00", 5),  # By real slots a gap holds none.
        ("30 3 * * *", BERLIN, "2027-03-27T12:00+01:00", 5),
        ("30 1 * * *", BERLIN, "2027-10-30T12:00+02:00", 5),
        ("30 2 * * *", "Asia/Kolkata", "2027-03-27T12:00Z", 100),
        ("* * * * *", "", "2027-03-28T00:00Z", 100),
    ],
)
def test_nothing_is_said_when_the_clocks_do_nothing_to_the_ticks_shown(
    cron: str, zone: str, after: str, count: int
) -> None:
    assert warnings(cron, zone, after, count) == []


@rule("6.8")
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    schedule_strategies.EXPRESSIONS,
    schedule_strategies.ZONES,
    schedule_strategies.INSTANTS_MS,
    st.integers(0, 400 * 86_400_000),
    st.integers(0, 400 * 86_400_000),
    st.integers(0, 9),
)
def test_a_preview_is_what_comes_and_lies_between_start_and_end(
    text: str, zone: str, after_ms: int, start_in: int, lasts: int, limit: int
) -> None:
    start_ms = after_ms - 86_400_000 + start_in
    spec = SchedulerSpec(
        cron=text, time_zone=zone, start_at_ms=max(start_ms, 0), end_at_ms=max(start_ms + lasts, 1), limit=limit
    )
    ticks = [tick.at_ms for tick in schedule_words.preview(spec, after_ms, 5).ticks]
    when = schedule.parse_cron(text, zone)
    low = max(after_ms, spec.start_at_ms - 1)
    assert len(ticks) == min(when.count(low, spec.end_at_ms), 5, limit or 5)
    assert [when.next_after(tick) for tick in [low, *ticks][: len(ticks)]] == ticks
    assert all(after_ms < tick and spec.start_at_ms <= tick <= spec.end_at_ms for tick in ticks)


@rule("6.8")
def test_the_last_ticks_of_time_are_shown() -> None:
    spec = SchedulerSpec(cron="0 0 31 12 *", time_zone="Pacific/Kiritimati")
    assert shown(spec, "9998-12-01T00:00Z") == ["9998-12-31T00:00:00+14:00", "9999-12-31T00:00:00+14:00"]
