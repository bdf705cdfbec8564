"""Workers: their sessions, pools and leases as the gateways' messages change them (api 3, 9.11). Memory only.

What must be written, such as a lease that was never received and goes back, is returned as a command; what must be
said is put into `Said`: before the turn's deliveries or after them, and never before its commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import msgspec

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands, view
from anvilmq_broker.domain.state import InterruptCause
from anvilmq_broker.engine.dispatch import Dispatcher, Pool
from anvilmq_broker.engine.leases import Lease, Leases
from anvilmq_broker.engine.link_server import Peer
from anvilmq_broker.engine.turn import Said
from anvilmq_broker.store import protocol

RECENT_CLAIM_MS: Final = 60_000
"""How long a caller of ClaimJobs counts as a worker of its queues [9.9]."""


class Session:
    """A worker's stream, as one gateway holds it."""

    __slots__ = (
        "closed",
        "connected_at_ms",
        "draining",
        "last_seen_at_ms",
        "number",
        "peer",
        "pools",
        "silent",
        "worker",
    )

    def __init__(self, peer: Peer, number: int, worker: commands.WorkerIdentity, now_ms: int) -> None:
        self.peer = peer
        self.number = number
        self.worker = worker
        self.pools: dict[int, Pool] = {}
        self.connected_at_ms = now_ms
        self.last_seen_at_ms = now_ms
        self.draining = False
        self.closed = False
        self.silent = False


class _Caller(msgspec.Struct):
    """A worker that uses ClaimJobs. asked_ms: monotonic."""

    worker: commands.WorkerIdentity
    queues: list[str]
    first_at_ms: int
    last_at_ms: int
    asked_ms: float


