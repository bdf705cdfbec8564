"""Time zones: names, offsets, and the stretches of time between two changes of a zone's clocks.

Zones come from the system's IANA data or the tzdata package. A process must be started anew to see newer data.
"""

from __future__ import annotations

import difflib
from calendar import isleap
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DAY_S: Final = 86_400
_LOOK_EVERY_S: Final = 7 * _DAY_S


class UnknownZone(ValueError):
    """No IANA zone has this name; `nearest` is one that does and looks like it, or empty."""

    def __init__(self, name: str, nearest: str) -> None:
        super().__init__(name)
        self.nearest = nearest


def get_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, "" = Etc/UTC. Raises UnknownZone."""
    try:
        return _zone(name or "Etc/UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        folded = {zone.casefold(): zone for zone in available_timezones()}
        nearest = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
        by_city = difflib.get_close_matches(
            name.casefold(), {zone.rpartition("/")[2]: zone for zone in folded}, n=1, cutoff=0.8
        )
        found = (
            folded[nearest[0]]
            if nearest
            else next((folded[z] for z in folded if by_city and z.endswith(by_city[0])), "")
        )
        raise UnknownZone(name, found) from error


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo:
    if name not in available_timezones():
        # Names such as "posixrules" or a path are files that ZoneInfo would read, and not zones.
        raise ValueError(name)
    return ZoneInfo(name)


def to_local(at_ms: int, zone: ZoneInfo) -> datetime:
    """The aware local datetime of an instant, its milliseconds dropped."""
    return (_EPOCH + timedelta(seconds=at_ms // 1000)).astimezone(zone)


def stretches(zone_name: str, start_s: int, end_s: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, offset) of the stretches of one UTC offset that cover the instants [start_s, end_s), in seconds."""
    zone = get_zone(zone_name)
    begin = start_s
    for year in range(_year(start_s), _year(end_s) + 1):
        for change in _changes(zone_name, year):
            if begin < change < end_s:
                yield begin, change, _offset_s(zone, begin)
                begin = change
    if begin < end_s:
        yield begin, end_s, _offset_s(zone, begin)


def _year(at_s: int) -> int:
    return min(max((_EPOCH + timedelta(seconds=at_s)).year, 1), 9999)


@lru_cache(maxsize=4096)
def _changes(zone_name: str, year: int) -> tuple[int, ...]:
    """Instants of the year, in seconds, at which the zone's offset changes; no zone does so twice in a week."""
    zone = get_zone(zone_name)
    low = (date(year, 1, 1).toordinal() - _EPOCH_ORDINAL) * _DAY_S
    end = low + (366 if isleap(year) else 365) * _DAY_S
    found: list[int] = []
    offset = _offset_s(zone, low)
    while low < end:
        high = min(low + _LOOK_EVERY_S, end)
        if _offset_s(zone, high) != offset:
            found.append(_change_between(zone, low, high))
            offset = _offset_s(zone, high)
        low = high
    return tuple(found)


def _change_between(zone: ZoneInfo, low: int, high: int) -> int:
    old = _offset_s(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_s(zone, middle) == old else (low, middle)
    return high


def _offset_s(zone: ZoneInfo, at_s: int) -> int:
    offset = (_EPOCH + timedelta(seconds=at_s)).astimezone(zone).utcoffset()
    assert offset is not None
    return offset.days * _DAY_S + offset.seconds
