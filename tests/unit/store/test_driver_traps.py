"""The traps of the libsql package, one by one: that each is there still, and that the driver is not caught in it.

A test of a trap that turns red with a new driver is good news: its rule may go.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import libsql
import pytest

from anvilmq_broker.domain import errors
from anvilmq_broker.store.libsql import statements
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.sql import Sql

LONG_STATEMENT = """
WITH RECURSIVE steps (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM steps WHERE n < 300000) SELECT count(*) FROM steps
"""


@pytest.fixture
def raw() -> Iterator[Any]:
    """A connection of the package itself."""
    connection = libsql.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def raw_file(tmp_path: Path) -> Iterator[Any]:
    """The same on a file in WAL mode, with a table t of a few rows in it."""
    connection = libsql.connect(str(tmp_path / "raw.db"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1), (2), (3)")
    yield connection
    connection.close()


@pytest.fixture
def safe(tmp_path: Path) -> Iterator[Connection]:
    """The driver's connection, likewise."""
    connection = Connection(tmp_path / "safe.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT")
    connection.execute("INSERT INTO t (a) VALUES (1), (2), (3)")
    yield connection
    connection.close()


def loaded(connection: Connection, text: str) -> Sql:
    """A statement of that text, ready to run under its name."""
    return Sql(connection, {found.name: found for found in statements.parse(text, "test.sql")})


# ---------------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**53 - 1])
def test_trap_integers_from_2_to_the_31_are_bound_as_reals(raw: Any, number: int) -> None:
    assert raw.execute("SELECT typeof(?)", (number,)).fetchall() == [("real",)]
    assert raw.execute("SELECT ? / 2", (2**31 + 1,)).fetchall() == [(2**30 + 0.5,)]


def test_trap_integers_above_2_to_the_53_are_rounded_even_under_a_cast(raw: Any) -> None:
    assert raw.execute("SELECT CAST(? AS INTEGER)", (2**53 + 1,)).fetchall() == [(2**53,)]


@pytest.mark.parametrize("number", [0, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 - 1, 1 - 2**53])
def test_an_integer_of_a_statement_stays_one(safe: Connection, number: int) -> None:
    sql = loaded(safe, "-- name: half\n-- Test.\n-- params: n int\nSELECT typeof(:n), :n, :n / 2;")
    assert sql.run("half", number) == [("integer", number, math.trunc(number / 2))]


@pytest.mark.parametrize("number", [0, 2**31, 2**53 - 1, 1 - 2**53, 2**62])
def test_an_integer_of_a_row_stays_one(safe: Connection, number: int) -> None:
    sql = loaded(safe, "-- name: same\n-- Test.\n-- rows: n int\nSELECT typeof(:n), :n FROM rows;")
    assert sql.run_rows("same", [(number,)]) == [("integer", number)]


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**63])
def test_an_integer_that_would_be_rounded_is_not_bound(safe: Connection, number: int) -> None:
    with pytest.raises(OverflowError):
        safe.execute("SELECT ?", (number,))


# ------------------------------------------------------------------------------------------ other values


@pytest.mark.parametrize(
    ("value", "becomes"), [(True, ("integer", 1)), (Decimal("1.5"), ("real", 1.5)), (math.nan, ("null", None))]
)
def test_trap_other_types_become_something_else(raw: Any, value: object, becomes: tuple[str, object]) -> None:
    assert raw.execute("SELECT typeof(?1), ?1", (value,)).fetchall() == [becomes]


@pytest.mark.parametrize("value", [bytearray(b"x"), memoryview(b"x")])
def test_trap_of_the_kinds_of_bytes_only_one_is_taken(raw: Any, value: object) -> None:
    with pytest.raises(ValueError, match="Unsupported parameter type"):
        raw.execute("SELECT ?", (value,))


@pytest.mark.parametrize("value", [True, 1.5, Decimal(1), math.nan, bytearray(b"x"), memoryview(b"x"), ["x"]])
def test_only_exact_types_are_bound(safe: Connection, value: Any) -> None:
    with pytest.raises(TypeError, match="convert it at the edge"):
        safe.execute("SELECT ?", (value,))


