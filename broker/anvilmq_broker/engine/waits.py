"""Calls that are answered later: a ClaimJobs that found nothing yet, a WaitJob whose job has not ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from anvilmq_broker.domain import commands
from anvilmq_broker.engine.dispatch import Dispatcher, Pool
from anvilmq_broker.engine.link_server import Peer
from anvilmq_broker.engine.timers import Timers
from anvilmq_broker.store import protocol

CallKey = tuple[int, int]
"""Peer's id and call."""
_ALL: Final = 1 << 30


class WaitingClaim:
    """A ClaimJobs that waits for its first job: a session of one grant of credit."""

    __slots__ = ("call", "claim", "peer", "pool")

    def __init__(self, peer: Peer, call: int, claim: commands.Claim, pool: Pool) -> None:
        self.peer = peer
        self.call = call
        self.claim = claim
        self.pool = pool

    @property
    def key(self) -> CallKey:
        """Its call."""
        return self.peer.id, self.call


class WaitingClaims:
    """All of them, by call, by slot and by claim id."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._by_handle: dict[int, WaitingClaim] = {}
        self._by_call: dict[CallKey, WaitingClaim] = {}
        self._by_claim: dict[tuple[str, str], WaitingClaim] = {}
        self._deadlines: Timers[CallKey] = Timers()

    def __len__(self) -> int:
        return len(self._by_call)

    def open(
        self, peer: Peer, call: int, claim: commands.Claim, slot: protocol.Slot, now_ms: float
    ) -> WaitingClaim | None:
        """Wait from now on. A second call with the claim id of a waiting one takes its place; that one is returned."""
        replaced = self._by_claim.get((claim.worker.worker_id, claim.claim_id))
        if replaced is not None:
            self.end(replaced)
        waiting = WaitingClaim(peer, call, claim, Pool(0, peer, claim.queues, slot))
        self._by_handle[slot.handle] = waiting
        self._by_call[waiting.key] = waiting
        self._by_claim[claim.worker.worker_id, claim.claim_id] = waiting
        self._deadlines.set(waiting.key, now_ms + claim.wait_ms)
        self._dispatcher.open(waiting.pool)
        self._dispatcher.add_credit(waiting.pool, claim.max_jobs)
        return replaced

    def end(self, waiting: WaitingClaim) -> None:
        """It is answered, or nobody waits any more; its credit goes."""
        self._by_call.pop(waiting.key, None)
        self._by_handle.pop(waiting.pool.slot.handle, None)
        key = waiting.claim.worker.worker_id, waiting.claim.claim_id
        if self._by_claim.get(key) is waiting:
            del self._by_claim[key]
        self._deadlines.drop(waiting.key)
        self._dispatcher.close(waiting.pool)

    def of_handle(self, handle: int) -> WaitingClaim | None:
        """The one that gave this slot."""
        return self._by_handle.get(handle)

    def forget(self, key: CallKey) -> None:
        """Nobody waits for this call any more; unknown ones are no error."""
        if (waiting := self._by_call.get(key)) is not None:
            self.end(waiting)

    def drop_peer(self, peer: Peer) -> None:
        """A gateway is gone."""
        for waiting in [waiting for waiting in self._by_call.values() if waiting.peer is peer]:
            self.end(waiting)

    def next_ms(self) -> float | None:
        """The next deadline, monotonic."""
        return self._deadlines.next_ms()

    def pop_overdue(self, now_ms: float) -> list[WaitingClaim]:
        """Those that have waited long enough; each is ended, to be answered with nothing."""
        overdue = [self._by_call[key] for key in self._deadlines.pop_due(now_ms, _ALL)]
        for waiting in overdue:
            self.end(waiting)
        return overdue


class Watch:
    """One WaitJob."""

    __slots__ = ("call", "peer", "query")

    def __init__(self, peer: Peer, call: int, query: commands.WaitJob) -> None:
        self.peer = peer
        self.call = call
        self.query = query


class Watches:
    """Every WaitJob, by job and by call."""

    def __init__(self) -> None:
        self._by_job: dict[int, dict[CallKey, Watch]] = {}
        self._by_call: dict[CallKey, Watch] = {}
        self._deadlines: Timers[CallKey] = Timers()

    def __len__(self) -> int:
        return len(self._by_call)

    def open(self, watch: Watch, now_ms: float) -> None:
        """Watch from now on."""
        key = watch.peer.id, watch.call
        self._by_call[key] = watch
        self._by_job.setdefault(watch.query.ref.number, {})[key] = watch
        self._deadlines.set(key, now_ms + watch.query.wait_ms)

    def forget(self, key: CallKey) -> None:
        """Nobody waits for this call any more; unknown ones are no error."""
        watch = self._by_call.pop(key, None)
        if watch is not None:
            self._deadlines.drop(key)
            of_job = self._by_job[watch.query.ref.number]
            del of_job[key]
            if not of_job:
                del self._by_job[watch.query.ref.number]

    def drop_peer(self, peer: Peer) -> None:
        """A gateway is gone."""
        self._forget_all([key for key in self._by_call if key[0] == peer.id])

    def next_ms(self) -> float | None:
        """The next deadline, monotonic."""
        return self._deadlines.next_ms()

    def pop_ended(self, number: int) -> list[Watch]:
        """The watches of a job that has just ended."""
        watches = list(self._by_job.get(number, {}).values())
        self._forget_all([(watch.peer.id, watch.call) for watch in watches])
        return watches

    def pop_overdue(self, now_ms: float) -> list[Watch]:
        """Those that have waited long enough."""
        watches = [self._by_call[key] for key in self._deadlines.pop_due(now_ms, _ALL)]
        self._forget_all([(watch.peer.id, watch.call) for watch in watches])
        return watches

    def _forget_all(self, keys: Iterable[CallKey]) -> None:
        for key in keys:
            self.forget(key)
