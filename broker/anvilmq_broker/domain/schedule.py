"""When a recurring definition is due: cron expressions in a time zone, and fixed intervals (semantics 6.1, 6.4, 6.5).

Time is cut at the zone's changes into stretches of one offset; inside one, wall clock and instants run alike, and a
day's slots are counted by arithmetic, so that years of seconds cost a look at each month. An expression with a fixed hour
is due once a local day: in a gap at the first valid instant after it, in a fold at the first of the two. One whose hour
starts with `*` or `?` is due at every real slot, the folded ones included.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import date
from typing import Final, Protocol

import msgspec

from anvilmq_broker.domain import cron, localtime

Invalid = cron.Invalid
LEAST_EVERY_MS: Final = 100
LAST_MS: Final = 253_402_300_799_999
"""No tick lies after the year 9999, in UTC and in its zone."""

_FIRST_MS: Final = -86_400_000
_DAY_S: Final = localtime.DAY_S
_YEAR_S: Final = 366 * _DAY_S
_SEARCH_S: Final = 41 * _YEAR_S
"""The rarest day, a fifth Monday of February, comes at least once in 40 years (2088, 2128)."""
_LOOK_BACK_S: Final = 3 * _DAY_S
_LAST_DAY: Final = date.max.toordinal() - localtime.EPOCH_ORDINAL


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
        found = self._tick(self._number(after_ms) + 1)
        return found if found <= LAST_MS else None

    def last_until(self, until_ms: int, after_ms: int) -> int | None:
        """See Timing."""
        found = self._tick(self._number(min(until_ms, LAST_MS)))
        return found if found > after_ms else None

    def count(self, after_ms: int, until_ms: int) -> int:
        """See Timing."""
        return max(self._number(min(until_ms, LAST_MS)) - self._number(after_ms), 0)

    def _number(self, at_ms: int) -> int:
        """The number of the last tick until then."""
        return (at_ms - self.offset_ms) // self.every_ms

    def _tick(self, number: int) -> int:
        return number * self.every_ms + self.offset_ms


class Cron(msgspec.Struct, frozen=True):
    """An expression in its zone. Below the public methods everything counts walls: seconds of the local clock."""

    text: str
    zone_name: str
    fields: cron.Fields

    def next_after(self, after_ms: int) -> int | None:
        """See Timing."""
        start, end = max(after_ms, _FIRST_MS) // 1000, LAST_MS // 1000
        # A year first: nearly every expression comes within one.
        for span in (_YEAR_S, _SEARCH_S):
            for piece in self._pieces(start, min(start + span, end)):
                wall = piece.low if piece.moved else self._first_slot(piece.low, piece.high)
                if wall is not None:
                    return (wall - piece.offset) * 1000
        return None

    def last_until(self, until_ms: int, after_ms: int) -> int | None:
        """See Timing."""
        until, after = min(until_ms, LAST_MS) // 1000, max(after_ms, _FIRST_MS) // 1000
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

    def slots_in_gap(self, end_ms: int) -> tuple[int, int] | None:
        """The walls of the first and last slot, in s, in the gap that ends at this instant and moves its slots there.

        None when no gap ends there, when it holds no slot, or when the expression goes by real slots.
        """
        end = end_ms // 1000
        (*_, before), (*_, offset) = (next(self._stretches(at, at + 1)) for at in (end - 1, end))
        first = None if self.fields.wild else self._first_slot(end + before, end + offset)
        last = None if first is None else self._last_slot(end + before, end + offset)
        return None if first is None or last is None else (first, last)

    # ------------------------------------------------------------------------------------- inside: walls, in s

    def _stretches(self, start_s: int, end_s: int) -> Iterator[tuple[int, int, int]]:
        return localtime.stretches(self.zone_name, start_s, end_s)

    def _pieces(self, after_s: int, until_s: int) -> Iterator[_Piece]:
        """Where ticks of (after_s, until_s] can lie: walls [low, high) that run with the instants at one offset."""
        seen = before = None
        # A fixed hour needs to know which walls were there before.
        look_back = 0 if self.fields.wild else _LOOK_BACK_S
        for start, end, offset in self._stretches(after_s + 1 - look_back, until_s + 1):
            low, high = start + offset, end + offset
            if not self.fields.wild:
                if before is not None and offset > before and after_s < start:
                    skipped = self._first_slot(start + before, low) is not None
                    if skipped and self._first_slot(low, low + 1) is None:
                        # Slots that the clocks leave out are due together, at the first instant after the gap.
                        yield _Piece(low, low + 1, offset, moved=True)
                low = low if seen is None else max(low, seen)
                seen = high if seen is None else max(high, seen)
                before = offset
            low = max(low, after_s + 1 + offset)
            if low < high:
                yield _Piece(low, high, offset)

    def _days(self, first: int, last: int) -> Iterator[int]:
        """The days that match, as days since the epoch, from first to last, descending when last is the lower one."""
        step = 1 if first <= last else -1
        low, high = min(first, last), min(max(first, last), _LAST_DAY)
        if low > high:
            return
        at, end = (date.fromordinal(localtime.EPOCH_ORDINAL + day) for day in ((low, high)[::step]))
        for month in range(at.year * 12 + at.month - 1, end.year * 12 + end.month - 1 + step, step):
            days = self.fields.days_of(month // 12, month % 12 + 1)
            if days:
                before = date(month // 12, month % 12 + 1, 1).toordinal() - 1 - localtime.EPOCH_ORDINAL
                yield from (before + day for day in days[::step] if low <= before + day <= high)

    def _first_slot(self, low: int, high: int) -> int | None:
        """The first slot in the walls [low, high)."""
        if low >= high:
            return None
        for day in self._days(low // _DAY_S, (high - 1) // _DAY_S):
            found = self._slot(self._slots_below(max(low - day * _DAY_S, 0)))
            if found is not None:
                return day * _DAY_S + found if day * _DAY_S + found < high else None
        return None

    def _last_slot(self, low: int, high: int) -> int | None:
        """The last slot in the walls [low, high)."""
        for day in self._days((high - 1) // _DAY_S, low // _DAY_S):
            found = self._slot(self._slots_below(min(high - day * _DAY_S, _DAY_S)) - 1)
            if found is not None:
                return day * _DAY_S + found if day * _DAY_S + found >= low else None
        return None

    def _count_slots(self, low: int, high: int) -> int:
        """How many slots lie in the walls [low, high)."""
        first, last = low // _DAY_S, (high - 1) // _DAY_S
        each = len(self.fields.hours) * len(self.fields.minutes) * len(self.fields.seconds)
        total = 0
        for day in self._days(first, last):
            total += each
            if day == first:
                total -= self._slots_below(low - day * _DAY_S)
            if day == last:
                total -= each - self._slots_below(high - day * _DAY_S)
        return total

    def _slots_below(self, second: int) -> int:
        """Slots of a day before this second of it, 0..86400."""
        fields = self.fields
        hour, minute, rest = second // 3600, second // 60 % 60, second % 60
        total = bisect_left(fields.hours, hour) * len(fields.minutes) * len(fields.seconds)
        if hour in fields.hours:
            total += bisect_left(fields.minutes, minute) * len(fields.seconds)
            if minute in fields.minutes:
                total += bisect_left(fields.seconds, rest)
        return total

    def _slot(self, place: int) -> int | None:
        """The slot of that place in a day, in seconds."""
        fields = self.fields
        in_hour = len(fields.minutes) * len(fields.seconds)
        if not 0 <= place < len(fields.hours) * in_hour:
            return None
        minute, second = divmod(place % in_hour, len(fields.seconds))
        return (fields.hours[place // in_hour] * 60 + fields.minutes[minute]) * 60 + fields.seconds[second]


class _Piece(msgspec.Struct, frozen=True):
    """Walls [low, high) at one offset from UTC, in seconds. moved: one tick at `low`, moved there out of a gap."""

    low: int
    high: int
    offset: int
    moved: bool = False


def parse_every(every_ms: int, offset_ms: int = 0) -> Every:
    """Check an interval. Raises Invalid with the path every_ms or offset_ms."""
    if every_ms < LEAST_EVERY_MS:
        raise Invalid("every_ms", f"every_ms is {every_ms}: write at least {LEAST_EVERY_MS}")
    if not 0 <= offset_ms < every_ms:
        raise Invalid("offset_ms", f"offset_ms is {offset_ms}: write 0 to every_ms - 1 ({every_ms - 1})")
    return Every(every_ms, offset_ms)


def parse_cron(text: str, zone_name: str = "") -> Cron:
    """Read an expression (cron.parse) and its zone. Raises Invalid with the path cron or time_zone and the remedy."""
    fields = cron.parse(text)
    try:
        zone = localtime.get_zone(zone_name)
    except localtime.UnknownZone as error:
        hint = f"did you mean {error.nearest}?" if error.nearest else "write an IANA name such as Europe/Berlin"
        raise Invalid("time_zone", f"there is no time zone {zone_name[:64]!r}; {hint}", "TIME_ZONE_UNKNOWN") from error
    return Cron(text, zone.key, fields)
