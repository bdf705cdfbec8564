"""Tables and details for people: fitted to the screen on a terminal, uncut and plain elsewhere."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from anvilmq.cli.terminal import visible

if TYPE_CHECKING:
    from anvilmq.cli.terminal import Terminal

M = TypeVar("M")
_GAP: Final = "   "
_NARROWEST: Final = 8
"""Places; a column is not cut below them."""


class Column(msgspec.Struct, Generic[M], frozen=True):
    """A column: its title, the text of its cells, and whether only `-o wide` shows it."""

    title: str
    cell: Callable[[M], str]
    wide: bool = False


def print_table(terminal: Terminal, columns: Sequence[Column[M]], items: Sequence[M]) -> None:
    """One line an item below the titles. Without items a note says so, and stdout stays empty."""
    if not items:
        terminal.note("none found")
        return
    rows = [[one_line(column.cell(item)) for column in columns] for item in items]
    titles = [column.title for column in columns]
    lines: Sequence[Sequence[str]] = [titles, *rows]
    if terminal.out_is_tty:
        lines = _fitted(lines, shutil.get_terminal_size().columns)
    for line in aligned(lines):
        terminal.out(line)


def print_details(terminal: Terminal, fields: Sequence[tuple[str, str]]) -> None:
    """One field a line, those without a value left out; further lines of a value are indented."""
    shown = [(name, value) for name, value in fields if value]
    indent = max((width(name) for name, _ in shown), default=0) + 1 + len(_GAP)
    for name, value in shown:
        first, *rest = visible(value).splitlines() or [""]
        terminal.out(f"{name}:".ljust(indent) + first)
        for line in rest:
            terminal.out(" " * indent + line)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines whose columns stand below each other, without spaces at the end; an empty cell is a dash."""
    filled = [[cell or "-" for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*filled, strict=True)]
    return [
        _GAP.join(cell + " " * (size - width(cell)) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in filled
    ]


def one_line(text: str) -> str:
    """Text for a cell: no line ends, no control characters."""
    return visible(" ".join(text.split())) if not text.isprintable() else text


def width(text: str) -> int:
    """Places on the screen that a text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def _fitted(rows: Sequence[Sequence[str]], room: int) -> list[list[str]]:
    """The rows with their widest columns cut, until a line has room. The first column names the item: it stays whole.

    room: places on the screen.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - room
    while excess > 0 and len(widths) > 1 and max(widths[1:]) > _NARROWEST:
        widest = max(range(1, len(widths)), key=widths.__getitem__)
        widths[widest] -= 1
        excess -= 1
    return [[_cut(cell, size) for cell, size in zip(row, widths, strict=True)] for row in rows]


def _cut(cell: str, size: int) -> str:
    if width(cell) <= size:
        return cell
    kept = cell[: size - 1]
    while width(kept) > size - 1:
        kept = kept[:-1]
    return f"{kept}…"
