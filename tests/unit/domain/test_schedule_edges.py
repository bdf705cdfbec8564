"""The ends of time, years of downtime, zones whose data is odd, and a machine with a zone of its own."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest

from anvilmq_broker.domain import cron, localtime, schedule
from tests.support.rules import rule
from tests.unit.domain.schedule_oracle import ZONES

DAY_MS = 86_400_000
YEAR_9999_MS = 253_402_300_799_999


def at(text: str) -> int:
    """An instant in ms."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


# ------------------------------------------------------------------------------------------- years of downtime


@rule("6.5")
@pytest.mark.parametrize(
    ("text", "zone_name", "expected"),
    [
        # 5 years with one leap day. In Berlin as many hours are left out as come twice.
        ("* * * * * *", "Etc/UTC", 1826 * 86_400),
        ("* * * * * *", "Europe/Berlin", 1826 * 86_400),
        ("* * * * *", "Europe/Berlin", 1826 * 1440),
        ("0 2 * * *", "Etc/UTC", 1826),
        ("0 2 * * *", "Europe/Berlin", 1826),
        ("30 2 * * *", "Europe/Berlin", 1826),
        # Each spring the four of the missing hour become one.
        ("*/15 2 * * *", "Europe/Berlin", 1826 * 4 - 5 * 3),
        ("0 9 * * MON-FRI", "America/New_York", 1305),
        ("0 0 L * *", "America/Santiago", 60),
        ("0 0 29 2 *", "Etc/UTC", 1),
    ],
)
def test_five_years_of_downtime_are_counted_right(text: str, zone_name: str, expected: int) -> None:
    when = schedule.parse_cron(text, zone_name)
    zone = ZoneInfo(zone_name)
    first, last = (int(datetime(year, 6, 15, 12, tzinfo=zone).timestamp()) * 1000 for year in (2025, 2030))
    assert when.count(first, last) == expected


