"""Brings a file to this program's schema: numbered steps, forward only, each one transaction."""

from __future__ import annotations

import re
from importlib import resources
from typing import Final

import msgspec

from anvilmq_broker.domain.errors import StartRefused
from anvilmq_broker.store.libsql.driver import Connection

_FILE: Final = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_NEXT: Final = re.compile(r"(?m)^-- next$")


class Step(msgspec.Struct, frozen=True):
    """One migration: the version it leads to, and its statements."""

    version: int
    name: str
    statements: tuple[str, ...]


def steps() -> list[Step]:
    """Every migration in order. Raises ValueError when numbers are missing or doubled."""
    folder = resources.files("anvilmq_broker.store.libsql") / "migrations"
    found = [
        Step(int(match[1]), file.name, tuple(part.strip() for part in _NEXT.split(file.read_text("utf-8"))))
        for file in folder.iterdir()
        if (match := _FILE.fullmatch(file.name))
    ]
    found.sort(key=lambda step: step.version)
    if [step.version for step in found] != list(range(1, len(found) + 1)):
        raise ValueError("migrations are not numbered 1, 2, 3, …")
    return found


def version(connection: Connection) -> int:
    """Schema version of an open file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version")[0][0])


def migrate(connection: Connection, known: list[Step]) -> int:
    """Apply what is missing and return the version reached. Raises StartRefused for a file of a newer program."""
    present, newest = version(connection), known[-1].version
    if present > newest:
        raise StartRefused(
            "schema_too_new",
            f"the database has schema {present}, this program knows up to {newest}: run the newer version that wrote "
            "it, or restore a backup made before the upgrade",
        )
    for step in known[present:]:
        _apply(connection, step)
    return newest


def _apply(connection: Connection, step: Step) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in step.statements:
            connection.execute(statement)
        # PRAGMA takes no parameters; the number is ours, from the file's name.
        connection.execute(f"PRAGMA user_version = {step.version}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
