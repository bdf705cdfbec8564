"""The only door to the libsql package: one connection, one thread, plain values, our own errors.

Every rule here answers a trap of the driver, each shown by a test (tests/unit/store/test_driver_traps.py). Statements
are fetched whole, so that no cursor pins the WAL or blocks a commit.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import libsql

from anvilmq_broker.domain.errors import Busy, Constraint, Corrupt, StorageFull, StorageIO, StoreError

Scalar = int | str | bytes | None
Row = tuple[Any, ...]

KNOWN_SOURCE_IDS: Final = frozenset(
    {"2024-01-30 16:01:20 e876e51a0ed5c5b3126f52e532044363a014bc594cfefa87ffb5b82257ccalt1"}
)
"""Builds of the engine inside the driver that the traps were tested with."""

_BINDABLE: Final = frozenset({int, str, bytes, type(None)})
_EXACT: Final = 1 << 53

_ERRORS: Final[tuple[tuple[str, type[StoreError]], ...]] = (
    ("database or disk is full", StorageFull),
    ("disk I/O error", StorageIO),
    ("attempt to write a readonly database", StorageIO),
    ("unable to open database file", StorageIO),
    ("Unable to open connection to local database", StorageIO),
    ("database is locked", Busy),
    ("database table is locked", Busy),
    ("database disk image is malformed", Corrupt),
    ("file is not a database", Corrupt),
    ("malformed database schema", Corrupt),
)
_CHECK: Final = re.compile(r"CHECK constraint failed: (\w+)")
_OTHER_CONSTRAINT: Final = re.compile(r"(UNIQUE|NOT NULL|FOREIGN KEY) constraint failed(?:: ([\w., ]+))?")
_DATATYPE: Final = re.compile(r"cannot store \w+ value in \w+ column ([\w.]+)")


def translate(error: ValueError) -> StoreError:
    """The error of ours that the driver's text stands for; an unknown text is fatal, so plain StoreError."""
    text = str(error)
    if named := _CHECK.search(text) or _DATATYPE.search(text):
        return Constraint(named[1], text)
    if other := _OTHER_CONSTRAINT.search(text):
        return Constraint(other[2] or other[1].lower().replace(" ", "_"), text)
    for part, kind in _ERRORS:
        if part in text:
            return kind(text)
    return StoreError(text)


class Connection:
    """One connection, used by the thread that opened it alone.

    was_full: a statement has failed for want of room; whoever looks at it sets it back.
    """

    def __init__(self, path: Path | str) -> None:
        self.was_full = False
        self._thread = threading.get_ident()
        try:
            self._inner = libsql.connect(str(path), isolation_level=None)
        except ValueError as error:
            raise translate(error) from error

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open. A full disk ends one without being asked."""
        return bool(self._inner.in_transaction)

    def execute(self, sql: str, args: Sequence[Scalar] = ()) -> list[Row]:
        """Run one statement and fetch all of its rows.

        args: exactly None, int below 2^53 in size, str, bytes. Raises errors.StoreError, of it Constraint for a text
        that cannot be kept whole; TypeError and OverflowError for what must not be bound.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError("the connection belongs to another thread")
        if args:
            _check(args)
        try:
            # A statement without columns gives None, not an empty list.
            return self._inner.execute(sql, tuple(args)).fetchall() or []
        except ValueError as error:
            raise self._translated(error) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            # The driver's own word for what it did not expect: text in the file that is no text.
            raise Corrupt(f"the driver gave up: {error}") from error

    def _translated(self, error: ValueError) -> StoreError:
        told = translate(error)
        self.was_full |= isinstance(told, StorageFull)
        return told

    def close(self) -> None:
        """Close, which folds the WAL in when nobody else has the file open; later use fails."""
        self._inner.close()

    def leave_open(self) -> None:
        """Never close, not even at the end of the process: a close writes to a file that must be left as it is."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._inner))


def _check(args: Sequence[Scalar]) -> None:
    if not _BINDABLE.issuperset(map(type, args)):
        wrong = next(arg for arg in args if type(arg) not in _BINDABLE)
        raise TypeError(f"cannot bind {type(wrong).__name__}: convert it at the edge")
    for arg in args:
        if type(arg) is int and not -_EXACT < arg < _EXACT:
            raise OverflowError("cannot bind an integer of 2^53 or more: the driver would round it")
        if type(arg) is str:
            check_text(arg)


def check_text(text: str) -> None:
    """Raises Constraint for a text that would not come back as it went in."""
    if "\0" in text:
        raise Constraint("text", "U+0000 in a text, which would be cut there")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Constraint("text", "half of a surrogate pair in a text") from error
