"""What a cron expression means, field by field: what Kubernetes' CronJob reads, and more."""

import pytest

from anvilmq_broker.domain import cron, schedule
from tests.support.rules import rule

ALL_MINUTES = tuple(range(60))
ALL_HOURS = tuple(range(24))
ALL_MONTHS = tuple(range(1, 13))


def days(text: str, year: int, month: int) -> list[int]:
    """The days of a month on which an expression is due."""
    return list(cron.parse(text).days_of(year, month))


@rule("6.1")
def test_five_fields_are_due_in_second_0() -> None:
    fields = cron.parse("* * * * *")
    assert (fields.seconds, fields.minutes, fields.hours) == ((0,), ALL_MINUTES, ALL_HOURS)


@rule("6.1")
def test_six_fields_begin_with_the_seconds() -> None:
    fields = cron.parse("15 30 2 1 6 *")
    assert (fields.seconds, fields.minutes, fields.hours, fields.days, fields.months) == (
        (15,),
        (30,),
        (2,),
        (1,),
        (6,),
    )


@rule("6.1")
@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("5", (5,)),
        ("05", (5,)),
        ("0,30", (0, 30)),
        ("30,0,30", (0, 30)),
        ("*", ALL_MINUTES),
        ("?", ALL_MINUTES),
        ("*/1", ALL_MINUTES),
        ("*/15", (0, 15, 30, 45)),
        ("?/15", (0, 15, 30, 45)),
        ("*/7", (0, 7, 14, 21, 28, 35, 42, 49, 56)),
        ("*/90", (0,)),
        ("*/99999999999999999999", (0,)),
        ("10-13", (10, 11, 12, 13)),
        ("48-48", (48,)),
        ("10-20/5", (10, 15, 20)),
        ("10-20/6", (10, 16)),
        ("50/4", (50, 54, 58)),
        ("0-59", ALL_MINUTES),
        ("1-3,20,50/5", (1, 2, 3, 20, 50, 55)),
        ("5,*", ALL_MINUTES),
    ],
)
def test_lists_ranges_and_steps_of_minutes(text: str, minutes: tuple[int, ...]) -> None:
    assert cron.parse(f"{text} * * * *").minutes == minutes


@rule("6.1")
@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("JAN", (1,)),
        ("jan,Dec", (1, 12)),
        ("FEB-APR", (2, 3, 4)),
        ("*/3", (1, 4, 7, 10)),
        ("FEB/4", (2, 6, 10)),
        ("1-12", ALL_MONTHS),
    ],
)
def test_months_have_names_in_any_case(text: str, months: tuple[int, ...]) -> None:
    assert cron.parse(f"0 0 1 {text} *").months == months


@rule("6.1")
@pytest.mark.parametrize(
    ("text", "weekdays"),
    [
        ("0", (0,)),
        ("7", (0,)),
        ("0,7", (0,)),
        ("SUN", (0,)),
        ("MON-FRI", (1, 2, 3, 4, 5)),
        ("mon-Fri/2", (1, 3, 5)),
        ("5-7", (0, 5, 6)),
        ("FRI-7", (0, 5, 6)),
        ("0-7", (0, 1, 2, 3, 4, 5, 6)),
        ("1-7/3", (0, 1, 4)),
        ("*/2", (0, 2, 4, 6)),
        ("5/1", (5, 6)),
        ("7/2", (0,)),
    ],
)
def test_weekdays_have_names_and_sunday_is_0_and_7(text: str, weekdays: tuple[int, ...]) -> None:
    assert cron.parse(f"0 0 * * {text}").weekdays == weekdays


@rule("6.1")
@pytest.mark.parametrize(
    ("word", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
    ],
)
def test_the_words_of_cronjob_stand_for_an_expression(word: str, same: str) -> None:
    assert cron.parse(word) == cron.parse(same)


@rule("6.1")
def test_blanks_around_and_between_the_fields_do_not_count() -> None:
    assert cron.parse("  0\t2  *   * MON\n") == cron.parse("0 2 * * MON")


