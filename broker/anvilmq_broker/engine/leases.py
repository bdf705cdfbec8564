"""Leases held in memory: who holds which attempt, and until when. A renewal costs O(1) and writes nothing.

A lease stands in one bucket of 100 ms; renewing it moves only its expiry. When the bucket falls due, leases renewed
meanwhile go to the bucket of their new expiry, the others have run out: noticed within 100 ms [1.5]. Hot file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands
from anvilmq_broker.store import protocol

BUCKET_MS: Final = 100


class Lease(msgspec.Struct, eq=False, gc=False):
    """The right to one attempt. expires_ms: monotonic. claim_id "": given to a session. cancel: the reason, once asked."""

    token: str
    number: int
    created_ms: int
    queue: str
    worker_id: str
    claim_id: str
    lease_ms: int
    expires_ms: float = 0.0
    bucket: int = 0
    cancel: str | None = None

    @property
    def ref(self) -> commands.LeaseRef:
        """Its name in commands."""
        return commands.LeaseRef(self.number, self.created_ms, self.token)


class Leases:
    """Every lease, by token, by worker and by expiry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_token: dict[str, Lease] = {}
        self._by_worker: dict[str, dict[str, Lease]] = {}
        self._buckets: dict[int, dict[str, Lease]] = {}
        self._next_bucket: int | None = None

    def __len__(self) -> int:
        return len(self._by_token)

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._by_token.values())

    def find(self, token: str) -> Lease | None:
        """The lease with this token, if it is held."""
        return self._by_token.get(token)

    def held_by(self, worker_id: str) -> Iterable[Lease]:
        """The leases of this worker."""
        held = self._by_worker.get(worker_id)
        return list(held.values()) if held else ()

    def count_of(self, worker_id: str) -> int:
        """How many leases this worker holds."""
        held = self._by_worker.get(worker_id)
        return len(held) if held else 0

    def expire_at_ms(self) -> dict[int, int]:
        """Job number → Unix ms at which its lease runs out; O(leases)."""
        offset = self._clock.wall_ms() - self._clock.monotonic_ms()
        return {lease.number: int(lease.expires_ms + offset) for lease in self._by_token.values()}

    def start(self, starts: Iterable[protocol.Started], now_ms: float) -> None:
        """A fresh full lease for each attempt that has just begun."""
        by_token, by_worker, buckets = self._by_token, self._by_worker, self._buckets
        for effect in starts:
            slot, delivery = effect.slot, effect.delivery
            token, worker_id, lease_ms = delivery.token, slot.worker_id, delivery.lease_ms
            expires = now_ms + lease_ms
            # Rounded up, as in _watch.
            number = -int(-expires // BUCKET_MS)
            lease = Lease(
                token, delivery.number, delivery.created_ms, delivery.queue, worker_id, slot.claim_id, lease_ms, expires,
                number,
            )  # fmt: skip
            by_token[token] = lease
            held = by_worker.get(worker_id)
            if held is None:
                held = by_worker[worker_id] = {}
            held[token] = lease
            bucket = buckets.get(number)
            if bucket is None:
                bucket = self._open_bucket(number)
            bucket[token] = lease

    def restore(self, held: protocol.HeldLease, now_ms: float) -> None:
        """A fresh full lease for an attempt found active at start: its worker could not renew meanwhile [1.5]."""
        lease = Lease(
            held.token, held.number, held.created_ms, held.queue, held.worker_id, held.claim_id, held.lease_ms
        )
        if held.cancel_requested:
            lease.cancel = ""
        self._add(lease, now_ms)

    def renew(self, ref: commands.LeaseRef, worker_id: str, now_ms: float) -> Lease | None:
        """Extend to a full lease from now; a good token under another worker_id moves the lease. None: it is lost."""
        lease = self._by_token.get(ref.token)
        if lease is None or lease.number != ref.number:
            return None
        lease.expires_ms = now_ms + lease.lease_ms
        if worker_id and worker_id != lease.worker_id:
            self._forget_worker(lease)
            lease.worker_id = worker_id
            self._by_worker.setdefault(worker_id, {})[lease.token] = lease
        return lease

    def end(self, token: str) -> Lease | None:
        """The attempt ended, or its lease ran out; returns what was held."""
        lease = self._by_token.get(token)
        self.end_all((token,))
        return lease

    def end_all(self, tokens: Iterable[str]) -> None:
        """The attempts with these tokens ended; unknown ones are no error."""
        by_token, by_worker, buckets = self._by_token, self._by_worker, self._buckets
        for token in tokens:
            lease = by_token.pop(token, None)
            if lease is not None:
                bucket = buckets.get(lease.bucket)
                if bucket is not None:
                    bucket.pop(token, None)
                held = by_worker.get(lease.worker_id)
                if held is not None:
                    held.pop(token, None)
                    if not held:
                        del by_worker[lease.worker_id]

    def postpone(self, by_ms: float) -> None:
        """Nobody could renew for so long: every lease ends later by it."""
        for lease in self._by_token.values():
            lease.expires_ms += by_ms

    def next_ms(self) -> float | None:
        """The moment (monotonic) at which to look for leases that ran out."""
        return None if self._next_bucket is None else float(self._next_bucket * BUCKET_MS)

    def pop_expired(self, now_ms: float, limit: int) -> list[Lease]:
        """At most `limit` leases that ran out. They are no longer watched: each is to be reaped, then ended."""
        expired: list[Lease] = []
        while self._next_bucket is not None and self._next_bucket * BUCKET_MS <= now_ms and len(expired) < limit:
            bucket = self._buckets[self._next_bucket]
            while bucket and len(expired) < limit:
                _, lease = bucket.popitem()
                if lease.expires_ms > now_ms:
                    self._watch(lease)
                else:
                    expired.append(lease)
            if not bucket:
                del self._buckets[self._next_bucket]
                self._next_bucket = min(self._buckets, default=None)
        return expired

    def _add(self, lease: Lease, now_ms: float) -> None:
        lease.expires_ms = now_ms + lease.lease_ms
        self._by_token[lease.token] = lease
        by_worker = self._by_worker.get(lease.worker_id)
        if by_worker is None:
            by_worker = self._by_worker[lease.worker_id] = {}
        by_worker[lease.token] = lease
        self._watch(lease)

    def _watch(self, lease: Lease) -> None:
        # Rounded up: a bucket falls due when every expiry in it has passed.
        number = -int(-lease.expires_ms // BUCKET_MS)
        lease.bucket = number
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._open_bucket(number)
        bucket[lease.token] = lease

    def _open_bucket(self, number: int) -> dict[str, Lease]:
        bucket: dict[str, Lease] = {}
        self._buckets[number] = bucket
        if self._next_bucket is None or number < self._next_bucket:
            self._next_bucket = number
        return bucket

    def _forget_worker(self, lease: Lease) -> None:
        held = self._by_worker.get(lease.worker_id)
        if held is not None:
            held.pop(lease.token, None)
            if not held:
                del self._by_worker[lease.worker_id]
