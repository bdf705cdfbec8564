"""One transaction of the libSQL store: what it has staged, and the commands carried out in it.

Everything kept in memory is staged here and handed to the store at the commit (memory follows commit). Commands that the
schema refuses are found out by carrying out the others again without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import msgspec

from anvilmq_broker.domain import commands, events, job, refusals, retention
from anvilmq_broker.domain.errors import Constraint
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import adds, claims, prunes, rows, schedulers, settlements, ticks
from anvilmq_broker.store.libsql.sql import Sql
from anvilmq_broker.store.protocol import Applied, Effect, Slot, TakeSlot

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.store import LibsqlStore

T = TypeVar("T")
_pack = msgspec.msgpack.Encoder().encode


class Queue(msgspec.Struct):
    """What the store keeps in memory of a queue.

    next_ready_at: when the earliest job of the line becomes claimable; exact, NEVER or IN_DOUBT.
    """

    id: int
    name: str
    defaults: commands.PolicyPatch | None
    next_ready_at: int
    rules: retention.QueueRules


Running = tuple[int, int, Queue, str, int, str, int, int]
"""An attempt: job's number and created_ms, queue, name, attempt, worker_id, started_ms, traits."""


Answered = tuple[int, commands.AddedJobs]
"""A producer's newest frame: its seq, and what it was answered."""


class Staged(msgspec.Struct):
    """Memory as it will be after the commit. new: queues made in the batch. counts: changes by count id.

    started: by token, attempts begun in the batch that a set may complete. ended: tokens that it may not, any more.
    producers: seq and answer of their newest frames; None: not to be remembered.
    bytes: a guess at what the commit adds to the WAL.
    """

    next_number: int
    next_front: int
    next_event: int
    next_queue: int
    new: dict[str, Queue] = {}
    next_ready_at: dict[int, int] = {}
    counts: dict[int, int] = {}
    started: dict[str, Running] = {}
    ended: set[str] = set()
    producers: dict[str, Answered | None] = {}
    bytes: int = 0

    def take_front(self) -> int:
        """The next falling number for the front of a class."""
        self.next_front -= 1
        return self.next_front + 1

    def copy(self) -> Staged:
        """As it is now, for `restore`."""
        return msgspec.structs.replace(
            self,
            new=dict(self.new),
            next_ready_at=dict(self.next_ready_at),
            counts=dict(self.counts),
            started=dict(self.started),
            ended=set(self.ended),
            producers=dict(self.producers),
        )

    def restore(self, kept: Staged) -> None:
        """Be again what `copy` gave."""
        for field in self.__struct_fields__:
            setattr(self, field, getattr(kept, field))


