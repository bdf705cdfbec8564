"""The broker's cron against cronsim, an independent reader of the same language, and where croniter alone would go wrong.

They may disagree in the classes below alone, each pinned by an example; any other disagreement is a bug of one of them.
What differs in spelling only (`?`, `L5`, names before L, and `a-a/n`, which cronsim takes for `a/n`) is translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from anvilmq_broker.domain import cron, schedule
from tests.support.rules import rule
from tests.unit.domain import schedule_strategies
from tests.unit.domain.schedule_oracle import WEEKDAYS

HOUR_S = 3_600
DAY_S = 86_400
HALF_HOUR = timedelta(minutes=30)


class Difference:
    """A tick that one of the two has: at_s, and what the local clocks do there."""

    def __init__(self, text: str, zone_name: str, at_s: int, ours: bool) -> None:
        minute, hour = text.split()[:2]
        self.zone = ZoneInfo(zone_name)
        self.at_s = at_s
        self.ours = ours
        self.wild = hour[0] in "*?"
        self.by_minutes = minute[0] in "*?" and not self.wild
        """The hour is fixed and the minute is not: cronsim goes by real slots, ours by local days."""

    def local(self, at_s: int) -> datetime:
        """The local clock at an instant."""
        return datetime.fromtimestamp(at_s, self.zone)

    def shift(self, at_s: int) -> timedelta:
        """By how much the clocks were set forward at this instant."""
        new, old = self.local(at_s).utcoffset(), self.local(at_s - 1).utcoffset()
        assert new is not None
        assert old is not None
        return new - old

    def since_shift(self, within_s: int) -> tuple[int, timedelta]:
        """The seconds from the last shift to the tick, and the shift; at most that far back, else no shift."""
        for ago in range(self.at_s % 60, within_s, 60):
            if shift := self.shift(self.at_s - ago):
                return ago, shift
        return within_s, timedelta(0)


def gap_at_minutes(it: Difference) -> bool:
    """Gap, fixed hour, minute `*` or step: cronsim skips the day, ours is due once."""
    return it.ours and it.by_minutes and it.shift(it.at_s) > timedelta(0)


def fold_at_minutes(it: Difference) -> bool:
    """Fold, fixed hour, minute `*` or step: cronsim is due in both, ours in the first only."""
    return not it.ours and it.by_minutes and it.local(it.at_s).fold == 1


def half_hour_shift(it: Difference) -> bool:
    """A shift of half an hour: cronsim goes on by whole hours until midnight and loses the half hours it steps over."""
    if not it.ours or not (it.by_minutes or it.wild):
        return False
    ago, shift = it.since_shift(DAY_S)
    stepped_over = it.local(it.at_s).minute < 30 or ago < HOUR_S
    return abs(shift) == timedelta(minutes=30) and stepped_over


def gap_at_midnight(it: Difference) -> bool:
    """A gap that swallows midnight: cronsim takes the missing midnight for a slot, or steps over the hour after it."""
    if not (it.by_minutes or it.wild):
        return False
    ago, shift = it.since_shift(HOUR_S)
    swallowed = shift > timedelta(0) and it.local(it.at_s - ago - 1).date() < it.local(it.at_s - ago).date()
    return swallowed and (it.ours or ago == 0)


CLASSES = (gap_at_minutes, fold_at_minutes, gap_at_midnight, half_hour_shift)


def is_starred_pair(text: str) -> bool:
    """Day of month and weekday both given, one as `*/n`: cronsim wants both, ours either."""
    fields = cron.parse(text)
    _, _, day, _, weekday = text.split()
    return fields.day_given and fields.weekday_given and (day[0] in "*?" or weekday[0] in "*?")


def theirs(text: str, zone_name: str, after_s: int, until_s: int) -> list[int]:
    """The ticks of cronsim in (after_s, until_s], in s."""
    begin = datetime.fromtimestamp(after_s, UTC if zone_name == "Etc/UTC" else ZoneInfo(zone_name))
    # Begun inside a fold it also tells a tick of the first pass, which is over.
    return [tick for tick in _until(CronSim(translated(text), begin), until_s) if tick > after_s]


def _until(ticks: Iterator[datetime], until_s: int) -> Iterator[int]:
    for tick in ticks:
        if tick.timestamp() > until_s:
            return
        yield int(tick.timestamp())


def translated(text: str) -> str:
    """The same in cronsim's spelling."""
    *others, weekday = re.sub(r"\b(\w+)-\1/\d+", r"\1", text.upper().replace("?", "*")).split()
    weekday = re.sub(r"L([0-9A-Z]+)", r"\1L", weekday)
    for number, name in enumerate(WEEKDAYS):
        weekday = weekday.replace(f"{name}L", f"{number}L")
    return " ".join([*others, weekday])


