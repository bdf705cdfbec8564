"""Cron expressions: what is read, what is refused and what to write instead (api 9.13).

Reads what Kubernetes' CronJob reads, and more: [second] minute hour day-of-month month weekday; names in any case;
weekday 0 and 7 = Sunday; `?` = `*`; `a/n` = `a-max/n`; `L`, `5L` = `L5`, `5#2`; the @ words. Each field is checked here
and handed to croniter as a plain list, which it cannot mistake: alone it takes `48-48` and `R`, and seconds last.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from typing import Final

import msgspec
from croniter import croniter

MOST_BYTES: Final = 128


class Invalid(ValueError):
    """A schedule that cannot be. field: path inside the schedule. The message has the remedy."""

    def __init__(self, field: str, message: str, reason: str = "SCHEDULE_INVALID") -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason


class Fields(msgspec.Struct, frozen=True):
    """What an expression lets through; every tuple ascends.

    days: of the month; last_day: also its last one. weekdays: 0 = Sunday; nth: weekday → its occurrences in a month,
    -1 = the last. *_given: the field is not `*`, `?` or `*/1`; both given: either matches. wild: the hour starts with
    `*` or `?`, so that the expression goes by real slots and not by local days [6.4].
    """

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    last_day: bool
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    nth: dict[int, tuple[int, ...]]
    day_given: bool
    weekday_given: bool
    wild: bool

    def days_of(self, year: int, month: int) -> Sequence[int]:
        """The days of a month that the day fields let through, ascending; none if the month is not."""
        if month not in self.months:
            return ()
        first_weekday, length = monthrange(year, month)
        every = range(1, length + 1)
        if not self.day_given and not self.weekday_given:
            return every
        found: set[int] = set()
        if self.day_given:
            found.update(self.days)
            if self.last_day:
                found.add(length)
        if self.weekday_given:
            for weekday, places in [*((day, None) for day in self.weekdays), *self.nth.items()]:
                # monthrange counts from Monday, cron from Sunday.
                days = range((weekday - first_weekday - 1) % 7 + 1, length + 1, 7)
                found.update(days if places is None else _pick(days, places))
        return sorted(found.intersection(every))


def _pick(days: range, places: tuple[int, ...]) -> list[int]:
    return [days[place - 1 if place > 0 else place] for place in places if place <= len(days)]


def parse(text: str) -> Fields:
    """Read an expression. Raises Invalid with the path `cron` and the remedy."""
    written = _split(text)
    weekdays, nth = _split_weekdays(written[5])
    parts = [_rewrite(part, field) for part, field in zip(written[:5], _FIELDS, strict=True)]
    parts.append(_rewrite(weekdays, _WEEKDAY) if weekdays else "*")
    try:
        (minute, hour, day, month, weekday, second), _ = croniter.expand(" ".join([*parts[1:], parts[0]]))
    except ValueError as error:
        raise Invalid("cron", f"cannot read {text!r}: {error}") from error
    fields = Fields(
        seconds=_numbers(second, range(60)),
        minutes=_numbers(minute, range(60)),
        hours=_numbers(hour, range(24)),
        days=_numbers(day, range(1, 32)),
        last_day="l" in day,
        months=_numbers(month, range(1, 13)),
        weekdays=_numbers(weekday, range(7)) if weekdays else (),
        nth={day: tuple(sorted(places)) for day, places in sorted(nth.items())},
        day_given="*" not in parts[3].split(","),
        weekday_given="*" not in parts[5].split(",") or not weekdays,
        wild=written[2].startswith(("*", "?")),
    )
    if not _comes(fields):
        raise Invalid("cron", f"{text!r} never comes: write a day that one of its months has, or L for the last one")
    return fields


# ----------------------------------------------------------------------------------------------- whole expressions

_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def _split(text: str) -> list[str]:
    """The six fields of an expression in upper case, seconds first."""
    if len(text) > MOST_BYTES:
        raise Invalid("cron", f"the expression is too long: write at most {MOST_BYTES} bytes")
    if not text.isascii():
        # Also because other digits count as numbers and other letters become these in upper case.
        raise Invalid("cron", f"{text!r}: write plain ASCII, digits 0 to 9 and names such as MON")
    upper = text.strip().upper()
    if upper.startswith(("TZ=", "CRON_TZ=")):
        raise Invalid("cron", f"{text!r}: write the zone into the field time_zone, not into the expression")
    if upper.startswith("@"):
        return ["0", *_shorthand(text.strip()).split()]
    fields = upper.split()
    if len(fields) == 5:
        return ["0", *fields]
    if len(fields) == 6:
        return fields
    hint = "; a year is not read, write end_at_ms" if len(fields) == 7 else ""
    raise Invalid(
        "cron",
        f"{text!r} has {len(fields)} fields: write five, minute hour day month weekday, or six with seconds first{hint}",
    )


def _shorthand(text: str) -> str:
    word = text.lower()
    if word.split()[0] == "@every":
        raise Invalid("cron", f"{text!r} is no cron expression: write the interval into every_ms")
    if word == "@reboot":
        raise Invalid("cron", "@reboot has no meaning here: add a job when the program starts")
    if word not in _SHORTHANDS:
        raise Invalid("cron", f"{text!r} is unknown: write one of {' '.join(_SHORTHANDS)}, or five fields")
    return _SHORTHANDS[word]


def _comes(fields: Fields) -> bool:
    """Whether any month has a day for it. Every weekday comes, its fifth one too, if only in a leap year's February."""
    if fields.weekday_given or not fields.day_given or fields.last_day:
        return True
    return min(fields.days) <= max(monthrange(2024, month)[1] for month in fields.months)


