"""Durations as users write them: a text such as "1h30m", or a timedelta. Never a bare number: its unit is a guess."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

Duration = str | timedelta

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = r"(\d+(?:\.\d+)?)(ms|[smhdw])"
_LONGEST_MS: Final = 2**53 - 1


def parse_ms(duration: Duration) -> int:
    """Whole milliseconds of a duration.

    A text is one or more numbers with a unit each (ms, s, m, h, d, w), such as "250ms", "1.5s" or "1h 30m"; "0" needs
    no unit. What is finer than a millisecond is rounded to the nearest one.
    TypeError for anything but text and timedelta; ValueError for another text, less than 0, or 2^53 ms and more.
    """
    if isinstance(duration, timedelta):
        ms = round(duration / timedelta(milliseconds=1))
    elif isinstance(duration, str):
        ms = _parse_text(duration)
    else:
        raise TypeError(f'a duration is a text with a unit, such as "30s", or a timedelta, not {duration!r}')
    if not 0 <= ms <= _LONGEST_MS:
        raise ValueError(f"a duration is at least 0 and less than 2^53 ms, not {duration!r}")
    return ms


def parse_s(duration: Duration) -> float:
    """The same in seconds."""
    return parse_ms(duration) / 1_000


def _parse_text(text: str) -> int:
    compact = text.replace(" ", "")
    if compact == "0":
        return 0
    if not re.fullmatch(f"(?:{_PART})+", compact, re.ASCII):
        raise ValueError(f'a duration is written with a unit (ms, s, m, h, d, w), such as "1h30m", not {text!r}')
    return round(sum(float(number) * _UNITS_MS[unit] for number, unit in re.findall(_PART, compact)))
