"""What a run of adds writes: gathered job by job, then written in few wide statements. Hot file: terse on purpose.

Plain jobs, which take every default, are told apart by kind (queue, name, priority): of each of them only what differs
from the others of its kind travels to the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anvilmq_broker.domain import commands, events, job
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue

BYTES_PER_JOB: Final = 700
"""What a job's rows and places in indexes add to the log, beside its payload."""
_FEW: Final = 12
"""Jobs of a kind that are not worth a statement of their own, when there is more than one kind."""
_PLACE_BITS: Final = 26
"""Of a payload's length, in the number that tells its place; the statement `insert_bodies` knows it too."""


class Kind:
    """Plain jobs of one queue, name and priority. started: "number worker" by token. *_events: as in events.Run."""

    __slots__ = ("added_events", "name", "priority", "queue", "started", "started_events", "waiting")

    def __init__(self, queue: Queue, name: str, priority: int) -> None:
        self.queue, self.name, self.priority = queue, name, priority
        self.waiting: list[int] = []
        self.started: dict[str, str] = {}
        self.added_events: list[int] = []
        self.started_events: dict[str, list[int]] = {}


class Bodies:
    """Plain payloads of one content type. places: by job, where its piece starts (from 1) and how long it is."""

    __slots__ = ("pieces", "places", "start")

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        self.pieces: list[bytes] = []
        self.start = 1

    def put(self, number: int, data: bytes) -> None:
        """The payload of a job."""
        size = len(data)
        self.places[number] = self.start << _PLACE_BITS | size
        self.start += size
        self.pieces.append(data)


class Inserts:
    """The rows of a run of adds, and the events that tell of them."""

    def __init__(self, batch: LibsqlBatch) -> None:
        self._batch = batch
        self._kinds: dict[tuple[str, str, int], Kind] = {}
        self._bodies: dict[str, Bodies] = {}
        self._waiting: list[Row] = []
        self._full: list[Row] = []
        self._full_bodies: list[Row] = []

    def kind(self, queue: Queue, name: str, priority: int) -> Kind:
        """Where plain jobs of that kind are put."""
        found = self._kinds.get((queue.name, name, priority))
        if found is None:
            found = self._kinds[queue.name, name, priority] = Kind(queue, name, priority)
        return found

    def bodies(self, content_type: str) -> Bodies:
        """Where plain payloads of that type are put."""
        found = self._bodies.get(content_type)
        if found is None:
            found = self._bodies[content_type] = Bodies()
        return found

    def open_jobs(self, queue: Queue) -> int:
        """Plain jobs of the queue in here, which are not counted yet."""
        return sum(len(kind.waiting) + len(kind.started) for kind in self._kinds.values() if kind.queue.id == queue.id)

    def put(self, made: job.Job, new: commands.NewJob, queue: Queue) -> None:
        """Any job; its events and its count are the caller's."""
        if rows.is_plain(made) and made.token is None:
            self._waiting.append(
                (made.number, queue.id, made.name, int(made.state), made.priority, made.run_at_ms, made.ready_at_ms,
                 made.ready_seq)
            )  # fmt: skip
        else:
            self._full.append(rows.full_row(made, queue.id))
        if new.key or new.headers or new.labels or made.policy.backoff is not job.DEFAULT_POLICY.backoff:
            self._full_bodies.append(rows.full_body(made, new))
            self._batch.staged.bytes += len(new.data)
        else:
            self.bodies(new.content_type).put(made.number, new.data)
        self._batch.staged.bytes += BYTES_PER_JOB

    def flush(self) -> None:
        """Write all of it."""
        sql, now = self._batch.sql, self._batch.now_ms
        for kind in self._kinds.values():
            self._tell(kind)
        self._flush_kinds()
        if self._waiting:
            sql.run_rows("insert_waiting_jobs", self._waiting, now)
        if self._full:
            sql.run_rows("insert_jobs", self._full, now)
        for content_type, bodies in self._bodies.items():
            self._batch.staged.bytes += bodies.start
            # Never empty: a substr of an empty blob is NULL, one of no bytes of any other blob is an empty blob.
            data = b"".join(bodies.pieces) or b"\0"
            sql.run_pairs("insert_bodies", bodies.places, content_type or None, data)
        if self._full_bodies:
            sql.run_rows("insert_full_bodies", self._full_bodies)
        for written in (self._kinds, self._bodies, self._waiting, self._full, self._full_bodies):
            written.clear()

    def _tell(self, kind: Kind) -> None:
        batch, log, queue, name = self._batch, self._batch.log, kind.queue, kind.name
        log.add_run(events.Kind.ADDED, queue.name, name, State.WAITING, 0, kind.added_events)
        for worker_id, told in kind.started_events.items():
            log.add_run(events.Kind.STARTED, queue.name, name, State.ACTIVE, State.WAITING, told, worker_id)
        batch.count(queue.id, State.WAITING, len(kind.waiting))
        batch.count(queue.id, State.ACTIVE, len(kind.started))
        batch.staged.bytes += BYTES_PER_JOB * (len(kind.waiting) + len(kind.started))

    def _flush_kinds(self) -> None:
        sql, now, only_one = self._batch.sql, self._batch.now_ms, len(self._kinds) == 1
        started: list[Row] = []
        for kind in self._kinds.values():
            its = (kind.queue.id, kind.name, kind.priority)
            if kind.waiting and (only_one or len(kind.waiting) > _FEW):
                sql.run_each("insert_waiting_jobs_of_a_kind", kind.waiting, now, *its)
            else:
                self._waiting += [(number, its[0], its[1], 1, its[2], now, now, number) for number in kind.waiting]
            if kind.started and (only_one or len(kind.started) > _FEW):
                sql.run_pairs("insert_started_jobs_of_a_kind", kind.started, now, *its)
            else:
                for token, place in kind.started.items():
                    number, _, worker_id = place.partition(" ")
                    started.append((int(number), *its, token, worker_id))
        if started:
            sql.run_rows("insert_started_jobs", started, now)