def ours(text: str, zone_name: str, after_s: int, until_s: int) -> list[int]:
    """The broker's ticks in (after_s, until_s], in s."""
    when = schedule.parse_cron(text, zone_name)
    found: list[int] = []
    at: int | None = after_s * 1000
    while at is not None and (at := when.next_after(at)) is not None and at <= until_s * 1000:
        found.append(at // 1000)
    return found


@rule("6.4")
@settings(max_examples=800, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
@given(schedule_strategies.EXPRESSIONS, schedule_strategies.changes(), st.integers(-36 * 60, 6 * 60))
def test_ours_agrees_with_cronsim_but_for_the_known_classes(text: str, change: tuple[str, int], minutes: int) -> None:
    assume(not is_starred_pair(text))
    zone_name, changed_s = change
    after_s = changed_s + minutes * 60
    until_s = changed_s + 2 * DAY_S
    mine, other = (set(ticks(text, zone_name, after_s, until_s)) for ticks in (ours, theirs))
    unknown = [
        (at, "ours" if at in mine else "cronsim's")
        for at in sorted(mine ^ other)
        if not any(known(Difference(text, zone_name, at, at in mine)) for known in CLASSES)
    ]
    assert unknown == []


def bare(text: str, zone_name: str, after_s: int, until_s: int) -> list[int]:
    """The ticks of croniter in (after_s, until_s], in s."""
    found = croniter(text, datetime.fromtimestamp(after_s, ZoneInfo(zone_name)))
    return list(_until(iter(lambda: found.get_next(datetime), None), until_s))


def shown(ticks: list[int], zone_name: str) -> list[str]:
    """Ticks as local days and times, with the offset from UTC."""
    return [datetime.fromtimestamp(at, ZoneInfo(zone_name)).strftime("%d %H:%M %z") for at in ticks]


EXAMPLES = {
    "fold, fixed hour": (
        ("52 1 * * *", "America/New_York", "2027-11-07T00:00", "2027-11-07T12:00"),
        {"ours": ["07 01:52 -0400"], "cronsim": ["07 01:52 -0400"], "croniter": ["07 01:52 -0400", "07 01:52 -0500"]},
    ),
    "fold, list of hours by a step": (
        ("12 1-4/2 * * *", "America/New_York", "2027-11-07T00:00", "2027-11-07T02:00"),
        {"ours": ["07 01:12 -0400"], "cronsim": ["07 01:12 -0400"], "croniter": ["07 01:12 -0400", "07 01:12 -0500"]},
    ),
    "gap, wild stepped hour": (
        ("0 */2 * * *", "Europe/Berlin", "2027-03-28T00:00", "2027-03-28T05:00"),
        {"ours": ["28 04:00 +0200"], "cronsim": ["28 04:00 +0200"], "croniter": ["28 03:00 +0200", "28 04:00 +0200"]},
    ),
    "gap, fixed hour, minute by a step": (
        ("*/20 2 * * *", "Europe/Berlin", "2027-03-28T00:00", "2027-03-28T12:00"),
        {"ours": ["28 03:00 +0200"], "cronsim": [], "croniter": ["28 03:00 +0200"]},
    ),
    "fold, fixed hour, minute by a step": (
        ("*/30 2 * * *", "Europe/Berlin", "2027-10-31T00:00", "2027-10-31T12:00"),
        {
            "ours": ["31 02:00 +0200", "31 02:30 +0200"],
            "cronsim": ["31 02:00 +0200", "31 02:30 +0200", "31 02:00 +0100", "31 02:30 +0100"],
            "croniter": ["31 02:00 +0200", "31 02:30 +0200", "31 02:00 +0100", "31 02:30 +0100"],
        },
    ),
    "half-hour shift, next run day": (
        ("*/30 12 * * 0-3", "Australia/Lord_Howe", "2027-10-02T12:30", "2027-10-03T13:00"),
        {
            "ours": ["03 12:00 +1100", "03 12:30 +1100"],
            "cronsim": ["03 12:30 +1100"],
            "croniter": ["03 12:00 +1100", "03 12:30 +1100"],
        },
    ),
    "half-hour shift, folded slot": (
        ("30 * * * *", "Australia/Lord_Howe", "2027-04-04T01:00", "2027-04-04T02:00"),
        {
            "ours": ["04 01:30 +1100", "04 01:30 +1030"],
            "cronsim": ["04 01:30 +1100"],
            "croniter": ["04 01:30 +1100", "04 01:30 +1030"],
        },
    ),
    "gap at midnight, slot that is not there": (
        ("0 */2 * * 0", "America/Santiago", "2027-09-04T12:00", "2027-09-05T03:00"),
        {
            "ours": ["05 02:00 -0300"],
            "cronsim": ["05 01:00 -0300", "05 02:00 -0300"],
            "croniter": ["05 01:00 -0300", "05 02:00 -0300"],
        },
    ),
    "gap at midnight, hour that is stepped over": (
        ("*/30 1 * * 0", "Atlantic/Azores", "2027-03-27T12:00", "2027-03-28T12:00"),
        {
            "ours": ["28 01:00 +0000", "28 01:30 +0000"],
            "cronsim": [],
            "croniter": ["28 01:00 +0000", "28 01:30 +0000"],
        },
    ),
    "day of month and weekday, one by a step": (
        ("0 0 */7 * 5", "Etc/UTC", "2027-02-04T12:00", "2027-02-08T12:00"),
        {"ours": ["05 00:00 +0000", "08 00:00 +0000"], "cronsim": [], "croniter": ["05 00:00 +0000", "08 00:00 +0000"]},
    ),
    "day of month and weekday with a number": (
        ("0 0 1 * 1#1", "Etc/UTC", "2027-03-31T12:00", "2027-04-05T12:00"),
        {
            "ours": ["01 00:00 +0000", "05 00:00 +0000"],
            "cronsim": ["01 00:00 +0000", "05 00:00 +0000"],
            "croniter": ["05 00:00 +0000"],
        },
    ),
}


@rule("6.4")
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_class_of_disagreement_has_an_example(name: str) -> None:
    (text, zone_name, *window), expected = EXAMPLES[name]
    zone = ZoneInfo(zone_name)
    after_s, until_s = (int(datetime.fromisoformat(at).replace(tzinfo=zone).timestamp()) for at in window)
    readers = {"ours": ours, "cronsim": theirs, "croniter": bare}
    assert {
        reader: shown(ticks(text, zone_name, after_s, until_s), zone_name) for reader, ticks in readers.items()
    } == expected
