"""Runs named statements on the one connection, in the fixed widths."""

from __future__ import annotations

from collections.abc import Sequence

from anvilmq_broker.store.libsql import statements
from anvilmq_broker.store.libsql.driver import Connection, Row, Scalar


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
        if len(args) != len(statement.common):
            # The driver would bind NULL for what is missing and ignore what is too much.
            raise TypeError(f"{name} takes {len(statement.common)} arguments, got {len(args)}")
        return self.connection.execute(statement.texts[1], args)

    def run_rows(self, name: str, rows: Sequence[Row], *common: Scalar) -> list[Row]:
        """Run a statement over rows and return what all its pieces returned."""
        statement = self._known[name]
        if len(common) != len(statement.common) or (rows and len(rows[0]) != len(statement.row)):
            raise TypeError(f"{name} takes {len(statement.common)} + {len(statement.row)} arguments")
        execute, texts = self.connection.execute, statement.texts
        if len(rows) == 1:
            return execute(texts[1], (*common, *rows[0]))
        found: list[Row] = []
        for start, width in statements.widths(len(rows)):
            found += execute(texts[width], statements.flat(common, rows[start : start + width]))
        return found
