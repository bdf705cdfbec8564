"""Everything the engine holds in memory, and how it follows a commit. Hot file: terse on purpose."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from msgspec.structs import force_setattr

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import AttemptOutcome, InterruptCause
from anvilmq_broker.engine.dispatch import Dispatcher
from anvilmq_broker.engine.leases import Lease, Leases
from anvilmq_broker.engine.link_server import Peer
from anvilmq_broker.engine.scheduler import Scheduler
from anvilmq_broker.engine.sessions import Session, Sessions
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.engine.timers import Timers
from anvilmq_broker.engine.turn import Turn, pieces
from anvilmq_broker.engine.waits import WaitingClaims, Watch, Watches
from anvilmq_broker.store import protocol

MAX_REAPED: Final = 500
"""Of each kind, in one batch."""

JobKey = tuple[int, int]
_Started: Final = protocol.Started
_Queued: Final = protocol.Queued
_ENDED_BY_BROKER: Final = {
    int(AttemptOutcome.STALLED): InterruptCause.LEASE_LOST,
    int(AttemptOutcome.TIMED_OUT): InterruptCause.ATTEMPT_TIMEOUT,
}


class _Outgoing:
    """What a commit has for sessions; an attempt is interrupted once, whatever the number of reasons."""

    __slots__ = ("deliveries", "interrupts", "targets")

    def __init__(self) -> None:
        self.deliveries: dict[Session, list[commands.Delivery]] = {}
        self.targets: dict[int, tuple[int, list[commands.Delivery]] | None] = {}
        """By a slot's handle: the pool's id and the session's deliveries; None: there is no session to send to."""
        self.interrupts: dict[str, tuple[Session, commands.Interrupt]] = {}

    def notices(self) -> Iterator[tuple[Peer, commands.Notice]]:
        """Interrupts first: they may free the room that a delivery needs."""
        of_session: dict[Session, list[commands.Interrupt]] = {}
        for session, interrupt in self.interrupts.values():
            of_session.setdefault(session, []).append(interrupt)
        for session, interrupts in of_session.items():
            yield session.peer, commands.Interrupts(session.number, interrupts)
        for session, started in self.deliveries.items():
            for piece in pieces(started):
                yield session.peer, commands.Deliveries(session.number, piece)


