"""AddJobs in the libSQL store: everything is decided first, then written in few wide statements.

Hot file: terse on purpose. Plain jobs (default options, no key) are by far the most.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from anvilmq_broker.domain import commands, events, job, limits, receipt, refusals, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.libsql.inserts import Inserts, Kind
from anvilmq_broker.store.protocol import Applied, Effect

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import Answered, LibsqlBatch

_pack_answer = msgspec.msgpack.Encoder().encode
_unpack_answer = msgspec.msgpack.Decoder(commands.AddedJobs).decode
MAX_ATTEMPTS: Final = job.DEFAULT_POLICY.max_attempts
LEASE_MS: Final = job.DEFAULT_POLICY.lease_ms
ReceiptKey = tuple[str, str, str]


def add_jobs(batch: LibsqlBatch, group: list[commands.AddJobs]) -> list[Applied]:
    """Carry out a run of AddJobs; a refusal decided here has written and used up nothing."""
    writer = Writer(batch)
    writer.look_up(group)
    applied = [writer.add(command) for command in group]
    writer.flush()
    return applied


class Writer:
    """Carries out the commands of a run, or makes the jobs of ticks; their rows are gathered and written at its end."""

    def __init__(self, batch: LibsqlBatch) -> None:
        self._batch = batch
        self._inserts = Inserts(batch)
        self._receipts: dict[ReceiptKey, receipt.Receipt] = {}
        self._receipt_rows: dict[ReceiptKey, Row] = {}
        self._answered: dict[str, Answered] = {}
        self._new_answers: dict[str, Answered] = {}
        self._made: dict[int, int] = {}
        self._keyed = False

    def look_up(self, group: list[commands.AddJobs]) -> None:
        """Read in one statement each the producers and the receipts that the run names."""
        sql, now = self._batch.sql, self._batch.now_ms
        named = {command.producer_id for command in group if command.producer_id}
        if unknown := [name for name in named if self._batch.known_producer(name) is None]:
            for producer, seq, answer in sql.run_each("get_producers", unknown):
                self._answered[producer] = (seq, _unpack_answer(answer))
        keyed = [new for command in group for new in command.jobs if new.key]
        self._keyed = bool(keyed)
        places = {
            (queue.id, new.name, new.key): new.queue for new in keyed if (queue := self._batch.find_queue(new.queue))
        }
        if not places:
            return
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
        states = self._make_all(news, first, effects)
        self._batch.staged.next_number += len(news)
        if earlier:
            earlier = [_with_state(entry, first, states) for entry in earlier]
        answer = commands.AddedJobs(first, self._batch.now_ms, earlier, refused)
        if command.producer_id:
            self._answered[command.producer_id] = self._new_answers[command.producer_id] = (command.seq, answer)
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
        """Write what was gathered."""
        sql, now = self._batch.sql, self._batch.now_ms
        self._inserts.flush()
        if self._receipt_rows:
            sql.run_rows("put_receipts", list(self._receipt_rows.values()), now)
        if self._new_answers:
            kept = [(name, seq, _pack_answer(answer)) for name, (seq, answer) in self._new_answers.items()]
            sql.run_rows("put_producers", kept, now)
            self._batch.staged.producers |= {
                # A long answer is not worth its room in memory.
                name: None if it[1].earlier or it[1].refused else it
                for name, it in self._new_answers.items()
            }
        self._receipt_rows.clear()
        self._new_answers.clear()

    # ------------------------------------------------------------------------------------------- deciding

    def _kept_answer(self, command: commands.AddJobs) -> commands.AddedJobs | Refused | None:
        producer = command.producer_id
        known = self._answered.get(producer) or self._batch.known_producer(producer)
        if known is None or command.seq > known[0]:
            return None
        seq, answer = known
        if command.seq == seq:
            return answer
        return refusals.sequence_stale(command.producer_id, command.seq, seq)

    def _decide(
        self, command: commands.AddJobs
    ) -> tuple[list[commands.NewJob], list[commands.Earlier], list[Refused]] | Refused:
        if not self._keyed and not self._batch.limits.max_queue_jobs:
            return command.jobs, [], []
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
            room[queue] = most - (self._batch.open_jobs(found) + self._inserts.open_jobs(found) if found else 0)
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

    def _make_all(self, news: list[commands.NewJob], first: int, effects: list[Effect]) -> bytes:
        """The jobs of a command, from number `first` on; their states.

        A job that takes every default goes a shorter way to the same end: domain/job.py's `create` and `start` written
        out for the default policy.
        """
        batch, inserts = self._batch, self._inserts
        now, take, token_of, began = batch.now_ms, batch.take_slot, batch.chance.token, batch.staged.started
        states = bytearray()
        kind: Kind | None = None
        content_type, put_body = "", inserts.bodies("").put
        may_start = told = False
        for number, new in enumerate(news, first):
            queue, name, priority = new.queue, new.name, new.priority
            if (
                new.key or new.delay_ms or new.run_at_ms or new.lifo or new.policy is not None or new.headers or new.labels
                or new.expires_at_ms or new.expires_after_ms or new.group_id
            ):  # fmt: skip
                states.append(self._make(new, number, effects))
                kind = None
                continue
            if kind is None or queue != kind.queue.name or name != kind.name or priority != kind.priority:
                found = batch.get_or_make_queue(queue)
                if found.defaults is not None:
                    states.append(self._make(new, number, effects))
                    kind = None
                    continue
                kind, may_start, told = inserts.kind(found, name, priority), batch.line_is_clear(found), False
            slot = take(queue) if may_start else None
            if slot is None:
                may_start = False
                if not told:
                    told = True
                    batch.joined_line(kind.queue, now)
                    effects.append(protocol.Queued(queue, now))
                kind.waiting.append(number)
                states.append(1)
            elif slot.claim_id:
                states.append(self._make(new, number, effects, slot=slot))
                continue
            else:
                token, worker_id = token_of(), slot.worker_id
                kind.started[token] = f"{number} {worker_id}"
                events_of = kind.started_events.get(worker_id)
                if events_of is None:
                    events_of = kind.started_events[worker_id] = []
                events_of += (number, now, 1)
                began[token] = (number, now, kind.queue, name, 1, worker_id, now, 0)
                delivery = commands.Delivery(
                    number, now, token, queue, name, new.data, new.content_type, 1, MAX_ATTEMPTS, LEASE_MS, 0, None, None,
                    priority,
                )  # fmt: skip
                effects.append(protocol.Started(slot, delivery, 0, now))
                states.append(3)
            kind.added_events += (number, now, 0)
            if new.content_type != content_type:
                content_type = new.content_type
                put_body = inserts.bodies(content_type).put
            put_body(number, new.data)
        return bytes(states)

    def _make(
        self,
        new: commands.NewJob,
        number: int,
        effects: list[Effect],
        origin: job.Origin | None = None,
        slot: protocol.Slot | None = None,
    ) -> int:
        """A job of any shape. slot: taken for it already."""
        batch = self._batch
        queue = batch.get_or_make_queue(new.queue)
        made = job.create(new, number, job.merge_policy(new.policy, queue.defaults), batch.moment, origin)
        due = made.run_at_ms if made.state is State.DELAYED else 0
        batch.log.add(
            events.Kind.ADDED, made.queue, made.name, made.state, 0, number, made.created_ms, 0, due_at_ms=due
        )
        if slot is None and made.state is State.WAITING and batch.line_is_clear(queue):
            slot = batch.take_slot(new.queue)
        if slot is not None:
            before, token = made, batch.chance.token()
            made = job.start(made, token, slot.worker_id, slot.claim_id, batch.now_ms)
            batch.log.add(
                events.Kind.STARTED, made.queue, made.name, made.state, before.state, number, made.created_ms,
                made.attempt, made.worker_id,
            )  # fmt: skip
            batch.began(made, queue)
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
        self._inserts.put(made, new, queue)
        if new.key:
            self._made[number] = int(made.state)
            self._receipts[_key(new)] = _receipt_of(new, number, made.created_ms)
            self._receipt_rows[_key(new)] = (
                queue.id, new.name, new.key, int(new.singleton), number, new.digest
            )  # fmt: skip
        return int(made.state)

    def _tell_added(
        self,
        news: list[commands.NewJob],
        earlier: list[commands.Earlier],
        command: commands.AddJobs,
        effects: list[Effect],
    ) -> None:
        made = Counter([new.queue for new in news])
        met: dict[str, int] = {}
        for entry in earlier:
            new = command.jobs[entry.index]
            met[new.queue] = met.get(new.queue, 0) + 1
            self._batch.log.add(
                events.Kind.DUPLICATE, new.queue, new.name, entry.state, 0, entry.ref.number, entry.ref.created_ms, 0,
                matched_by=entry.matched_by,
            )  # fmt: skip
        effects += [protocol.Added(queue, made[queue], met.get(queue, 0)) for queue in {**made, **met}]


def _key(new: commands.NewJob) -> ReceiptKey:
    return new.queue, new.name, new.key


def _with_state(entry: commands.Earlier, first: int, states: bytes) -> commands.Earlier:
    """An item that met a sibling of its own command: the sibling's state is known only now."""
    if entry.ref.number < first:
        return entry
    return msgspec.structs.replace(entry, state=states[entry.ref.number - first])


def _receipt_of(new: commands.NewJob, number: int, now_ms: int) -> receipt.Receipt:
    return receipt.Receipt(new.queue, new.name, new.key, new.singleton, number, now_ms, new.digest, now_ms)
