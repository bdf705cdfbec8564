"""Schedules that are refused: each names the field and says what to write instead."""

import pytest

from anvilmq_broker.domain import localtime, schedule
from tests.support.rules import rule

REFUSED = {
    # Wrapped ranges, in the user's own kind of words.
    "0 22-2 * * *": "hour '22-2' runs backwards: write 22-23,0-2",
    "0 23-0 * * *": "write 23,0",
    "0 22-2/3 * * *": "write 22,1",
    "50-10 * * * *": "minute '50-10' runs backwards: write 50-59,0-10",
    "0 0 28-3 * *": "day of month '28-3' runs backwards: write 28-31,1-3",
    "0 0 * 11-2 *": "month '11-2' runs backwards: write 11-12,1-2",
    "0 0 * NOV-FEB *": "write NOV-DEC,JAN-FEB",
    "0 0 * nov-feb/2 *": "write NOV,JAN",
    "0 0 * * FRI-MON": "weekday 'FRI-MON' runs backwards: write FRI-SAT,SUN-MON",
    "0 0 * * SAT-SUN": "write SAT,SUN",
    "0 0 * * 6-0": "write 6,0",
    "0 0 * * 5-1": "write 5-6,0-1",
    "0 0 * * 7-1": "write 7,0-1",
    # What other cron programs read.
    "0 0 15W * *": "W, the nearest working day, is not read",
    "0 0 LW * *": "W, the nearest working day, is not read",
    "0 0 W * *": "W, the nearest working day, is not read",
    "0 0 L-3 * *": "L is read as a day of the month",
    "0 0 * * L": "5L as the last Friday",
    "L * * * *": "L is read as a day of the month",
    "R R * * *": "minute 'R': write 0 to 59; H and R are not read, spread definitions with jitter_ms",
    "H H * * *": "H and R are not read, spread definitions with jitter_ms",
    "H(0-29)/10 * * * *": "H and R are not read",
    "H/15 * * * *": "H and R are not read",
    "R(0-9) * * * *": "H and R are not read",
    "0 0 12 1 1 ? 2027": "7 fields: write five, minute hour day month weekday, or six with seconds first; a year is not read",
    "@every 5m": "write the interval into every_ms",
    "@every": "write the interval into every_ms",
    "@EVERY 1h": "write the interval into every_ms",
    "@reboot": "add a job when the program starts",
    "@fortnightly": "write one of @yearly @annually @monthly @weekly @daily @midnight @hourly, or five fields",
    "@daily 5": "write one of @yearly",
    "@": "write one of @yearly",
    "TZ=Europe/Berlin 0 2 * * *": "write the zone into the field time_zone",
    "CRON_TZ=UTC 0 2 * * *": "write the zone into the field time_zone",
    "tz=UTC @daily": "write the zone into the field time_zone",
    # Days that never come.
    "0 0 31 2 *": "never comes: write a day that one of its months has, or L for the last one",
    "0 0 30 2 *": "never comes",
    "0 0 30-31 FEB *": "never comes",
    "0 0 31 4,6,9,11 *": "never comes",
    "0 0 31 2 ?": "never comes",
    # Values out of range.
    "60 * * * *": "minute '60': write 0 to 59",
    "0 24 * * *": "hour '24': write 0 to 23",
    "0 0 0 * *": "day of month '0': write 1 to 31",
    "0 0 32 * *": "day of month '32': write 1 to 31",
    "0 0 * 0 *": "month '0': write 1 to 12 or JAN/FEB/MAR",
    "0 0 * 13 *": "month '13': write 1 to 12",
    "0 0 * * 8": "weekday '8': write 0 to 7 or SUN/MON/TUE",
    "60 0 0 * * *": "second '60': write 0 to 59",
    "10-60 * * * *": "minute '10-60': write 0 to 59",
    "99999999999999999999999999 * * * *": "minute '99999999999999999999999999': write 0 to 59",
    "0-99999999999999999999 * * * *": "write 0 to 59",
    "*/0 * * * *": "minute '*/0': write a step of 1 or more",
    "5/0 * * * *": "write a step of 1 or more",
    "0 0 * * 5#0": "write 1 to 5 after the #",
    "0 0 * * 5#6": "write 1 to 5 after the #",
    "0 0 * * 8#1": "weekday '8#1': write 0 to 7",
    "0 0 * * 8L": "weekday '8L': write 0 to 7",
    "0 0 * * XYZ#1": "weekday 'XYZ#1': write 0 to 7 or SUN",
    # Misspellings.
    "0 0 * JANUARY *": "month 'JANUARY': write 1 to 12 or JAN",
    "0 0 * * MONDAY": "weekday 'MONDAY': write 0 to 7 or SUN",
    "MON * * * *": "minute 'MON': write 0 to 59",
    "0 0 * MON *": "month 'MON': write 1 to 12 or JAN",
    "-1 * * * *": "cannot read the minute '-1'; write numbers, ranges a-b and steps /n, with commas between them",
    "1,,2 * * * *": "cannot read the minute ''",
    "1, * * * *": "cannot read the minute ''",
    "1- * * * *": "cannot read the minute '1-'",
    "1-2-3 * * * *": "cannot read the minute '1-2-3'",
    "*/ * * * *": "cannot read the minute '*/'",
    "*/5/2 * * * *": "cannot read the minute '*/5/2'",
    "*/-5 * * * *": "cannot read the minute '*/-5'",
    "*5 * * * *": "cannot read the minute '*5'",
    "*-5 * * * *": "cannot read the minute '*-5'",
    "** * * * *": "cannot read the minute '**'",
    "1.5 * * * *": "cannot read the minute '1.5'",
    "+5 * * * *": "cannot read the minute '+5'",
    "0x10 * * * *": "cannot read the minute '0X10'",
    "1_0 * * * *": "cannot read the minute '1_0'",
    "~ * * * *": "cannot read the minute '~'",
    "%s * * * *": "cannot read the minute '%S'",
    "0 0 1#2 * *": "cannot read the day of month '1#2'",
    "0 0 * * 1-5#2": "cannot read the weekday '1-5#2'",
    "0 0 * * 5L-1": "cannot read the weekday '5L-1'",
    # Wrong numbers of fields.
    "": "'' has 0 fields: write five",
    "   ": "has 0 fields: write five",
    "*": "has 1 fields: write five",
    "* * * *": "has 4 fields: write five",
    "* * * * * * * *": "has 8 fields: write five",
    # Texts that look like something else.
    "\u0663 * * * *": "write plain ASCII, digits 0 to 9",
    "\uff15 * * * *": "write plain ASCII",
    "\u00b2 * * * *": "write plain ASCII",
    "0 0 * * \u017fUN": "write plain ASCII",
    "0\u00a00 * * *": "write plain ASCII",
    "* * * * *\ud800": "write plain ASCII",
    "0 0 * *\x00 *": "cannot read the month",
    "* " * 64 + "*": "too long: write at most 128 bytes",
    "9" * 100_000: "too long: write at most 128 bytes",
}


