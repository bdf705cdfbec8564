"""The limit that the store is measured against: one plain table, the same driver, pragmas and batches, no promises.

No history, no checks, no counts, no receipts: a job is added, claimed and settled, and that is all. What the real
store costs beyond this is the price of what it promises.
"""

from __future__ import annotations

import time
from pathlib import Path

import libsql

_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0", "mmap_size=0", "cache_size=-65536")
_SCHEMA = (
    (
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue INTEGER, state INTEGER, priority INTEGER, ready_at INTEGER,"
        " token TEXT, worker TEXT, data BLOB) STRICT"
    ),
    "CREATE INDEX line ON jobs (queue, priority, ready_at, id) WHERE state = 1",
)


def measure(folder: Path, jobs: int, batch: int, payload: bytes) -> dict[str, float]:
    """µs a job for add, claim and settle in one transaction a batch, on a fresh database in the folder."""
    connection = libsql.connect(str(folder / "raw.db"), isolation_level=None)
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        for statement in _SCHEMA:
            connection.execute(statement).fetchall()
        return _run(connection, jobs, batch, payload)
    finally:
        connection.close()


def _run(connection: libsql.Connection, jobs: int, batch: int, payload: bytes) -> dict[str, float]:
    def run(sql: str, args: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        return connection.execute(sql, args).fetchall()  # type: ignore[no-any-return]

    add = "INSERT INTO jobs VALUES " + ", ".join(["(?, 1, 1, 0, 1700000000000, NULL, NULL, ?)"] * batch)
    claim = (
        "UPDATE jobs SET state = 3, token = hex(randomblob(16)), worker = 'w' WHERE id IN (SELECT id FROM jobs"
        " WHERE queue = 1 AND state = 1 ORDER BY priority, ready_at, id LIMIT ?) RETURNING id, token, data"
    )
    settle = (
        "UPDATE jobs SET state = 5, token = NULL FROM (SELECT column1 AS id, column2 AS token FROM (VALUES "
        + ", ".join(["(?, ?)"] * batch)
        + ")) AS given WHERE jobs.id = given.id AND jobs.token = given.token RETURNING jobs.id"
    )
    held: list[tuple[object, ...]] = []
    begun, cpu = time.perf_counter_ns(), time.thread_time_ns()
    done = 0
    for first in range(0, jobs + batch, batch):
        run("BEGIN IMMEDIATE")
        if held:
            done += len(run(settle, tuple(value for row in held for value in row[:2])))
        if first < jobs:
            run(add, tuple(value for place in range(batch) for value in (first + place + 1, payload)))
            held = run(claim, (batch,))
        run("COMMIT")
    taken = time.perf_counter_ns() - begun
    assert done == len(range(0, jobs, batch)) * batch, f"{done} jobs settled"
    return {"us": taken / done / 1_000, "cpu_us": (time.thread_time_ns() - cpu) / done / 1_000}
