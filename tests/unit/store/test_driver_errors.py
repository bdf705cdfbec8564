"""Every error of the driver is a bare ValueError: its text becomes a class of ours, in one place."""

from collections.abc import Iterator
from pathlib import Path

import libsql
import pytest

from anvilmq_broker.domain import errors
from anvilmq_broker.store.libsql.driver import Connection, translate

TABLE = """
CREATE TABLE t (
    a INTEGER PRIMARY KEY,
    b TEXT NOT NULL,
    c INTEGER,
    d INTEGER REFERENCES t (a),
    CONSTRAINT t_b_and_c UNIQUE (b, c),
    CONSTRAINT t_c_small CHECK (c < 10)
) STRICT
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """An open file with one table and one row."""
    opened = Connection(tmp_path / "t.db")
    opened.execute("PRAGMA foreign_keys = ON")
    opened.execute("PRAGMA busy_timeout = 0")
    opened.execute(TABLE)
    opened.execute("INSERT INTO t (a, b, c) VALUES (1, 'x', 1)")
    yield opened
    opened.close()


def test_trap_every_error_is_a_bare_value_error() -> None:
    raw = libsql.connect(":memory:", isolation_level=None)
    for text in ("nonsense", "SELECT a FROM nowhere", "SELECT abs(-9223372036854775807 - 1)"):
        with pytest.raises(ValueError) as caught:
            raw.execute(text).fetchall()
        assert type(caught.value) is ValueError
    raw.close()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("INSERT INTO t (a, b, c) VALUES (2, 'y', 10)", "t_c_small"),
        ("INSERT INTO t (a, b, c) VALUES (2, 'x', 1)", "t.b, t.c"),
        ("INSERT INTO t (a, b) VALUES (1, 'y')", "t.a"),
        ("INSERT INTO t (a) VALUES (2)", "t.b"),
        ("INSERT INTO t (a, b, d) VALUES (2, 'y', 77)", "foreign_key"),
        ("INSERT INTO t (a, b, c) VALUES (2, 'y', 'text')", "t.c"),
        ("INSERT INTO t (a, b, c) VALUES (2, 'y', 9223372036854775808.0)", "t.c"),
    ],
)
def test_a_constraint_tells_its_name_or_its_columns(connection: Connection, statement: str, name: str) -> None:
    with pytest.raises(errors.Constraint) as caught:
        connection.execute(statement)
    assert caught.value.name == name


def test_a_refused_row_leaves_the_transaction_open(connection: Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.Constraint):
        connection.execute("INSERT INTO t (a, b, c) VALUES (2, 'y', 10)")
    assert connection.in_transaction
    connection.execute("ROLLBACK")


def test_a_file_that_may_not_grow_is_full(connection: Connection) -> None:
    pages = connection.execute("PRAGMA page_count")[0][0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(errors.StorageFull):
        connection.execute("INSERT INTO t (a, b) SELECT 2, hex(zeroblob(50000))")
    assert connection.was_full


def test_a_file_that_another_connection_writes_is_busy(connection: Connection, tmp_path: Path) -> None:
    other = Connection(tmp_path / "t.db")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.Busy):
        connection.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()


def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_bytes(b"no database" * 1000)
    opened = Connection(tmp_path / "t.db")
    with pytest.raises(errors.Corrupt):
        opened.execute("SELECT name FROM sqlite_schema")
    opened.close()


def test_a_file_in_a_folder_that_is_not_there_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(errors.StorageIO):
        Connection(tmp_path / "nowhere" / "t.db")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("database or disk is full", errors.StorageFull),
        ("disk I/O error", errors.StorageIO),
        ("attempt to write a readonly database", errors.StorageIO),
        ("unable to open database file", errors.StorageIO),
        ("database is locked", errors.Busy),
        ("database table is locked", errors.Busy),
        ("database disk image is malformed", errors.Corrupt),
        ("file is not a database", errors.Corrupt),
        ("malformed database schema (jobs)", errors.Corrupt),
    ],
)
def test_a_known_text_has_its_class(text: str, kind: type[errors.StoreError]) -> None:
    assert type(translate(ValueError(text))) is kind


def test_an_unknown_text_is_fatal() -> None:
    assert type(translate(ValueError("cannot rollback - no transaction is active"))) is errors.StoreError
