"""A schedule for its reader: in English words, and the next ticks with what the clocks do to them (semantics 6.8).

Pure, like the schedule itself: nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, product
from typing import Final

import msgspec

from anvilmq_broker.domain import commands, cron, localtime, schedule, scheduler

_MONTHS: Final = "January February March April May June July August September October November December".split()
_WEEKDAYS: Final = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
_PLACES: Final = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 5: "5th", -1: "last"}
_MOST_TIMES: Final = 6
"""As many times of day are listed; more are described."""
_SPANS: Final = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - of walls, which have no zone


class Tick(msgspec.Struct, frozen=True):
    """A tick without jitter. local: ISO 8601 in the schedule's zone, with offset."""

    at_ms: int
    local: str


class Preview(msgspec.Struct, frozen=True):
    """The next ticks of a schedule, its words, and warnings that concern these ticks."""

    ticks: list[Tick]
    description: str
    warnings: list[str]


def preview(spec: commands.SchedulerSpec, after_ms: int, count: int) -> Preview:
    """The first `count` ticks after after_ms (exclusive) that start, end (both inclusive) and limit let through.

    Raises schedule.Invalid. The job, policies and suspension of the spec are not looked at.
    """
    when = scheduler.timing(spec)
    ticks: list[int] = []
    at = max(after_ms, spec.start_at_ms - 1)
    while len(ticks) < min(count, spec.limit or count):
        tick = when.next_after(at)
        if tick is None or (spec.end_at_ms and tick > spec.end_at_ms):
            break
        ticks.append(tick)
        at = tick
    zone_name = when.zone_name if isinstance(when, schedule.Cron) else localtime.DEFAULT_ZONE
    return Preview([Tick(tick, _local(tick, zone_name)) for tick in ticks], words(when), warnings(when, ticks))


def words(when: schedule.Timing) -> str:
    """A schedule in plain English, such as "Every 15 minutes from 09:00 to 17:59, Monday to Friday"."""
    if isinstance(when, schedule.Every):
        shift = f", shifted by {_span(when.offset_ms)}" if when.offset_ms else ""
        return f"Every {_span(when.every_ms).removeprefix('1 ')}{shift}"
    assert isinstance(when, schedule.Cron)
    time, is_list = _time(when.fields)
    days = _days(when.fields)
    if not days:
        return f"{time} every day" if is_list else time
    return f"{time} every day {days}" if is_list and days.startswith(("in ", "from ")) else f"{time}, {days}"


def warnings(when: schedule.Timing, ticks: Sequence[int]) -> list[str]:
    """What daylight saving time does to these ticks, one sentence a day."""
    if not isinstance(when, schedule.Cron):
        return []
    zone = localtime.get_zone(when.zone_name)
    twice: dict[date, list[str]] = {}
    found: list[tuple[date, str]] = []
    for tick in ticks:
        local = localtime.to_local(tick, zone)
        if gap := when.slots_in_gap(tick):
            first, last = (_EPOCH + timedelta(seconds=wall) for wall in gap)
            found.append((local.date(), _moved(first, last, local)))
        elif local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
            twice.setdefault(local.date(), []).append(_clock(local))
    for day, clocks in twice.items():
        found.append((day, _doubled(day, min(clocks), max(clocks), when.fields.wild)))
    return [sentence for _, sentence in sorted(found)]


# ------------------------------------------------------------------------------------------------ time of day


def _time(fields: cron.Fields) -> tuple[str, bool]:
    """When in a day, and whether this lists times of day."""
    seconds, minutes, hours = fields.seconds, fields.minutes, fields.hours
    step = _step(hours, 24)
    if seconds == minutes == (0,) and step and len(hours) > 2:
        return f"Every {_many(step, 'hour')}", False
    if len(seconds) == len(minutes) == 1 and 2 < len(hours) < 24 and _is_run(hours):
        first, last = (_time_of(hour, minutes[0], seconds[0]) for hour in (hours[0], hours[-1]))
        return f"Every hour from {first} to {last}", False
    if len(hours) * len(minutes) * len(seconds) <= _MOST_TIMES:
        return f"At {_join([_time_of(*each) for each in product(hours, minutes, seconds)])}", True
    if seconds == (0,) and (step := _step(minutes, 60)):
        return f"Every {_many(step, 'minute')}{_window(hours, '59')}", False
    if len(minutes) == 60 and (step := _step(seconds, 60)):
        return f"Every {_many(step, 'second')}{_window(hours, '59:59')}", False
    return f"At {_slots(fields)}", False


def _window(hours: tuple[int, ...], last: str) -> str:
    if len(hours) == 24:
        return ""
    if _is_run(hours):
        return f" from {hours[0]:02}:{last.replace('59', '00')} to {hours[-1]:02}:{last}"
    return f" of {_numbered('hour', hours, 24)}"


