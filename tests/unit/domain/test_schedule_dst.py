"""Daylight saving time as a table: gaps, folds, half hours, missing days, written down by hand from the zones' laws."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from anvilmq_broker.domain import schedule
from tests.support.rules import rule

BERLIN = "Europe/Berlin"
NEW_YORK = "America/New_York"
SANTIAGO = "America/Santiago"
CAIRO = "Africa/Cairo"
LORD_HOWE = "Australia/Lord_Howe"
CASABLANCA = "Africa/Casablanca"
AZORES = "Atlantic/Azores"
APIA = "Pacific/Apia"

TABLE = [
    # Berlin, 28 March 2027: 02:00 +01:00 becomes 03:00 +02:00.
    ("30 2 * * *", BERLIN, "27T12:00 2027-03", "28T03:00+02:00 29T02:30+02:00"),
    ("0 2,3 * * *", BERLIN, "27T12:00 2027-03", "28T03:00+02:00 29T02:00+02:00"),
    ("0,20,40 2 * * *", BERLIN, "27T12:00 2027-03", "28T03:00+02:00 29T02:00+02:00"),
    ("*/20 2 * * *", BERLIN, "27T12:00 2027-03", "28T03:00+02:00 29T02:00+02:00"),
    ("30 1-3 * * *", BERLIN, "28T00:00 2027-03", "28T01:30+01:00 28T03:00+02:00 28T03:30+02:00 29T01:30+02:00"),
    ("30 2 28 3 *", BERLIN, "01T00:00 2027-03", "28T03:00+02:00"),
    ("30 2 * * SUN", BERLIN, "27T12:00 2027-03", "28T03:00+02:00"),
    ("30 2 * * MON", BERLIN, "27T12:00 2027-03", "29T02:30+02:00"),
    ("59 1 * * *", BERLIN, "28T00:00 2027-03", "28T01:59+01:00 29T01:59+02:00"),
    ("0 3 * * *", BERLIN, "28T00:00 2027-03", "28T03:00+02:00 29T03:00+02:00"),
    ("30 * * * *", BERLIN, "28T01:00 2027-03", "28T01:30+01:00 28T03:30+02:00"),
    ("0 */2 * * *", BERLIN, "28T00:30 2027-03", "28T04:00+02:00 28T06:00+02:00"),
    ("0 ?/2 * * *", BERLIN, "28T00:30 2027-03", "28T04:00+02:00 28T06:00+02:00"),
    ("0 0/2 * * *", BERLIN, "28T00:30 2027-03", "28T03:00+02:00 28T04:00+02:00"),
    # Berlin, 31 October 2027: 03:00 +02:00 becomes 02:00 +01:00.
    ("30 2 * * *", BERLIN, "30T12:00 2027-10", "31T02:30+02:00"),
    ("0 3 * * *", BERLIN, "30T12:00 2027-10", "31T03:00+01:00"),
    ("*/30 2 * * *", BERLIN, "30T12:00 2027-10", "31T02:00+02:00 31T02:30+02:00"),
    ("30 0-23 * * *", BERLIN, "31T00:40 2027-10", "31T01:30+02:00 31T02:30+02:00 31T03:30+01:00"),
    ("30 * * * *", BERLIN, "31T00:40 2027-10", "31T01:30+02:00 31T02:30+02:00 31T02:30+01:00 31T03:30+01:00"),
    ("0 */2 * * *", BERLIN, "31T00:40 2027-10", "31T02:00+02:00 31T02:00+01:00 31T04:00+01:00"),
    ("15 30 2 * * *", BERLIN, "30T12:00 2027-10", "31T02:30:15+02:00"),
    # New York, 14 March and 7 November 2027, at 02:00.
    ("30 2 * * *", NEW_YORK, "14T00:00 2027-03", "14T03:00-04:00 15T02:30-04:00"),
    ("52 1 * * *", NEW_YORK, "07T00:00 2027-11", "07T01:52-04:00 08T01:52-05:00"),
    ("12 1-4/2 * * *", NEW_YORK, "07T00:00 2027-11", "07T01:12-04:00 07T03:12-05:00"),
    ("52 * * * *", NEW_YORK, "07T01:00 2027-11", "07T01:52-04:00 07T01:52-05:00 07T02:52-05:00"),
    # Santiago: 5 September 2027 begins at 01:00, 3 April 2027 has 23:00 to 24:00 twice.
    ("0 0 * * *", SANTIAGO, "04T12:00 2027-09", "05T01:00-03:00 06T00:00-03:00"),
    ("30 0 5 * *", SANTIAGO, "04T12:00 2027-09", "05T01:00-03:00"),
    ("0 0 * * SUN", SANTIAGO, "04T12:00 2027-09", "05T01:00-03:00 12T00:00-03:00"),
    ("30 * 5 9 *", SANTIAGO, "04T12:00 2027-09", "05T01:30-03:00 05T02:30-03:00"),
    ("30 23 * * *", SANTIAGO, "03T12:00 2027-04", "03T23:30-03:00 04T23:30-04:00"),
    ("30 */23 * * *", SANTIAGO, "03T12:00 2027-04", "03T23:30-03:00 03T23:30-04:00 04T00:30-04:00"),
    ("0 0 * * *", SANTIAGO, "03T12:00 2027-04", "04T00:00-04:00 05T00:00-04:00"),
    # Cairo: Friday 30 April 2027 begins at 01:00, Thursday 28 October 2027 has 23:00 to 24:00 twice.
    ("15 0 * * FRI", CAIRO, "29T12:00 2027-04", "30T01:00+03:00"),
    ("0 0 L * *", CAIRO, "29T12:00 2027-04", "30T01:00+03:00"),
    ("59 23 * * *", CAIRO, "28T12:00 2027-10", "28T23:59+03:00 29T23:59+02:00"),
    ("0 * * * *", CAIRO, "28T22:30 2027-10", "28T23:00+03:00 28T23:00+02:00 29T00:00+02:00"),
    # Lord Howe, half an hour: 3 October 2027 leaves out 02:00 to 02:30, 4 April 2027 has 01:30 to 02:00 twice.
    ("15 2 * * *", LORD_HOWE, "02T12:00 2027-10", "03T02:30+11:00 04T02:15+11:00"),
    ("45 2 * * *", LORD_HOWE, "02T12:00 2027-10", "03T02:45+11:00 04T02:45+11:00"),
    ("*/15 * * * *", LORD_HOWE, "03T01:40 2027-10", "03T01:45+10:30 03T02:30+11:00 03T02:45+11:00"),
    ("*/30 12 * * 0-3", LORD_HOWE, "02T12:30 2027-10", "03T12:00+11:00 03T12:30+11:00"),
    ("45 1 * * *", LORD_HOWE, "03T12:00 2027-04", "04T01:45+11:00 05T01:45+10:30"),
    ("45 * * * *", LORD_HOWE, "04T01:00 2027-04", "04T01:45+11:00 04T01:45+10:30 04T02:45+10:30"),
    # Casablanca falls back for Ramadan: 7 February 2027, 03:00 +01:00 becomes 02:00 +00:00; back on 14 March.
    ("30 2 * * *", CASABLANCA, "06T12:00 2027-02", "07T02:30+01:00 08T02:30+00:00"),
    ("30 2 * * *", CASABLANCA, "13T12:00 2027-03", "14T03:00+01:00 15T02:30+01:00"),
    # Azores: 28 March 2027 begins at 01:00, 31 October 2027 has 00:00 to 01:00 twice.
    ("0 0 * * *", AZORES, "27T12:00 2027-03", "28T01:00+00:00 29T00:00+00:00"),
    ("0 0 * * *", AZORES, "30T12:00 2027-10", "31T00:00+00:00"),
    ("*/30 * * * *", AZORES, "31T00:10 2027-10", "31T00:30+00:00 31T00:00-01:00 31T00:30-01:00 31T01:00-01:00"),
    # Apia had no 30 December 2011, a Friday.
    ("0 12 30 * *", APIA, "01T00:00 2011-12", "31T00:00+14:00"),
    ("0 12 * * FRI", APIA, "24T00:00 2011-12", "31T00:00+14:00"),
    ("0 12 * * *", APIA, "29T00:00 2011-12", "29T12:00-10:00 31T00:00+14:00 31T12:00+14:00"),
    ("0 * 30 12 *", APIA, "01T00:00 2011-12", ""),
    ("0 0 31 * *", APIA, "01T00:00 2011-12", "31T00:00+14:00"),
    # No change.
    ("30 2 * * *", "Asia/Kolkata", "27T12:00 2027-03", "28T02:30+05:30 29T02:30+05:30"),
    ("30 2 * * *", "Etc/UTC", "27T12:00 2027-03", "28T02:30+00:00 29T02:30+00:00"),
]


@rule("6.4")
@pytest.mark.parametrize(("text", "zone_name", "after", "expected"), TABLE, ids=lambda value: str(value)[:24])
def test_ticks_around_a_change_of_the_clocks(text: str, zone_name: str, after: str, expected: str) -> None:
    when = schedule.parse_cron(text, zone_name)
    zone = ZoneInfo(zone_name)
    day_and_time, month = after.split()
    at: int | None = int(datetime.fromisoformat(f"{month}-{day_and_time}").replace(tzinfo=zone).timestamp()) * 1000
    wanted = [datetime.fromisoformat(f"{month}-{tick}") for tick in expected.split()]
    found: list[datetime] = []
    while len(found) < max(len(wanted), 1) and at is not None and (at := when.next_after(at)) is not None:
        found.append(datetime.fromtimestamp(at // 1000, zone))
    if wanted:
        assert [tick.isoformat() for tick in found] == [tick.isoformat() for tick in wanted]
    else:
        assert [tick for tick in found if tick.strftime("%Y-%m") == month] == []


@rule("6.4")
@pytest.mark.parametrize("offset_ms", [0, 60_000])
def test_an_interval_is_counted_in_utc_whatever_the_clocks_do(offset_ms: int) -> None:
    hour_ms = 3_600_000
    when = schedule.parse_every(2 * hour_ms, offset_ms)
    change_ms = int(datetime.fromisoformat("2027-03-28T01:00+00:00").timestamp()) * 1000
    at, ticks = change_ms - 6 * hour_ms, []
    for _ in range(6):
        tick = when.next_after(at)
        assert tick is not None
        ticks.append(tick)
        at = tick
    assert {later - earlier for earlier, later in pairwise(ticks)} == {2 * hour_ms}
    assert ticks[0] % (2 * hour_ms) == offset_ms
