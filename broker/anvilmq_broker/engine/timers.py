"""Moments at which something falls due, each known by a key; setting and dropping one costs O(log n).

The engine keeps a few of these: attempt timeouts by token, expiries and parked releases by job, queues with unmet
credit by name, deadlines of waits by call. There is none for a waiting job.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_SLACK: Final = 1_024


class Timers(Generic[K]):
    """Keys with the ms at which each falls due; one moment a key, the latest set."""

    __slots__ = ("_heap", "_order", "moments")

    def __init__(self) -> None:
        self.moments: dict[K, tuple[float, int]] = {}
        """By key: its moment and when it was set. To look at only; empty is false, quicker than asking the object."""
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self.moments)

    def __bool__(self) -> bool:
        return bool(self.moments)

    def set(self, key: K, at_ms: float) -> None:
        """From now on `key` falls due at this moment, and at no earlier one set before."""
        self._order += 1
        self.moments[key] = (at_ms, self._order)
        heapq.heappush(self._heap, (at_ms, self._order, key))
        if len(self._heap) > 2 * len(self.moments) + _SLACK:
            self._compact()

    def drop(self, key: K) -> None:
        """Forget the key; unknown ones are no error."""
        self.moments.pop(key, None)

    def next_ms(self) -> float | None:
        """The earliest moment, None when there is none."""
        heap = self._heap
        while heap:
            at_ms, order, key = heap[0]
            if self.moments.get(key) == (at_ms, order):
                return at_ms
            heapq.heappop(heap)
        return None

    def pop_due(self, now_ms: float, limit: int) -> list[K]:
        """At most `limit` keys whose moment has come, earliest first; equal moments in the order they were set."""
        due: list[K] = []
        while len(due) < limit and (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            key = heapq.heappop(self._heap)[2]
            del self.moments[key]
            due.append(key)
        return due

    def _compact(self) -> None:
        """Entries of dropped keys must not outgrow the living: ten thousand jobs a second drop theirs early."""
        self._heap = [(at_ms, order, key) for key, (at_ms, order) in self.moments.items()]
        heapq.heapify(self._heap)
