"""Steps of the SQL engine's virtual machine: a measure of work that no busy machine and no slow disk can change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from anvilmq_broker.store.libsql.driver import Connection, Row, Scalar


class Steps:
    """Steps counted so far."""

    def __init__(self) -> None:
        self.total = 0


@contextmanager
def counted() -> Iterator[Steps]:
    """Count the steps of every statement of every store in this process, for as long as the block lasts."""
    steps = Steps()

    def execute(self: Connection, sql: str, args: Sequence[Scalar] = ()) -> list[Row]:
        # While its cursor lives the statement stands in the table sqlite_stmt, with its steps.
        cursor = self._inner.execute(sql, tuple(args))
        rows: list[Row] = cursor.fetchall() or []
        found = self._inner.execute("SELECT nstep FROM sqlite_stmt WHERE sql = ?", (sql,)).fetchall()
        steps.total += sum(row[0] for row in found)
        del cursor
        return rows

    with mock.patch.object(Connection, "execute", execute):
        yield steps
