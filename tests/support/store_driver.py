"""Drives a store as the engine does, one batch a call, so that a test reads as a story."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.protocol import Applied, Slot
from tests.support import bundles
from tests.support.clock import FakeClock

Rows = dict[str, list[tuple[object, ...]]]


class StoreDriver:
    """A started store and the clock it is given. open_store: makes the store, again over the same data at a reopening."""

    def __init__(self, open_store: Callable[[], protocol.Store], clock: FakeClock) -> None:
        self._open_store = open_store
        self.clock = clock
        self.store = open_store()
        self.opening = self.store.start()
        self.effects: list[protocol.Effect] = []
        """Of the last batch."""

    @property
    def now_ms(self) -> int:
        """The time that the next batch is given."""
        return self.clock.wall_ms()

    def reopen(self) -> protocol.Opening:
        """Stop the broker cleanly and start another one on its data."""
        self.store.stop()
        self.store = self._open_store()
        self.opening = self.store.start()
        return self.opening

    # ------------------------------------------------------------------------------------------- commands

    def batch(self, *batch: commands.Command, idle: Sequence[Slot] = ()) -> list[Applied]:
        """One committed transaction. idle: slots that any add may take."""
        free = list(idle)
        opened = self.store.begin(self.now_ms)
        applied = opened.apply(batch, lambda _: free.pop(0) if free else None)
        opened.commit()
        self.effects = [effect for one in applied for effect in one.effects]
        return applied

    def send(self, command: commands.Command, idle: Sequence[Slot] = ()) -> Any:
        """The outcome of one command in a batch of its own."""
        return self.batch(command, idle=idle)[0].outcome

    def add(self, *jobs: commands.NewJob, idle: Sequence[Slot] = ()) -> list[commands.JobRef]:
        """Add the jobs all or nothing; each one's name in item order, an earlier job's where a key met one."""
        added = self.send(commands.AddJobs(list(jobs)), idle)
        assert isinstance(added, commands.AddedJobs), added
        return refs(added, len(jobs))

    def add_one(self, *, idle: Sequence[Slot] = (), **fields: Any) -> commands.JobRef:
        """Add one job made by bundles.new_job."""
        return self.add(bundles.new_job(**fields), idle=idle)[0]

    def claim(
        self, jobs: int = 1, queue: str = bundles.QUEUE, worker_id: str = bundles.WORKER
    ) -> list[commands.Delivery]:
        """Start at most so many jobs, as dispatch does at the end of a batch."""
        opened = self.store.begin(self.now_ms)
        started = opened.claim(queue, bundles.slots(jobs, worker_id))
        opened.commit()
        self.effects = list(started)
        return [one.delivery for one in started]

    def start(self, queue: str = bundles.QUEUE, worker_id: str = bundles.WORKER) -> commands.Delivery:
        """Start the one job that is next."""
        (delivery,) = self.claim(1, queue, worker_id)
        return delivery

    def settle(self, *items: commands.Settlement) -> commands.Settled:
        """Settle the attempts in one command."""
        settled = self.send(commands.Settle(list(items)))
        assert isinstance(settled, commands.Settled)
        return settled

    def settle_one(self, item: commands.Settlement) -> State:
        """Settle an attempt whose lease is good; the state of its job afterwards."""
        settled = self.settle(item)
        assert not settled.refused, settled.refused
        return State(settled.states[0])

    def reap(self, **lists: Any) -> None:
        """What the engine's timers would find: stalled, timed_out, expired, parked, undelivered."""
        assert self.send(commands.Reap(**lists)) == commands.Done()

    def stall(self, delivery: commands.Delivery) -> None:
        """Let the lease run out."""
        self.reap(stalled=[bundles.lease(delivery)])

    def cancel(self, job: commands.JobRef, reason: str = "") -> Any:
        """Cancel the job."""
        return self.send(commands.CancelJob(job, reason))

    def prune(self, limit: int = 500) -> commands.Pruned:
        """One slice of retention."""
        pruned = self.send(commands.Prune(limit))
        assert isinstance(pruned, commands.Pruned)
        return pruned

    def prune_all(self) -> int:
        """Everything that retention has passed; the number of removed jobs."""
        jobs, more = 0, True
        while more:
            pruned = self.prune()
            jobs, more = jobs + pruned.jobs, pruned.more
        return jobs

    # ------------------------------------------------------------------------------------------- queries

    def query(self, query: commands.Query) -> Any:
        """The answer, from what is committed."""
        return self.store.query(query, self.now_ms)

    def job(self, job: commands.JobRef) -> commands.JobRecord:
        """The job with all that belongs to it."""
        found = self.query(commands.GetJob(job, wait=True))
        assert isinstance(found, commands.JobFound), found
        return found.job

    def state(self, job: commands.JobRef) -> State:
        """The stored state of the job."""
        return State(self.job(job).state)

    def exists(self, job: commands.JobRef) -> bool:
        """Whether the job is still there."""
        return not isinstance(self.query(commands.GetJob(job, full=False)), Refused)

    def next_ready_at(self, queue: str = bundles.QUEUE) -> int | None:
        """What a batch says of the queue's line now."""
        opened = self.store.begin(self.now_ms)
        at = opened.next_ready_at(queue)
        opened.rollback()
        return at

    def rows(self) -> Rows:
        """Everything stored but the clock of the last commit."""
        exported = self.store.export()
        return {table: exported[table] for table in exported if table != "engine"}


def refs(added: commands.AddedJobs, items: int) -> list[commands.JobRef]:
    """The job of each item. items: how many were sent, none of them refused."""
    assert not added.refused, added.refused
    met = {earlier.index: earlier.ref for earlier in added.earlier}
    numbers = iter(range(added.first_number, added.first_number + items))
    return [met[index] if index in met else commands.JobRef(next(numbers), added.created_ms) for index in range(items)]