@rule("6.1")
@pytest.mark.parametrize(
    ("text", "february_2027"),
    [
        ("0 0 L * *", [28]),
        ("0 0 15,L * *", [15, 28]),
        ("0 0 L,31 * *", [28]),
        ("0 0 * * 5L", [26]),
        ("0 0 * * L5", [26]),
        ("0 0 * * FRIL", [26]),
        ("0 0 * * LFRI", [26]),
        ("0 0 * * 7L", [28]),
        ("0 0 * * 5#2", [12]),
        ("0 0 * * FRI#2", [12]),
        ("0 0 * * 5#1,5#3", [5, 19]),
        ("0 0 * * 7#1", [7]),
        ("0 0 * * 5#5", []),
        ("0 0 * * 1,5L", [1, 8, 15, 22, 26]),
        ("0 0 * * 1,1#2", [1, 8, 15, 22]),
        ("0 0 29-31 * *", []),
        ("0 0 1 3 *", []),
    ],
)
def test_days_counted_from_the_start_or_the_end_of_a_month(text: str, february_2027: list[int]) -> None:
    assert days(text, 2027, 2) == february_2027


@rule("6.4")
@pytest.mark.parametrize(
    ("text", "february_2027"),
    [
        ("0 0 13 * 5", [5, 12, 13, 19, 26]),
        ("0 0 */14 * 5", [1, 5, 12, 15, 19, 26]),
        ("0 0 13 * */6", [6, 7, 13, 14, 20, 21, 27, 28]),
        ("0 0 1 * 1#1", [1]),
        ("0 0 3 * 1#1,5L", [1, 3, 26]),
        ("0 0 L * 1", [1, 8, 15, 22, 28]),
        # `*`, `?` and `*/1` are not given: the other field alone decides.
        ("0 0 13 * *", [13]),
        ("0 0 13 * ?", [13]),
        ("0 0 13 * */1", [13]),
        ("0 0 * * 5", [5, 12, 19, 26]),
        ("0 0 ? * 5", [5, 12, 19, 26]),
        ("0 0 */1 * 5", [5, 12, 19, 26]),
        ("0 0 */1,3 * 5", [5, 12, 19, 26]),
        # Every day of a field that is given is every day.
        ("0 0 1-31 * 5", list(range(1, 29))),
        ("0 0 5 * 0-6", list(range(1, 29))),
    ],
)
def test_when_day_and_weekday_are_both_given_either_matches(text: str, february_2027: list[int]) -> None:
    assert days(text, 2027, 2) == february_2027


@rule("6.1")
@pytest.mark.parametrize(
    "text",
    ["0 0 31 2 1", "0 0 31 2,3 *", "0 0 29 2 *", "0 0 L 2 *", "0 0 30,L 2 *", "0 0 31 2 1#1", "0 0 * 2 1#5"],
)
def test_a_rare_day_is_accepted_when_it_comes_at_all(text: str) -> None:
    assert schedule.parse_cron(text).next_after(1_800_000_000_000) is not None


@rule("6.4")
@pytest.mark.parametrize(
    ("hour", "wild"),
    [
        ("*", True),
        ("?", True),
        ("*/2", True),
        ("?/2", True),
        ("*,5", True),
        ("2", False),
        ("0-23", False),
        ("0/2", False),
        ("5,*", False),
    ],
)
def test_an_hour_is_wild_when_its_text_starts_with_a_star(hour: str, wild: bool) -> None:
    assert cron.parse(f"0 {hour} * * *").wild is wild


@rule("6.1")
@pytest.mark.parametrize(
    ("every_ms", "offset_ms", "ticks"),
    [
        (100, 0, [1000, 1100, 1200]),
        (100, 99, [99, 199, 299]),
        (400, 0, [1200, 1600, 2000]),
        (90_000, 0, [90_000, 180_000, 270_000]),
        (90_000, 1_000, [1_000, 91_000, 181_000]),
    ],
)
def test_an_interval_counts_from_the_epoch_and_its_offset(every_ms: int, offset_ms: int, ticks: list[int]) -> None:
    when = schedule.parse_every(every_ms, offset_ms)
    assert [when.next_after(tick - 1) for tick in ticks] == ticks
    assert [when.next_after(tick) for tick in ticks[:-1]] == ticks[1:]
