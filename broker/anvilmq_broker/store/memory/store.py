"""The memory store: what is committed, and the answers from it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from anvilmq_broker.domain import commands, events, job, limits, receipt, refusals, view
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.memory import schedulers
from anvilmq_broker.store.memory.batch import MemoryBatch
from anvilmq_broker.store.memory.tables import Definition, Entry, Jobs, Journal, Table, place_of

ReceiptKey = tuple[str, str, str]


class MemoryStore:
    """See protocol.Store. Nothing outlives the object; `start` again stands for a restart of the broker."""

    schema_version = 1

    def __init__(self, *, chance: protocol.Chance, limits: limits.Limits = limits.NONE) -> None:
        self.chance = chance
        self.limits = limits
        self.journal: Journal = []
        self.jobs = Jobs(self.journal)
        self.receipts: Table[ReceiptKey, receipt.Receipt] = Table(self.journal)
        self.producers: Table[str, tuple[int, commands.AddedJobs, int]] = Table(self.journal)
        """By id: seq, its answer, time of its last use."""
        self.events: Table[int, tuple[int, list[events.Run]]] = Table(self.journal)
        """By number of the first: time of the commit, the transitions."""
        self.schedulers: Table[str, Definition] = Table(self.journal)
        self.ticks: Table[tuple[int, int], tuple[int, int | None]] = Table(self.journal)
        """By number of the definition and tick: when it fired, number of its job."""
        self.triggers: Table[tuple[int, str], tuple[commands.JobRef, int]] = Table(self.journal)
        """By number of the definition and run_key: the run, time of the call."""
        self.numbers: Table[str, int] = Table(self.journal)
        for name, value in (("job", 1), ("front", -1), ("event", 1), ("scheduler", 1), ("now_ms", 0)):
            self.numbers.assign(name, value)
        self._open = False

    def start(self) -> protocol.Opening:
        """What the engine rebuilds its memory from; a batch left open is dropped, as a crash would."""
        self.undo()
        now = self.numbers["now_ms"]
        jobs = [entry.job for _, entry in sorted(self.jobs.items())]
        return protocol.Opening(
            now_ms=now,
            leases=[_held(it) for it in jobs if it.token is not None],
            parked=[
                protocol.Parked(it.number, it.created_ms, it.run_at_ms)
                for it in jobs
                if it.state is State.DELAYED and it.ready_at_ms is None
            ],
            expires=[
                protocol.Expires(it.number, it.created_ms, it.expires_at_ms)
                for it in jobs
                if it.expires_at_ms and not it.starts and not it.terminal
            ],
            queues={queue: self.jobs.next_ready_at(queue, now) for queue in dict.fromkeys(it.queue for it in jobs)},
            counts=self.counts(),
            ticks=[protocol.ticks_of(kept.it) for kept in self.schedulers.values()],
        )

    def begin(self, now_ms: int) -> MemoryBatch:
        """Open the transaction. After a long step back of the clock, what waits is claimable at the new time."""
        assert not self._open, "one batch at a time"
        self._open = True
        was = self.numbers["now_ms"]
        self.numbers.put("now_ms", now_ms)
        for number, entry in list(self.jobs.items()) if now_ms < was else ():
            at = entry.job.ready_at_ms
            if entry.job.state is State.WAITING and at is not None and now_ms < at <= was:
                self.jobs.put(number, replace(entry, job=replace(entry.job, ready_at_ms=now_ms)))
        return MemoryBatch(self, now_ms)

    def query(self, query: commands.Query, now_ms: int) -> commands.Answer:
        """Answer from committed state."""
        assert not self._open, "no query while a batch is open"
        match query:
            case commands.GetJob():
                return self._get_job(query, now_ms)
            case commands.ListJobs():
                return self._list_jobs(query, now_ms)
            case commands.ListJobLogs():
                return self._list_job_logs(query)
            case commands.GetReceipt():
                found = self.receipts.get((query.queue, query.name, query.key))
                if found is None or not found.live(now_ms):
                    return refusals.receipt_not_found(query.queue, query.name, query.key)
                return commands.ReceiptFound(self._receipt_record(found))
            case commands.ListReceipts():
                return self._list_receipts(query, now_ms)
            case commands.GetScheduler() | commands.ListSchedulers() | commands.ListDefinitions():
                return schedulers.query(self, query, now_ms)
            case _:
                raise TypeError(f"{type(query).__name__} is answered by the engine")

    def counts(self) -> dict[tuple[str, int], int]:
        """Jobs by (queue, state); a pair without jobs is left out."""
        return dict(self.jobs.counts)

    def housekeep(self, idle: bool) -> None:
        """Nothing to keep up."""

    def accepts_adds(self) -> bool:
        """There is always room."""
        return True

    def abandon(self) -> None:
        """Nothing to leave as it is."""

    def stop(self) -> None:
        """Drop an open batch."""
        self.undo()

    def export(self) -> dict[str, list[tuple[object, ...]]]:
        """Everything stored, as `view` lays it out."""
        entries = [entry for _, entry in sorted(self.jobs.items())]
        return {
            "jobs": [view.job_row(entry.job, entry.body) for entry in entries],
            "attempts": [view.attempt_row(entry.job.number, end) for entry in entries for end in entry.attempts],
            "job_logs": [view.log_row(entry.job.number, n, line) for entry in entries for n, line in entry.log],
            "receipts": [msgspec.structs.astuple(it) for _, it in sorted(self.receipts.items())],
            "producers": [(producer_id, *kept) for producer_id, kept in sorted(self.producers.items())],
            "events": [row for first, (at_ms, runs) in sorted(self.events.items())
                       for row in view.event_rows(first, at_ms, runs)],
            "engine": [tuple(self.numbers[name] for name in ("now_ms", "job", "front", "event"))],
            **schedulers.export(self),
        }  # fmt: skip

    def undo(self) -> None:
        """Put back what every write of the batch replaced."""
        while self.journal:
            self.journal.pop()()
        self._open = False

    def commit(self) -> None:
        """Forget how to go back."""
        self.journal.clear()
        self._open = False

    # ------------------------------------------------------------------------------------------- queries

    def _get_job(self, query: commands.GetJob, now_ms: int) -> commands.Answer:
        entry = self.jobs.find(query.ref)
        if entry is None:
            return refusals.job_not_found(query.ref)
        wait = view.wait(entry.job, entry.ended, self._ahead(entry.job, now_ms), now_ms) if query.wait else None
        if query.full:
            return commands.JobFound(view.full_record(entry.job, entry.body, entry.ended, wait))
        return commands.JobFound(replace(view.record(entry.job, entry.body), wait=wait))

    def _ahead(self, of: job.Job, now_ms: int) -> int:
        place = place_of(of)
        line = self.jobs.lines.get(of.queue, [])
        return sum(1 for it in line if it[1] <= now_ms and it < place) if place is not None else 0

    def _list_jobs(self, query: commands.ListJobs, now_ms: int) -> commands.JobPage:
        numbers = sorted(self.jobs, reverse=not query.oldest_first)
        if query.after is not None:
            numbers = [n for n in numbers if (n > query.after) == query.oldest_first and n != query.after]
        looked_at = numbers[: view.MOST_LOOKED_AT]
        found = [n for n in looked_at if self._matches(query.filter, self.jobs[n], now_ms)]
        page = found[: query.limit]
        last = page[-1] if len(found) > query.limit else looked_at[-1] if len(numbers) > len(looked_at) else None
        first_page = query.after is None
        return commands.JobPage(
            [self._shown(self.jobs[n], query.full) for n in page],
            last,
            len(found) if first_page else 0,
            first_page and len(numbers) > len(looked_at),
        )

    def _matches(self, wanted: commands.JobFilter, entry: Entry, now_ms: int) -> bool:
        return view.matches(wanted, entry.job, entry.body.labels, now_ms)

    def _shown(self, entry: Entry, full: bool) -> commands.JobRecord:
        return view.full_record(entry.job, entry.body, entry.ended) if full else view.record(entry.job, entry.body)

    def _list_job_logs(self, query: commands.ListJobLogs) -> commands.Answer:
        entry = self.jobs.find(query.ref)
        if entry is None:
            return refusals.job_not_found(query.ref)
        after = [(number, line) for number, line in entry.log if number > query.after]
        page = after[: query.limit]
        return commands.LogPage([line for _, line in page], page[-1][0] if len(after) > len(page) else None)

    def _receipt_record(self, of: receipt.Receipt) -> commands.ReceiptRecord:
        ref = commands.JobRef(of.number, of.job_created_ms)
        entry = self.jobs.find(ref)
        state = int(entry.job.state) if entry else 0
        return commands.ReceiptRecord(
            of.queue, of.name, of.key, of.singleton, ref, state, of.digest, of.created_ms, of.expires_at_ms
        )

    def _list_receipts(self, query: commands.ListReceipts, now_ms: int) -> commands.ReceiptPage:
        found = [
            it
            for (queue, name, key), it in sorted(self.receipts.items())
            if queue == query.queue
            and view.receipt_matches(query, name, key)
            and (query.after is None or (name, key) > query.after)
            and it.live(now_ms)
        ]
        page = found[: query.limit]
        following = (page[-1].name, page[-1].key) if len(found) > len(page) else None
        return commands.ReceiptPage([self._receipt_record(it) for it in page], following)


def _held(of: job.Job) -> protocol.HeldLease:
    assert of.token is not None
    return protocol.HeldLease(
        of.number,
        of.created_ms,
        of.token,
        of.queue,
        of.worker_id,
        of.claim_id,
        of.policy.lease_ms,
        of.timeout_at_ms,
        of.started_at_ms,
        of.cancel_requested,
    )