class Sessions:
    """Every connected worker."""

    def __init__(self, dispatcher: Dispatcher, leases: Leases, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._leases = leases
        self._clock = clock
        self._handles = count(1)
        self._by_key: dict[tuple[int, int], Session] = {}
        self._by_worker: dict[str, Session] = {}
        self._by_handle: dict[int, Session] = {}
        self._callers: dict[str, _Caller] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    # -------------------------------------------------------------------------------------- what gateways say

    def open(self, peer: Peer, message: commands.OpenSession, said: Said) -> commands.Reap | None:
        """A worker's stream begins. Its session leases that it does not list were never received: they go back."""
        worker_id = message.worker.worker_id
        earlier = self._by_worker.get(worker_id)
        if earlier is not None:
            self._end(earlier)
            said.after.append((earlier.peer, commands.SessionEnded(earlier.number, "SESSION_REPLACED")))
        self.close(peer, message.session)
        session = Session(peer, message.session, message.worker, self._clock.wall_ms())
        for pool in message.pools:
            self._open_pool(session, pool)
        self._by_key[peer.id, message.session] = session
        self._by_worker[worker_id] = session
        interrupts = [found for ref in message.resume if (found := self.renew(ref, worker_id)) is not None]
        said.before.append((peer, commands.Opened(message.session, interrupts)))
        listed = {ref.token for ref in message.resume}
        missing = [
            lease.ref for lease in self._leases.held_by(worker_id) if not lease.claim_id and lease.token not in listed
        ]
        return commands.Reap(undelivered=missing) if missing else None

    def add_credit(self, peer: Peer, message: commands.AddCredit) -> None:
        """The worker can take more; credit of an unknown pool is dropped."""
        session = self._by_key.get((peer.id, message.session))
        if session is not None:
            self._heard(session)
            for pool_id, jobs in message.credits:
                if (pool := session.pools.get(pool_id)) is not None:
                    self._dispatcher.add_credit(pool, jobs)

    def drain(self, peer: Peer, message: commands.DrainSession, said: Said) -> None:
        """Take credit back. `Drained` follows the deliveries already made."""
        session = self._by_key.get((peer.id, message.session))
        if session is None:
            return
        ids = [known for known in message.pools if known in session.pools] if message.pools else list(session.pools)
        for known in ids:
            self._dispatcher.take_back(session.pools[known])
        session.draining = session.draining or not message.pools
        said.after.append((peer, commands.Drained(session.number, ids)))

    def close(self, peer: Peer, number: int) -> None:
        """The stream is gone: its credit goes, its leases stay for resumption."""
        session = self._by_key.get((peer.id, number))
        if session is not None:
            self._end(session)

    def seen(self, peer: Peer, number: int) -> None:
        """The gateway has heard from the worker."""
        session = self._by_key.get((peer.id, number))
        if session is not None:
            session.last_seen_at_ms = self._clock.wall_ms()
            self._heard(session)

    def fell_silent(self, lease: Lease) -> None:
        """The lease ran out unheard: its worker may be frozen. No job goes there until a word comes from it.

        Otherwise a job that stalls would go to the same worker again and again, while its stream stands, and fail.
        """
        session = self.of_lease(lease)
        if session is not None:
            session.silent = True
            for pool in session.pools.values():
                self._dispatcher.hush(pool)

    def drop_peer(self, peer: Peer) -> None:
        """A gateway is gone, and all its sessions with it."""
        for session in [session for session in self._by_key.values() if session.peer is peer]:
            self._end(session)

    def ask_to_leave(self, message: commands.DrainWorker, said: Said) -> bool:
        """Ask a worker to finish and leave; False when it has no session."""
        session = self._by_worker.get(message.worker_id)
        if session is None:
            return False
        said.after.append((session.peer, commands.GoAway(session.number, message.reason, True)))
        return True

    def renew(self, ref: commands.LeaseRef, worker_id: str) -> commands.Interrupt | None:
        """A full lease from now; what the holder must be told instead when the lease is lost or to be cancelled."""
        if (session := self._by_worker.get(worker_id)) is not None:
            self._heard(session)
        lease = self._leases.renew(ref, worker_id, self._clock.monotonic_ms())
        if lease is None:
            return commands.Interrupt(ref.number, ref.created_ms, ref.token, InterruptCause.LEASE_LOST)
        if lease.cancel is None:
            return None
        return commands.Interrupt(ref.number, ref.created_ms, ref.token, InterruptCause.CANCEL_REQUESTED, lease.cancel)

    def claimed(self, claim: commands.Claim) -> None:
        """Somebody asks by ClaimJobs."""
        now, asked = self._clock.wall_ms(), self._clock.monotonic_ms()
        caller = self._callers.get(claim.worker.worker_id)
        first = caller.first_at_ms if caller is not None else now
        self._callers[claim.worker.worker_id] = _Caller(claim.worker, claim.queues, first, now, asked)

    # ---------------------------------------------------------------------------------------- what others ask

    def slot(self, worker_id: str, claim_id: str = "") -> protocol.Slot:
        """A slot with a handle of its own."""
        return protocol.Slot(worker_id, claim_id, next(self._handles))

    def of_handle(self, handle: int) -> Session | None:
        """The session that gave this slot, if it still stands."""
        return self._by_handle.get(handle)

    def of_lease(self, lease: Lease) -> Session | None:
        """Where the holder of the lease can be told something."""
        return None if lease.claim_id else self._by_worker.get(lease.worker_id)

    def is_served(self, queue: str) -> bool:
        """Whether a session has a pool for the queue, or a ClaimJobs asked for it in the last minute [9.9]."""
        return self._dispatcher.is_served(queue) or any(queue in caller.queues for caller in self._recent_callers())

    def by_queue(self) -> Iterator[tuple[str, Session]]:
        """Every queue of every session, for the metrics."""
        for session in self._by_key.values():
            for pool in session.pools.values():
                for queue in pool.queues:
                    yield queue, session

    def credit_by_queue(self) -> Iterator[tuple[str, int]]:
        """Open credit of every pool, for each of its queues."""
        for session in self._by_key.values():
            for pool in session.pools.values():
                for queue in pool.queues:
                    yield queue, pool.credit

    def list_workers(self, query: commands.ListWorkers) -> commands.WorkerPage:
        """Sessions and recent callers of ClaimJobs, by worker_id."""
        records = {caller.worker.worker_id: self._record_of_caller(caller) for caller in self._recent_callers()}
        records |= {session.worker.worker_id: self._record(session) for session in self._by_key.values()}
        names = sorted(name for name, record in records.items() if name > query.after and _is_listed(record, query))
        page = names[: query.limit]
        return commands.WorkerPage([records[name] for name in page], page[-1] if len(names) > len(page) else "")

    # ------------------------------------------------------------------------------------------------ inside

    def _open_pool(self, session: Session, pool: commands.Pool) -> None:
        opened = Pool(pool.id, session.peer, pool.queues, self.slot(session.worker.worker_id))
        opened.concurrency = pool.concurrency
        session.pools[pool.id] = opened
        self._by_handle[opened.slot.handle] = session
        self._dispatcher.open(opened)

    def _heard(self, session: Session) -> None:
        if session.silent:
            session.silent = False
            for pool in session.pools.values():
                self._dispatcher.heard(pool)

    def _end(self, session: Session) -> None:
        session.closed = True
        self._by_key.pop((session.peer.id, session.number), None)
        if self._by_worker.get(session.worker.worker_id) is session:
            del self._by_worker[session.worker.worker_id]
        for pool in session.pools.values():
            self._by_handle.pop(pool.slot.handle, None)
            self._dispatcher.close(pool)

    def _recent_callers(self) -> list[_Caller]:
        since = self._clock.monotonic_ms() - RECENT_CLAIM_MS
        for name in [name for name, caller in self._callers.items() if caller.asked_ms < since]:
            del self._callers[name]
        return list(self._callers.values())

    def _record(self, session: Session) -> commands.WorkerRecord:
        pools = session.pools.values()
        return commands.WorkerRecord(
            session.worker,
            [commands.Pool(pool.id, pool.queues, pool.concurrency) for pool in pools],
            self._leases.count_of(session.worker.worker_id),
            sum(pool.credit for pool in pools),
            session.connected_at_ms,
            session.last_seen_at_ms,
            session.draining,
            True,
        )

    def _record_of_caller(self, caller: _Caller) -> commands.WorkerRecord:
        running = self._leases.count_of(caller.worker.worker_id)
        pools = [commands.Pool(1, caller.queues)]
        return commands.WorkerRecord(
            caller.worker, pools, running, 0, caller.first_at_ms, caller.last_at_ms, False, False
        )


def _is_listed(record: commands.WorkerRecord, query: commands.ListWorkers) -> bool:
    queues = [queue for pool in record.pools for queue in pool.queues]
    return (not query.queue or query.queue in queues) and (
        query.allowed is None or any(view.queue_allowed(queue, query.allowed) for queue in queues)
    )
