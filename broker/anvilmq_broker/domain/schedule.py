"""When a recurring definition is due: cron expressions in a time zone, and fixed intervals (semantics 6.1, 6.4, 6.5).

croniter parses and expands an expression once a definition; what is next, previous, how many, is found here on the
field sets. Time is cut at the zone's changes into stretches of one offset; inside one, wall clock and instants run alike,
and a day's slots are counted by arithmetic, so that years of seconds cost a look at each day. Rules of daylight saving
time: an expression with a fixed hour is due once a local day, in a gap at the first valid instant after it, in a fold
at the first of the two; one whose hour starts with `*` or `?` is due at every real slot, the folded ones included.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final, Protocol

import msgspec
from croniter import croniter

from anvilmq_broker.domain import localtime

LEAST_EVERY_MS: Final = 100
MOST_CRON_BYTES: Final = 128
LAST_MS: Final = 253_402_300_799_999
"""No tick lies after the year 9999."""

_FIRST_MS: Final = -86_400_000
_DAY_S: Final = 86_400
_YEAR_S: Final = 366 * _DAY_S
_LOOK_BACK_S: Final = 3 * _DAY_S
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_SEARCH_YEARS: Final = 8 + 1
"""29 February comes at least once in eight years (1896-1904, 2096-2104)."""


class Invalid(ValueError):
    """A schedule that cannot be. field: path inside the schedule. The message has the remedy."""

    def __init__(self, field: str, message: str, reason: str = "SCHEDULE_INVALID") -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason


class Timing(Protocol):
    """What a schedule is due by. Instants are Unix ms; all ranges are (after, until]."""

    def next_after(self, after_ms: int) -> int | None:
        """The first tick later than after_ms; None when there is none to the end of time."""

    def last_until(self, until_ms: int, after_ms: int) -> int | None:
        """The last tick in (after_ms, until_ms], or None."""

    def count(self, after_ms: int, until_ms: int) -> int:
        """How many ticks lie in (after_ms, until_ms], by arithmetic."""


class Every(msgspec.Struct, frozen=True):
    """Ticks at offset_ms + n·every_ms since the Unix epoch. every_ms ≥ 100, 0 ≤ offset_ms < every_ms."""

    every_ms: int
    offset_ms: int = 0

    def next_after(self, after_ms: int) -> int | None:
        """See Timing."""
        found = ((after_ms - self.offset_ms) // self.every_ms + 1) * self.every_ms + self.offset_ms
        return found if found <= LAST_MS else None

    def last_until(self, until_ms: int, after_ms: int) -> int | None:
        """See Timing."""
        found = (until_ms - self.offset_ms) // self.every_ms * self.every_ms + self.offset_ms
        return found if found > after_ms else None

    def count(self, after_ms: int, until_ms: int) -> int:
        """See Timing."""
        if until_ms <= after_ms:
            return 0
        return (until_ms - self.offset_ms) // self.every_ms - (after_ms - self.offset_ms) // self.every_ms


class Cron(msgspec.Struct, frozen=True):
    """A parsed expression in its zone.

    days: days of the month; last_day: also the last one. weekdays: 0 = Sunday; nth: for a weekday the occurrences in a
    month, -1 = the last. *_given: the field is not `*`, `?` or `*/1`; both given: either matches. wild: the hour starts
    with `*` or `?`.
    """

    text: str
    zone_name: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    last_day: bool
    months: frozenset[int]
    weekdays: frozenset[int]
    nth: dict[int, frozenset[int]]
    day_given: bool
    weekday_given: bool
    wild: bool

    def next_after(self, after_ms: int) -> int | None:
        """See Timing."""
        start = max(after_ms, _FIRST_MS) // 1000
        # A year first: nearly every expression comes within one, and stretches are found year by year.
        for until in (start + _YEAR_S, start + _SEARCH_YEARS * _YEAR_S):
            for piece in self._pieces(start, min(until, LAST_MS // 1000)):
                wall = piece.low if piece.moved else self._first_slot(piece.low, piece.high)
                if wall is not None:
                    return (wall - piece.offset) * 1000
        return None

    def last_until(self, until_ms: int, after_ms: int) -> int | None:
        """See Timing."""
        until, after = until_ms // 1000, max(after_ms, _FIRST_MS) // 1000
        for span in (_YEAR_S, until - after):
            for piece in reversed(list(self._pieces(max(after, until - span), until))):
                wall = piece.low if piece.moved else self._last_slot(piece.low, piece.high)
                if wall is not None:
                    return (wall - piece.offset) * 1000
        return None

    def count(self, after_ms: int, until_ms: int) -> int:
        """See Timing."""
        pieces = self._pieces(max(after_ms, _FIRST_MS) // 1000, min(until_ms, LAST_MS) // 1000)
        return sum(1 if piece.moved else self._count_slots(piece.low, piece.high) for piece in pieces)

    def matches_day(self, day: date) -> bool:
        """Whether the day fields let this local day through."""
        if day.month not in self.months:
            return False
        if self.day_given and self.weekday_given:
            return self._day_fits(day) or self._weekday_fits(day)
        return self._day_fits(day) if self.day_given else not self.weekday_given or self._weekday_fits(day)

    # ------------------------------------------------------------------------------------- inside: walls, in s

    def _day_fits(self, day: date) -> bool:
        return day.day in self.days or (self.last_day and day.day == monthrange(day.year, day.month)[1])

    def _weekday_fits(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        if weekday in self.weekdays:
            return True
        wanted = self.nth.get(weekday)
        if wanted is None:
            return False
        last = day.day + 7 > monthrange(day.year, day.month)[1]
        return (day.day - 1) // 7 + 1 in wanted or (last and -1 in wanted)

    def _pieces(self, after_s: int, until_s: int) -> Iterator[_Piece]:
        """Where ticks of (after_s, until_s] can lie: walls [low, high) that run with the instants at one offset."""
        seen = -(1 << 60)
        before: int | None = None
        for start, end, offset in localtime.stretches(self.zone_name, after_s - _LOOK_BACK_S, until_s + 1):
            low, high = start + offset, end + offset
            if self.wild:
                lowest = low
            else:
                skipped = before is not None and offset > before and self._first_slot(start + before, low) is not None
                if skipped and after_s < start <= until_s and self._first_slot(low, low + 1) is None:
                    # Slots that the clocks leave out are due together, at the first instant after the gap.
                    yield _Piece(low, low + 1, offset, moved=True)
                lowest = max(low, seen)
                seen = max(seen, high)
            before = offset
            lowest, high = max(lowest, after_s + 1 + offset), min(high, until_s + 1 + offset)
            if lowest < high:
                yield _Piece(lowest, high, offset)

    def _first_slot(self, low: int, high: int) -> int | None:
        """The first slot in the walls [low, high)."""
        for day in range(low // _DAY_S, (high - 1) // _DAY_S + 1):
            if not self.matches_day(date.fromordinal(_EPOCH_ORDINAL + day)):
                continue
            found = self._slot_from(max(low - day * _DAY_S, 0))
            if found is not None:
                return day * _DAY_S + found if day * _DAY_S + found < high else None
        return None

    def _last_slot(self, low: int, high: int) -> int | None:
        """The last slot in the walls [low, high)."""
        for day in range((high - 1) // _DAY_S, low // _DAY_S - 1, -1):
            if not self.matches_day(date.fromordinal(_EPOCH_ORDINAL + day)):
                continue
            found = self._slot_before(min(high - day * _DAY_S, _DAY_S))
            if found is not None:
                return day * _DAY_S + found if day * _DAY_S + found >= low else None
        return None

    def _count_slots(self, low: int, high: int) -> int:
        """How many slots lie in the walls [low, high)."""
        first, last = low // _DAY_S, (high - 1) // _DAY_S
        each = len(self.hours) * len(self.minutes) * len(self.seconds)
        total = 0
        for day in range(first, last + 1):
            if self.matches_day(date.fromordinal(_EPOCH_ORDINAL + day)):
                total += each
                if day == first:
                    total -= self._slots_below(low - day * _DAY_S)
                if day == last:
                    total -= each - self._slots_below(high - day * _DAY_S)
        return total

    def _slots_below(self, second: int) -> int:
        """Slots of a day before this second of it, 0..86400."""
        hour, minute, rest = second // 3600, second // 60 % 60, second % 60
        total = bisect_left(self.hours, hour) * len(self.minutes) * len(self.seconds)
        if hour in self.hours:
            total += bisect_left(self.minutes, minute) * len(self.seconds)
            if minute in self.minutes:
                total += bisect_left(self.seconds, rest)
        return total

    def _slot_from(self, second: int) -> int | None:
        """The first slot of a day at or after this second of it."""
        return self._slot(self._slots_below(second))

    def _slot_before(self, second: int) -> int | None:
        """The last slot of a day before this second of it."""
        return self._slot(self._slots_below(second) - 1)

    def _slot(self, place: int) -> int | None:
        """The slot of that place in a day, in seconds."""
        in_hour = len(self.minutes) * len(self.seconds)
        if not 0 <= place < len(self.hours) * in_hour:
            return None
        minute, second = divmod(place % in_hour, len(self.seconds))
        return (self.hours[place // in_hour] * 60 + self.minutes[minute]) * 60 + self.seconds[second]


class _Piece(msgspec.Struct, frozen=True):
    """Walls [low, high) at one offset from UTC, in seconds. moved: one tick at `low`, moved there out of a gap."""

    low: int
    high: int
    offset: int
    moved: bool = False


# ---------------------------------------------------------------------------------------------------- parsing

_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = {name: n for n, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
_WEEKDAYS: Final = {name: n for n, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}


class _Field(msgspec.Struct, frozen=True):
    name: str
    low: int
    high: int
    words: dict[str, int] = {}


_WEEKDAY: Final = _Field("weekday", 0, 7, _WEEKDAYS)
_FIELDS: Final = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
)
_PART: Final = re.compile(r"(\*|\?|[0-9]+|[A-Z]+)(?:-([0-9]+|[A-Z]+))?(?:/([0-9]+))?")
_NTH: Final = re.compile(r"([0-9]|[A-Z]{3})#([0-9]+)")
_LAST_WEEKDAY: Final = re.compile(r"(?:L([0-9]|[A-Z]{3})|([0-9]|[A-Z]{3})L)")
_WILD_DAY: Final = frozenset({"*", "?", "*/1", "?/1"})
_MOST_STEP: Final = 1_000_000


def parse_every(every_ms: int, offset_ms: int = 0) -> Every:
    """Check an interval. Raises Invalid with the path every_ms or offset_ms."""
    if every_ms < LEAST_EVERY_MS:
        raise Invalid("every_ms", f"every_ms is {every_ms}: it must be at least {LEAST_EVERY_MS}")
    if not 0 <= offset_ms < every_ms:
        raise Invalid("offset_ms", f"offset_ms is {offset_ms}: it must be from 0 to every_ms - 1 ({every_ms - 1})")
    return Every(every_ms, offset_ms)


def parse_cron(text: str, zone_name: str = "") -> Cron:
    """Read an expression as Kubernetes' CronJob does, and more (api 9.13). Raises Invalid naming the remedy.

    Fields: [second] minute hour day-of-month month weekday; names in any case, weekday 0 and 7 = Sunday, `?` = `*`,
    `a/n` = `a-max/n`, `L`, `5L` = `L5`, `5#2`, and the @ words of CronJob.
    """
    fields = _split(text)
    try:
        zone = localtime.get_zone(zone_name).key
    except localtime.UnknownZone as error:
        hint = f"; did you mean {error.nearest}?" if error.nearest else "; write an IANA name such as Europe/Berlin"
        raise Invalid("time_zone", f"there is no time zone {zone_name!r}{hint}", "TIME_ZONE_UNKNOWN") from error
    weekdays, nth = _split_weekdays(fields[5])
    parts = [_rewrite(part, field) for part, field in zip(fields[:5], _FIELDS, strict=True)]
    parts.append(_rewrite(weekdays, _WEEKDAY) if weekdays else "*")
    cron = _expand(text, fields, parts, zone)
    if nth:
        cron = msgspec.structs.replace(
            cron,
            weekdays=cron.weekdays if weekdays else frozenset(),
            nth={day: frozenset(places) for day, places in nth.items()},
        )
    if not _comes(cron):
        raise Invalid("cron", f"{text!r} never comes: no month it names has such a day")
    return cron


def _split(text: str) -> list[str]:
    """The six fields of an expression, seconds first."""
    upper = text.strip().upper()
    if len(text.encode()) > MOST_CRON_BYTES:
        raise Invalid("cron", f"the expression has {len(text.encode())} bytes: at most {MOST_CRON_BYTES} are read")
    if upper.startswith(("TZ=", "CRON_TZ=")):
        raise Invalid("cron", "a zone inside the expression is refused: put it into the time zone field")
    if upper.startswith("@"):
        return ["0", *_shorthand(text.strip()).split()]
    fields = upper.split()
    if len(fields) == 5:
        return ["0", *fields]
    if len(fields) == 6:
        return fields
    hint = "; a year field is not read" if len(fields) == 7 else ""
    raise Invalid(
        "cron",
        f"{text!r} has {len(fields)} fields: write minute hour day month weekday, with seconds first if you need them{hint}",
    )


def _shorthand(text: str) -> str:
    word = text.lower().split()[0]
    if word == "@every":
        raise Invalid("cron", f"{text!r} is not cron: write it as an interval, in the field every")
    if word == "@reboot":
        raise Invalid("cron", "@reboot has no meaning here: add a job when the program starts")
    if word not in _SHORTHANDS or word != text.lower():
        raise Invalid("cron", f"{text!r} is unknown: write one of {' '.join(_SHORTHANDS)}, or five fields")
    return _SHORTHANDS[word]


def _rewrite(text: str, field: _Field) -> str:
    """One field as a plain list of numbers, `*` or `L`, which croniter cannot mistake."""
    return ",".join(_rewrite_part(part, text, field) for part in text.split(","))


def _rewrite_part(part: str, text: str, field: _Field) -> str:
    if field.name == "day of month" and part == "L":
        return "L"
    match = _PART.fullmatch(part)
    if match is None or (match[1] in "*?" and match[2]):
        raise Invalid("cron", f"{field.name} {text!r}: cannot read {part!r}{_hint(part)}")
    step = int(match[3]) if match[3] else 1
    if not 1 <= step <= _MOST_STEP:
        raise Invalid("cron", f"{field.name} {part!r}: write a step of 1 or more after the /")
    if match[1] in "*?" and step == 1:
        return "*"
    low, high = _ends(match, part, field)
    numbers = range(low, high + 1, step)
    return ",".join(str(number % 7 if field.name == "weekday" else number) for number in numbers)


def _ends(match: re.Match[str], part: str, field: _Field) -> tuple[int, int]:
    top = 6 if field.name == "weekday" else field.high
    if match[1] in "*?":
        return field.low, top
    low = _value(match[1], part, field)
    if match[2] is None:
        return low, max(top, low) if match[3] else low
    high = _value(match[2], part, field)
    if high < low:
        raise Invalid(
            "cron", f"{field.name} {part!r} runs backwards: write {_unwrapped(match[1], match[2], top, field)}"
        )
    return low, high


def _unwrapped(first: str, last: str, top: int, field: _Field) -> str:
    """A wrapped range as two, in the user's own kind of words."""
    words = {number: word for word, number in field.words.items()} if first.isalpha() else {}
    highest, lowest = words.get(top, str(top)), words.get(field.low, str(field.low))
    head = first if first == highest else f"{first}-{highest}"
    return f"{head},{last if last == lowest else f'{lowest}-{last}'}"


