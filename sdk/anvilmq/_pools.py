"""The slots of a pool: who runs, who waits for a slot, and how many jobs more the broker may send.

Hot: a few calls for each job, from the I/O thread, the handler loop and the threads of plain handlers; a lock guards
each pool. Whoever ends a run takes the next job himself, so a prefetched job starts without a trip through the I/O
thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from anvilmq._attempts import Attempt

MAX_OPEN_CREDIT: Final = 1_000
"""What the broker accepts for one pool."""

MAX_PREFETCH: Final = 256
MAX_PREFETCH_PER_SLOT: Final = 8
LONG_RUN_S: Final = 1.0
"""A run above this stops the prefetch of its pool..."""
QUIET_RUNS: Final = 100
"""...until that many shorter ones have followed."""
_WEIGHT: Final = 1 / 16
"""Share of the newest run in the mean."""


def prefetch(slots: int, round_trip_s: float, mean_run_s: float) -> int:
    """Jobs beyond the free slots that keep the slots busy for one round trip: at most 8 for each slot, and 256.

    round_trip_s: 0 while it is not known, then none.
    """
    most = min(MAX_PREFETCH_PER_SLOT * slots, MAX_PREFETCH)
    needed = slots * round_trip_s
    return most if mean_run_s * most < needed else int(needed / mean_run_s) if mean_run_s else 0


class Slots:
    """The state of one pool. prefetch: None = as measured, otherwise the upper limit of it; 0 stops it."""

    def __init__(self, pool_id: int, queues: Sequence[str], slots: int, prefetch: int | None = None) -> None:
        self.pool_id = pool_id
        self.queues = tuple(queues)
        self.slots = slots
        self.open_credit = 0
        """Jobs the broker may still send. The I/O thread's alone."""
        self._prefetch_limit = prefetch
        self._lock = threading.Lock()
        self._running: set[Attempt] = set()
        self._waiting: deque[Attempt] = deque()
        self._mean_run_s: float | None = None
        self._quiet_runs = 0

    @property
    def running(self) -> int:
        """Slots in use."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Prefetched jobs."""
        return len(self._waiting)

    def offer(self, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        """Give new attempts slots, in order. Those that got one; when all are in use, the rest waits its turn."""
        with self._lock:
            free = self.slots - len(self._running)
            if free < len(attempts):
                self._waiting.extend(attempts[free:])
                attempts = attempts[:free]
            self._running.update(attempts)
            return attempts

    def free(self, attempt: Attempt, run_s: float | None) -> Attempt | None:
        """The attempt ended after `run_s` (None: its handler never started); returns the one that has its slot now."""
        with self._lock:
            self._running.discard(attempt)
            if run_s is not None:
                mean = self._mean_run_s
                self._mean_run_s = run_s if mean is None else mean + (run_s - mean) * _WEIGHT
                if run_s > LONG_RUN_S:
                    self._quiet_runs = QUIET_RUNS
                elif self._quiet_runs:
                    self._quiet_runs -= 1
            if not self._waiting or len(self._running) >= self.slots:
                return None
            following = self._waiting.popleft()
            self._running.add(following)
            return following

    def withdraw(self, attempt: Attempt) -> bool:
        """Take a waiting attempt out; False when it does not wait (any more)."""
        with self._lock:
            try:
                self._waiting.remove(attempt)
            except ValueError:
                return False
            return True

    def withdraw_all(self) -> list[Attempt]:
        """Take out every attempt that waits for a slot."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting

    def withdraw_older(self, received_before: float) -> list[Attempt]:
        """Take out the attempts that have waited since before that moment; if there are any, prefetch pauses."""
        with self._lock:
            old = []
            while self._waiting and self._waiting[0].received_at < received_before:
                old.append(self._waiting.popleft())
            if old:
                self._quiet_runs = QUIET_RUNS
            return old

    def attempts(self) -> list[Attempt]:
        """Those that have a slot."""
        with self._lock:
            return list(self._running)

    def missing_credit(self, round_trip_s: float) -> int:
        """Credit to be added now: free slots and prefetch, less what the broker may send already."""
        taken = len(self._running) + len(self._waiting) + self.open_credit
        missing = self.slots + self._prefetch(round_trip_s) - taken
        return max(0, min(missing, MAX_OPEN_CREDIT - self.open_credit))

    def _prefetch(self, round_trip_s: float) -> int:
        if self._quiet_runs or self._mean_run_s is None or self._prefetch_limit == 0:
            return 0
        wanted = prefetch(self.slots, round_trip_s, self._mean_run_s)
        return wanted if self._prefetch_limit is None else min(wanted, self._prefetch_limit)
