"""How the database carries out each named statement, as kept in query_plans.txt.

Renew the file with `python -m tests.unit.store.query_plans`, and read the difference before it is committed.
"""

from pathlib import Path
from typing import Final

from anvilmq_broker.store.libsql import migrate, statements
from anvilmq_broker.store.libsql.driver import Connection

FILE: Final = Path(__file__).with_name("query_plans.txt")


def plans() -> dict[str, list[str]]:
    """By name of a statement: the steps of its plan, for an empty file of today's schema."""
    connection = Connection(":memory:")
    migrate.migrate(connection, migrate.steps())
    found = {name: _plan(connection, statement) for name, statement in sorted(statements.load().items())}
    connection.close()
    return found


def kept() -> str:
    """What the file says."""
    return FILE.read_text("utf-8")


def written(found: dict[str, list[str]]) -> str:
    """The plans as the file has them."""
    return "\n".join("\n".join([name, *(f"    {step}" for step in steps), ""]) for name, steps in found.items())


def _plan(connection: Connection, statement: statements.Statement) -> list[str]:
    places = len(statement.params) + bool(statement.row) + bool(statement.blobs)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", (None,) * places)]


if __name__ == "__main__":
    FILE.write_text(written(plans()), "utf-8")
