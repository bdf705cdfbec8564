"""Durations and instants, as typed and as shown. Instants are Unix milliseconds, shown in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from anvilmq import durations
from anvilmq.cli.exits import UsageProblem

_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def duration_ms(flag: str, text: str) -> int:
    """Milliseconds of a duration such as 1h30m. UsageProblem names the flag."""
    try:
        return durations.parse_ms(text)
    except ValueError as problem:
        raise UsageProblem(flag, str(problem)) from problem


def instant_ms(flag: str, text: str) -> int:
    """Unix milliseconds of an ISO 8601 time with its offset. UsageProblem names the flag."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as problem:
        raise UsageProblem(flag, f"{text!r} is no time; write it as 2030-01-31T09:30:00Z") from problem
    if moment.tzinfo is None:
        raise UsageProblem(flag, f"{text!r} leaves the time zone open; add Z for UTC, or an offset such as +01:00")
    return round(moment.timestamp() * 1_000)


def iso(at_ms: int) -> str:
    """An instant for people and programs, in UTC; "" for 0, which means none."""
    if not at_ms:
        return ""
    seconds, ms = divmod(at_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def short(ms: int) -> str:
    """A length of time in its two largest units: 2d3h, 4m10s, 850ms."""
    if ms < 1_000:
        return f"{max(ms, 0)}ms"
    left = ms // 1_000
    parts: list[str] = []
    for size, unit in _STEPS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count}{unit}")
        if len(parts) == 2:
            break
    return "".join(part for part in parts if not part.startswith("0"))


def exact(ms: int) -> str:
    """A length of time as it is typed, with nothing left out: 1m30s, 1s500ms; "0" for none."""
    parts: list[str] = []
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")):
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0"


def age(at_ms: int, now: int) -> str:
    """How long ago an instant was; "" for 0."""
    return short(now - at_ms) if at_ms else ""


def relative(at_ms: int, now: int) -> str:
    """An instant beside how far off it is: "2030-01-31T09:30:00.000Z (in 4m10s)"; "" for 0."""
    if not at_ms:
        return ""
    return f"{iso(at_ms)} ({'in ' + short(at_ms - now) if at_ms > now else short(now - at_ms) + ' ago'})"