@rule("6.1")
@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:24]))
def test_what_is_not_read_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(schedule.Invalid) as refused:
        schedule.parse_cron(text)
    assert (refused.value.field, refused.value.reason) == ("cron", "SCHEDULE_INVALID")
    assert REFUSED[text] in str(refused.value)
    assert len(str(refused.value)) < 500


@rule("6.1")
@pytest.mark.parametrize(
    "text", [text for text in REFUSED if "runs backwards" in REFUSED[text] or "0-2" in REFUSED[text]]
)
def test_the_remedy_of_a_wrapped_range_is_accepted(text: str) -> None:
    with pytest.raises(schedule.Invalid) as refused:
        schedule.parse_cron(text)
    wrong = next(field for field in text.split() if "-" in field)
    remedy = str(refused.value).rpartition("write ")[2]
    assert schedule.parse_cron(text.replace(wrong, remedy)).next_after(0) is not None


@rule("6.1")
def test_an_expression_of_128_bytes_is_read_and_one_of_129_is_not() -> None:
    text = "0," * 59 + "0 0 1 1 1"
    assert schedule.parse_cron(text + " " * (128 - len(text))).fields.minutes == (0,)
    with pytest.raises(schedule.Invalid, match="at most 128 bytes"):
        schedule.parse_cron(text + " " * (129 - len(text)))


@rule("6.1")
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("Europe/Berlln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("EUROPE/BERLIN", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("US/New_York", "America/New_York"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("utc", "UTC"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_name_it_looks_like(name: str, nearest: str) -> None:
    with pytest.raises(schedule.Invalid) as refused:
        schedule.parse_cron("0 2 * * *", name)
    assert (refused.value.field, refused.value.reason) == ("time_zone", "TIME_ZONE_UNKNOWN")
    assert str(refused.value) == f"there is no time zone {name!r}; did you mean {nearest}?"


@rule("6.1")
@pytest.mark.parametrize(
    "name",
    [
        "Middle/Earth",
        "Local",
        "localtime",
        "Factory",
        "posixrules",
        "posix/UTC",
        "right/UTC",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe",
        "+02:00",
        "\x00",
        "\ud800",
        "\u200bUTC",
        " ",
        "x" * 100_000,
    ],
    ids=lambda name: repr(name[:20]),
)
def test_what_is_no_zone_is_refused_even_where_it_is_a_file(name: str) -> None:
    with pytest.raises(schedule.Invalid, match="there is no time zone") as refused:
        schedule.parse_cron("0 2 * * *", name)
    assert refused.value.reason == "TIME_ZONE_UNKNOWN"
    assert len(str(refused.value)) < 200


@rule("6.1")
@pytest.mark.parametrize(
    ("every_ms", "offset_ms", "field", "remedy"),
    [
        (99, 0, "every_ms", "every_ms is 99: write at least 100"),
        (0, 0, "every_ms", "write at least 100"),
        (-100, 0, "every_ms", "write at least 100"),
        (100, -1, "offset_ms", "offset_ms is -1: write 0 to every_ms - 1 (99)"),
        (100, 100, "offset_ms", "offset_ms is 100: write 0 to every_ms - 1 (99)"),
    ],
)
def test_an_interval_out_of_range_is_refused(every_ms: int, offset_ms: int, field: str, remedy: str) -> None:
    with pytest.raises(schedule.Invalid) as refused:
        schedule.parse_every(every_ms, offset_ms)
    assert (refused.value.field, refused.value.reason) == (field, "SCHEDULE_INVALID")
    assert remedy in str(refused.value)


@rule("6.1")
def test_the_default_zone_is_utc() -> None:
    assert schedule.parse_cron("0 2 * * *").zone_name == "Etc/UTC"
    assert localtime.get_zone("").key == "Etc/UTC"
