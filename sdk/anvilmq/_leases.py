"""The leases this process holds: when to renew them, when to give them up. Pure: no I/O, the time is handed in.

All times are seconds of one monotonic clock. A table holds at most a few thousand leases for seconds to minutes,
while thousands come and go each second. So nothing is sorted: `next_at` is a lower bound that an added lease can only
bring nearer, and `due` walks all leases once when that bound is reached.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

import msgspec

Owner = TypeVar("Owner")

RENEW_AT = 1 / 3
"""The share of a lease after which it is renewed."""

MARGIN = 0.1
"""The share of a new lease that may have gone by before its delivery was read here."""

SLACK = 1 / 12
"""The share of a lease by which a renewal may come early, to go in the message of another."""


class Lease(msgspec.Struct, Generic[Owner], eq=False):
    """The right to one attempt, and who runs it.

    `settling`: a settlement is under way, so it is neither renewed nor given up; the answer decides.
    `times_out_at`: when the attempt has lasted too long; infinite without a limit.
    """

    job_id: str
    token: str
    lease_s: float
    owner: Owner
    expires_at: float
    renew_at: float
    times_out_at: float
    settling: bool = False


class Due(msgspec.Struct, Generic[Owner], frozen=True):
    """What `LeaseTable.due` found. The expired and the timed out have left the table."""

    renew: list[Lease[Owner]]
    expired: list[Lease[Owner]]
    timed_out: list[Lease[Owner]]


class LeaseTable(Generic[Owner]):
    """Every lease this process holds, by token."""

    def __init__(self) -> None:
        self.next_at = math.inf
        """Nothing falls due before this moment."""
        self._leases: dict[str, Lease[Owner]] = {}
        self._renewals: dict[int, tuple[float, list[Lease[Owner]]]] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def add(self, job_id: str, token: str, lease_ms: int, timeout_ms: int, owner: Owner, now: float) -> Lease[Owner]:
        """Take in a delivery read at `now`. timeout_ms: longest time of the attempt, 0 = no limit."""
        lease_s = lease_ms / 1000
        renew_at = now + lease_s * RENEW_AT
        times_out_at = now + timeout_ms / 1000 if timeout_ms else math.inf
        # By position, and no min(): both cost more than the rest.
        lease = Lease(job_id, token, lease_s, owner, now + lease_s * (1 - MARGIN), renew_at, times_out_at)
        self._leases[token] = lease
        if renew_at < self.next_at:
            self.next_at = renew_at
        if times_out_at < self.next_at:
            self.next_at = times_out_at
        return lease

    def find(self, token: str) -> Lease[Owner] | None:
        """The lease with that token, settling or not; None when it is not, or no longer, held."""
        return self._leases.get(token)

    def settle(self, token: str) -> Lease[Owner] | None:
        """Mark that the settlement is under way. None: the lease is gone, or it is being settled already."""
        lease = self._leases.get(token)
        if lease is None or lease.settling:
            return None
        lease.settling = True
        return lease

    def drop(self, token: str) -> Lease[Owner] | None:
        """Forget a lease that was settled or lost. None when it was not held."""
        return self._leases.pop(token, None)

    def held(self) -> list[Lease[Owner]]:
        """All leases, those being settled included: what a new session has to name, lest the broker takes them back."""
        return list(self._leases.values())

    def due(self, now: float, *, connected: bool) -> Due[Owner]:
        """Give up what ran out by `now`, and say what is to be renewed. Without a connection nothing is renewed."""
        due: Due[Owner] = Due(renew=[], expired=[], timed_out=[])
        if now < self.next_at:
            return due
        for lease in self._leases.values():
            if lease.settling:
                continue
            if now >= lease.expires_at:
                due.expired.append(lease)
            elif now >= lease.times_out_at:
                due.timed_out.append(lease)
            elif connected and now >= lease.renew_at - lease.lease_s * SLACK:
                due.renew.append(lease)
        for lease in (*due.expired, *due.timed_out):
            del self._leases[lease.token]
        for lease in due.renew:
            # Also the next try, should this one stay unanswered.
            lease.renew_at = now + lease.lease_s * RENEW_AT
        self.next_at = self._soonest(connected=connected)
        return due

    def renewing(self, seq: int, leases: list[Lease[Owner]], now: float) -> None:
        """Record that the renewal `seq` of these leases leaves at `now`."""
        self._renewals[seq] = (now, leases)

    def renewed(self, seq: int, lost: set[str]) -> None:
        """The renewal `seq` was answered; `lost` are the tokens it did not renew. An unknown `seq` means nothing."""
        sent_at, leases = self._renewals.pop(seq, (0.0, []))
        for lease in leases:
            if lease.token not in lost:
                # The broker counted from a moment after the sending: this errs on the safe side.
                lease.expires_at = max(lease.expires_at, sent_at + lease.lease_s)

    def disconnected(self) -> None:
        """The session broke: what it has not answered, it never will."""
        self._renewals.clear()

    def connected(self, now: float) -> None:
        """A session is open: renew everything at once, for nobody did so meanwhile."""
        for lease in self._leases.values():
            lease.renew_at = now
        self.next_at = min(self.next_at, now) if self._leases else self.next_at

    def _soonest(self, *, connected: bool) -> float:
        soonest = math.inf
        for lease in self._leases.values():
            if not lease.settling:
                nearest = min(lease.renew_at, lease.expires_at) if connected else lease.expires_at
                soonest = min(soonest, nearest, lease.times_out_at)
        return soonest
