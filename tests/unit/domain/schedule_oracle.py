"""Cron by brute force: walks every minute or second in UTC, looks at the local clock, applies rule 6.4 to the letter.

Knows nothing of the broker's code: it reads expressions itself, as slowly as it likes, and trusts only the standard
library's zones.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

MONTHS = ("", *"JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split())
WEEKDAYS = tuple("SUN MON TUE WED THU FRI SAT".split())
ZONES = (
    "Etc/UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Atlantic/Azores",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Antarctica/Troll",
)
LOOK_BACK_S = 36 * 3600
"""Longer than any clock was ever set back: walls that were there before must be known."""


class Expression:
    """The values that each field of an expression lets through."""

    def __init__(self, text: str) -> None:
        fields = text.upper().split()
        self.second_text, self.minute_text, self.hour_text, self.day_text, self.month_text, self.weekday_text = (
            fields if len(fields) == 6 else ["0", *fields]
        )
        self.seconds = _values(self.second_text, 0, 59)
        self.minutes = _values(self.minute_text, 0, 59)
        self.hours = _values(self.hour_text, 0, 23)
        self.months = _values(self.month_text, 1, 12, MONTHS)
        self.wild = self.hour_text[0] in "*?"
        self._days: dict[datetime, bool] = {}

    def is_due(self, wall: datetime) -> bool:
        """Whether a local clock that shows this is one of the expression's."""
        if wall.second not in self.seconds or wall.minute not in self.minutes or wall.hour not in self.hours:
            return False
        day = wall.replace(hour=0, minute=0, second=0)
        if day not in self._days:
            self._days[day] = self._is_day(day)
        return self._days[day]

    def _is_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        of_month = any(_is_day_of_month(part, day) for part in self.day_text.split(","))
        of_week = any(_is_weekday(part, day) for part in self.weekday_text.split(","))
        if _is_given(self.day_text) and _is_given(self.weekday_text):
            return of_month or of_week
        return of_month and of_week


def _is_given(text: str) -> bool:
    return not any(re.fullmatch(r"[*?](/1)?", part) for part in text.split(","))


def _is_day_of_month(part: str, day: datetime) -> bool:
    length = monthrange(day.year, day.month)[1]
    return day.day == length if part == "L" else day.day in _values(part, 1, 31)


def _is_weekday(part: str, day: datetime) -> bool:
    cron_day = day.isoweekday() % 7
    if "#" in part:
        name, place = part.split("#")
        return _number(name, WEEKDAYS) % 7 == cron_day and (day.day + 6) // 7 == int(place)
    if part != "L" and "L" in part:
        is_last = (day + timedelta(days=7)).month != day.month
        return _number(part.replace("L", ""), WEEKDAYS) % 7 == cron_day and is_last
    return cron_day in {value % 7 for value in _values(part, 0, 7, WEEKDAYS)}


def _number(text: str, names: tuple[str, ...]) -> int:
    return names.index(text) if text in names else int(text)


@lru_cache(maxsize=10_000)
def _values(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in ("*", "?"):
            start, end = low, 6 if high == 7 else high
        else:
            start = _number(first, names)
            end = _number(last, names) if last else (6 if high == 7 else high) if step else start
        found.update(
            value for value in range(low, high + 1) if start <= value <= end and (value - start) % int(step or 1) == 0
        )
    return frozenset(found)


def ticks(text: str, zone_name: str, after_s: int, until_s: int, step_s: int = 60) -> list[int]:
    """The ticks of (after_s, until_s], in s since the epoch; both must be multiples of step_s.

    step_s: 60 for five fields in a zone whose offsets are whole minutes, else 1.
    """
    expression = Expression(text)
    return (
        list(_wild(expression, zone_name, after_s, until_s, step_s))
        if expression.wild
        else list(_fixed(expression, zone_name, after_s, until_s, step_s))
    )


def _wild(expression: Expression, zone_name: str, after_s: int, until_s: int, step_s: int) -> Iterator[int]:
    """At every real slot, the folded hour included."""
    for at, wall in _walk(zone_name, after_s + step_s, until_s, step_s):
        if expression.is_due(wall):
            yield at


def _fixed(expression: Expression, zone_name: str, after_s: int, until_s: int, step_s: int) -> Iterator[int]:
    """Once a local day: in the gap at the first valid instant after it, in the fold at the first of the two."""
    step = timedelta(seconds=step_s)
    seen: set[datetime] = set()
    previous: datetime | None = None
    for at, wall in _walk(zone_name, after_s - LOOK_BACK_S, until_s, step_s):
        due = wall not in seen and expression.is_due(wall)
        while previous is not None and previous + step < wall:
            previous += step
            due = due or (previous not in seen and expression.is_due(previous))
        seen.add(wall)
        previous = wall
        if due and at > after_s:
            yield at


@lru_cache(maxsize=64)
def _walk(zone_name: str, first_s: int, last_s: int, step_s: int) -> tuple[tuple[int, datetime], ...]:
    """Every instant with what the local clock shows."""
    zone = ZoneInfo(zone_name)
    return tuple(
        (at, datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)) for at in range(first_s, last_s + 1, step_s)
    )


@lru_cache(maxsize=1024)
def changes(zone_name: str, year: int) -> tuple[int, ...]:
    """The hours of a year, in s since the epoch, in which a zone's clocks change."""
    zone = ZoneInfo(zone_name)
    begin, end = (int(datetime(each, 1, 1, tzinfo=UTC).timestamp()) for each in (year, year + 1))
    offsets = [datetime.fromtimestamp(at, zone).utcoffset() for at in range(begin, end + 1, 3600)]
    return tuple(begin + n * 3600 for n, (old, new) in enumerate(pairwise(offsets)) if old != new)