# ---------------------------------------------------------------------------------------------------- one field


class _Field(msgspec.Struct, frozen=True):
    """top: where `*` and `a/n` end."""

    name: str
    low: int
    high: int
    top: int
    words: dict[str, int] = {}


_MONTHS: Final = {name: n for n, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
_WEEKDAYS: Final = {name: n for n, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
_WEEKDAY: Final = _Field("weekday", 0, 7, 6, _WEEKDAYS)
_FIELDS: Final = (
    _Field("second", 0, 59, 59),
    _Field("minute", 0, 59, 59),
    _Field("hour", 0, 23, 23),
    _Field("day of month", 1, 31, 31),
    _Field("month", 1, 12, 12, _MONTHS),
)
_STARS: Final = ("*", "?")
_PART: Final = re.compile(r"(\*|\?|[0-9]+|[A-Z]+)(?:-([0-9]+|[A-Z]+))?(?:/([0-9]+))?")
_NTH: Final = re.compile(r"([0-9]|[A-Z]{3})#([0-9]+)")
_LAST_WEEKDAY: Final = re.compile(r"L([0-9]|[A-Z]{3})|([0-9]|[A-Z]{3})L")


def _rewrite(text: str, field: _Field) -> str:
    """One field as a plain list of numbers, `*` or `L`."""
    return ",".join(_rewrite_part(part, field) for part in text.split(","))


def _rewrite_part(part: str, field: _Field) -> str:
    if field.name == "day of month" and part == "L":
        return "L"
    match = _PART.fullmatch(part)
    if match is None or (match[1] in _STARS and match[2]):
        remedy = _hint(part) or "; write numbers, ranges a-b and steps /n, with commas between them"
        raise Invalid("cron", f"cannot read the {field.name} {part!r}{remedy}")
    step = int(match[3]) if match[3] else 1
    if step == 0:
        raise Invalid("cron", f"{field.name} {part!r}: write a step of 1 or more after the /")
    if match[1] in _STARS and step == 1:
        return "*"
    low, high = _ends(match, part, field)
    return ",".join(str(_plain(number, field)) for number in range(low, high + 1, step))


def _ends(match: re.Match[str], part: str, field: _Field) -> tuple[int, int]:
    if match[1] in _STARS:
        return field.low, field.top
    low = _value(match[1], part, field)
    if match[2] is None:
        return low, max(field.top, low) if match[3] else low
    high = _value(match[2], part, field)
    if high < low:
        raise Invalid("cron", f"{field.name} {part!r} runs backwards: write {_unwrapped(match, low, high, field)}")
    return low, high


def _unwrapped(match: re.Match[str], low: int, high: int, field: _Field) -> str:
    """A wrapped range as two, in the user's own kind of words; one with a step number by number."""
    words = {number: word for word, number in field.words.items()} if match[1].isalpha() else {}
    if match[3]:
        size = field.top - field.low + 1
        numbers = [(n - field.low) % size + field.low for n in range(low, high + size + 1, int(match[3]))]
        return ",".join(words.get(number, str(number)) for number in numbers)
    lowest, highest = words.get(field.low, str(field.low)), words.get(field.top, str(field.top))
    head = match[1] if low >= field.top else f"{match[1]}-{highest}"
    return f"{head},{match[2] if high == field.low else f'{lowest}-{match[2]}'}"


def _split_weekdays(text: str) -> tuple[str, dict[int, set[int]]]:
    """The weekday field without its `5#2`, `5L` and `L5`, and those as weekday → occurrences, -1 = the last."""
    plain: list[str] = []
    nth: dict[int, set[int]] = {}
    for part in text.split(","):
        if match := _NTH.fullmatch(part):
            if not 1 <= int(match[2]) <= 5:
                raise Invalid("cron", f"weekday {part!r}: write 1 to 5 after the #, or 5L for the last Friday")
            nth.setdefault(_plain(_value(match[1], part, _WEEKDAY), _WEEKDAY), set()).add(int(match[2]))
        elif match := _LAST_WEEKDAY.fullmatch(part):
            nth.setdefault(_plain(_value(match[1] or match[2], part, _WEEKDAY), _WEEKDAY), set()).add(-1)
        else:
            plain.append(part)
    return ",".join(plain), nth


def _value(word: str, part: str, field: _Field) -> int:
    value = field.words.get(word, -1) if word.isalpha() else int(word)
    if not field.low <= value <= field.high:
        names = f" or {'/'.join(field.words)}" if field.words else ""
        raise Invalid("cron", f"{field.name} {part!r}: write {field.low} to {field.high}{names}{_hint(part)}")
    return value


def _plain(value: int, field: _Field) -> int:
    return value % 7 if field is _WEEKDAY else value


def _hint(part: str) -> str:
    if part.startswith(("R", "H")):
        return "; H and R are not read, spread definitions with jitter_ms"
    if "W" in part and not any(day in part for day in _WEEKDAYS):
        return "; W, the nearest working day, is not read"
    if part.startswith("L"):
        return "; L is read as a day of the month, and 5L as the last Friday"
    return ""


def _numbers(values: Sequence[object], every: range) -> tuple[int, ...]:
    return tuple(every) if "*" in values else tuple(sorted(value for value in set(values) if isinstance(value, int)))