def _split_weekdays(text: str) -> tuple[str, dict[int, set[int]]]:
    """The weekday field without its `5#2`, `5L` and `L5`, and those as weekday → occurrences, -1 = the last."""
    plain: list[str] = []
    nth: dict[int, set[int]] = {}
    for part in text.split(","):
        if match := _NTH.fullmatch(part):
            if not 1 <= int(match[2]) <= 5:
                raise Invalid("cron", f"weekday {part!r}: a month has the 1st to the 5th of a weekday")
            nth.setdefault(_value(match[1], part, _WEEKDAY) % 7, set()).add(int(match[2]))
        elif match := _LAST_WEEKDAY.fullmatch(part):
            nth.setdefault(_value(match[1] or match[2], part, _WEEKDAY) % 7, set()).add(-1)
        else:
            plain.append(part)
    return ",".join(plain), nth


def _value(word: str, part: str, field: _Field) -> int:
    value = field.words.get(word, -1) if word.isalpha() else int(word)
    if not field.low <= value <= field.high:
        names = f" or {'/'.join(field.words)}" if field.words else ""
        raise Invalid("cron", f"{field.name} {part!r}: write {field.low} to {field.high}{names}{_hint(part)}")
    return value


def _hint(part: str) -> str:
    if "W" in part and not any(day in part for day in _WEEKDAYS):
        return "; W (nearest working day) is not read"
    if part in ("R", "H") or part.startswith(("R(", "H(", "H/", "R/")):
        return "; H and R are not read: spread definitions with jitter"
    return ""


