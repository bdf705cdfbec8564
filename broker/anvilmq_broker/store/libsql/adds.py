"""AddJobs in the libSQL store: everything is decided first, then written in few wide statements.

Hot file: plain jobs (default options, no key) are written by two narrow inserts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anvilmq_broker.domain import commands, events, job, limits, receipt, refusals, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.protocol import Applied, Effect

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue

_pack_answer = msgspec.msgpack.Encoder().encode
_unpack_answer = msgspec.msgpack.Decoder(commands.AddedJobs).decode
_BYTES_PER_JOB = 700
ReceiptKey = tuple[str, str, str]


def add_jobs(batch: LibsqlBatch, group: list[commands.AddJobs]) -> list[Applied]:
    """Carry out a run of AddJobs; a refusal decided here has written and used up nothing."""
    writer = Writer(batch)
    writer.look_up(group)
    applied = [writer.add(command) for command in group]
    writer.flush()
    return applied


class Writer:
    """Collects the rows of a run of commands, or of the jobs of ticks."""

    def __init__(self, batch: LibsqlBatch) -> None:
        self._batch = batch
        self._waiting: list[Row] = []
        self._started: list[Row] = []
        self._full: list[Row] = []
        self._bodies: list[Row] = []
        self._full_bodies: list[Row] = []
        self._receipts: dict[ReceiptKey, receipt.Receipt] = {}
        self._receipt_rows: dict[ReceiptKey, Row] = {}
        self._producers: dict[str, tuple[int, bytes]] = {}
        self._answered: set[str] = set()
        self._made: dict[int, int] = {}

    def look_up(self, group: list[commands.AddJobs]) -> None:
        """Read in one statement each the producers and the receipts that the run names."""
        sql, now = self._batch.sql, self._batch.now_ms
        if producers := {command.producer_id for command in group if command.producer_id}:
            for producer, seq, answer in sql.run_rows("get_producers", [(name,) for name in producers]):
                self._producers[producer] = (seq, answer)
        keyed = {
            _key(new): queue.id
            for command in group
            for new in command.jobs
            if new.key and (queue := self._batch.find_queue(new.queue))
        }
        if not keyed:
            return
        places = {(queue_id, name, key): queue for (queue, name, key), queue_id in keyed.items()}
        for queue_id, name, key, *rest in sql.run_rows("get_receipts", list(places)):
            held = rows.to_receipt(tuple(rest), places[queue_id, name, key], name, key)
            if held.live(now):
                self._receipts[held.queue, name, key] = held

    def add(self, command: commands.AddJobs) -> Applied:
        """Decide one command and collect its rows."""
        if command.producer_id and (kept := self._kept_answer(command)) is not None:
            return Applied(kept, [])
        decided = self._decide(command)
        if isinstance(decided, Refused):
            return Applied(decided, [])
        news, earlier, refused = decided
        first = self._batch.staged.next_number
        effects: list[Effect] = []
        states = bytes([self._make(new, first + place, effects) for place, new in enumerate(news)])
        self._batch.staged.next_number += len(news)
        if earlier:
            earlier = [_with_state(entry, first, states) for entry in earlier]
        answer = commands.AddedJobs(first, self._batch.now_ms, earlier, refused)
        if command.producer_id:
            self._producers[command.producer_id] = (command.seq, _pack_answer(answer))
            self._answered.add(command.producer_id)
        self._tell_added(news, earlier, command, effects)
        return Applied(msgspec.structs.replace(answer, states=states), effects)

    def find_no_room(self, queue: str) -> Refused | None:
        """The refusal of one more job in the queue, if it is full."""
        return self._find_no_room(queue, {})

    def add_run(self, new: commands.NewJob, origin: job.Origin, effects: list[Effect]) -> commands.JobRef:
        """Collect the job of a tick or a trigger."""
        number = self._batch.staged.next_number
        self._make(new, number, effects, origin)
        self._batch.staged.next_number += 1
        return commands.JobRef(number, self._batch.now_ms)

    def flush(self) -> None:
        """Write what was collected."""
        sql, now = self._batch.sql, self._batch.now_ms
        for name, collected in (
            ("insert_waiting_jobs", self._waiting),
            ("insert_started_jobs", self._started),
            ("insert_jobs", self._full),
            ("put_receipts", list(self._receipt_rows.values())),
        ):
            if collected:
                sql.run_rows(name, collected, now)
        if self._bodies:
            sql.run_rows("insert_bodies", self._bodies)
        if self._full_bodies:
            sql.run_rows("insert_full_bodies", self._full_bodies)
        if self._answered:
            sql.run_rows("put_producers", [(name, *self._producers[name]) for name in self._answered], now)
        for written in (self._waiting, self._started, self._full, self._bodies, self._full_bodies):
            written.clear()
        self._receipt_rows.clear()
        self._answered.clear()

    # ------------------------------------------------------------------------------------------- deciding

    def _kept_answer(self, command: commands.AddJobs) -> commands.AddedJobs | Refused | None:
        kept = self._producers.get(command.producer_id)
        if kept is None:
            return None
        seq, answer = kept
        if command.seq == seq:
            return _unpack_answer(answer)
        if command.seq > seq:
            return None
        return refusals.sequence_stale(command.producer_id, command.seq, seq)

    def _decide(
        self, command: commands.AddJobs
    ) -> tuple[list[commands.NewJob], list[commands.Earlier], list[Refused]] | Refused:
        news: list[commands.NewJob] = []
        earlier: list[commands.Earlier] = []
        refused: list[Refused] = []
        siblings: dict[ReceiptKey, receipt.Receipt] = {}
        room: dict[str, int] = {}
        for index, new in enumerate(command.jobs):
            verdict = self._meet(new, siblings) if new.key else None
            if verdict is None:
                verdict = self._find_no_room(new.queue, room)
            if verdict is None:
                if new.key:
                    number = self._batch.staged.next_number + len(news)
                    siblings[_key(new)] = _receipt_of(new, number, self._batch.now_ms)
                news.append(new)
            elif isinstance(verdict, Refused):
                verdict = msgspec.structs.replace(verdict, index=index)
                if command.atomic:
                    return verdict
                refused.append(verdict)
            else:
                earlier.append(commands.Earlier(index, verdict, self._state_of(verdict)))
        return news, earlier, refused

    def _find_no_room(self, queue: str, room: dict[str, int]) -> Refused | None:
        most = self._batch.limits.max_queue_jobs
        if not most:
            return None
        if queue not in room:
            found = self._batch.find_queue(queue)
            room[queue] = most - (self._batch.open_jobs(found) if found else 0)
        room[queue] -= 1
        return limits.queue_full(queue, most) if room[queue] < 0 else None

    def _meet(
        self, new: commands.NewJob, siblings: dict[ReceiptKey, receipt.Receipt]
    ) -> commands.JobRef | Refused | None:
        """The earlier job that the key belongs to, the refusal, or None when the key is free."""
        held = siblings.get(_key(new)) or self._receipts.get(_key(new))
        return receipt.meet(held, new) if held is not None else None

    def _state_of(self, ref: commands.JobRef) -> int:
        if (made := self._made.get(ref.number)) is not None:
            return made
        found = self._batch.load(ref)
        return int(found.state) if found else 0

    # --------------------------------------------------------------------------------------------- making

    def _make(self, new: commands.NewJob, number: int, effects: list[Effect], origin: job.Origin | None = None) -> int:
        batch = self._batch
        queue = batch.get_or_make_queue(new.queue)
        made = job.create(new, number, job.merge_policy(new.policy, queue.defaults), batch.moment, origin)
        due = made.run_at_ms if made.state is State.DELAYED else 0
        batch.log.add(
            events.Kind.ADDED, made.queue, made.name, made.state, 0, number, made.created_ms, 0, due_at_ms=due
        )
        slot = None
        if made.state is State.WAITING and batch.line_is_clear(queue):
            slot = batch.take_slot(new.queue)
        if slot is not None:
            before, token = made, batch.chance.token()
            made = job.start(made, token, slot.worker_id, slot.claim_id, batch.now_ms)
            batch.log.add(
                events.Kind.STARTED, made.queue, made.name, made.state, before.state, number, made.created_ms,
                made.attempt, made.worker_id,
            )  # fmt: skip
            effects.append(
                protocol.Started(
                    slot,
                    view.delivery(made, view.Body(new.data, new.content_type, new.headers, new.labels)),
                    made.timeout_at_ms,
                    made.run_at_ms,
                )
            )
        else:
            ready_at = made.ready_at_ms or 0
            batch.joined_line(queue, ready_at)
            effects.append(protocol.Queued(new.queue, ready_at))
            if made.expires_at_ms:
                effects.append(protocol.Expires(number, made.created_ms, made.expires_at_ms))
        batch.count(queue.id, made.state, 1)
        batch.staged.bytes += _BYTES_PER_JOB + len(new.data)
        self._collect(made, new, queue)
        return int(made.state)

    def _collect(self, made: job.Job, new: commands.NewJob, queue: Queue) -> None:
        if not rows.is_plain(made):
            self._full.append(rows.full_row(made, queue.id))
        elif made.token is None:
            self._waiting.append(
                (made.number, queue.id, made.name, int(made.state), made.priority, made.run_at_ms, made.ready_at_ms,
                 made.ready_seq)
            )  # fmt: skip
        elif made.claim_id:
            self._full.append(rows.full_row(made, queue.id))
        else:
            self._started.append((made.number, queue.id, made.name, made.priority, made.token, made.worker_id))
        if new.key or new.headers or new.labels or made.policy.backoff is not job.DEFAULT_POLICY.backoff:
            self._full_bodies.append(rows.full_body(made, new))
        else:
            self._bodies.append((made.number, new.content_type or None, new.data))
        if new.key:
            self._made[made.number] = int(made.state)
            self._receipts[_key(new)] = _receipt_of(new, made.number, made.created_ms)
            self._receipt_rows[_key(new)] = (
                queue.id, new.name, new.key, int(new.singleton), made.number, new.digest
            )  # fmt: skip

    def _tell_added(
        self,
        news: list[commands.NewJob],
        earlier: list[commands.Earlier],
        command: commands.AddJobs,
        effects: list[Effect],
    ) -> None:
        made: dict[str, int] = {}
        for new in news:
            made[new.queue] = made.get(new.queue, 0) + 1
        met: dict[str, int] = {}
        for entry in earlier:
            new = command.jobs[entry.index]
            met[new.queue] = met.get(new.queue, 0) + 1
            self._batch.log.add(
                events.Kind.DUPLICATE, new.queue, new.name, entry.state, 0, entry.ref.number, entry.ref.created_ms, 0,
                matched_by=entry.matched_by,
            )  # fmt: skip
        effects += [protocol.Added(queue, made.get(queue, 0), met.get(queue, 0)) for queue in made | met]


def _key(new: commands.NewJob) -> ReceiptKey:
    return new.queue, new.name, new.key


def _with_state(entry: commands.Earlier, first: int, states: bytes) -> commands.Earlier:
    """An item that met a sibling of its own command: the sibling's state is known only now."""
    if entry.ref.number < first:
        return entry
    return msgspec.structs.replace(entry, state=states[entry.ref.number - first])


def _receipt_of(new: commands.NewJob, number: int, now_ms: int) -> receipt.Receipt:
    return receipt.Receipt(new.queue, new.name, new.key, new.singleton, number, now_ms, new.digest, now_ms)
