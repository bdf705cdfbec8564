"""The engine: take every command that has arrived, decide and write all in one transaction, commit, answer, repeat.

One thread, no locks, no polling; everything durable is a command, everything in memory follows the commit. A test
drives it by `step`. Hot file: terse on purpose. See DESIGN.md for the invariant and each failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, cast, get_args

import msgspec

from anvilmq_broker.clock import BrokerTime, Clock
from anvilmq_broker.domain import commands, errors
from anvilmq_broker.domain.state import AttemptOutcome, InterruptCause
from anvilmq_broker.engine import link
from anvilmq_broker.engine.dispatch import Dispatcher
from anvilmq_broker.engine.leases import Lease, Leases
from anvilmq_broker.engine.link_server import Hub, Peer
from anvilmq_broker.engine.metrics import Snapshot
from anvilmq_broker.engine.pruner import Pruner
from anvilmq_broker.engine.reader import Reader
from anvilmq_broker.engine.sessions import Said, Session, Sessions
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.engine.timers import Timers
from anvilmq_broker.engine.waits import WaitingClaim, WaitingClaims, Watch, Watches
from anvilmq_broker.store import protocol

MAX_ITEMS: Final = 1_000
MAX_BYTES: Final = 8 << 20
MAX_APPLY_MS: Final = 20
CHUNK_ITEMS: Final = 256
"""Items applied between two looks at the clock."""
MAX_REAPED: Final = 500
MAX_FRAME_BYTES: Final = 4 << 20
"""Deliveries of one frame; one larger delivery goes alone."""
LONGEST_WAIT_MS: Final = 10_000
"""A wall clock set forward is noticed after this time at the latest."""
IDLE_MS: Final = 1_000
"""Quiet time after which the store may do its upkeep for idle hours."""
STORAGE_FULL_RETRY_AFTER_MS: Final = 5_000

JobKey = tuple[int, int]
QUERIES: Final = get_args(commands.Query)


class Item(NamedTuple):
    """A command to carry out; peer None: the engine's own."""

    peer: Peer | None
    call: int
    command: commands.Command


class Turn:
    """What one batch has gathered; nothing of it is in memory or on its way before the commit."""

    __slots__ = ("answers", "bytes", "claims", "effects", "items", "reaped", "said", "size", "started_ms", "wrote")

    def __init__(self, started_ms: float) -> None:
        self.started_ms = started_ms
        self.items: list[Item] = []
        self.size = 0
        self.bytes = 0
        self.wrote = False
        self.answers: list[tuple[Peer, int, link.Reply]] = []
        self.effects: list[protocol.Effect] = []
        self.reaped: list[str] = []
        self.said = Said([], [])
        self.claims: dict[WaitingClaim, list[commands.Delivery]] = {}


