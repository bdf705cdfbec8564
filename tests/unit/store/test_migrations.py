"""From any earlier schema to this program's, and never back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from anvilmq_broker.domain.errors import Constraint, StartRefused
from anvilmq_broker.store.libsql import migrate
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.migrate import Step
from tests.support.store_driver import StoreDriver
from tests.unit.store.conftest import OpenStore

SCHEMA = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
FIRST = Step(1, "first", ("CREATE TABLE a (x INTEGER) STRICT", "INSERT INTO a VALUES (1)"))
SECOND = Step(2, "second", ("ALTER TABLE a ADD COLUMN y INTEGER", "UPDATE a SET y = x + 1"))
FAILING = Step(
    3, "failing", ("UPDATE a SET y = 7", "CREATE TABLE b (x INTEGER)", "INSERT INTO a VALUES ('no', 'number')")
)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """An empty file."""
    opened = Connection(tmp_path / "t.db")
    yield opened
    opened.close()


def test_the_steps_of_the_package_are_numbered_without_a_gap() -> None:
    steps = migrate.steps()
    assert [step.version for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.statements and all(step.statements) for step in steps)


def test_a_fresh_file_has_the_schema_that_the_steps_come_to_one_by_one(
    connection: Connection, store: StoreDriver, folder: Path
) -> None:
    for step in migrate.steps():
        migrate.migrate(connection, migrate.steps()[: step.version])
    schema = connection.execute(SCHEMA)
    store.store.stop()
    fresh = Connection(folder / "db" / "anvilmq.db")
    assert fresh.execute(SCHEMA) == schema
    fresh.close()


def test_every_table_is_strict_with_a_named_key_and_named_checks(connection: Connection) -> None:
    migrate.migrate(connection, migrate.steps())
    tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    assert len(tables) > 10
    for name, sql in tables:
        assert sql.endswith("STRICT"), name
        assert "PRIMARY KEY" in sql, name
        assert sql.count("CHECK (") == sql.count("CONSTRAINT ") - sql.count(" UNIQUE ("), name
        assert "REAL" not in sql, name


def test_only_missing_steps_are_taken(connection: Connection) -> None:
    assert migrate.migrate(connection, [FIRST]) == 1
    connection.execute("UPDATE a SET x = 5")
    assert migrate.migrate(connection, [FIRST, SECOND]) == 2
    assert migrate.migrate(connection, [FIRST, SECOND]) == 2
    assert migrate.version(connection) == 2
    assert connection.execute("SELECT x, y FROM a") == [(5, 6)]


def test_a_step_that_fails_is_undone_whole_with_its_version(connection: Connection) -> None:
    with pytest.raises(Constraint):
        migrate.migrate(connection, [FIRST, SECOND, FAILING])
    assert not connection.in_transaction
    assert migrate.version(connection) == 2
    assert connection.execute("SELECT x, y FROM a") == [(1, 2)]
    assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'b'") == []


def test_a_file_of_a_newer_program_is_refused_and_left_alone(connection: Connection) -> None:
    connection.execute("CREATE TABLE future (x)")
    connection.execute("PRAGMA user_version = 9")
    with pytest.raises(StartRefused, match="has schema 9, this program knows up to 2: run the newer version") as caught:
        migrate.migrate(connection, [FIRST, SECOND])
    assert caught.value.reason == "schema_too_new"
    assert connection.execute("SELECT name FROM sqlite_schema") == [("future",)]


def test_a_store_does_not_start_on_a_newer_file_and_starts_again_on_its_own(
    open_store: OpenStore, store: StoreDriver, folder: Path
) -> None:
    job = store.add_one()
    store.store.stop()
    set_version(folder, 77)
    with pytest.raises(StartRefused, match="has schema 77"):
        open_store().start()
    set_version(folder, migrate.steps()[-1].version)
    store.reopen()
    assert store.exists(job)


def set_version(folder: Path, version: int) -> None:
    """Pretend that the file is of this schema."""
    connection = Connection(folder / "db" / "anvilmq.db")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
