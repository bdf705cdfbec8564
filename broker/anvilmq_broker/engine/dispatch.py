"""Credit × claimable jobs → started jobs: which worker gets the next job of which queue. Hot file: terse on purpose.

The least recently served queue goes first, and in it the pool that was served or given credit longest ago. A queue's
`ready_at` is a hint, never above the truth: a hint that is too low costs one statement, so hints may be taken in
before the commit. Lines without unmet credit, or without a claimable job, cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from anvilmq_broker.engine.link_server import Peer
from anvilmq_broker.engine.timers import Timers
from anvilmq_broker.store import protocol

MAX_CREDIT: Final = 1_000
CLAIM_SLOTS: Final = 64
"""Slots of one pass; the widest statement of the stores."""
MAX_STARTED: Final = 1_000
MAX_STARTED_BYTES: Final = 8 << 20


class Line:
    """A queue as dispatch sees it. ring: pools that may have credit. pools: all pools that serve it."""

    __slots__ = ("name", "pools", "ready_at", "ring")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready_at: int | None = None
        self.ring: dict[Pool, None] = {}
        self.pools = 0


class Pool:
    """Slots that serve some queues: a pool of a session, or the one grant of a waiting ClaimJobs."""

    __slots__ = ("concurrency", "credit", "id", "in_a_row", "lines", "peer", "queues", "silent", "slot")

    def __init__(self, id: int, peer: Peer, queues: list[str], slot: protocol.Slot) -> None:
        self.id = id
        self.peer = peer
        self.queues = queues
        self.slot = slot
        self.concurrency = 0
        self.credit = 0
        self.in_a_row = 0
        self.silent = False
        self.lines: list[Line] = []


class Dispatcher:
    """All credit and all lines."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._hot: dict[Line, None] = {}
        self._later: Timers[str] = Timers()
        self._by_handle: dict[int, Pool] = {}
        self._congested: dict[Pool, None] = {}
        self.taken: dict[int, int] = {}
        """By handle: slots taken in this batch; whoever sees one become a started job counts it down."""

    # ----------------------------------------------------------------------------------------------- pools

    def open(self, pool: Pool) -> None:
        """A pool without credit."""
        self._by_handle[pool.slot.handle] = pool
        for queue in dict.fromkeys(pool.queues):
            line = self._line(queue)
            line.pools += 1
            pool.lines.append(line)

    def close(self, pool: Pool) -> None:
        """The pool is gone, its credit with it; unknown ones are no error."""
        if self._by_handle.pop(pool.slot.handle, None) is None:
            return
        pool.credit = 0
        self._congested.pop(pool, None)
        for line in pool.lines:
            line.pools -= 1
            line.ring.pop(pool, None)

    def find(self, handle: int) -> Pool | None:
        """The open pool that gave this slot."""
        return self._by_handle.get(handle)

    def add_credit(self, pool: Pool, jobs: int) -> None:
        """More jobs may be sent to this pool."""
        pool.credit = min(MAX_CREDIT, pool.credit + jobs)
        if pool.credit and pool.slot.handle in self._by_handle:
            for line in pool.lines:
                if pool not in line.ring:
                    line.ring[pool] = None
                    if line.ready_at is not None:
                        self._watch(line)

    def take_back(self, pool: Pool) -> None:
        """No job may be sent to this pool until it is given credit again."""
        pool.credit = 0

    def hush(self, pool: Pool) -> None:
        """Its worker has let a lease run out: send it nothing until it is heard of. Its credit stays."""
        pool.silent = True

    def heard(self, pool: Pool) -> None:
        """Its worker is there."""
        if pool.silent:
            pool.silent = False
            self.add_credit(pool, 0)

    def is_served(self, queue: str) -> bool:
        """Whether any pool serves the queue; its credit does not count [9.9]."""
        line = self._lines.get(queue)
        return line is not None and line.pools > 0

    # --------------------------------------------------------------------------------------------- arrivals

    def queued(self, queue: str, ready_at_ms: int) -> None:
        """A job has joined the queue's line, claimable from this moment on."""
        line = self._lines.get(queue) or self._line(queue)
        if line.ready_at is None or ready_at_ms < line.ready_at:
            line.ready_at = ready_at_ms
            if line.ring:
                self._watch(line)

    def restore(self, queue: str, ready_at_ms: int | None) -> None:
        """What the store says of the line at start."""
        self._line(queue).ready_at = ready_at_ms

    def doubt(self) -> None:
        """The clock was set back, or a batch undone: every line may be claimable."""
        for line in self._lines.values():
            line.ready_at = 0
            if line.ring:
                self._watch(line)

    # ------------------------------------------------------------------------------------------ direct starts

    def take_slot(self, queue: str) -> protocol.Slot | None:
        """`protocol.TakeSlot`: a slot of the pool whose turn it is."""
        line = self._lines.get(queue)
        if line is None or not line.ring or (pool := self._next_pool(line)) is None:
            return None
        self._serve(line, pool)
        slot, taken = pool.slot, self.taken
        handle = slot.handle
        taken[handle] = taken.get(handle, 0) + 1
        return slot

    def give_back_untaken(self) -> None:
        """Slots that were taken by an add which was refused in the end are free again."""
        if self.taken:
            for handle, count in self.taken.items():
                if count:
                    self.give_back(handle, count)
            self.taken.clear()

    def give_back(self, handle: int, count: int = 1) -> None:
        """What these slots were taken for did not happen."""
        pool = self._by_handle.get(handle)
        if pool is not None:
            self.add_credit(pool, count)

    # -------------------------------------------------------------------------------------------- dispatching

    def wanted(self, now_ms: int) -> bool:
        """Whether some line may be claimable and has unmet credit; asks no store."""
        if self._congested:
            self._recover()
        if self._later:
            for queue in self._later.pop_due(now_ms, 1 << 30):
                self._hot[self._lines[queue]] = None
        hot = self._hot
        for line in [line for line in hot if self._next_pool(line) is None]:
            del hot[line]
        return bool(hot)

    def next_ms(self) -> float | None:
        """When the next line with unmet credit becomes claimable."""
        return self._later.next_ms()

    def dispatch(
        self, batch: protocol.Batch, now_ms: int, in_time: Callable[[], bool], effects: list[protocol.Effect]
    ) -> None:
        """Let idle workers claim; what they start is put behind `effects`, also when a claim fails.

        What is left when the bounds of a batch are reached stays wanted.
        """
        jobs = size = 0
        while jobs < MAX_STARTED and size < MAX_STARTED_BYTES and in_time() and self.wanted(now_ms):
            plan = self._plan()
            try:
                while plan:
                    line, slots = next(iter(plan.items()))
                    started = batch.claim(line.name, slots)
                    del plan[line]
                    effects += started
                    jobs += len(started)
                    for item in started:
                        size += len(item.delivery.data)
                    if len(started) < len(slots):
                        self._exhaust(batch, line, slots[len(started) :], now_ms)
            finally:
                for slots in plan.values():
                    self._return(slots)

    def _plan(self) -> dict[Line, list[protocol.Slot]]:
        plan: dict[Line, list[protocol.Slot]] = {}
        left, hot = CLAIM_SLOTS, self._hot
        while left and hot:
            line = next(iter(hot))
            del hot[line]
            pool = self._next_pool(line)
            if pool is None:
                continue
            # To the end: the others are served first.
            hot[line] = None
            self._serve(line, pool)
            plan.setdefault(line, []).append(pool.slot)
            left -= 1
        return plan

    def _exhaust(self, batch: protocol.Batch, line: Line, unused: list[protocol.Slot], now_ms: int) -> None:
        self._hot.pop(line, None)
        line.ready_at = batch.next_ready_at(line.name)
        if line.ready_at is not None and line.ready_at <= now_ms:
            # The store gave less than there is; asking again in this batch could go on for ever.
            line.ready_at = now_ms + 1
        self._return(unused)
        if line.ready_at is not None and line.ring:
            self._watch(line)

    def _return(self, unused: list[protocol.Slot]) -> None:
        for slot in unused:
            self.give_back(slot.handle)

    def _next_pool(self, line: Line) -> Pool | None:
        """The pool whose turn it is; those without credit, silent, or whose peer does not read, leave the ring."""
        ring = line.ring
        while ring:
            pool = next(iter(ring))
            if pool.credit and not pool.silent and not pool.peer.congested:
                return pool
            del ring[pool]
            if pool.credit and not pool.silent:
                self._congested[pool] = None
        return None

    def _serve(self, line: Line, pool: Pool) -> None:
        """Use up one of the pool's credit; then it is another's turn.

        A pool that prefetches (credit beyond its slots: its jobs are short) keeps its turn for as many jobs as it has
        slots. Spread one by one, short jobs would travel in frames of one, which cost more than the jobs.
        """
        pool.credit -= 1
        pool.in_a_row += 1
        if pool.credit > pool.concurrency and pool.in_a_row < pool.concurrency:
            return
        pool.in_a_row = 0
        del line.ring[pool]
        if pool.credit:
            line.ring[pool] = None

    def _recover(self) -> None:
        for pool in [pool for pool in self._congested if not pool.peer.congested]:
            del self._congested[pool]
            self.add_credit(pool, 0)

    def _watch(self, line: Line) -> None:
        """Look at this line at its `ready_at`; 0 is now."""
        assert line.ready_at is not None
        if line.ready_at:
            self._later.set(line.name, line.ready_at)
        else:
            self._hot[line] = None

    def _line(self, queue: str) -> Line:
        line = self._lines.get(queue)
        if line is None:
            line = self._lines[queue] = Line(queue)
        return line
