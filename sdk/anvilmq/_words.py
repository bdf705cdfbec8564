"""Values of the contract as programs read them: enums as words, instants as datetimes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def word(enum: Any, number: int) -> str:
    """The word for a value of an enum, such as "waiting". One that a newer broker has reads as "unspecified"."""
    names = enum.DESCRIPTOR.values_by_number
    name: str = names.get(number, names[0]).name
    return name.removeprefix(_prefix(enum)).lower()


def words(enum: Any) -> dict[str, int]:
    """The words of an enum with their numbers, without the unspecified one."""
    prefix = _prefix(enum)
    return {value.name.removeprefix(prefix).lower(): value.number for value in enum.DESCRIPTOR.values if value.number}


def instant(at_ms: int) -> datetime | None:
    """An instant in UTC; None for 0."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC) if at_ms else None


def _prefix(enum: Any) -> str:
    name: str = enum.DESCRIPTOR.values_by_number[0].name
    return name.removesuffix("UNSPECIFIED")