def _slots(fields: cron.Fields) -> str:
    """The fields one by one, from the smallest; a second of 0 goes without saying."""
    parts = [] if fields.seconds == (0,) else [_numbered("second", fields.seconds, 60)]
    parts.append(_numbered("minute", fields.minutes, 60))
    if len(fields.minutes) < 60 or len(fields.hours) < 24:
        parts.append(_numbered("hour", fields.hours, 24))
    return " of ".join(parts)


def _numbered(unit: str, values: tuple[int, ...], size: int) -> str:
    if len(values) == size:
        return f"every {unit}"
    return f"{unit} {values[0]}" if len(values) == 1 else f"{unit}s {_runs(values, str)}"


def _step(values: tuple[int, ...], size: int) -> int:
    """n if the values are every nth of a unit, the same across its end; else 0. One value is none."""
    step = size // len(values)
    return step if len(values) > 1 and values == tuple(range(0, size, step)) else 0


# ------------------------------------------------------------------------------------------------------- days


def _days(fields: cron.Fields) -> str:
    """Which days; "" for all."""
    months = "" if len(fields.months) == 12 else _runs(fields.months, lambda month: _MONTHS[month - 1])
    any_day = len(fields.days) == 31 if fields.day_given else not fields.weekday_given
    if any_day or (fields.weekday_given and len(fields.weekdays) == 7):
        return _in(months)
    # "of March" can stand for the month unless a plain weekday is named, which has no "of".
    of = months if months and not (fields.weekday_given and fields.weekdays) else "the month"
    parts = [_days_of_month(fields, of)] if fields.day_given else []
    if fields.weekday_given:
        parts.append(f"{'also ' if parts else ''}{_weekdays(fields, of)}")
    return " and ".join(parts) + (f", {_in(months)}" if months and of != months else "")


def _in(months: str) -> str:
    if " and " in months or " to " not in months:
        return months and f"in {months}"
    return f"from {months}"


def _days_of_month(fields: cron.Fields, of: str) -> str:
    numbers = f"day{'s' if len(fields.days) > 1 else ''} {_runs(fields.days, str)}" if fields.days else ""
    last = "the last day" if fields.last_day else ""
    return f"on {_join([part for part in (numbers, last) if part])} of {of}"


def _weekdays(fields: cron.Fields, of: str) -> str:
    # From Monday, so that Friday to Sunday is one run.
    mondays = sorted((day - 1) % 7 for day in fields.weekdays)
    names = _runs(mondays, lambda day: _WEEKDAYS[(day + 1) % 7])
    # "Monday to Friday" needs no "every", unless it comes after a day of the month.
    every = "every " if fields.day_given or " to " not in names else ""
    plain = [every + names] if mondays else []
    numbered = [
        f"the {_join([_PLACES[place] for place in sorted(places, key=lambda place: place % 6)])} {_WEEKDAYS[day]} of {of}"
        for day, places in fields.nth.items()
        if day not in fields.weekdays
    ]
    return " and ".join([*plain, *numbered])


# --------------------------------------------------------------------------------------------------- warnings


def _moved(first: datetime, last: datetime, to: datetime) -> str:
    target = _clock(to) if to.date() == last.date() else f"{_date(to)}, {_clock(to)}"
    if first == last:
        return f"The tick of {_date(first)} at {_clock(first)} is moved out of the gap to {target}."
    return f"The ticks of {_date(first)} from {_clock(first)} to {_clock(last)} are moved out of the gap to one at {target}."


def _doubled(day: date, first: str, last: str, wild: bool) -> str:
    how = "twice because" if wild else "once although"
    if first == last:
        return f"The tick of {_date(day)} runs {how} {first} comes twice."
    return f"The ticks of {_date(day)} run {how} {first} to {last} come twice."


# ------------------------------------------------------------------------------------------------------ texts


def _local(at_ms: int, zone_name: str) -> str:
    local = localtime.to_local(at_ms, localtime.get_zone(zone_name))
    return local.isoformat(timespec="milliseconds" if at_ms % 1000 else "seconds")


def _span(span_ms: int) -> str:
    for unit, size in _SPANS.items():
        if span_ms % size == 0:
            return f"{span_ms // size} {unit}{'s' if span_ms > size else ''}"
    if span_ms == 1000:
        return "1 second"
    return f"{span_ms // 1000} s" if span_ms % 1000 == 0 else f"{span_ms} ms"


def _many(step: int, unit: str) -> str:
    return unit if step == 1 else f"{step} {unit}s"


def _date(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _clock(at: datetime) -> str:
    return _time_of(at.hour, at.minute, at.second)


def _time_of(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if second else f"{hour:02}:{minute:02}"


def _is_run(values: Sequence[int]) -> bool:
    return values[-1] - values[0] == len(values) - 1


def _runs(values: Iterable[int], name: Callable[[int], str]) -> str:
    """Ascending numbers with names, three and more in a row as "1 to 3"."""
    found: list[str] = []
    for _, group in groupby(enumerate(values), lambda pair: pair[1] - pair[0]):
        run = [value for _, value in group]
        found += [f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else map(name, run)
    return _join(found)


def _join(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
