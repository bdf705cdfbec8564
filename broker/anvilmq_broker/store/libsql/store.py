"""The libSQL store: start and stop, the batches' memory, upkeep between batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Fenced, StoreError
from anvilmq_broker.domain.limits import Limits
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import exports, invariants, migrate, opening, queries, volume
from anvilmq_broker.store.libsql.batch import Answered, LibsqlBatch, Queue, Running, Staged
from anvilmq_broker.store.libsql.sql import Sql
from anvilmq_broker.store.libsql.upkeep import Upkeep

PRODUCERS_KNOWN: Final = 4_096
"""Producers whose newest frame is kept in memory; of others its row is read."""
Durability = Literal["full", "relaxed"]


class LibsqlStore:
    """Jobs in one file; see protocol.Store. Made closed: `start` opens it.

    ballast_bytes: room kept back for the day the volume is full, 0 = none. warn: takes what the operator should know.
    """

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
        ballast_bytes: int = 0,
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
        self.running: dict[str, Running] = {}
        self.producers: dict[str, Answered] = {}
        self._data_dir = data_dir
        self._durability: Durability = durability
        self._lock_wait_s = lock_wait_s
        self._allow_filesystem = allow_filesystem
        self._check_always = startup_check == "always"
        self._warn = warn
        ballast = volume.Ballast(data_dir, ballast_bytes)
        self._upkeep = Upkeep(data_dir, ballast=ballast, monotonic=monotonic, free_space=free_space, warn=warn)
        self._ballast = ballast
        self._free_space = free_space
        self._lock: volume.Lock | None = None
        self._sql: Sql | None = None
        self._epoch = 0
        self._now_ms = 0
        self._next_number = 1
        self._next_front = -1
        self._next_event = 1
        self._next_queue = 1

    # -------------------------------------------------------------------------------------------- start, stop

    def start(self) -> protocol.Opening:
        """Lock, mount, open, check, migrate, epoch, invariants, memory: in that order, failing closed."""
        volume.prepare(self._data_dir)
        self._lock = volume.Lock(self._data_dir, self._lock_wait_s)
        try:
            if warning := volume.check_mount(self._data_dir, self._allow_filesystem):
                self._warn(warning)
            if self._free_space(self._data_dir)[0] < volume.ROOM_TO_START:
                self._ballast.drop()
            return self._open()
        except StoreError as error:
            self.stop()
            raise opening.refusal(error, self._data_dir / volume.DATABASE) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Fold the WAL in, close, give up the lock; safe to call twice and after a failed start."""
        if self._sql is not None:
            sql, self._sql = self._sql, None
            try:
                if sql.connection.in_transaction:
                    sql.connection.execute("ROLLBACK")
                sql.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except StoreError as error:
                self._warn(f"the write-ahead log stays for the next start: {error}")
            sql.connection.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def abandon(self) -> None:
        """After a failed commit: leave the file as it is for the next start, which finds out what was written."""
        if self._sql is not None:
            sql, self._sql = self._sql, None
            sql.connection.leave_open()
            try:
                (self._data_dir / opening.CHECK_NEEDED).touch()
            except OSError as error:
                self._warn(f"the next start will not know that it has to check the database: {error.strerror}")

    # ------------------------------------------------------------------------------------------------ batches

    def begin(self, now_ms: int) -> LibsqlBatch:
        """Open the transaction: fence, clock and counters in its first statement."""
        sql = self._open_sql()
        if sql.connection.in_transaction:
            raise RuntimeError("one batch at a time")
        try:
            self._begin(sql, now_ms)
            batch = LibsqlBatch(self, sql, now_ms, self.fresh())
            if now_ms < self._now_ms:
                batch.pull_line_down(self._now_ms)
            return batch
        except StoreError:
            with suppress(StoreError):
                self.rolled_back()
            raise

    def begin_again(self, now_ms: int) -> None:
        """Drop what the open transaction has done, and begin it anew; called by the batch."""
        self.rolled_back()
        self._begin(self._open_sql(), now_ms)

    def fresh(self) -> Staged:
        """What is staged by a batch that has done nothing yet."""
        return Staged(self._next_number, self._next_front, self._next_event, self._next_queue)

    def _begin(self, sql: Sql, now_ms: int) -> None:
        sql.connection.execute("BEGIN IMMEDIATE")
        if not sql.run("begin_batch", now_ms, self._next_number, self._next_front, self._next_event, self._epoch):
            raise Fenced("another broker has started on this database since; this one must stop")

    def committed(self, staged: Staged, now_ms: int) -> None:
        """Let memory follow the commit; called by the batch."""
        self._now_ms = now_ms
        self._next_number = staged.next_number
        self._next_front = staged.next_front
        self._next_event = staged.next_event
        for queue in staged.new.values():
            self._know(queue)
        for key, change in staged.counts.items():
            self.count_by_id[key] = max(0, self.count_by_id.get(key, 0) + change)
        self.running.update(staged.started)
        for token in staged.ended:
            self.running.pop(token, None)
        self._remember_producers(staged.producers)
        for queue_id, at in staged.next_ready_at.items():
            self.queues[self.queue_names[queue_id]].next_ready_at = at
        self._upkeep.wrote(staged.bytes)

    def _remember_producers(self, answered: dict[str, Answered | None]) -> None:
        known = self.producers
        for name, answer in answered.items():
            known.pop(name, None)
            if answer is not None:
                known[name] = answer
        while len(known) > PRODUCERS_KNOWN:
            # The one that was silent longest.
            del known[next(iter(known))]

    def rolled_back(self) -> None:
        """Drop the open transaction; called by the batch."""
        sql = self._open_sql()
        # A full disk has ended it already.
        if sql.connection.in_transaction:
            sql.connection.execute("ROLLBACK")
        if sql.connection.was_full:
            sql.connection.was_full = False
            self._upkeep.make_room(sql)

    # ------------------------------------------------------------------------------------------------ reading

    def query(self, query: commands.Query, now_ms: int) -> commands.Answer:
        """Answer from committed rows; called between batches only."""
        sql = self._open_sql()
        if sql.connection.in_transaction:
            raise RuntimeError("no query while a batch is open")
        return queries.answer(self, sql, query, now_ms)

    def counts(self) -> dict[tuple[str, int], int]:
        """Jobs by (queue, state)."""
        return {
            (self.queue_names[key >> 4], key & 15): jobs
            for key, jobs in self.count_by_id.items()
            if jobs and key & 15 <= State.CANCELLED and key >> 4 in self.queue_names
        }

    def export(self) -> dict[str, list[tuple[object, ...]]]:
        """Everything stored, for comparison between stores."""
        counters = (self._next_number, self._next_front, self._next_event)
        return exports.export(self, self._open_sql(), self._now_ms, counters)

    def violations(self) -> list[str]:
        """Every invariant that does not hold, derived ones included; empty when all is well."""
        sql = self._open_sql()
        return invariants.violations(sql, structural_only=False) + invariants.wrong_hints(sql, self.queues.values())

    # ------------------------------------------------------------------------------------------------- upkeep

    def accepts_adds(self) -> bool:
        """False while there is less room than the floor."""
        return self._upkeep.accepts_adds(self._open_sql())

    def housekeep(self, idle: bool) -> None:
        """Checkpoint when the WAL has grown, or when nothing happens; never inside a batch."""
        self._upkeep.housekeep(self._open_sql(), idle)

    # ------------------------------------------------------------------------------------------------- inside

    def _open(self) -> protocol.Opening:
        self._sql = sql = opening.connect(self._data_dir, self._durability)
        opening.check(sql, self._data_dir, always=self._check_always)
        self.schema_version = migrate.migrate(sql.connection, migrate.steps())
        kept = opening.take_over(sql)
        self._epoch, self._now_ms = kept.epoch, kept.now_ms
        self._next_number, self._next_front, self._next_event = kept.next_number, kept.next_front, kept.next_event
        self.queues.clear()
        self.queue_names.clear()
        for queue in kept.queues:
            self._know(queue)
        self.count_by_id = kept.counts
        self.running = opening.running(sql, self.queues, self.queue_names)
        return opening.describe(sql, kept, self.counts())

    def _know(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self.queue_names[queue.id] = queue.name
        self._next_queue = max(self._next_queue, queue.id + 1)

    def _open_sql(self) -> Sql:
        if self._sql is None:
            raise StoreError("the store is not open")
        return self._sql