@rule("6.5")
@pytest.mark.parametrize("text", ["* * * * * *", "0 2 * * *", "*/7 * * * 1#2", "0 0 29 2 *"])
def test_five_years_of_downtime_cost_a_look_at_each_month(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    days_of = cron.Fields.days_of

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return days_of(*args)

    monkeypatch.setattr(cron.Fields, "days_of", counted)
    when = schedule.parse_cron(text, "Europe/Berlin")
    now = at("2030-06-15T12:00+00:00")
    when.count(now - 5 * 365 * DAY_MS, now)
    when.last_until(now, now - 5 * 365 * DAY_MS)
    assert looks < 5 * 12 * 4


@rule("6.5")
def test_five_years_of_an_interval_are_counted_at_once() -> None:
    when = schedule.parse_every(100, 7)
    now = at("2030-06-15T12:00+00:00")
    assert when.count(now - 5 * 365 * DAY_MS, now) == 5 * 365 * DAY_MS // 100


# ------------------------------------------------------------------------------------------------ ends of time


@rule("6.4")
@pytest.mark.parametrize("zone_name", [*ZONES, "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("text", ["* * * * * *", "30 2 * * *", "0 0 31 12 *", "0 0 29 2 *"])
def test_the_year_9999_ends_without_an_error(text: str, zone_name: str) -> None:
    when = schedule.parse_cron(text, zone_name)
    last = when.last_until(YEAR_9999_MS, YEAR_9999_MS - 10_000 * DAY_MS)
    assert last is not None
    assert when.next_after(last - 1) == last
    assert when.next_after(last) is None
    assert when.count(last, YEAR_9999_MS) == 0
    for beyond in (YEAR_9999_MS, YEAR_9999_MS + 1, 2**53):
        assert when.next_after(beyond) is None
        assert when.count(beyond, beyond + DAY_MS) == 0
        assert when.last_until(beyond + DAY_MS, beyond) is None
        assert when.last_until(beyond, last - 1) == last


@rule("6.4")
@pytest.mark.parametrize("zone_name", [*ZONES, "Pacific/Pago_Pago"])
def test_the_year_1970_begins_without_an_error(zone_name: str) -> None:
    when = schedule.parse_cron("* * * * *", zone_name)
    assert when.next_after(-1) == 0
    assert when.next_after(0) == 60_000
    assert when.count(-1, 59_999) == 1
    assert when.last_until(59_999, -1) == 0
    # A clock that lies before the epoch finds the ticks after it all the same.
    first = when.next_after(-(2**53))
    assert first is not None
    assert first <= 0


@rule("6.4")
def test_an_interval_ends_with_the_year_9999() -> None:
    when = schedule.parse_every(1_000)
    assert when.next_after(YEAR_9999_MS - 1_000) == YEAR_9999_MS - 999
    assert when.next_after(YEAR_9999_MS) is None
    assert when.count(YEAR_9999_MS - 2_000, 2**53) == 2
    assert when.last_until(2**53, 0) == YEAR_9999_MS - 999


@rule("6.4")
@pytest.mark.parametrize("after_ms", [0, 1, 499, 999, 1_000, 1_001, 59_999, 60_000])
def test_a_tick_is_found_to_the_millisecond(after_ms: int) -> None:
    when = schedule.parse_cron("* * * * * *")
    assert when.next_after(after_ms) == after_ms // 1_000 * 1_000 + 1_000
    assert when.count(after_ms, after_ms // 1_000 * 1_000 + 999) == 0
    assert when.last_until(after_ms, -1) == after_ms // 1_000 * 1_000


# ----------------------------------------------------------------------------------------------------- zones


@rule("6.4")
def test_every_change_of_every_zone_is_seen_whatever_lies_between_them() -> None:
    # Two changes less than a week apart are rare; a look at every hour of these years tells whether one was missed.
    for zone_name, year in [
        ("America/Boa_Vista", 2000),
        ("America/Noronha", 2000),
        ("Africa/Casablanca", 2026),
        ("Asia/Gaza", 2040),
    ]:
        zone = ZoneInfo(zone_name)
        begin, end = (int(datetime(each, 1, 1, tzinfo=UTC).timestamp()) for each in (year, year + 1))
        offsets = [datetime.fromtimestamp(second, zone).utcoffset() for second in range(begin, end, 3600)]
        hours = [n for n, (old, new) in enumerate(pairwise(offsets), 1) if old != new]
        found = [(start, offset) for start, _, offset in localtime.stretches(zone_name, begin, end)]
        assert [-((begin - start) // 3600) for start, _ in found[1:]] == hours
        assert len({offset for _, offset in found}) > 1


@rule("6.4")
def test_the_stretches_of_every_zone_have_no_holes() -> None:
    begin, end = (int(datetime(year, 7, 1, tzinfo=UTC).timestamp()) for year in (2026, 2029))
    for zone_name in sorted(available_timezones() - {"localtime", "Factory"}):
        found = list(localtime.stretches(zone_name, begin, end))
        assert (found[0][0], found[-1][1]) == (begin, end)
        assert all(one[1] == other[0] for one, other in pairwise(found))


@rule("6.1")
@pytest.mark.parametrize("machine_zone", ["Pacific/Apia", "Asia/Tokyo", "America/St_Johns", ":/nowhere"])
def test_the_machines_zone_does_not_matter(machine_zone: str) -> None:
    program = """
import sys
from anvilmq_broker.domain import schedule
for text, zone in [("0 2 * * *", ""), ("30 2 * * *", "Europe/Berlin"), ("0 * * * *", "America/New_York")]:
    print(schedule.parse_cron(text, zone).next_after(int(sys.argv[1])))
"""
    after = at("2027-03-28T00:30+00:00")
    done = subprocess.run(
        [sys.executable, "-c", program, str(after)],
        env={"TZ": machine_zone, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    expected = ["2027-03-28T02:00+00:00", "2027-03-28T03:00+02:00", "2027-03-28T01:00+00:00"]
    assert done.stdout.split() == [str(at(tick)) for tick in expected]