class LibsqlBatch:
    """An open transaction; see protocol.Batch."""

    def __init__(self, store: LibsqlStore, sql: Sql, now_ms: int, staged: Staged) -> None:
        self.sql = sql
        self.now_ms = now_ms
        self.chance = store.chance
        self.limits = store.limits
        self.log = events.Log()
        self.staged = staged
        self._slots = _Slots(lambda _: None)
        self.take_slot: TakeSlot = self._slots.take
        self._store = store
        self._first_front = staged.next_front
        self._deleted = False
        self._pristine = True
        # Nothing here may lead back to the batch: it is freed when it is over, without a collection.
        self.moment = job.Moment(now_ms, store.chance.spread, staged.take_front)

    # ------------------------------------------------------------------------------------------- commands

    def apply(self, batch: Sequence[commands.Command], take_slot: TakeSlot) -> list[Applied]:
        """Carry out the commands in order; runs of like ones share their statements.

        Only when the schema refuses something they are carried out again, so that it is answered alone.
        """
        self._slots = _Slots(take_slot)
        self.take_slot = self._slots.take
        runs = [(_CARRY_OUT[kind], list(group)) for kind, group in groupby(batch, type)]
        with suppress(Constraint):
            return self.attempt(lambda: [applied for carry_out, group in runs for applied in carry_out(self, group)])
        applied: list[Applied] = []
        for carry_out, group in runs:
            applied += self._run(carry_out, group)
        return applied

    def claim(self, queue: str, slots: Sequence[Slot]) -> list[protocol.Started]:
        """Start the next claimable jobs of the queue, at most one a slot."""
        found = self.find_queue(queue)
        self._pristine = False
        return claims.claim(self, found, slots) if found else []

    def next_ready_at(self, queue: str) -> int | None:
        """0 when a job is claimable now, else when the earliest will be, None for an empty line."""
        found = self.find_queue(queue)
        if found is None:
            return None
        at = self._ready_at(found)
        return None if at == claims.NEVER else 0 if at <= self.now_ms else at

    def commit(self) -> None:
        """Make it durable, then let memory follow."""
        if self.log.count:
            self.sql.run("insert_events", self.staged.next_event, self.now_ms, self.log.count, _pack(self.log.runs))
            self.staged.next_event += self.log.count
        if changed := [key for key, change in self.staged.counts.items() if change]:
            self.sql.run_pairs("set_counts", {key: self._counted(key) for key in changed})
        if self.staged.next_front != self._first_front or self._deleted:
            # The next batch would write them as well; but the number of a job that is gone again is in no table.
            self.sql.run("set_counters", self.staged.next_number, self.staged.next_front)
        self.sql.connection.execute("COMMIT")
        self._store.committed(self.staged, self.now_ms)

    def rollback(self) -> None:
        """Drop everything of the batch."""
        self._store.rolled_back()

    # ------------------------------------------------------------------ what the carrying out of commands uses

    def find_queue(self, name: str) -> Queue | None:
        """The queue, if a job has ever been added to it."""
        return self.staged.new.get(name) or self._store.queues.get(name)

    def get_or_make_queue(self, name: str) -> Queue:
        """The queue, made now if it is not there."""
        found = self.find_queue(name)
        if found is None:
            self.sql.run("insert_queue", self.staged.next_queue, name, self.now_ms)
            found = Queue(self.staged.next_queue, name, None, claims.NEVER, retention.QueueRules())
            self.staged.next_queue += 1
            self.staged.new[name] = found
        return found

    def every_queue(self) -> list[Queue]:
        """All queues, this batch's new ones included."""
        return [*self._store.queues.values(), *self.staged.new.values()]

    def queue_name(self, queue_id: int) -> str:
        """Name of a queue by its id."""
        found = self._store.queue_names.get(queue_id)
        return found if found is not None else next(q.name for q in self.staged.new.values() if q.id == queue_id)

    def ready_hint(self, queue: Queue) -> int:
        """Nothing of the line is claimable before; asks no row."""
        return self.staged.next_ready_at.get(queue.id, queue.next_ready_at)

    def line_is_clear(self, queue: Queue) -> bool:
        """Whether no job of the line is claimable now, so that a new one may start at once."""
        return self._ready_at(queue) > self.now_ms

    def set_next_ready_at(self, queue: Queue, at_ms: int) -> None:
        """Remember when the earliest job of the line becomes claimable: a time, NEVER or IN_DOUBT."""
        self.staged.next_ready_at[queue.id] = at_ms

    def joined_line(self, queue: Queue, ready_at_ms: int) -> None:
        """A job now stands in the line from ready_at_ms on."""
        if ready_at_ms < self.ready_hint(queue):
            self.set_next_ready_at(queue, ready_at_ms)

    def pull_line_down(self, was_ms: int) -> None:
        """After a long step back of the clock from was_ms: what waits since a later time is claimable now."""
        self._pristine = False
        for queue in self.every_queue():
            for priority in claims.classes_of(self.sql, queue.id):
                self.sql.run("pull_line_down", queue.id, priority, was_ms, self.now_ms)
            self.set_next_ready_at(queue, claims.IN_DOUBT)

    def count(self, queue_id: int, state: int, change: int) -> None:
        """Add to the number of jobs of the queue in that state."""
        key = queue_id * 16 + state
        self.staged.counts[key] = self.staged.counts.get(key, 0) + change

    def open_jobs(self, queue: Queue) -> int:
        """Jobs of the queue that are not terminal."""
        base = queue.id * 16
        kept, staged = self._store.count_by_id, self.staged.counts
        return sum(
            kept.get(base + state, 0) + staged.get(base + state, 0)
            for state in (State.WAITING, State.DELAYED, State.ACTIVE, State.WAITING_CHILDREN)
        )

    def jobs_in(self, queue_id: int, state: int) -> int:
        """Jobs of the queue in that state, this batch included."""
        return self._counted(queue_id * 16 + state)

    def _counted(self, key: int) -> int:
        # Never below 0, though the kept count were wrong: a commit must not fail for a number that rows can tell anew.
        return max(0, self._store.count_by_id.get(key, 0) + self.staged.counts.get(key, 0))

    @property
    def next_event(self) -> int:
        """Number of the next transition of the log."""
        return self.staged.next_event

    def load(self, ref: commands.JobRef | commands.LeaseRef | commands.Settlement) -> job.Job | None:
        """The job as it stands in this transaction."""
        found = self.sql.run("get_job", ref.number, ref.created_ms)
        return rows.to_job(found[0], self.queue_name(found[0][2])) if found else None

    def began(self, started: job.Job, queue: Queue) -> None:
        """An attempt runs from now on."""
        if (traits := rows.traits(started)) < rows.OWN_RETENTION and started.token is not None:
            self.staged.started[started.token] = (
                started.number, started.created_ms, queue, started.name, started.attempt, started.worker_id,
                started.started_at_ms, traits,
            )  # fmt: skip

    @property
    def known_running(self) -> dict[str, Running]:
        """By token: committed attempts whose completion follows from their row alone; not those staged as ended."""
        return self._store.running

    def known_producer(self, name: str) -> Answered | None:
        """The producer's newest frame, if memory has it."""
        staged = self.staged.producers
        return staged[name] if name in staged else self._store.producers.get(name)

    def changed_rows(self) -> int:
        """How many rows the statement just run has changed."""
        return int(self.sql.run("changed_rows")[0][0])

    def delete_jobs(self, numbers: list[int]) -> None:
        """Remove ended jobs and all that hangs on them."""
        self._deleted |= bool(numbers)
        for queue_id, state, prune_at in self.sql.run_rows("delete_jobs", [(n,) for n in numbers]) if numbers else ():
            self.count(queue_id, state, -1)
            if prune_at is not None:
                self.count(queue_id, rows.own_slot(state), -1)

    def save(self, change: job.Change) -> list[Effect]:
        """Write what was decided and all that follows from it; the effects for the engine's memory."""
        before, after = change.before, change.job
        queue = self.get_or_make_queue(after.queue)
        if not self.sql.run("save_job", *rows.changed_row(before, after)):
            raise AssertionError(f"job {after.number} changed inside its own transaction")
        if before.token is not None:
            self.staged.ended.add(before.token)
        if before.state is not after.state:
            self.count(queue.id, before.state, -1)
            self.count(queue.id, after.state, 1)
        change.tell(self.log)
        if change.attempt_end is not None:
            self.sql.run("insert_attempt", *rows.attempt_row(after.number, change.attempt_end))
            self.sql.run("trim_attempts", after.number, retention.ATTEMPTS_KEPT)
        if change.result:
            self.sql.run_rows("insert_results", [(after.number, change.result_content_type or None, change.result)])
        self._follow(change, queue)
        return protocol.effects_of(change)

    # ---------------------------------------------------------------------------------------------- inside

    def _follow(self, change: job.Change, queue: Queue) -> None:
        """The line's hint, the key and the kept numbers after a job was saved."""
        before, after = change.before, change.job
        if before.ready_at_ms is not None:
            self.set_next_ready_at(queue, claims.IN_DOUBT)
        if change.ended:
            settlements.end_receipt(self, after, queue)
            if job.prune_at_ms(after) is not None:
                self.count(queue.id, rows.own_slot(after.state), 1)
        elif after.ready_at_ms is not None:
            self.joined_line(queue, after.ready_at_ms)

    def _ready_at(self, queue: Queue) -> int:
        """The truth about the line, from its rows only when it is in doubt."""
        at = self.ready_hint(queue)
        if at == claims.IN_DOUBT:
            found = claims.find_next_ready_at(self.sql, queue.id)
            at = claims.NEVER if found is None else found
            self.set_next_ready_at(queue, at)
        return at

    def _run(self, carry_out: CarryOut, group: list[commands.Command]) -> list[Applied]:
        try:
            return self.attempt(lambda: carry_out(self, group))
        except Constraint as error:
            if len(group) == 1:
                return [Applied(refusals.by_schema(error.name), [])]
        applied: list[Applied] = []
        for command in group:
            try:
                applied += self.attempt(partial(carry_out, self, [command]))
            except Constraint as error:
                applied.append(Applied(refusals.by_schema(error.name), []))
        return applied

    def attempt(self, action: Callable[[], T]) -> T:
        """Do it so that a Constraint leaves nothing of it done; may stand inside another."""
        # In a transaction that has done nothing yet it can be begun again, and its pages need no second copy.
        whole, self._pristine = self._pristine, False
        kept, logged = None if whole else self.staged.copy(), self.log.mark()
        if not whole:
            self.sql.connection.execute("SAVEPOINT run")
        try:
            done = action()
        except Constraint:
            if kept is None:
                self._store.begin_again(self.now_ms)
                self.staged.restore(self._store.fresh())
                self._pristine = True
            else:
                self.sql.connection.execute("ROLLBACK TO run")
                self.sql.connection.execute("RELEASE run")
                self.staged.restore(kept)
            self.log.reset(logged)
            self._slots.give_back()
            raise
        if not whole:
            self.sql.connection.execute("RELEASE run")
        self._slots.used_up()
        return done


