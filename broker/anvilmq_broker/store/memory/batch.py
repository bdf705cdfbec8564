"""One transaction of the memory store: every command, carried out on the tables."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from anvilmq_broker.domain import commands, events, job, limits, receipt, refusals, retention, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import TERMINAL, InterruptCause, State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.memory import schedulers
from anvilmq_broker.store.memory.tables import Entry, Table
from anvilmq_broker.store.protocol import Applied, Effect, Slot, TakeSlot

if TYPE_CHECKING:
    from anvilmq_broker.store.memory.store import MemoryStore

Outcome = tuple[commands.Outcome, list[Effect]]


class MemoryBatch:
    """One open transaction; see protocol.Batch."""

    def __init__(self, store: MemoryStore, now_ms: int) -> None:
        self.store = store
        self._jobs = store.jobs
        self.now_ms = now_ms
        self._moment = job.Moment(now_ms, store.chance.spread, self._front)
        self.log = events.Log()

    def apply(self, batch: Sequence[commands.Command], take_slot: TakeSlot) -> list[Applied]:
        """Carry out the commands in order. A refusal comes before the first write of its command."""
        return [Applied(*self._apply(command, take_slot)) for command in batch]

    def claim(self, queue: str, slots: Sequence[Slot]) -> list[protocol.Started]:
        """Start the first claimable jobs of the line, one a slot."""
        heads = list(self._jobs.claimable(queue, self.now_ms))
        return [self._start(number, slot) for number, slot in zip(heads, slots, strict=False)]

    def next_ready_at(self, queue: str) -> int | None:
        """0 when a job is claimable now, else when the earliest will be, None for an empty line."""
        return self._jobs.next_ready_at(queue, self.now_ms)

    def commit(self) -> None:
        """Append the events and keep everything."""
        if self.log.count:
            first = self.store.numbers["event"]
            self.store.events.put(first, (self.now_ms, self.log.runs))
            self.store.numbers.put("event", first + self.log.count)
        self.store.commit()

    def rollback(self) -> None:
        """Drop everything."""
        self.store.undo()

    def _apply(self, command: commands.Command, take_slot: TakeSlot) -> Outcome:
        match command:
            case commands.AddJobs():
                return self._add(command, take_slot)
            case commands.Claim():
                return self._claim(command)
            case commands.Settle():
                return self._settle(command)
            case commands.Report():
                return self._report(command), []
            case commands.Reap():
                return commands.Done(), self._reap(command)
            case commands.Prune():
                return self._prune(command.limit), []
            case commands.CancelJob():
                return self._cancel(command)
            case commands.ReleaseReceipt():
                return self._free(command, command.expected), []
            case commands.DeleteReceipt():
                return self._free(command, None), []
            case commands.Renew():
                raise TypeError("Renew is carried out by the engine")
            case _:
                return schedulers.apply(self, command, take_slot)

    # ---------------------------------------------------------------------------------------------- adding

    def _add(self, command: commands.AddJobs, take_slot: TakeSlot) -> Outcome:
        if (kept := self._kept_answer(command)) is not None:
            return kept, []
        first = self.store.numbers["job"]
        new: list[commands.NewJob] = []
        met: list[tuple[int, commands.JobRef]] = []
        refused: list[Refused] = []
        for index, item in enumerate(command.jobs):
            verdict = self._meet(item, new, first)
            if isinstance(verdict, Refused):
                if command.atomic:
                    return replace(verdict, index=index), []
                refused.append(replace(verdict, index=index))
            elif verdict is not None:
                met.append((index, verdict))
            else:
                new.append(item)
        effects: list[Effect] = []
        states = bytes([self._make(item, first + place, take_slot, effects) for place, item in enumerate(new)])
        earlier = [commands.Earlier(index, ref, self._state(ref)) for index, ref in met]
        self._tell_added(command, new, earlier, effects)
        answer = commands.AddedJobs(first, self.now_ms, earlier, refused)
        if command.producer_id:
            self.store.producers.put(command.producer_id, (command.seq, answer, self.now_ms))
        return replace(answer, states=states), effects

    def _kept_answer(self, command: commands.AddJobs) -> commands.AddedJobs | Refused | None:
        seq, answer, _ = self.store.producers.get(command.producer_id, (0, None, 0))
        if command.seq > seq or not command.producer_id:
            return None
        return answer if command.seq == seq else refusals.sequence_stale(command.producer_id, command.seq, seq)

    def _meet(self, item: commands.NewJob, new: list[commands.NewJob], first: int) -> commands.JobRef | Refused | None:
        """What stands in the way of making the job: an earlier one, or a refusal [2.1]. new: to be made, from `first`."""
        for place, sibling in enumerate(new if item.key else ()):
            if (sibling.queue, sibling.name, sibling.key) == (item.queue, item.name, item.key):
                return receipt.meet(_receipt(sibling, first + place, self.now_ms), item)
        held = self.store.receipts.get((item.queue, item.name, item.key)) if item.key else None
        if held is not None and held.live(self.now_ms):
            return receipt.meet(held, item)
        return self.find_no_room(item.queue, sum(sibling.queue == item.queue for sibling in new))

    def find_no_room(self, queue: str, new: int = 0) -> Refused | None:
        """The refusal of one more job in the queue, if it is full. new: those about to be made."""
        most = self.store.limits.max_queue_jobs
        unfinished = sum(self._jobs.counts.get((queue, state), 0) for state in set(State) - TERMINAL)
        return limits.queue_full(queue, most) if most and unfinished + new >= most else None

    def make_run(
        self, item: commands.NewJob, origin: job.Origin, take_slot: TakeSlot, effects: list[Effect]
    ) -> commands.JobRef:
        """Add the job of a tick or a trigger."""
        number = self.store.numbers["job"]
        self._make(item, number, take_slot, effects, origin)
        return commands.JobRef(number, self.now_ms)

    def _state(self, ref: commands.JobRef) -> int:
        entry = self._jobs.find(ref)
        return int(entry.job.state) if entry is not None else 0

    def _make(
        self,
        item: commands.NewJob,
        number: int,
        take_slot: TakeSlot,
        effects: list[Effect],
        origin: job.Origin | None = None,
    ) -> int:
        """Add the job, and start it at once when a worker is free and nothing claimable stands before it."""
        # A queue has no policy of its own yet.
        made = job.create(item, number, job.merge_policy(item.policy, None), self._moment, origin)
        clear = next(self._jobs.claimable(item.queue, self.now_ms), None) is None
        self._jobs.put(number, Entry(made, view.Body(item.data, item.content_type, item.headers, item.labels)))
        self.store.numbers.put("job", number + 1)
        if item.key:
            self.store.receipts.put((item.queue, item.name, item.key), _receipt(item, number, self.now_ms))
        _tell(self.log, events.Kind.ADDED, made, 0)
        slot = take_slot(item.queue) if made.state is State.WAITING and clear else None
        if slot is not None:
            effects.append(self._start(number, slot))
            return State.ACTIVE
        effects.append(protocol.Queued(made.queue, made.ready_at_ms or 0))
        if made.expires_at_ms:
            effects.append(protocol.Expires(number, made.created_ms, made.expires_at_ms))
        return made.state

    def _tell_added(
        self,
        command: commands.AddJobs,
        new: list[commands.NewJob],
        earlier: list[commands.Earlier],
        effects: list[Effect],
    ) -> None:
        met = [command.jobs[entry.index] for entry in earlier]
        for entry, item in zip(earlier, met, strict=True):
            kind, ref = events.Kind.DUPLICATE, entry.ref
            place = (item.queue, item.name, entry.state, 0, ref.number, ref.created_ms, 0)
            self.log.add(kind, *place, matched_by=entry.matched_by)
        made_in, met_in = [item.queue for item in new], [item.queue for item in met]
        effects += [
            protocol.Added(queue, made_in.count(queue), met_in.count(queue))
            for queue in dict.fromkeys(made_in + met_in)
        ]

    # --------------------------------------------------------------------------------------------- working

    def _start(self, number: int, slot: Slot) -> protocol.Started:
        entry = self._jobs[number]
        token = self.store.chance.token()
        started = job.start(entry.job, token, slot.worker_id, slot.claim_id, self.now_ms)
        self._jobs.put(number, replace(entry, job=started))
        _tell(self.log, events.Kind.STARTED, started, entry.job.state)
        return protocol.Started(slot, view.delivery(started, entry.body), started.timeout_at_ms, started.run_at_ms)

    def _claim(self, command: commands.Claim) -> Outcome:
        """The jobs that this claim id has, else the next claimable ones, queue by queue as named."""
        if command.claim_id and (held := self._claimed(command)):
            return commands.Claimed(held), []
        slot = Slot(command.worker.worker_id, command.claim_id)
        started: list[protocol.Started] = []
        for queue in command.queues:
            started += self.claim(queue, [slot] * (command.max_jobs - len(started)))
        return commands.Claimed([it.delivery for it in started]), list(started)

    def _claimed(self, command: commands.Claim) -> list[commands.Delivery]:
        claim = (command.worker.worker_id, command.claim_id)
        return [
            view.delivery(entry.job, entry.body)
            for _, entry in sorted(self._jobs.items())
            if entry.job.token is not None and (entry.job.worker_id, entry.job.claim_id) == claim
        ]

    def _settle(self, command: commands.Settle) -> Outcome:
        states, refused, effects = bytearray(len(command.items)), list[Refused](), list[Effect]()
        for index, item in enumerate(command.items):
            entry = self._jobs.find(item)
            if entry is not None and entry.job.token == item.token:
                change = job.settle(entry.job, item, self._moment)
                effects += self._save(change)
                states[index] = change.job.state
            elif entry is not None and (answer := _answer_to_replay(entry, item)) is not None:
                states[index] = answer
            else:
                refused.append(refusals.lease_lost(item, entry.job if entry else None, index))
        return commands.Settled(bytes(states), refused), effects

    def _report(self, command: commands.Report) -> commands.Done | Refused:
        entry = self._jobs.find(command.lease)
        if entry is None or entry.job.token != command.lease.token:
            return refusals.lease_lost(command.lease, entry.job if entry else None)
        last = entry.log[-1][0] if entry.log else 0
        lines = [(last + n, replace(line, attempt=entry.job.attempt)) for n, line in enumerate(command.lines, 1)]
        body = entry.body
        if command.progress_json is not None:
            body = replace(body, progress_json=command.progress_json)
            _tell(self.log, events.Kind.PROGRESS, entry.job, entry.job.state)
        log = (*entry.log, *lines)[-retention.LOG_LINES_KEPT :]
        self._jobs.put(entry.job.number, replace(entry, body=body, log=log))
        return commands.Done()

    # -------------------------------------------------------------------------------- time, admin, receipts

    def _reap(self, command: commands.Reap) -> list[Effect]:
        effects: list[Effect] = []
        for decide, leases in (
            (job.undeliver, command.undelivered),
            (job.time_out, command.timed_out),
            (job.stall, command.stalled),
        ):
            for lease in leases:
                entry = self._jobs.find(lease)
                if entry is not None and entry.job.token == lease.token:
                    effects += self._save(decide(entry.job, self._moment))
        for ref in command.expired:
            entry = self._jobs.find(ref)
            if entry is not None and (change := job.expire(entry.job, self.now_ms)) is not None:
                effects += self._save(change)
        for ref in command.parked:
            entry = self._jobs.find(ref)
            if entry is not None and (change := job.unpark(entry.job, self._moment)) is not None:
                effects += self._save(change)
        return effects

    def _cancel(self, command: commands.CancelJob) -> Outcome:
        entry = self._jobs.find(command.ref)
        if entry is None:
            return refusals.job_not_found(command.ref), []
        change = job.cancel(entry.job, command.reason, self.now_ms)
        if change is None:
            return commands.CancelledJob(entry.job.state, entry.job.state is State.ACTIVE), []
        return commands.CancelledJob(change.job.state, change.job.token is not None), self._save_cancel(change)

    def cancel_run(self, number: int, caused_by: commands.JobRef) -> list[Effect]:
        """Cancel a run because another takes its place [6.6]."""
        change = job.cancel(self._jobs[number].job, "", self.now_ms, caused_by)
        return self._save_cancel(change) if change is not None else []

    def _save_cancel(self, change: job.Change) -> list[Effect]:
        effects, it = self._save(change), change.job
        if it.token is not None:
            cause = InterruptCause.CANCEL_REQUESTED
            effects.append(protocol.Interrupted(it.number, it.created_ms, it.token, cause, it.finish_message))
        return effects

    def _free(
        self, command: commands.ReleaseReceipt | commands.DeleteReceipt, expected: commands.JobRef | None
    ) -> commands.FreedReceipt:
        place = (command.queue, command.name, command.key)
        found = self.store.receipts.get(place)
        if found is None or not found.live(self.now_ms):
            return commands.FreedReceipt(False)
        holder = commands.JobRef(found.number, found.job_created_ms)
        if expected not in (None, holder):
            return commands.FreedReceipt(False, holder)
        self.store.receipts.put(place, None)
        return commands.FreedReceipt(True, holder)

    def _prune(self, limit: int) -> commands.Pruned:
        store, now = self.store, self.now_ms
        ended = _past_retention([entry.job for entry in self._jobs.values() if entry.job.terminal], now)
        first_kept = store.numbers["event"] - retention.EVENTS_MAX
        gone: list[tuple[Table, object]] = [  # type: ignore[type-arg]  # of every kind
            *((store.jobs, number) for number in ended),
            *((store.receipts, key) for key, it in store.receipts.items() if not it.live(now)),
            *((store.producers, key) for key, it in store.producers.items() if it[2] < now - retention.PRODUCER_IDLE_MS),
            *((store.events, first) for first, (at_ms, _) in store.events.items()
              if at_ms < now - retention.EVENTS_MAX_AGE_MS or first < first_kept),
            *((store.ticks, key) for key, (fired_at, _) in store.ticks.items()
              if max(key[1], fired_at) < now - retention.TICKS_MS),
            *((store.triggers, key) for key, (_, at_ms) in store.triggers.items() if at_ms <= now - retention.TRIGGERS_MS),
        ]  # fmt: skip
        for table, key in gone[:limit]:
            table.put(key, None)
        return commands.Pruned(min(limit, len(ended)), min(limit, len(gone)), len(gone) > limit)

    # ---------------------------------------------------------------------------------------------- saving

    def _save(self, change: job.Change) -> list[Effect]:
        """Keep what was decided and all that follows from it; what the engine is told."""
        entry, after = self._jobs[change.job.number], change.job
        if change.attempt_end is not None:
            entry = replace(entry, attempts=(*entry.attempts, change.attempt_end)[-retention.ATTEMPTS_KEPT :])
        if change.result:
            body = replace(entry.body, result=change.result, result_content_type=change.result_content_type)
            entry = replace(entry, body=body)
        self._jobs.put(after.number, replace(entry, job=after))
        change.tell(self.log)
        if change.ended:
            self._end_receipt(after)
        return protocol.effects_of(change)

    def _end_receipt(self, ended: job.Job) -> None:
        """A singleton's key is free, a RETAIN receipt's lifetime starts; a newer holder keeps the key [2.1]."""
        place = (ended.queue, ended.name, ended.key)
        held = self.store.receipts.get(place)
        if held is not None and held.number == ended.number:
            expires = receipt.expires_at_ms(ended, self.now_ms)
            self.store.receipts.put(place, None if expires is None else replace(held, expires_at_ms=expires))

    def _front(self) -> int:
        number = self.store.numbers["front"]
        self.store.numbers.put("front", number - 1)
        return number


def _receipt(item: commands.NewJob, number: int, now_ms: int) -> receipt.Receipt:
    return receipt.Receipt(item.queue, item.name, item.key, item.singleton, number, now_ms, item.digest, now_ms)


def _tell(log: events.Log, kind: events.Kind, of: job.Job, previous: int) -> None:
    due = of.run_at_ms if of.state is State.DELAYED else 0
    log.add(kind, of.queue, of.name, of.state, previous, of.number, of.created_ms, of.attempt, of.worker_id, 0, due)


def _answer_to_replay(entry: Entry, item: commands.Settlement) -> int | None:
    """The answer first given to this token and kind of outcome, in the last settlement or a kept attempt [1.4]."""
    if (answer := job.answer_to_replay(entry.job, item)) is not None:
        return answer
    same = (end.answer_state for end in entry.attempts if (end.token, end.settle_outcome) == (item.token, item.outcome))
    return next(same, None)


def _past_retention(ended: list[job.Job], now_ms: int) -> list[int]:
    """Numbers of the jobs to remove: by their own retention, else by their queue's age and number [1.12]."""
    gone = [it.number for it in ended if (at := job.prune_at_ms(it)) is not None and at <= now_ms]
    kept: dict[tuple[str, State], int] = {}
    rules = retention.DEFAULT
    for it in sorted(ended, key=attrgetter("finished_at_ms", "number"), reverse=True):
        if job.prune_at_ms(it) is None:
            newer = kept.get((it.queue, it.state), 0)
            too_many = rules.most(it.state) and newer >= rules.most(it.state)
            if too_many or it.finished_at_ms < now_ms - rules.age_ms(it.state):
                gone.append(it.number)
            kept[it.queue, it.state] = newer + 1
    return gone
