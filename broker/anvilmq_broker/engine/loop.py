"""The engine: take every command that has arrived, decide and write all in one transaction, commit, answer, repeat.

One thread, no locks, no polling; everything durable is a command, everything in memory follows the commit. A test
drives it by `step`. Hot file: terse on purpose. See DESIGN.md for the invariant and each failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from anvilmq_broker.clock import BrokerTime, Clock
from anvilmq_broker.domain import commands, errors
from anvilmq_broker.engine import link
from anvilmq_broker.engine.inbox import MAX_BYTES, Inbox
from anvilmq_broker.engine.link_server import Hub
from anvilmq_broker.engine.memory import Memory
from anvilmq_broker.engine.metrics import Snapshot
from anvilmq_broker.engine.pruner import Pruner
from anvilmq_broker.engine.reader import Reader
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.engine.turn import Item, Turn, pieces
from anvilmq_broker.engine.waits import Watch
from anvilmq_broker.store import protocol

MAX_ITEMS: Final = 1_000
"""Jobs and settlements of a batch; the last command may pass it."""
MAX_APPLY_MS: Final = 20
"""Time to apply what has arrived, and again to dispatch, and again to answer queries."""
LONGEST_WAIT_MS: Final = 10_000
"""A wall clock set forward is noticed after this time at the latest."""
IDLE_MS: Final = 1_000
"""Quiet time after which the store may do its upkeep for idle hours."""
STANDSTILL_MS: Final = 1_000
"""A turn that was late by more gives every lease the time that was lost."""
STORAGE_FULL_RETRY_AFTER_MS: Final = 5_000
_STORAGE_FULL: Final = errors.Refused(
    "STORAGE_FULL",
    "the volume has too little free space for new jobs; enlarge it, or wait until jobs were worked off and pruned",
    retry_after_ms=STORAGE_FULL_RETRY_AFTER_MS,
)
_ADDING: Final = (commands.AddJobs, commands.UpsertScheduler, commands.TriggerScheduler, commands.FireDue)


class Engine:
    """The loop of one broker over one store. store: started by the caller. durability: 1 full, 2 relaxed."""

    def __init__(
        self, store: protocol.Store, hub: Hub, clock: Clock, telemetry: Telemetry, durability: int = 1
    ) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._telemetry = telemetry
        self._time = BrokerTime(clock)
        self.memory = Memory(clock, telemetry)
        self._inbox = Inbox(hub, self.memory, clock, telemetry)
        self._reader = Reader(store, self.memory.leases, self.memory.sessions, durability)
        self._pruner = Pruner(clock)
        self._upkeep_ms: float | None = None
        self._turn_ms = 0.0

    def start(self, opening: protocol.Opening) -> None:
        """Rebuild memory from what the store has found; the first `step` then serves."""
        self._time = BrokerTime(self._clock, opening.now_ms)
        self.memory.restore(opening, self._time.now_ms())
        self._telemetry.serving(self._store.schema_version, len(opening.leases))

    def wait_ms(self) -> float:
        """How long nothing will be due; 0: something is."""
        memory = self.memory
        if memory.is_due or self._hub.pending() or memory.dispatcher.wanted(self._time.now_ms()):
            return 0
        wait, mono = float(LONGEST_WAIT_MS), self._clock.monotonic_ms()
        wall_ms = memory.next_wall_ms()
        if wall_ms is not None:
            wait = min(wait, self._time.until_ms(int(wall_ms)))
        for due_ms in (memory.next_monotonic_ms(), self._pruner.next_ms(), self._upkeep_ms):
            if due_ms is not None:
                wait = min(wait, max(0.0, due_ms - mono))
        return wait

    def step(self, wait_ms: float | None = 0) -> None:
        """One turn: wait for a frame at most so long (None: until something is due), then do all there is to do.

        Raises errors.StoreError when the outcome of a batch is unknown: nothing of it was answered, and the engine
        must not be used any more.
        """
        self._wait(self.wait_ms() if wait_ms is None else wait_ms)
        lost, self._hub.lost = self._hub.lost, []
        for peer in lost:
            self.memory.drop_peer(peer)
        turn = Turn(self._clock.monotonic_ms())
        try:
            self._transact(turn, self._chunks(turn))
        except errors.StorageFull:
            # Rolled back: without its adds the batch may fit, and claims, settlements, pruning must go on.
            self._telemetry.storage_full()
            self.memory.undo(turn)
            self.memory.scheduler.undo(self._time.now_ms())
            turn.items = self._refuse_adds(turn, turn.items)
            self._transact(turn, [turn.items])
        self._answer(turn)
        self._read()
        self._keep_house(turn.wrote)
        self._turn_ms = self._clock.monotonic_ms() - turn.started_ms

    def snapshot(self) -> Snapshot:
        """The metrics of this process."""
        memory = self.memory
        return self._telemetry.snapshot(
            self._store.counts(), memory.sessions, memory.leases, memory.scheduler.standings()
        )

    # ---------------------------------------------------------------------------------------- one batch

    def _transact(self, turn: Turn, chunks: Iterable[list[Item]]) -> None:
        now_ms = self._time.now_ms()
        if self._time.stepped_back():
            self._telemetry.stepped_back()
            self.memory.dispatcher.doubt()
            self.memory.scheduler.stepped_back(now_ms)
        batch: protocol.Batch | None = None
        try:
            for chunk in chunks:
                if chunk:
                    batch = batch or self._store.begin(now_ms)
                    self._apply(batch, turn, chunk)
            if self.memory.dispatcher.wanted(now_ms):
                batch = batch or self._store.begin(now_ms)
                self._dispatch(batch, turn, now_ms)
            if batch is not None:
                self._commit(batch, turn)
        except errors.StorageFull:
            if batch is not None:
                batch.rollback()
            raise
        if batch is not None:
            turn.wrote = True
            self.memory.follow(turn, now_ms)

    def _chunks(self, turn: Turn) -> Iterator[list[Item]]:
        """What has arrived, in pieces, while the bounds of a batch allow; then what is due."""
        while turn.size < MAX_ITEMS and turn.bytes < MAX_BYTES and self._in_time(turn.started_ms):
            taken = turn.size
            chunk = self._inbox.take(turn)
            if turn.size == taken:
                break
            if chunk and not self._store.accepts_adds():
                chunk = self._refuse_adds(turn, chunk)
            turn.items += chunk
            yield chunk
        due = self._due(turn)
        turn.items += due
        began = self._clock.monotonic_ms()
        yield due
        self.memory.scheduler.took(self._clock.monotonic_ms() - began)

    def _due(self, turn: Turn) -> list[Item]:
        """What the timers found, as the engine's own commands."""
        items: list[Item] = []
        reap = self.memory.reap(self._time.now_ms(), turn)
        if reap is not None:
            items.append(Item(None, 0, reap))
        due = self.memory.scheduler.due(self._time.now_ms(), self._store.accepts_adds)
        items += [Item(None, 0, command) for command in due]
        if self._pruner.due(busy=turn.size > 0):
            items.append(Item(None, 0, commands.Prune()))
        return items

    def _apply(self, batch: protocol.Batch, turn: Turn, chunk: list[Item]) -> None:
        memory = self.memory
        applied = batch.apply([item.command for item in chunk], memory.dispatcher.take_slot)
        for item, (outcome, effects) in zip(chunk, applied, strict=True):
            memory.hint(effects)
            turn.effects += effects
            if item.peer is not None:
                if isinstance(outcome, commands.Claimed):
                    self._claimed(batch, turn, item, outcome)
                else:
                    turn.answers.append((item.peer, item.call, outcome))
            elif isinstance(outcome, commands.Pruned):
                self._pruner.pruned(outcome)
            elif isinstance(outcome, commands.Reanchored):
                memory.scheduler.reanchored(outcome)
        memory.dispatcher.give_back_untaken()

    def _dispatch(self, batch: protocol.Batch, turn: Turn, now_ms: int) -> None:
        # With time of its own: adds without end must not keep workers idle.
        began = self._clock.monotonic_ms()
        self.memory.dispatcher.dispatch(batch, now_ms, lambda: self._in_time(began), turn.effects)

    def _commit(self, batch: protocol.Batch, turn: Turn) -> None:
        if self.memory.claims:
            self._gather_claims(batch, turn)
        began = self._clock.monotonic_ms()
        batch.commit()
        self._telemetry.committed((self._clock.monotonic_ms() - began) / 1000, len(turn.items))

    def _in_time(self, began_ms: float) -> bool:
        return self._clock.monotonic_ms() - began_ms < MAX_APPLY_MS

    def _refuse_adds(self, turn: Turn, items: list[Item]) -> list[Item]:
        """The items but for those that add, which are answered, and ticks, which wait."""
        kept = []
        for item in items:
            if not isinstance(item.command, _ADDING):
                kept.append(item)
            elif item.peer is not None:
                turn.answers.append((item.peer, item.call, _STORAGE_FULL))
        return kept

    # ------------------------------------------------------------------------------- around the batch

    def _wait(self, wait_ms: float) -> None:
        """Wait; if the process stood still meanwhile, workers could not renew: their leases get the time back."""
        began = self._clock.monotonic_ms()
        self._hub.poll(wait_ms)
        late_ms = self._turn_ms + self._clock.monotonic_ms() - began - wait_ms
        if late_ms > STANDSTILL_MS:
            self._telemetry.stood_still(late_ms)
            self.memory.leases.postpone(late_ms)

    def _answer(self, turn: Turn) -> None:
        """Everything of the turn leaves now; each peer's in one send."""
        for waiting in self.memory.claims.pop_overdue(self._clock.monotonic_ms()):
            turn.answers.append((waiting.peer, waiting.call, commands.Claimed([])))
        for peer, call, reply in turn.answers:
            if call:
                peer.send(link.encode(call, reply))
        for peer, notice in (*turn.said.before, *turn.said.after):
            peer.send(link.encode(0, notice))
        self._hub.flush()

    def _read(self) -> None:
        """Answer queries from what is committed, as long as a batch may take; the rest after the next batch."""
        memory = self.memory
        memory.ended_waits()
        if not memory.queries:
            return
        began, now_ms = self._clock.monotonic_ms(), self._time.now_ms()
        while memory.queries and self._in_time(began):
            peer, call, query = memory.queries.popleft()
            if peer.closed:
                continue
            answer = self._reader.answer(query, now_ms)
            if isinstance(query, commands.WaitJob) and self._reader.must_wait(query, answer):
                memory.watches.open(Watch(peer, call, query), began)
            else:
                peer.send(link.encode(call, answer))
        self._hub.flush()

    def _keep_house(self, wrote: bool) -> None:
        mono = self._clock.monotonic_ms()
        if wrote:
            self._upkeep_ms = mono + IDLE_MS
            self._store.housekeep(idle=False)
        elif self._upkeep_ms is not None and self._upkeep_ms <= mono and not self._hub.pending():
            self._upkeep_ms = None
            self._store.housekeep(idle=True)

    # -------------------------------------------------------------------------------- ClaimJobs, waiting

    def _claimed(self, batch: protocol.Batch, turn: Turn, item: Item, outcome: commands.Claimed) -> None:
        claim, peer = item.command, item.peer
        assert isinstance(claim, commands.Claim)
        assert peer is not None
        if outcome.deliveries or not claim.wait_ms or peer.closed:
            kept = self._cut(batch, turn, outcome.deliveries)
            turn.answers.append((peer, item.call, commands.Claimed(kept)))
            return
        slot = self.memory.sessions.slot(claim.worker.worker_id, claim.claim_id)
        replaced = self.memory.claims.open(peer, item.call, claim, slot, self._clock.monotonic_ms())
        if replaced is not None:
            turn.answers.append((replaced.peer, replaced.call, commands.Claimed([])))

    def _gather_claims(self, batch: protocol.Batch, turn: Turn) -> None:
        """The waiting ones that got something are answered with it after the commit."""
        for effect in turn.effects:
            if isinstance(effect, protocol.Started) and effect.slot.claim_id and effect.slot.handle:
                waiting = self.memory.claims.of_handle(effect.slot.handle)
                if waiting is not None:
                    turn.claims.setdefault(waiting, []).append(effect.delivery)
        for waiting, started in turn.claims.items():
            turn.claims[waiting] = self._cut(batch, turn, started)

    def _cut(self, batch: protocol.Batch, turn: Turn, started: list[commands.Delivery]) -> list[commands.Delivery]:
        """What fits into one answer; the rest goes back uncounted, in the same transaction."""
        kept = next(pieces(started), [])
        if len(kept) < len(started):
            left = [commands.LeaseRef(d.number, d.created_ms, d.token) for d in reversed(started[len(kept) :])]
            ((_, effects),) = batch.apply([commands.Reap(undelivered=left)], self.memory.dispatcher.take_slot)
            self.memory.hint(effects)
            turn.effects += effects
        return kept
