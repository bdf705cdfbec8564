"""Schedules in English words."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings

from anvilmq_broker.domain import cron, schedule, schedule_words
from tests.support.rules import rule
from tests.unit.domain import schedule_strategies

WORDS = {
    # Times of day.
    "30 2 * * *": "At 02:30 every day",
    "15 30 2 * * *": "At 02:30:15 every day",
    "0 0,12 * * *": "At 00:00 and 12:00 every day",
    "*/30 2 * * *": "At 02:00 and 02:30 every day",
    "0 6,12,18 * * *": "At 06:00, 12:00 and 18:00 every day",
    "@daily": "At 00:00 every day",
    # Repeated within a day.
    "* * * * *": "Every minute",
    "* * * * * *": "Every second",
    "*/5 * * * *": "Every 5 minutes",
    "*/10 * * * * *": "Every 10 seconds",
    "0 * * * *": "Every hour",
    "@hourly": "Every hour",
    "0 */4 * * *": "Every 4 hours",
    "0 0-23/4 * * *": "Every 4 hours",
    "* 2 * * *": "Every minute from 02:00 to 02:59",
    "*/15 9-17 * * *": "Every 15 minutes from 09:00 to 17:59",
    "*/15 9-17 * * MON-FRI": "Every 15 minutes from 09:00 to 17:59, Monday to Friday",
    "*/10 * 9-17 * * *": "Every 10 seconds from 09:00:00 to 17:59:59",
    "*/15 9,12,15 * * *": "Every 15 minutes of hours 9, 12 and 15",
    "*/20 0-3,9 * * *": "Every 20 minutes of hours 0 to 3 and 9",
    "0 9-17 * * *": "Every hour from 09:00 to 17:00",
    "30 9-17 * * 1-5": "Every hour from 09:30 to 17:30, Monday to Friday",
    # What is neither: field by field.
    "30 * * * *": "At minute 30 of every hour",
    "5,35 * * * *": "At minutes 5 and 35 of every hour",
    "*/7 * * * *": "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour",
    "0-10,30 */3 * * *": "At minutes 0 to 10 and 30 of hours 0, 3, 6, 9, 12, 15, 18 and 21",
    "30 * * * * *": "At second 30 of every minute",
    "30 * 2 * * *": "At second 30 of every minute of hour 2",
    "* 5 * * * *": "At every second of minute 5 of every hour",
    "*/30 */15 * * * *": "At seconds 0 and 30 of minutes 0, 15, 30 and 45 of every hour",
    # Days.
    "0 0 1 * *": "At 00:00, on day 1 of the month",
    "@monthly": "At 00:00, on day 1 of the month",
    "0 0 */7 * *": "At 00:00, on days 1, 8, 15, 22 and 29 of the month",
    "0 0 1-5,20 * *": "At 00:00, on days 1 to 5 and 20 of the month",
    "0 0 L * *": "At 00:00, on the last day of the month",
    "0 0 15,L * *": "At 00:00, on day 15 and the last day of the month",
    "0 0 1-31 * *": "At 00:00 every day",
    # Weekdays.
    "@weekly": "At 00:00, every Sunday",
    "0 0 * * 1,4": "At 00:00, every Monday and Thursday",
    "0 0 * * 5-7": "At 00:00, Friday to Sunday",
    "0 0 * * 0-6": "At 00:00 every day",
    "0 0 * * 5L": "At 00:00, the last Friday of the month",
    "0 0 * * 5#2": "At 00:00, the 2nd Friday of the month",
    "0 0 * * 1#3,1#1,1L": "At 00:00, the 1st, 3rd and last Monday of the month",
    "0 0 * * 1,5L": "At 00:00, every Monday and the last Friday of the month",
    # Months.
    "0 0 * 1-3 *": "At 00:00 every day from January to March",
    "0 0 * 1,6-8 *": "At 00:00 every day in January and June to August",
    "*/5 * * 12 *": "Every 5 minutes, in December",
    "@yearly": "At 00:00, on day 1 of January",
    "0 0 L 2 *": "At 00:00, on the last day of February",
    "0 0 * 3 1": "At 00:00, every Monday, in March",
    "0 0 * 3,10 SUNL": "At 00:00, the last Sunday of March and October",
    "0 0 * 6-8 1,5L": "At 00:00, every Monday and the last Friday of the month, from June to August",
    # Either.
    "0 0 13 * 5": "At 00:00, on day 13 of the month and also every Friday",
    "0 0 1 * 1-5": "At 00:00, on day 1 of the month and also every Monday to Friday",
    "0 0 1 3 1#1": "At 00:00, on day 1 of March and also the 1st Monday of March",
    "0 0 1 3 1": "At 00:00, on day 1 of the month and also every Monday, in March",
    "0 0 1-31 * 5": "At 00:00 every day",
    "0 0 5 * 0-6": "At 00:00 every day",
}


@rule("6.8")
@pytest.mark.parametrize("text", WORDS)
def test_an_expression_in_words(text: str) -> None:
    assert schedule_words.words(schedule.parse_cron(text)) == WORDS[text]


@rule("6.8")
@pytest.mark.parametrize(
    ("every_ms", "offset_ms", "words"),
    [
        (100, 0, "Every 100 ms"),
        (1_000, 0, "Every second"),
        (1_500, 0, "Every 1500 ms"),
        (90_000, 0, "Every 90 s"),
        (60_000, 0, "Every minute"),
        (300_000, 0, "Every 5 minutes"),
        (3_600_000, 0, "Every hour"),
        (5_400_000, 0, "Every 90 minutes"),
        (86_400_000, 0, "Every day"),
        (7 * 86_400_000, 0, "Every 7 days"),
        (86_400_000, 3_600_000, "Every day, shifted by 1 hour"),
        (7_200_000, 30_000, "Every 2 hours, shifted by 30 s"),
        (1_000, 1, "Every second, shifted by 1 ms"),
    ],
)
def test_an_interval_in_words(every_ms: int, offset_ms: int, words: str) -> None:
    assert schedule_words.words(schedule.parse_every(every_ms, offset_ms)) == words


@rule("6.8")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(schedule_strategies.SECOND_EXPRESSIONS)
def test_every_expression_that_is_accepted_has_words(text: str) -> None:
    words = schedule_words.words(schedule.parse_cron(text))
    assert words.startswith(("At ", "Every "))
    assert "  " not in words
    assert words == words.strip()


@rule("6.8")
def test_expressions_with_the_same_words_are_due_at_the_same_times() -> None:
    seconds = ("0", "30", "*", "*/15", "0-10")
    minutes = ("0", "30", "*", "*/15", "5/15", "0-10", "*/7", "0,30")
    hours = ("*", "2", "9-17", "*/4", "*/2", "0,12", "9,12,15", "0-22")
    days = (
        "* * *",
        "1 * *",
        "* 3 *",
        "* * 1-5",
        "* 3 1",
        "1 3 1#1",
        "1 * 5",
        "L * 5L",
        "L 1-3 *",
        "* 1-3 1,5L",
        "1-31 * 2",
    )
    meanings: dict[str, object] = {}
    for text in map(" ".join, product(seconds, minutes, hours, days)):
        when = schedule.parse_cron(text)
        meaning = (*_slots(when.fields), *(tuple(when.fields.days_of(2028, month)) for month in range(1, 13)))
        assert meanings.setdefault(schedule_words.words(when), meaning) == meaning, text


def _slots(fields: cron.Fields) -> tuple[object, ...]:
    return fields.seconds, fields.minutes, fields.hours
