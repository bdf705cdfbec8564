"""Figures of several runs as one table: the median of each, with its range."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Column(msgspec.Struct, frozen=True):
    """A figure that every run gives. key: its name in a run; digits: decimals shown."""

    key: str
    title: str
    digits: int = 0


class Case(msgspec.Struct, frozen=True):
    """One variant of a benchmark and what each of its runs gave."""

    name: str
    runs: list[dict[str, float]]

    def values(self, key: str) -> list[float]:
        """The figure in each run that has it, in order."""
        return [run[key] for run in self.runs if key in run]


class Result(msgspec.Struct, frozen=True):
    """What one benchmark found. notes: what a reader must know beside the table."""

    name: str
    title: str
    columns: list[Column]
    cases: list[Case]
    notes: list[str] = []


class Report(msgspec.Struct, frozen=True):
    """All results of one call, with the machine they were taken on."""

    machine: dict[str, str]
    results: list[Result]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share (0..1) of the values do not exceed; nan of nothing."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[max(0, -(-round(share * 1_000_000) * len(ordered) // 1_000_000) - 1)]


def table(result: Result) -> str:
    """The result as a Markdown table: a line a case, median (lowest–highest) a figure."""
    head = ["case", *(column.title for column in result.columns)]
    lines = [[case.name, *(_cell(case, column) for column in result.columns)] for case in result.cases]
    widths = [max(len(line[place]) for line in [head, *lines]) for place in range(len(head))]
    rows = [head, ["-" * width for width in widths], *lines]
    body = "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    )
    return "\n".join([f"### {result.title}", "", body, *(f"\n{note}" for note in result.notes)])


def _cell(case: Case, column: Column) -> str:
    values = case.values(column.key)
    if not values:
        return "–"
    middle = f"{statistics.median(values):,.{column.digits}f}".replace(",", " ")
    if len(values) == 1:
        return middle
    low, high = (f"{value:,.{column.digits}f}".replace(",", " ") for value in (min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def machine_line(machine: dict[str, str]) -> str:
    """The machine in one line."""
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def save(report: Report, path: Path) -> None:
    """Write the report as JSON, every run kept."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