class Memory:
    """Leases, credit, sessions, waits and timers of one engine."""

    def __init__(self, clock: Clock, telemetry: Telemetry) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self.leases = Leases(clock)
        self.dispatcher = Dispatcher()
        self.sessions = Sessions(self.dispatcher, self.leases, clock)
        self.claims = WaitingClaims(self.dispatcher)
        self.watches = Watches()
        self.scheduler = Scheduler(clock)
        self.queries: deque[tuple[Peer, int, commands.Query]] = deque()
        """Taken, not answered yet."""
        self._timeouts: Timers[str] = Timers()
        self._expiries: Timers[JobKey] = Timers()
        self._parked: Timers[JobKey] = Timers()
        self._undelivered: list[commands.LeaseRef] = []

    def restore(self, opening: protocol.Opening, now_ms: int) -> None:
        """Begin from what the store has found. Every active job gets a fresh full lease [1.5]."""
        mono = self._clock.monotonic_ms()
        self.scheduler.restore(opening.ticks, now_ms)
        for held in opening.leases:
            self.leases.restore(held, mono)
            if held.timeout_at_ms:
                self._timeouts.set(held.token, held.timeout_at_ms)
        for parked in opening.parked:
            self._parked.set((parked.number, parked.created_ms), parked.at_ms)
        for expires in opening.expires:
            self._expiries.set((expires.number, expires.created_ms), expires.at_ms)
        for queue, ready_at_ms in opening.queues.items():
            self.dispatcher.restore(queue, ready_at_ms)

    def drop_peer(self, peer: Peer) -> None:
        """A gateway is gone: its sessions and waits go, the leases stay."""
        self._telemetry.gateway_lost(peer.id)
        self.sessions.drop_peer(peer)
        self.claims.drop_peer(peer)
        self.watches.drop_peer(peer)

    # ------------------------------------------------------------------------------------------ what is due

    @property
    def is_due(self) -> bool:
        """Whether something waits that no timer will tell."""
        return bool(self.queries or self._undelivered)

    def next_wall_ms(self) -> float | None:
        """The next moment of the broker's time at which something falls due."""
        moments = (
            self.dispatcher.next_ms(),
            self._timeouts.next_ms(),
            self._expiries.next_ms(),
            self._parked.next_ms(),
            self.scheduler.next_wall_ms(),
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def next_monotonic_ms(self) -> float | None:
        """The next moment of the monotonic clock at which something falls due."""
        moments = (
            self.leases.next_ms(),
            self.claims.next_ms(),
            self.watches.next_ms(),
            self.scheduler.next_monotonic_ms(),
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def reap(self, now_ms: int, turn: Turn) -> commands.Reap | None:
        """What the timers found, as a command."""
        undelivered, self._undelivered = self._undelivered, []
        # The oldest last: each goes to the front of its class, before those reaped earlier.
        expired = self.leases.pop_expired(self._clock.monotonic_ms(), MAX_REAPED)
        expired.sort(key=lambda lease: -lease.number)
        for lease in expired:
            self.sessions.fell_silent(lease)
        overdue = [self.leases.find(token) for token in self._timeouts.pop_due(now_ms, MAX_REAPED)]
        reap = commands.Reap(
            stalled=[lease.ref for lease in expired],
            timed_out=[lease.ref for lease in overdue if lease is not None],
            expired=[commands.JobRef(*key) for key in self._expiries.pop_due(now_ms, MAX_REAPED)],
            parked=[commands.JobRef(*key) for key in self._parked.pop_due(now_ms, MAX_REAPED)],
            undelivered=undelivered,
        )
        if reap == _NOTHING:
            return None
        turn.reaped += [lease.token for lease in (*reap.stalled, *reap.timed_out, *reap.undelivered)]
        return reap

    def ended_waits(self) -> None:
        """WaitJobs whose time is over become queries for their job as it is."""
        if self.watches:
            self._ask_for(self.watches.pop_overdue(self._clock.monotonic_ms()))

    # --------------------------------------------------------------------------------------- before the commit

    def hint(self, effects: list[protocol.Effect]) -> None:
        """Take in what dispatch may know before the commit: jobs in line, slots that became jobs."""
        dispatcher = self.dispatcher
        for effect in effects:
            kind = type(effect)
            if kind is _Started:
                if handle := effect.slot.handle:  # type: ignore[union-attr]
                    dispatcher.taken[handle] -= 1
            elif kind is _Queued:
                dispatcher.queued(effect.queue, effect.ready_at_ms)  # type: ignore[union-attr]

    def undo(self, turn: Turn) -> None:
        """The batch was rolled back: credit returns, hints may be wrong, nothing was answered and nobody waits."""
        dispatcher = self.dispatcher
        for effect in turn.effects:
            if isinstance(effect, protocol.Started):
                dispatcher.give_back(effect.slot.handle)
        dispatcher.give_back_untaken()
        dispatcher.doubt()
        turn.effects.clear()
        turn.claims.clear()
        calls = {(item.peer.id, item.call) for item in turn.items if item.peer is not None}
        for call in calls:
            self.claims.forget(call)
        turn.answers = [answer for answer in turn.answers if (answer[0].id, answer[1]) not in calls]

    # ---------------------------------------------------------------------------------------- after the commit

    def follow(self, turn: Turn, now_ms: int) -> None:
        """Let memory follow the commit: leases, timers, watches, metrics; what sessions must hear goes to the turn."""
        mono, out = self._clock.monotonic_ms(), _Outgoing()
        starts: list[protocol.Started] = []
        for effect in turn.effects:
            kind = type(effect)
            if kind is _Started:
                starts.append(effect)  # type: ignore[arg-type]
            elif kind is not _Queued:
                if starts:
                    self._start(starts, mono, now_ms, out)
                    starts = []
                self._follow_one(effect, now_ms, out)
        if starts:
            self._start(starts, mono, now_ms, out)
        self.scheduler.committed()
        # An entry that met no row any more has left no Freed.
        self.leases.end_all(turn.reaped)
        turn.said.before += out.notices()
        for waiting, started in turn.claims.items():
            turn.answers.append((waiting.peer, waiting.call, commands.Claimed(started)))
            self.claims.end(waiting)

    def _start(self, starts: list[protocol.Started], mono: float, now_ms: int, out: _Outgoing) -> None:
        expiries, targets = self._expiries, out.targets
        self.leases.start(starts, mono)
        for effect in starts:
            slot, delivery = effect.slot, effect.delivery
            if effect.timeout_at_ms:
                self._timeouts.set(delivery.token, effect.timeout_at_ms)
            if expiries.moments:
                expiries.drop((delivery.number, delivery.created_ms))
            handle = slot.handle
            if handle in targets:
                target = targets[handle]
            else:
                target = targets[handle] = self._target(handle, out)
            if target is not None:
                pool_id, deliveries = target
                if delivery.pool != pool_id:
                    # Ours alone until it is encoded; a changed copy would cost three times as much.
                    force_setattr(delivery, "pool", pool_id)
                deliveries.append(delivery)
            elif handle and self.claims.of_handle(handle) is None:
                # Whoever gave the slot left in this very turn: nobody is sent this, so it goes back uncounted.
                self._undelivered.append(commands.LeaseRef(delivery.number, delivery.created_ms, delivery.token))
        self._telemetry.started(starts, now_ms)

    def _target(self, handle: int, out: _Outgoing) -> tuple[int, list[commands.Delivery]] | None:
        """Where what was started for the slot of this handle is sent; None: to no session."""
        session, pool = self.sessions.of_handle(handle), self.dispatcher.find(handle)
        if session is None or pool is None:
            return None
        return pool.id, out.deliveries.setdefault(session, [])

    def _complete(self, effect: protocol.Completed, now_ms: int) -> None:
        jobs, timeouts = effect.jobs, self._timeouts
        self.leases.end_all([job[2] for job in jobs])
        if timeouts.moments or self._expiries.moments or self._parked.moments or self.watches:
            for number, created_ms, token, _ in jobs:
                timeouts.drop(token)
                self._ended(number, created_ms)
        self._telemetry.completed(effect, now_ms)

    def _ended(self, number: int, created_ms: int) -> None:
        """The job is terminal: its timers are void, its watchers are told."""
        self._expiries.drop((number, created_ms))
        self._parked.drop((number, created_ms))
        if self.watches:
            self._ask_for(self.watches.pop_ended(number))

    def _follow_one(self, effect: protocol.Effect, now_ms: int, out: _Outgoing) -> None:
        telemetry = self._telemetry
        if isinstance(effect, protocol.Completed):
            self._complete(effect, now_ms)
        elif isinstance(effect, protocol.Added):
            telemetry.added(effect)
        elif isinstance(effect, protocol.Freed):
            lease = self.leases.end(effect.token)
            self._timeouts.drop(effect.token)
            if lease is not None and effect.outcome in _ENDED_BY_BROKER:
                telemetry.lease_ran_out(lease, effect.outcome)
                self._interrupt(lease, _ENDED_BY_BROKER[effect.outcome], "", out)
            telemetry.freed(effect, now_ms)
        elif isinstance(effect, protocol.Ended):
            self._ended(effect.number, effect.created_ms)
            telemetry.ended(effect)
        else:
            self._follow_rare(effect, out)

    def _follow_rare(self, effect: protocol.Effect, out: _Outgoing) -> None:
        match effect:
            case protocol.Parked(number, created_ms, at_ms):
                self._parked.set((number, created_ms), at_ms)
            case protocol.Expires(number, created_ms, at_ms):
                self._expiries.set((number, created_ms), at_ms)
            case protocol.Ticks():
                self.scheduler.follow(effect)
            case protocol.Ticked():
                self._telemetry.ticked(effect)
            case protocol.Interrupted():
                lease = self.leases.find(effect.token)
                if lease is None:
                    return
                self._interrupt(lease, effect.cause, effect.reason, out)
                if effect.cause == InterruptCause.CANCEL_REQUESTED:
                    lease.cancel = effect.reason
                else:
                    self.leases.end(effect.token)

    def _interrupt(self, lease: Lease, cause: int, reason: str, out: _Outgoing) -> None:
        session = self.sessions.of_lease(lease)
        if session is not None:
            interrupt = commands.Interrupt(lease.number, lease.created_ms, lease.token, cause, reason)
            out.interrupts.setdefault(lease.token, (session, interrupt))

    def _ask_for(self, watches: list[Watch]) -> None:
        self.queries.extend((w.peer, w.call, commands.GetJob(w.query.ref, w.query.full)) for w in watches)


_NOTHING: Final = commands.Reap()