def test_none_integers_texts_and_bytes_come_back_as_they_went_in(safe: Connection) -> None:
    row = (None, 7, "ä\u2028\U0001f528", b"\x00\xff", "", b"")
    assert safe.execute("SELECT ?, ?, ?, ?, ?, ?", row) == [row]


def test_trap_text_is_read_back_cut_at_u_0000(raw: Any) -> None:
    assert raw.execute("SELECT ?1, hex(?1)", ("a\0b",)).fetchall() == [("a", "610062")]


def test_trap_half_a_surrogate_pair_raises_what_looks_like_any_error(raw: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported parameter type"):
        raw.execute("SELECT ?", ("a\ud800",))


@pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
def test_a_text_that_would_not_come_back_is_a_fault_of_its_command_alone(safe: Connection, text: str) -> None:
    sql = loaded(safe, "-- name: say\n-- Test.\n-- rows: said text\nSELECT :said FROM rows;")
    with pytest.raises(errors.Constraint):
        safe.execute("SELECT ?", (text,))
    with pytest.raises(errors.Constraint):
        sql.run_rows("say", [("fine",), (text,)])


def test_trap_text_in_the_file_that_is_no_text_is_no_exception_but_a_panic(raw: Any) -> None:
    with pytest.raises(BaseException, match="Utf8Error") as caught:
        raw.execute("SELECT CAST(x'ff' AS TEXT)").fetchall()
    assert not isinstance(caught.value, Exception)


def test_text_in_the_file_that_is_no_text_is_damage(safe: Connection) -> None:
    with pytest.raises(errors.Corrupt):
        safe.execute("SELECT CAST(x'ff' AS TEXT)")


# -------------------------------------------------------------------------------------------- parameters


def test_trap_parameters_have_no_names(raw: Any) -> None:
    with pytest.raises(ValueError, match="Expected a list or tuple"):
        raw.execute("SELECT :a", {"a": 1})


def test_trap_a_missing_parameter_is_null_and_one_too_many_is_ignored(raw: Any) -> None:
    assert raw.execute("SELECT ?, ?", (1,)).fetchall() == [(1, None)]
    assert raw.execute("SELECT ?", (1, 2)).fetchall() == [(1,)]


def test_parameters_are_counted(safe: Connection) -> None:
    sql = loaded(safe, "-- name: two\n-- Test.\n-- params: a small, b small\nSELECT :b, :a;")
    assert sql.run("two", 1, 2) == [(2, 1)]
    for args in ((1,), (1, 2, 3)):
        with pytest.raises(TypeError, match="takes 2 arguments"):
            sql.run("two", *args)


def test_fields_of_rows_are_counted(safe: Connection) -> None:
    sql = loaded(safe, "-- name: two\n-- Test.\n-- rows: a small, b small\nSELECT :b, :a FROM rows;")
    assert sql.run_rows("two", [(1, 2), (3, 4)]) == [(2, 1), (4, 3)]
    for rows in ([], [(1,)], [(1, 2, 3)]):
        with pytest.raises(TypeError, match="rows of 2 fields"):
            sql.run_rows("two", rows)
    with pytest.raises(TypeError, match="takes 0 arguments"):
        sql.run("two")


# -------------------------------------------------------------------------------------------- statements


def test_trap_a_second_statement_in_a_text_is_ignored(raw: Any) -> None:
    raw.execute("SELECT 1; CREATE TABLE second (a)").fetchall()
    assert raw.execute("SELECT name FROM sqlite_schema").fetchall() == []


def test_trap_executescript_hides_errors(raw: Any) -> None:
    assert raw.executescript("CREATE TABLE one (a); nonsense; CREATE TABLE two (a);") is None
    assert raw.execute("SELECT name FROM sqlite_schema").fetchall() == [("one",)]


def test_the_driver_has_no_way_to_run_several_statements() -> None:
    assert not hasattr(Connection, "executescript")
    with pytest.raises(statements.SqlFileError, match="one statement"):
        list(statements.parse("-- name: two\n-- Test.\nSELECT 1; SELECT 2;", "test.sql"))


def test_trap_a_statement_without_columns_gives_none(raw: Any) -> None:
    assert raw.execute("CREATE TABLE t (a)").fetchall() is None


def test_a_statement_without_columns_gives_no_rows(safe: Connection) -> None:
    assert safe.execute("CREATE TABLE other (a)") == []


def test_trap_rowcount_is_that_of_an_earlier_statement(raw_file: Any) -> None:
    assert raw_file.execute("INSERT INTO t VALUES (4), (5)").rowcount == 2
    changed = raw_file.execute("UPDATE t SET a = 9 WHERE a = 1 RETURNING a")
    assert changed.rowcount == 2
    changed.fetchall()


def test_returning_says_what_was_changed(safe: Connection) -> None:
    assert safe.execute("UPDATE t SET b = 'x' WHERE a > 1 RETURNING a") == [(2,), (3,)]


# ---------------------------------------------------------------------------------- cursors, transactions


def test_trap_an_error_may_come_with_the_rows_only(raw_file: Any) -> None:
    cursor = raw_file.execute("INSERT INTO t VALUES (1) RETURNING a")
    with pytest.raises(ValueError, match="UNIQUE"):
        cursor.fetchall()


def test_trap_a_half_read_cursor_pins_the_log(raw_file: Any) -> None:
    cursor = raw_file.execute("SELECT a FROM t")
    cursor.fetchone()
    with pytest.raises(ValueError, match="locked"):
        raw_file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    del cursor


def test_trap_unfetched_returning_blocks_the_commit(raw_file: Any) -> None:
    raw_file.execute("BEGIN IMMEDIATE")
    cursor = raw_file.execute("INSERT INTO t VALUES (7) RETURNING a")
    with pytest.raises(ValueError, match="SQL statements in progress"):
        raw_file.execute("COMMIT")
    cursor.fetchall()
    raw_file.execute("COMMIT")


def test_rows_are_fetched_whole_so_that_nothing_pins_the_log_or_blocks_a_commit(safe: Connection) -> None:
    safe.execute("BEGIN IMMEDIATE")
    kept = safe.execute("INSERT INTO t (a) VALUES (7) RETURNING a"), safe.execute("SELECT a FROM t")
    safe.execute("COMMIT")
    assert safe.execute("PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
    assert kept[0] == [(7,)]


def test_trap_the_isolation_level_is_not_looked_at() -> None:
    connection = libsql.connect(":memory:", isolation_level="NONSENSE")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    connection.close()


def test_a_transaction_begins_only_when_it_is_said(safe: Connection) -> None:
    safe.execute("INSERT INTO t (a) VALUES (10)")
    assert not safe.in_transaction
    safe.execute("BEGIN IMMEDIATE")
    assert safe.in_transaction
    safe.execute("ROLLBACK")
    assert not safe.in_transaction


# ------------------------------------------------------------------------------------------------ threads


class Other:
    """A thread that gives the interpreter lock away after every round; nobody is made to give it away."""

    def __enter__(self) -> Self:
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(1_000)
        self.rounds = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._go_round)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._thread.join()
        sys.setswitchinterval(self._interval)

    def _go_round(self) -> None:
        while not self._stopped:
            self.rounds += 1
            time.sleep(0)

    def rounds_during(self, work: Callable[[], object]) -> int:
        """How often the thread came round while the work ran."""
        before = self.rounds
        work()
        return self.rounds - before


def test_trap_no_thread_runs_while_a_statement_does(raw: Any) -> None:
    with Other() as other:
        while not other.rounds_during(lambda: time.sleep(0)):
            pass
        assert other.rounds_during(lambda: raw.execute(LONG_STATEMENT).fetchall()) == 0


def test_trap_a_running_statement_cannot_be_stopped_and_nothing_copies_a_live_file() -> None:
    offered = {name for name in dir(libsql.Connection) if not name.startswith("_")}
    assert offered.isdisjoint({"interrupt", "backup", "set_progress_handler", "iterdump"})


def test_trap_any_thread_may_use_a_connection(raw: Any) -> None:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(raw.execute("SELECT 1").fetchall()))
    thread.start()
    thread.join()
    assert answers == [[(1,)]]


def test_a_connection_serves_its_own_thread_alone(safe: Connection) -> None:
    caught: list[BaseException] = []

    def use() -> None:
        try:
            safe.execute("SELECT 1")
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "another thread" in str(caught[0])