class Engine:
    """The loop of one broker over one store.

    store: not started. instance_id: fresh at each start of the process. Nothing happens before `start`.
    """

    def __init__(
        self, store: protocol.Store, hub: Hub, clock: Clock, telemetry: Telemetry, durability: int = 1
    ) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._telemetry = telemetry
        self._time = BrokerTime(clock)
        self._leases = Leases(clock)
        self._dispatcher = Dispatcher()
        self._sessions = Sessions(self._dispatcher, self._leases, clock)
        self._claims = WaitingClaims(self._dispatcher)
        self._watches = Watches()
        self._reader = Reader(store, self._leases, self._sessions, durability)
        self._pruner = Pruner(clock)
        self._timeouts: Timers[str] = Timers()
        self._expiries: Timers[JobKey] = Timers()
        self._parked: Timers[JobKey] = Timers()
        self._undelivered: list[commands.LeaseRef] = []
        self._queries: deque[tuple[Peer, int, commands.Query]] = deque()
        self._upkeep_ms: float | None = None
        self._handlers: dict[type, Callable[[Peer, int, Any, Turn], Item | None]] = {
            commands.Renew: self._renew,
            commands.OpenSession: self._open_session,
            commands.AddCredit: self._add_credit,
            commands.DrainSession: self._drain_session,
            commands.CloseSession: self._close_session,
            commands.Undeliver: self._undeliver,
            commands.SessionSeen: self._seen,
            commands.DrainWorker: self._drain_worker,
            commands.Claim: self._claim,
            link.Forget: self._forget,
        }

    # ------------------------------------------------------------------------------------------- life

    def start(self, opening: protocol.Opening) -> None:
        """Rebuild memory from what the store has found. Every active job gets a fresh full lease [1.5]."""
        self._time = BrokerTime(self._clock, opening.now_ms)
        mono = self._clock.monotonic_ms()
        for held in opening.leases:
            self._leases.restore(held, mono)
            if held.timeout_at_ms:
                self._timeouts.set(held.token, held.timeout_at_ms)
        for parked in opening.parked:
            self._parked.set((parked.number, parked.created_ms), parked.at_ms)
        for expires in opening.expires:
            self._expiries.set((expires.number, expires.created_ms), expires.at_ms)
        for queue, ready_at_ms in opening.queues.items():
            self._dispatcher.restore(queue, ready_at_ms)
        self._telemetry.serving(self._store.schema_version, len(opening.leases))

    def wait_ms(self) -> float:
        """How long nothing will be due; 0: something is."""
        if self._queries or self._undelivered or self._hub.pending():
            return 0
        now_ms, mono = self._time.now_ms(), self._clock.monotonic_ms()
        if self._dispatcher.wanted(now_ms):
            return 0
        wait = float(LONGEST_WAIT_MS)
        for due_ms in (
            self._dispatcher.next_ms(),
            self._timeouts.next_ms(),
            self._expiries.next_ms(),
            self._parked.next_ms(),
        ):
            if due_ms is not None:
                wait = min(wait, self._time.until_ms(int(due_ms)))
        for due_ms in (
            self._leases.next_ms(),
            self._claims.next_ms(),
            self._watches.next_ms(),
            self._pruner.next_ms(),
            self._upkeep_ms,
        ):
            if due_ms is not None:
                wait = min(wait, max(0.0, due_ms - mono))
        return wait

    def step(self, wait_ms: float | None = 0) -> None:
        """One turn: wait for a frame at most so long (None: until something is due), then do all there is to do.

        Raises errors.StoreError when the outcome of a batch is unknown: nothing of it was answered, and the engine
        must not be used any more.
        """
        self._hub.poll(self.wait_ms() if wait_ms is None else wait_ms)
        if self._hub.lost:
            self._drop_lost()
        turn = Turn(self._clock.monotonic_ms())
        self._carry_out(turn)
        self._answer(turn)
        self._hub.flush()
        self._read()
        self._keep_house(turn.wrote)

    def snapshot(self) -> Snapshot:
        """The metrics of this process."""
        return self._telemetry.snapshot(self._store.counts(), self._sessions, self._leases)

    # ---------------------------------------------------------------------------------------- one batch

    def _carry_out(self, turn: Turn) -> None:
        try:
            self._transact(turn, again=False)
        except errors.StorageFull:
            # Rolled back by the store: without its adds the batch may fit, and claims, settlements, pruning must go on.
            self._telemetry.storage_full()
            self._undo(turn)
            self._transact(turn, again=True)

    def _transact(self, turn: Turn, again: bool) -> None:
        now_ms = self._time.now_ms()
        if self._time.stepped_back():
            self._telemetry.stepped_back()
            self._dispatcher.doubt()
        batch: protocol.Batch | None = None
        try:
            chunks: Iterable[list[Item]] = [self._without_adds(turn)] if again else self._chunks(turn)
            for chunk in chunks:
                if chunk:
                    batch = batch or self._store.begin(now_ms)
                    self._apply(batch, turn, chunk)
            if self._dispatcher.wanted(now_ms):
                batch = batch or self._store.begin(now_ms)
                self._dispatcher.dispatch(batch, now_ms, lambda: self._in_time(turn), turn.effects)
            if batch is not None:
                if self._claims:
                    self._gather_claims(batch, turn)
                began = self._clock.monotonic_ms()
                batch.commit()
                self._telemetry.committed((self._clock.monotonic_ms() - began) / 1000, len(turn.items))
        except errors.StorageFull:
            if batch is not None:
                batch.rollback()
            raise
        turn.wrote = batch is not None
        self._remember(turn, now_ms)

    def _chunks(self, turn: Turn) -> Iterator[list[Item]]:
        """What has arrived, in pieces, while the bounds of a batch allow; then what is due."""
        while turn.size < MAX_ITEMS and turn.bytes < MAX_BYTES and self._in_time(turn):
            chunk = self._take(turn)
            if not chunk:
                break
            yield chunk
        yield self._due(turn)

    def _in_time(self, turn: Turn) -> bool:
        return self._clock.monotonic_ms() - turn.started_ms < MAX_APPLY_MS

    def _take(self, turn: Turn) -> list[Item]:
        """Decode frames, carry out what is memory's alone, and collect the commands, settlements first.

        Nobody has an answer to any of them yet, so their order is ours; settlements free slots, and are cheapest in
        one run. What one connection sent of one kind keeps its order. Only reports go before: an attempt's last words
        are sent before its settlement, and behind it their token would be dead.
        """
        reports: list[Item] = []
        settlements: list[Item] = []
        others: list[Item] = []
        size, handlers, hub = 0, self._handlers, self._hub
        while size < CHUNK_ITEMS and turn.bytes < MAX_BYTES and (frame := hub.take()) is not None:
            peer, payload = frame
            turn.bytes += len(payload)
            try:
                call, message = link.decode_message(payload)
            except link.Breach as breach:
                self._telemetry.gateway_breach(peer.id, breach)
                hub.drop(peer)
                continue
            if isinstance(message, commands.AddJobs):
                others.append(Item(peer, call, message))
                size += len(message.jobs)
            elif isinstance(message, commands.Settle):
                settlements.append(Item(peer, call, message))
                size += len(message.items)
            else:
                size += 1
                handler = handlers.get(type(message))
                if handler is not None:
                    item = handler(peer, call, message, turn)
                    if item is not None:
                        others.append(item)
                elif isinstance(message, QUERIES):
                    self._queries.append((peer, call, message))
                elif type(message) is commands.Report:
                    reports.append(Item(peer, call, message))
                else:
                    others.append(Item(peer, call, cast("commands.Command", message)))
        turn.size += size
        if others and not self._store.accepts_adds():
            others = [item for item in others if not self._refuse_add(item, turn)]
        items = [*reports, *settlements, *others]
        turn.items += items
        return items

    def _due(self, turn: Turn) -> list[Item]:
        """What the timers found, as the engine's own commands."""
        items: list[Item] = []
        undelivered, self._undelivered = self._undelivered, []
        now_ms, mono = self._time.now_ms(), self._clock.monotonic_ms()
        # The oldest last: each goes to the front of its class, before those reaped earlier.
        expired = sorted(self._leases.pop_expired(mono, MAX_REAPED), key=lambda lease: -lease.number)
        overdue = [self._leases.find(token) for token in self._timeouts.pop_due(now_ms, MAX_REAPED)]
        reap = commands.Reap(
            stalled=[lease.ref for lease in expired],
            timed_out=[lease.ref for lease in overdue if lease is not None],
            expired=[commands.JobRef(*key) for key in self._expiries.pop_due(now_ms, MAX_REAPED)],
            parked=[commands.JobRef(*key) for key in self._parked.pop_due(now_ms, MAX_REAPED)],
            undelivered=undelivered,
        )
        if reap != _NOTHING:
            items.append(Item(None, 0, reap))
            turn.reaped += [lease.token for lease in (*reap.stalled, *reap.timed_out, *reap.undelivered)]
        if self._pruner.due(busy=turn.size > 0):
            items.append(Item(None, 0, commands.Prune()))
        turn.items += items
        return items

    def _apply(self, batch: protocol.Batch, turn: Turn, chunk: list[Item]) -> None:
        dispatcher = self._dispatcher
        applied = batch.apply([item.command for item in chunk], dispatcher.take_slot)
        for item, (outcome, effects) in zip(chunk, applied, strict=True):
            for effect in effects:
                if isinstance(effect, protocol.Queued):
                    dispatcher.queued(effect.queue, effect.ready_at_ms)
                elif isinstance(effect, protocol.Started) and effect.slot.handle:
                    dispatcher.started(effect.slot.handle)
            turn.effects += effects
            if item.peer is not None:
                if type(outcome) is commands.Claimed:
                    self._claimed(batch, turn, item, outcome)
                else:
                    turn.answers.append((item.peer, item.call, outcome))
            elif type(outcome) is commands.Pruned:
                self._pruner.pruned(outcome)
        dispatcher.give_back_untaken()

    def _undo(self, turn: Turn) -> None:
        """The batch was rolled back: credit returns, hints may be wrong, and nothing was answered."""
        for effect in turn.effects:
            if isinstance(effect, protocol.Started):
                self._dispatcher.give_back(effect.slot.handle)
        self._dispatcher.give_back_untaken()
        self._dispatcher.doubt()
        turn.effects.clear()
        turn.claims.clear()
        for item in turn.items:
            if item.peer is not None:
                self._claims.forget((item.peer.id, item.call))
        commanded = {(item.peer, item.call) for item in turn.items}
        turn.answers = [answer for answer in turn.answers if answer[:2] not in commanded]

    def _without_adds(self, turn: Turn) -> list[Item]:
        # The timers are looked at in _chunks alone: what they had found stands among the items.
        turn.items = [item for item in turn.items if not self._refuse_add(item, turn)]
        return turn.items

    def _refuse_add(self, item: Item, turn: Turn) -> bool:
        if type(item.command) is not commands.AddJobs or item.peer is None:
            return False
        turn.answers.append((item.peer, item.call, _STORAGE_FULL))
        return True

    # --------------------------------------------------------------------------------- after the commit

    def _remember(self, turn: Turn, now_ms: int) -> None:
        """Let memory follow: leases, timers, watches, metrics; deliveries go out to their sessions."""
        mono = self._clock.monotonic_ms()
        leases, telemetry, timeouts, expiries = self._leases, self._telemetry, self._timeouts, self._expiries
        deliveries: dict[Session, list[commands.Delivery]] = {}
        interrupts: dict[str, tuple[Session, commands.Interrupt]] = {}
        for effect in turn.effects:
            if isinstance(effect, protocol.Started):
                self._start(effect, mono, deliveries)
                telemetry.started(effect, now_ms)
            elif isinstance(effect, protocol.Freed):
                lease = leases.end(effect.token)
                if timeouts:
                    timeouts.drop(effect.token)
                if lease is not None and effect.outcome in _ENDED_BY_BROKER:
                    telemetry.lease_ran_out(lease, effect.outcome)
                    self._interrupt(lease, _ENDED_BY_BROKER[effect.outcome], "", interrupts)
                telemetry.freed(effect, now_ms)
            elif isinstance(effect, protocol.Ended):
                if expiries:
                    expiries.drop((effect.number, effect.created_ms))
                if self._parked:
                    self._parked.drop((effect.number, effect.created_ms))
                if self._watches:
                    self._queries.extend((w.peer, w.call, _job_of(w)) for w in self._watches.pop_ended(effect.number))
                telemetry.ended(effect)
            elif isinstance(effect, protocol.Added):
                telemetry.added(effect)
            else:
                self._remember_rare(effect, interrupts)
        for token in turn.reaped:
            # An entry that met no row any more has left no Freed.
            leases.end(token)
        for session, interrupt in interrupts.values():
            turn.said.before.append((session.peer, commands.Interrupts(session.number, [interrupt])))
        self._send_deliveries(turn, deliveries)
        for waiting, started in turn.claims.items():
            turn.answers.append((waiting.peer, waiting.call, commands.Claimed(started)))
            self._claims.end(waiting)

    def _start(self, effect: protocol.Started, mono: float, deliveries: dict[Session, list[commands.Delivery]]) -> None:
        slot, delivery = effect.slot, effect.delivery
        self._leases.start(slot, delivery, mono)
        if effect.timeout_at_ms:
            self._timeouts.set(delivery.token, effect.timeout_at_ms)
        if self._expiries:
            self._expiries.drop((delivery.number, delivery.created_ms))
        if not slot.handle or self._claims.of_handle(slot.handle) is not None:
            return
        session, pool = self._sessions.of_handle(slot.handle), self._dispatcher.find(slot.handle)
        if session is None or pool is None:
            # Whoever gave the slot left in this very turn: nobody is sent this, so it goes back uncounted.
            self._undelivered.append(commands.LeaseRef(delivery.number, delivery.created_ms, delivery.token))
            return
        # Ours alone until it is encoded; a changed copy would cost three times as much.
        msgspec.structs.force_setattr(delivery, "pool", pool.id)
        of_session = deliveries.get(session)
        if of_session is None:
            of_session = deliveries[session] = []
        of_session.append(delivery)

    def _remember_rare(
        self, effect: protocol.Effect, interrupts: dict[str, tuple[Session, commands.Interrupt]]
    ) -> None:
        match effect:
            case protocol.Parked(number, created_ms, at_ms):
                self._parked.set((number, created_ms), at_ms)
            case protocol.Expires(number, created_ms, at_ms):
                self._expiries.set((number, created_ms), at_ms)
            case protocol.Interrupted():
                lease = self._leases.find(effect.token)
                if lease is None:
                    return
                self._interrupt(lease, effect.cause, effect.reason, interrupts)
                if effect.cause == InterruptCause.CANCEL_REQUESTED:
                    lease.cancel = effect.reason
                else:
                    self._leases.end(effect.token)

    def _interrupt(
        self, lease: Lease, cause: int, reason: str, interrupts: dict[str, tuple[Session, commands.Interrupt]]
    ) -> None:
        session = self._sessions.of_lease(lease)
        if session is not None:
            interrupt = commands.Interrupt(lease.number, lease.created_ms, lease.token, cause, reason)
            interrupts.setdefault(lease.token, (session, interrupt))

    def _send_deliveries(self, turn: Turn, deliveries: dict[Session, list[commands.Delivery]]) -> None:
        for session, started in deliveries.items():
            for piece in _pieces(started):
                turn.said.before.append((session.peer, commands.Deliveries(session.number, piece)))

    def _answer(self, turn: Turn) -> None:
        """Everything of the turn leaves now; each peer's in one send."""
        mono = self._clock.monotonic_ms()
        for waiting in self._claims.pop_overdue(mono):
            turn.answers.append((waiting.peer, waiting.call, commands.Claimed([])))
        for peer, call, reply in turn.answers:
            if call:
                peer.send(link.encode(call, reply))
        for peer, notice in turn.said.before:
            peer.send(link.encode(0, notice))
        for peer, notice in turn.said.after:
            peer.send(link.encode(0, notice))

    def _read(self) -> None:
        """Answer queries from what is committed, as long as a batch may take; the rest after the next batch."""
        mono = self._clock.monotonic_ms()
        if self._watches:
            self._queries.extend((w.peer, w.call, _job_of(w)) for w in self._watches.pop_overdue(mono))
        if not self._queries:
            return
        now_ms = self._time.now_ms()
        while self._queries and self._clock.monotonic_ms() - mono < MAX_APPLY_MS:
            peer, call, query = self._queries.popleft()
            if peer.closed:
                continue
            answer = self._reader.answer(query, now_ms)
            if isinstance(query, commands.WaitJob) and self._reader.must_wait(query, answer):
                self._watches.open(Watch(peer, call, query), mono)
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

    # ------------------------------------------------------------------------------- what peers may say

    def _drop_lost(self) -> None:
        lost, self._hub.lost = self._hub.lost, []
        for peer in lost:
            self._telemetry.gateway_lost(peer.id)
            self._sessions.drop_peer(peer)
            self._claims.drop_peer(peer)
            self._watches.drop_peer(peer)

    def _renew(self, peer: Peer, call: int, message: commands.Renew, turn: Turn) -> None:
        interrupts = [
            found for ref in message.leases if (found := self._sessions.renew(ref, message.worker_id)) is not None
        ]
        turn.answers.append((peer, call, commands.Renewed(interrupts)))

    def _open_session(self, peer: Peer, call: int, message: commands.OpenSession, turn: Turn) -> Item | None:
        command = None if peer.closed else self._sessions.open(peer, message, turn.said)
        return None if command is None else Item(None, 0, command)

    def _add_credit(self, peer: Peer, call: int, message: commands.AddCredit, turn: Turn) -> None:
        self._sessions.add_credit(peer, message)

    def _drain_session(self, peer: Peer, call: int, message: commands.DrainSession, turn: Turn) -> None:
        self._sessions.drain(peer, message, turn.said)

    def _close_session(self, peer: Peer, call: int, message: commands.CloseSession, turn: Turn) -> None:
        self._sessions.close(peer, message.session)

    def _undeliver(self, peer: Peer, call: int, message: commands.Undeliver, turn: Turn) -> Item | None:
        held = [ref for ref in message.leases if self._leases.find(ref.token) is not None]
        return Item(None, 0, commands.Reap(undelivered=held)) if held else None

    def _seen(self, peer: Peer, call: int, message: commands.SessionSeen, turn: Turn) -> None:
        self._sessions.seen(peer, message.session)

    def _drain_worker(self, peer: Peer, call: int, message: commands.DrainWorker, turn: Turn) -> None:
        found = self._sessions.ask_to_leave(message, turn.said)
        turn.answers.append((peer, call, commands.Done() if found else _no_worker(message.worker_id)))

    def _forget(self, peer: Peer, call: int, message: link.Forget, turn: Turn) -> None:
        self._claims.forget((peer.id, message.call))
        self._watches.forget((peer.id, message.call))

    def _claim(self, peer: Peer, call: int, message: commands.Claim, turn: Turn) -> Item:
        self._sessions.claimed(message)
        if message.claim_id:
            return Item(peer, call, message)
        # A claim without an id is still no session: its leases must not be taken for one's [9.11].
        claim = msgspec.structs.replace(message, claim_id=f"~{self._clock.wall_ms()}.{peer.id}.{call}")
        return Item(peer, call, claim)

    # -------------------------------------------------------------------------------- ClaimJobs, waiting

    def _claimed(self, batch: protocol.Batch, turn: Turn, item: Item, outcome: commands.Claimed) -> None:
        claim, peer = item.command, item.peer
        assert isinstance(claim, commands.Claim)
        assert peer is not None
        if outcome.deliveries or not claim.wait_ms or peer.closed:
            kept = self._cut(batch, turn, outcome.deliveries)
            turn.answers.append((peer, item.call, commands.Claimed(kept)))
            return
        slot = self._sessions.slot(claim.worker.worker_id, claim.claim_id)
        replaced = self._claims.open(peer, item.call, claim, slot, self._clock.monotonic_ms())
        if replaced is not None:
            turn.answers.append((replaced.peer, replaced.call, commands.Claimed([])))

    def _gather_claims(self, batch: protocol.Batch, turn: Turn) -> None:
        """The waiting ones that got something are answered with it after the commit."""
        for effect in turn.effects:
            if isinstance(effect, protocol.Started) and effect.slot.claim_id and effect.slot.handle:
                waiting = self._claims.of_handle(effect.slot.handle)
                if waiting is not None:
                    turn.claims.setdefault(waiting, []).append(effect.delivery)
        for waiting, started in turn.claims.items():
            turn.claims[waiting] = self._cut(batch, turn, started)

    def _cut(self, batch: protocol.Batch, turn: Turn, started: list[commands.Delivery]) -> list[commands.Delivery]:
        """What fits into one answer; the rest goes back uncounted, in the same transaction."""
        kept = next(_pieces(started), [])
        if len(kept) < len(started):
            left = [commands.LeaseRef(d.number, d.created_ms, d.token) for d in reversed(started[len(kept) :])]
            applied = batch.apply([commands.Reap(undelivered=left)], self._dispatcher.take_slot)
            turn.effects += applied[0].effects
        return kept


