"""What happens to the file at a start: pragmas, check, migration, a new epoch, and what memory is rebuilt from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from anvilmq_broker.domain import retention
from anvilmq_broker.domain.errors import Busy, StartRefused, StorageFull, StorageIO, StoreError
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import invariants, rows, statements, volume
from anvilmq_broker.store.libsql.batch import Queue, Running
from anvilmq_broker.store.libsql.claims import NEVER, find_next_ready_at
from anvilmq_broker.store.libsql.driver import KNOWN_SOURCE_IDS, Connection
from anvilmq_broker.store.libsql.sql import Sql

PRAGMAS: Final[tuple[tuple[str, str | int, str | int], ...]] = (
    ("journal_mode", "WAL", "wal"),
    ("foreign_keys", "ON", 1),
    ("wal_autocheckpoint", 0, 0),
    ("busy_timeout", 5000, 5000),
    ("mmap_size", 0, 0),
    ("cell_size_check", "ON", 1),
    ("cache_size", -65536, -65536),
    ("journal_size_limit", 67108864, 67108864),
)
"""Name, value to set, value read back."""
SYNCHRONOUS: Final = {"full": 2, "relaxed": 1}
CHECK_NEEDED: Final = "check.needed"
"""Left beside `db/` by a broker that stopped without knowing what it had written."""


class Kept(msgspec.Struct):
    """What the file holds of the broker's own state. now_ms: clock of the last commit. counts: by count id."""

    epoch: int
    now_ms: int
    next_number: int
    next_front: int
    next_event: int
    queues: list[Queue]
    counts: dict[int, int]


def connect(folder: Path, durability: str) -> Sql:
    """Open the file and set its pragmas. Raises StoreError; StartRefused for a driver that was not tested."""
    connection = Connection(folder / volume.DATABASE)
    try:
        _set_up(connection, SYNCHRONOUS[durability])
        return Sql(connection, statements.load())
    except BaseException:
        connection.close()
        raise


def _set_up(connection: Connection, synchronous: int) -> None:
    source = connection.execute("SELECT sqlite_source_id()")[0][0]
    if source not in KNOWN_SOURCE_IDS:
        raise StartRefused(
            "driver_unknown",
            f"the installed libsql driver carries an engine this broker was not tested with ({source}): install the "
            "version that the broker's package pins",
        )
    for name, value, expected in (*PRAGMAS, ("synchronous", synchronous, synchronous)):
        connection.execute(f"PRAGMA {name} = {value}")
        if (got := connection.execute(f"PRAGMA {name}")[0][0]) != expected:
            raise StoreError(f"PRAGMA {name} is {got!r} after setting {value!r}")


def check(sql: Sql, folder: Path, *, always: bool) -> None:
    """Look the whole file over when the last stop left doubt, or always. Raises StartRefused for a damaged one."""
    needed = folder / CHECK_NEEDED
    if not always and not needed.exists():
        return
    found = [row[0] for row in sql.connection.execute("PRAGMA quick_check(20)")]
    if found != ["ok"]:
        raise StartRefused("database_damaged", f"the database fails its check ({'; '.join(found)}): restore a backup")
    needed.unlink(missing_ok=True)


def take_over(sql: Sql) -> Kept:
    """Take a new epoch, which fences an older broker, and read what it had kept. Raises StartRefused, StoreError."""
    sql.connection.execute("BEGIN IMMEDIATE")
    epoch, now_ms, next_number, next_front, next_event = sql.run("take_epoch")[0]
    sql.connection.execute("COMMIT")
    if broken := invariants.violations(sql, structural_only=True):
        raise StartRefused(
            "invariant_broken",
            f"the database contradicts itself ({'; '.join(broken)}): restore a backup and report this",
        )
    event = sql.run("highest_event")
    return Kept(
        epoch,
        now_ms,
        # `engine` has the numbers from before the last batch: its own are still in the tables.
        max(next_number, sql.run("highest_job_id")[0][0] + 1),
        next_front,
        max(next_event, event[0][0] if event else 1),
        [_queue(sql, *row) for row in sql.run("all_queues")],
        dict(sql.run("all_counts")),
    )


def _queue(sql: Sql, number: int, name: str, max_completed: int, max_failed: int, defaults: bytes | None) -> Queue:
    at = find_next_ready_at(sql, number)
    return Queue(
        number,
        name,
        rows.unpack_policy_patch(defaults) if defaults else None,
        NEVER if at is None else at,
        retention.QueueRules(max_completed=max_completed, max_failed=max_failed),
    )


def running(sql: Sql, queues: dict[str, Queue], names: dict[int, str]) -> dict[str, Running]:
    """By token: the attempts that a set may complete."""
    return {
        row[2]: (row[0], row[1], queues[names[row[3]]], row[10], row[11], row[4] or "", row[8] or 0, row[12])
        for row in sql.run("active_jobs")
        if not row[9] and row[12] < rows.OWN_RETENTION
    }


def describe(sql: Sql, kept: Kept, counts: dict[tuple[str, int], int]) -> protocol.Opening:
    """What the engine rebuilds its memory from."""
    names = {queue.id: queue.name for queue in kept.queues}
    return protocol.Opening(
        now_ms=kept.now_ms,
        leases=[_held(names, *row[:10]) for row in sql.run("active_jobs")],
        parked=[protocol.Parked(*row) for row in sql.run("parked_jobs")],
        expires=[protocol.Expires(*row) for row in sql.run("expiring_jobs")],
        queues={queue.name: _ready_at(queue, kept.now_ms) for queue in kept.queues},
        counts=counts,
        ticks=[_ticks(*row) for row in sql.run("all_due")],
    )


def _ticks(uid: str, due_ms: int | None, suspended: int, problem: str | None) -> protocol.Ticks:
    return protocol.Ticks(uid, due_ms, protocol.standing(due_ms, bool(suspended), problem or ""))


def _ready_at(queue: Queue, now_ms: int) -> int | None:
    if queue.next_ready_at == NEVER:
        return None
    return 0 if queue.next_ready_at <= now_ms else queue.next_ready_at


def _held(
    names: dict[int, str], number: int, created_ms: int, token: str, queue_id: int, worker_id: str | None,
    claim_id: str | None, lease_ms: int, timeout_at: int | None, started_at: int | None, cancel_requested: int,
) -> protocol.HeldLease:  # fmt: skip
    return protocol.HeldLease(
        number, created_ms, token, names[queue_id], worker_id or "", claim_id or "", lease_ms, timeout_at or 0,
        started_at or 0, bool(cancel_requested),
    )  # fmt: skip


def refusal(error: StoreError, path: Path) -> StartRefused:
    """Why a start ended with this error of the store, and what to do."""
    match error:
        case StorageFull():
            return StartRefused(
                "storage_full", f"{path} cannot be opened: its volume has no room left; free space, or grow the volume"
            )
        case Busy():
            return StartRefused(
                "database_in_use",
                f"{path} is locked by another program ({error}): end what has it open; only its broker may open it",
            )
        case StorageIO():
            return StartRefused(
                "storage_failing",
                f"{path} cannot be read or written ({error}): look at the volume and at the rights of its files",
            )
        case _:
            return StartRefused(
                "database_unusable",
                f"{path} cannot be used: {error}; restore it from a backup, or move the folder away to start empty",
            )
