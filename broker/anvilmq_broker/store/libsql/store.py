"""The libSQL store: start and stop, the batches' memory, upkeep between batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from anvilmq_broker.domain import commands, retention
from anvilmq_broker.domain.errors import Fenced, StartRefused, StoreError
from anvilmq_broker.domain.limits import Limits
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import exports, invariants, migrate, queries, rows, statements, volume
from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue, Staged
from anvilmq_broker.store.libsql.claims import find_next_ready_at
from anvilmq_broker.store.libsql.driver import KNOWN_SOURCE_IDS, Connection
from anvilmq_broker.store.libsql.sql import Sql

Durability = Literal["full", "relaxed"]

_PASSIVE_AT: Final = 16 << 20
_TRUNCATE_AT: Final = 64 << 20
_IDLE_BEFORE_TRUNCATE_S: Final = 1.0
_BYTES_PER_COMMIT: Final = 8 * 4096
_SPACE_EVERY_S: Final = 1.0
_SPACE_EVERY_BYTES: Final = 16 << 20
_PRAGMAS: Final[tuple[tuple[str, str | int, str | int], ...]] = (
    ("journal_mode", "WAL", "wal"),
    ("foreign_keys", "ON", 1),
    ("wal_autocheckpoint", 0, 0),
    ("busy_timeout", 5000, 5000),
    ("mmap_size", 0, 0),
    ("cell_size_check", "ON", 1),
    ("cache_size", -65536, -65536),
    ("journal_size_limit", 67108864, 67108864),
)
_SYNCHRONOUS: Final = {"full": 2, "relaxed": 1}


class LibsqlStore:
    """Jobs in one file; see protocol.Store. Made closed: `start` opens it."""

    def __init__(
        self,
        data_dir: Path,
        *,
        chance: protocol.Chance,
        durability: Durability = "full",
        limits: Limits | None = None,
        lock_wait_s: float = 0,
        allow_filesystem: str = "",
        startup_check: Literal["auto", "always"] = "auto",
        warn: Callable[[str], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        free_space: Callable[[Path], tuple[int, int]] = volume.space,
    ) -> None:
        self.chance = chance
        self.limits = limits or Limits()
        self.schema_version = 0
        self.queues: dict[str, Queue] = {}
        self.queue_names: dict[int, str] = {}
        self.count_by_id: dict[int, int] = {}
        self._data_dir = data_dir
        self._durability: Durability = durability
        self._lock_wait_s = lock_wait_s
        self._allow_filesystem = allow_filesystem
        self._startup_check = startup_check
        self._warn = warn
        self._monotonic = monotonic
        self._free_space = free_space
        self._lock: volume.Lock | None = None
        self._sql: Sql | None = None
        self._epoch = 0
        self._now_ms = 0
        self._next_number = 1
        self._next_front = -1
        self._next_event = 1
        self._last_write = 0.0
        self._dirty = False
        self._has_space = True
        self._space_checked = -_SPACE_EVERY_S
        self._written = 0

    # -------------------------------------------------------------------------------------------- start, stop

    def start(self) -> protocol.Opening:
        """Lock, mount, open, check, migrate, epoch, invariants, memory: in that order, failing closed."""
        volume.prepare(self._data_dir)
        self._lock = volume.Lock(self._data_dir, self._lock_wait_s)
        try:
            if warning := volume.check_mount(self._data_dir, self._allow_filesystem):
                self._warn(warning)
            return self._open()
        except StoreError as error:
            self.stop()
            raise StartRefused(
                "database_unusable",
                f"{self._data_dir / volume.DATABASE} cannot be used: {error}; restore it from a backup, or move the folder "
                "away to start empty",
            ) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Fold the WAL in, close, give up the lock; safe to call twice and after a failed start."""
        if self._sql is not None:
            sql, self._sql = self._sql, None
            try:
                sql.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except StoreError as error:
                self._warn(f"the WAL stays for the next start: {error}")
            sql.connection.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def abandon(self) -> None:
        """After a failed commit: leave the file as it is for the next start, which finds out what was written."""
        (self._data_dir / "check.needed").touch()
        self._sql = None

    # ------------------------------------------------------------------------------------------------ batches

    def begin(self, now_ms: int) -> LibsqlBatch:
        """Open the transaction: fence, clock and counters in its first statement."""
        sql = self._open_sql()
        sql.connection.execute("BEGIN IMMEDIATE")
        if not sql.run("begin_batch", now_ms, self._next_number, self._next_front, self._epoch):
            sql.connection.execute("ROLLBACK")
            raise Fenced("another broker has started on this database since; this one must stop")
        if now_ms < self._now_ms:
            self._pull_line_down(sql, now_ms)
        staged = Staged(self._next_number, self._next_front, self._next_event, {}, {}, {})
        return LibsqlBatch(self, sql, now_ms, staged)

    def committed(self, staged: Staged, now_ms: int) -> None:
        """Let memory follow the commit; called by the batch."""
        self._now_ms = now_ms
        self._next_number = staged.next_number
        self._next_front = staged.next_front
        self._next_event = staged.next_event
        for queue in staged.new.values():
            self._know(queue)
        for key, change in staged.counts.items():
            self.count_by_id[key] = self.count_by_id.get(key, 0) + change
        for queue_id, at in staged.next_ready_at.items():
            self.queues[self.queue_names[queue_id]].next_ready_at = at
        self._dirty = True
        self._written += staged.bytes + _BYTES_PER_COMMIT
        self._last_write = self._monotonic()

    def rolled_back(self) -> None:
        """Drop the open transaction; called by the batch."""
        self._open_sql().connection.execute("ROLLBACK")

    # ------------------------------------------------------------------------------------------------ reading

    def query(self, query: commands.Query, now_ms: int) -> commands.Answer:
        """Answer from committed rows; called between batches only."""
        return queries.answer(self, self._open_sql(), query, now_ms)

    def counts(self) -> dict[tuple[str, int], int]:
        """Jobs by (queue, state)."""
        return {
            (self.queue_names[key >> 4], key & 15): jobs
            for key, jobs in self.count_by_id.items()
            if jobs and key & 15 <= State.CANCELLED
        }

    def accepts_adds(self) -> bool:
        """False while the volume's free space is below the floor; looked at once a second at most."""
        now = self._monotonic()
        if now - self._space_checked >= _SPACE_EVERY_S:
            self._space_checked = now
            free, total = self._free_space(self._data_dir)
            self._has_space = free >= volume.floor_bytes(total)
        return self._has_space

    def export(self) -> dict[str, list[tuple[object, ...]]]:
        """Everything stored, for comparison between stores."""
        counters = (self._next_number, self._next_front, self._next_event)
        return exports.export(self, self._open_sql(), self._now_ms, counters)

    def violations(self) -> list[str]:
        """Every invariant that does not hold, derived ones included; empty when all is well."""
        return invariants.violations(self._open_sql(), structural_only=False)

    # ------------------------------------------------------------------------------------------------- upkeep

    def housekeep(self, idle: bool) -> None:
        """Checkpoint when the WAL has grown, or when nothing happens; never inside a batch."""
        if not self._dirty:
            return
        sql = self._open_sql()
        if self._written >= _PASSIVE_AT:
            # An estimate: a WAL that was folded in whole starts again at its head and keeps its size, which is what
            # makes its flushes cheap, so the file's size says nothing until it is far too large.
            self._written = 0
            large = (self._data_dir / f"{volume.DATABASE}-wal").stat().st_size > _TRUNCATE_AT
            sql.connection.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if large else 'PASSIVE'})")
        elif idle and self._monotonic() - self._last_write >= _IDLE_BEFORE_TRUNCATE_S:
            sql.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._dirty = False
            self._written = 0

    # ------------------------------------------------------------------------------------------------- inside

    def _open(self) -> protocol.Opening:
        sql = self._connect()
        self._sql = sql
        self._check(sql)
        self.schema_version = migrate.migrate(sql.connection, migrate.steps())
        sql.connection.execute("BEGIN IMMEDIATE")
        self._epoch, self._now_ms, next_number, self._next_front = sql.run("take_epoch")[0]
        sql.connection.execute("COMMIT")
        # Numbers of the very last batch are not in `engine` yet: they are still in the table.
        self._next_number = max(next_number, sql.run("highest_job_id")[0][0] + 1)
        event = sql.run("highest_event")
        self._next_event = event[0][0] if event else 1
        for number, name, max_completed, max_failed, defaults in sql.run("all_queues"):
            rules = retention.QueueRules(max_completed=max_completed, max_failed=max_failed)
            patch = rows.unpack_policy_patch(defaults) if defaults else None
            self._know(Queue(number, name, patch, 0, rules))
        self.count_by_id = dict(sql.run("all_counts"))
        if broken := invariants.violations(sql, structural_only=True):
            raise StartRefused(
                "invariant_broken",
                f"the database contradicts itself ({'; '.join(broken)}): restore a backup and report this",
            )
        return self._opening(sql)

    def _connect(self) -> Sql:
        connection = Connection(self._data_dir / volume.DATABASE)
        source = connection.execute("SELECT sqlite_source_id()")[0][0]
        if source not in KNOWN_SOURCE_IDS:
            raise StartRefused(
                "driver_unknown",
                f"the installed libsql driver carries an engine this broker was not tested with ({source}): install the "
                "version that the broker's package pins",
            )
        pragmas = (*_PRAGMAS, ("synchronous", _SYNCHRONOUS[self._durability], _SYNCHRONOUS[self._durability]))
        for name, value, expected in pragmas:
            connection.execute(f"PRAGMA {name} = {value}")
            if (got := connection.execute(f"PRAGMA {name}")[0][0]) != expected:
                raise StoreError(f"PRAGMA {name} is {got!r} after setting {value!r}")
        return Sql(connection, statements.load())

    def _check(self, sql: Sql) -> None:
        needed = self._data_dir / "check.needed"
        if self._startup_check != "always" and not needed.exists():
            return
        found = [row[0] for row in sql.connection.execute("PRAGMA quick_check(20)")]
        if found != ["ok"]:
            raise StartRefused(
                "database_damaged", f"the database fails its check ({'; '.join(found)}): restore a backup"
            )
        needed.unlink(missing_ok=True)

    def _opening(self, sql: Sql) -> protocol.Opening:
        for queue in self.queues.values():
            at = find_next_ready_at(sql, queue.id)
            queue.next_ready_at = (1 << 62) if at is None else at
        return protocol.Opening(
            now_ms=self._now_ms,
            leases=[self._held(*row) for row in sql.run("active_jobs")],
            parked=[protocol.Parked(*row) for row in sql.run("parked_jobs")],
            expires=[protocol.Expires(*row) for row in sql.run("expiring_jobs")],
            queues={
                name: None if queue.next_ready_at == 1 << 62 else queue.next_ready_at
                for name, queue in self.queues.items()
            },
            counts=self.counts(),
        )  # fmt: skip

    def _held(
        self, number: int, created_ms: int, token: str, queue_id: int, worker_id: str | None, claim_id: str | None,
        lease_ms: int, timeout_at: int | None, started_at: int | None, cancel_requested: int,
    ) -> protocol.HeldLease:  # fmt: skip
        return protocol.HeldLease(
            number, created_ms, token, self.queue_names[queue_id], worker_id or "", claim_id or "", lease_ms,
            timeout_at or 0, started_at or 0, bool(cancel_requested),
        )  # fmt: skip

    def _pull_line_down(self, sql: Sql, now_ms: int) -> None:
        """After a long step back of the clock: what waits since a later time is claimable at the new one."""
        sql.run("pull_line_down", self._now_ms, now_ms)
        for queue in self.queues.values():
            queue.next_ready_at = min(queue.next_ready_at, now_ms)

    def _know(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self.queue_names[queue.id] = queue.name

    def _open_sql(self) -> Sql:
        if self._sql is None:
            raise StoreError("the store is not open")
        return self._sql
