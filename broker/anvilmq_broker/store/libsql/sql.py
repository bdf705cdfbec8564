"""Runs named statements on the one connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from anvilmq_broker.domain.errors import Constraint
from anvilmq_broker.store.libsql import statements
from anvilmq_broker.store.libsql.driver import Connection, Row, Scalar, check_text

_encode = msgspec.json.Encoder().encode


class Sql:
    """The statements of this store, bound to its connection. Hot: terse on purpose."""

    __slots__ = ("_known", "connection")

    def __init__(self, connection: Connection, known: dict[str, statements.Statement]) -> None:
        self.connection = connection
        self._known = known

    def names(self) -> list[str]:
        """Names of all statements."""
        return list(self._known)

    def run(self, name: str, *args: Scalar) -> list[Row]:
        """Run a statement without rows. Raises TypeError when the number of arguments is wrong."""
        statement = self._known[name]
        if len(args) != len(statement.params) or statement.row:
            # The driver would bind NULL for what is missing and ignore what is too much.
            raise TypeError(f"{name} takes {len(statement.params)} arguments, got {len(args)}")
        return self.connection.execute(statement.text, args)

    def run_rows(self, name: str, rows: Sequence[Row], *args: Scalar) -> list[Row]:
        """Run a statement over rows. Raises TypeError when the number of arguments or fields is wrong."""
        statement = self._known[name]
        if (
            len(args) != len(statement.params)
            or not rows
            or len(rows[0]) != len(statement.row)
            or statement.shape != "rows"
        ):
            raise TypeError(f"{name} takes {len(statement.params)} arguments and rows of {len(statement.row)} fields")
        if not statement.blobs:
            return self.connection.execute(statement.text, (*args, _json(rows)))
        plain, blobs = _apart(rows, statement.blobs)
        return self.connection.execute(statement.text, (*args, _json(plain), blobs))

    def run_each(self, name: str, values: Sequence[int | str], *args: Scalar) -> list[Row]:
        """Run a statement over rows of one field. Raises TypeError when the number of arguments is wrong."""
        return self._run_shaped(name, "each", values, args)

    def run_pairs(self, name: str, pairs: Mapping[int, int] | Mapping[str, str], *args: Scalar) -> list[Row]:
        """Run a statement over rows of two fields, the first one unique. Raises TypeError as above."""
        return self._run_shaped(name, "pairs", pairs, args)

    def _run_shaped(
        self, name: str, shape: str, rows: Sequence[int | str] | Mapping[int, int] | Mapping[str, str], args: Row
    ) -> list[Row]:
        statement = self._known[name]
        if len(args) != len(statement.params) or statement.shape != shape:
            raise TypeError(f"{name} takes {len(statement.params)} arguments and rows as {statement.shape!r}")
        return self.connection.execute(statement.text, (*args, _json(rows)))


def _json(rows: object) -> str:
    """The rows as one JSON text. Raises Constraint for a text that would not come back as it went in."""
    try:
        text = _encode(rows).decode()
    except UnicodeEncodeError as error:
        raise Constraint("text", "half of a surrogate pair in a text") from error
    if "\\u0000" in text:
        _check_texts(rows)
    return text


def _check_texts(rows: object) -> None:
    if isinstance(rows, str):
        check_text(rows)
    elif isinstance(rows, Mapping):
        _check_texts([*rows, *rows.values()])
    elif isinstance(rows, Sequence):
        for each in rows:
            _check_texts(each)


def _apart(rows: Sequence[Row], places: tuple[int, ...]) -> tuple[list[list[Scalar]], bytes]:
    """The rows with (start, length) in place of each blob, from 1, NULLs for None; and the blobs in a piece."""
    pieces: list[bytes] = []
    start = 1
    plain: list[list[Scalar]] = []
    for row in rows:
        fields: list[Scalar] = []
        for place, value in enumerate(row):
            if place not in places:
                fields.append(value)
            elif value is None:
                fields += (None, None)
            else:
                fields += (start, len(value))
                start += len(value)
                pieces.append(value)
        plain.append(fields)
    # Never empty: a substr of an empty blob is NULL, one of no bytes of any other blob is an empty blob.
    return plain, b"".join(pieces) or b"\0"