def _expand(text: str, fields: list[str], parts: list[str], zone: str) -> Cron:
    try:
        lists, _ = croniter.expand(" ".join([*parts[1:], parts[0]]))
    except ValueError as error:
        raise Invalid("cron", f"cannot read {text!r}: {error}") from error
    minute, hour, day, month, weekday, second = lists
    days = [value for value in day if isinstance(value, int)]
    return Cron(
        text=text,
        zone_name=zone,
        seconds=_numbers(second, 0, 59),
        minutes=_numbers(minute, 0, 59),
        hours=_numbers(hour, 0, 23),
        days=frozenset(range(1, 32)) if "*" in day else frozenset(days),
        last_day="l" in day,
        months=frozenset(_numbers(month, 1, 12)),
        weekdays=frozenset(_numbers(weekday, 0, 6)),
        nth={},
        day_given=_WILD_DAY.isdisjoint(fields[3].split(",")),
        weekday_given=_WILD_DAY.isdisjoint(fields[5].split(",")),
        wild=fields[2].startswith(("*", "?")),
    )


def _numbers(values: Sequence[object], low: int, high: int) -> tuple[int, ...]:
    if "*" in values:
        return tuple(range(low, high + 1))
    return tuple(sorted({int(str(value)) for value in values}))


def _comes(cron: Cron) -> bool:
    """Whether some day of eight years after a century's skipped leap day matches."""
    if cron.weekday_given or not cron.day_given:
        return True
    longest = {month: monthrange(2024, month)[1] for month in cron.months}
    return cron.last_day or any(day <= longest[month] for month in longest for day in cron.days)