class _Slots:
    """Hands out slots and takes back those of a run that was rolled back, for its replay."""

    def __init__(self, take_slot: TakeSlot) -> None:
        self._take = take_slot
        self._spare: list[tuple[str, Slot]] = []
        self._out: list[tuple[str, Slot]] = []

    def take(self, queue: str) -> Slot | None:
        slot = self._take_spare(queue) if self._spare else self._take(queue)
        if slot is not None:
            self._out.append((queue, slot))
        return slot

    def _take_spare(self, queue: str) -> Slot | None:
        place = next((i for i, (of, _) in enumerate(self._spare) if of == queue), None)
        return self._take(queue) if place is None else self._spare.pop(place)[1]

    def give_back(self) -> None:
        self._spare += self._out
        self._out = []

    def used_up(self) -> None:
        self._out = []


CarryOut = Callable[..., list[Applied]]
"""Carries out a run of commands of the one type that it is listed under."""

_CARRY_OUT: dict[type, CarryOut] = {
    commands.AddJobs: adds.add_jobs,
    commands.Claim: claims.claim_for_caller,
    commands.Settle: settlements.settle,
    commands.Report: settlements.report,
    commands.Reap: settlements.reap,
    commands.CancelJob: settlements.cancel,
    commands.ReleaseReceipt: settlements.release_receipt,
    commands.DeleteReceipt: settlements.delete_receipt,
    commands.Prune: prunes.prune,
    commands.UpsertScheduler: schedulers.upsert,
    commands.DeleteScheduler: schedulers.delete,
    commands.SuspendScheduler: schedulers.suspend,
    commands.TriggerScheduler: ticks.trigger,
    commands.FireDue: ticks.fire_due,
    commands.ReanchorSchedulers: schedulers.reanchor,
    commands.ReleaseDefinition: schedulers.release,
}
