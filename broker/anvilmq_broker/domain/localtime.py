"""Time zones: names, offsets, and the stretches of time between two changes of a zone's clocks.

Zones come from the system's IANA data, else from the package tzdata; the machine's own zone is never looked at. A process
must be started anew to see newer data.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

DAY_S: Final = 86_400
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
DEFAULT_ZONE: Final = "Etc/UTC"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR: Final = date.max.year
_LOOK_EVERY_S: Final = 3 * DAY_S
_LAST_LOOK_S: Final = (date.max.toordinal() - 2 - EPOCH_ORDINAL) * DAY_S
"""Later instants have no local time east of Greenwich; no zone changes in the last days of the year 9999."""
_MOST_NAME: Final = 64
_NOT_ZONES: Final = frozenset({"localtime", "Factory"})
"""Files beside the zones that some systems have: the machine's own zone, and none at all."""


class UnknownZone(ValueError):
    """No IANA zone has this name; `nearest` is one that does and looks like it, or empty."""

    def __init__(self, name: str, nearest: str) -> None:
        super().__init__(name)
        self.nearest = nearest


def get_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, "" = Etc/UTC. Raises UnknownZone."""
    name = name or DEFAULT_ZONE
    # Others are files too that ZoneInfo would read: "posixrules", "right/UTC", a name in the wrong case on some systems.
    if name not in _names():
        raise UnknownZone(name, _nearest(name))
    return _zone(name)


def to_local(at_ms: int, zone: ZoneInfo) -> datetime:
    """The aware local datetime of an instant."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(zone)


def stretches(zone_name: str, start_s: int, end_s: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, offset) of stretches of one UTC offset that cover the instants [start_s, end_s), in seconds.

    Two that follow each other may have the same offset. zone_name: one that get_zone knows.
    """
    for year in range(_year(start_s), _year(end_s - 1) + 1):
        for start, end, offset in _stretches_of(zone_name, year):
            if start < end_s and end > start_s:
                yield max(start, start_s), min(end, end_s), offset


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    # Kept, as finding them reads every file of the data.
    return frozenset(available_timezones()) - _NOT_ZONES


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _nearest(name: str) -> str:
    """The zone whose name, or whose city, looks most like this one; "" when none does."""
    if len(name) > _MOST_NAME:
        return ""
    wanted = name.replace(" ", "_").casefold()
    by_name = {zone.casefold(): zone for zone in sorted(_names())}
    by_city = {zone.rpartition("/")[2]: by_name[zone] for zone in by_name}
    if wanted in by_city:
        return by_city[wanted]
    for names, least in ((by_name, 0.7), (by_city, 0.8)):
        if found := difflib.get_close_matches(wanted, names, n=1, cutoff=least):
            return names[found[0]]
    return ""


def _year(at_s: int) -> int:
    """The year of an instant in UTC, the last one for all later ones."""
    return date.fromordinal(min(EPOCH_ORDINAL + at_s // DAY_S, date.max.toordinal())).year


@lru_cache(maxsize=4096)
def _stretches_of(zone_name: str, year: int) -> tuple[tuple[int, int, int], ...]:
    """The stretches that make up a year in UTC. A look each third day finds every change: no zone has had two in six."""
    zone = get_zone(zone_name)
    begin = (date(year, 1, 1).toordinal() - EPOCH_ORDINAL) * DAY_S
    end = (date(year, 12, 31).toordinal() + 1 - EPOCH_ORDINAL) * DAY_S
    offset = _offset_s(zone, begin)
    found: list[tuple[int, int, int]] = []
    for low in range(begin, end, _LOOK_EVERY_S):
        high = min(low + _LOOK_EVERY_S, end)
        if _offset_s(zone, high) != offset:
            change = _change_between(zone, low, high)
            found.append((begin, change, offset))
            begin, offset = change, _offset_s(zone, high)
    if begin < end:
        found.append((begin, end, offset))
    return tuple(found)


def _change_between(zone: ZoneInfo, low: int, high: int) -> int:
    old = _offset_s(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_s(zone, middle) == old else (low, middle)
    return high


def _offset_s(zone: ZoneInfo, at_s: int) -> int:
    offset = (_EPOCH + timedelta(seconds=min(at_s, _LAST_LOOK_S))).astimezone(zone).utcoffset()
    assert offset is not None
    return offset.days * DAY_S + offset.seconds