_ENDED_BY_BROKER: Final = {
    int(AttemptOutcome.STALLED): InterruptCause.LEASE_LOST,
    int(AttemptOutcome.TIMED_OUT): InterruptCause.ATTEMPT_TIMEOUT,
}
_NOTHING: Final = commands.Reap()
_STORAGE_FULL: Final = errors.Refused(
    "STORAGE_FULL",
    "the volume has too little free space for new jobs; enlarge it, or wait until jobs were worked off and pruned",
    retry_after_ms=STORAGE_FULL_RETRY_AFTER_MS,
)


def _job_of(watch: Watch) -> commands.GetJob:
    return commands.GetJob(watch.query.ref, watch.query.full)


def _no_worker(worker_id: str) -> errors.Refused:
    return errors.Refused(
        "WORKER_NOT_FOUND",
        f"no worker {worker_id!r} has a session; `anvilmq worker list` shows those that have",
        "worker_id",
        {"worker_id": worker_id},
    )


def _pieces(deliveries: list[commands.Delivery]) -> Iterator[list[commands.Delivery]]:
    """The deliveries in frames of at most 4 MiB of data, at least one in each."""
    start = size = 0
    for place, delivery in enumerate(deliveries):
        size += len(delivery.data)
        if size > MAX_FRAME_BYTES and place > start:
            yield deliveries[start:place]
            start, size = place, len(delivery.data)
    if start < len(deliveries):
        yield deliveries[start:]
