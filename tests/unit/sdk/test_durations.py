"""Durations as users write them."""

from datetime import timedelta
from typing import Any

import pytest

from anvilmq import durations


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("250ms", 250),
        ("1.5s", 1_500),
        ("30m", 1_800_000),
        ("1h30m", 5_400_000),
        ("1h 30m", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("0", 0),
        ("0s", 0),
        ("0.4ms", 0),
        (timedelta(minutes=2), 120_000),
        (timedelta(microseconds=1_600), 2),
    ],
)
def test_a_duration_is_whole_milliseconds(written: durations.Duration, ms: int) -> None:
    assert durations.parse_ms(written) == ms


@pytest.mark.parametrize("number", [5, 5.0, True, None])
def test_a_bare_number_is_a_type_error(number: Any) -> None:
    with pytest.raises(TypeError, match="a text with a unit"):
        durations.parse_ms(number)


@pytest.mark.parametrize("text", ["", "5", "five", "5x", "-5s", "s", "1h-30m", "5 s x", "٥s", "300000000000d"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        durations.parse_ms(text)


def test_a_negative_timedelta_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        durations.parse_ms(timedelta(seconds=-1))
