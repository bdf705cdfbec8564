"""When the next slice of retention is due [1.12]: often while something is left, each minute otherwise, busy or not."""

from __future__ import annotations

from typing import Final

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands

SLICE_ROWS: Final = 500
MORE_LEFT_MS: Final = 10_000
NOTHING_LEFT_MS: Final = 60_000


class Pruner:
    """Says when; the loop carries out the command. An idle engine prunes on time, a busy one at twice the time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._every_ms = NOTHING_LEFT_MS
        self._next_ms = clock.monotonic_ms() + MORE_LEFT_MS

    def next_ms(self) -> float:
        """The moment (monotonic) of the next slice."""
        return self._next_ms

    def due(self, busy: bool) -> bool:
        """Whether to prune now; then the next slice is put off until `pruned` says otherwise. busy: frames came."""
        late = self._clock.monotonic_ms() - self._next_ms
        if late < (self._every_ms if busy else 0):
            return False
        self._every_ms = NOTHING_LEFT_MS
        self._next_ms = self._clock.monotonic_ms() + self._every_ms
        return True

    def pruned(self, outcome: commands.Pruned) -> None:
        """A slice is done."""
        if outcome.more:
            self._every_ms = MORE_LEFT_MS
            self._next_ms = self._clock.monotonic_ms() + self._every_ms
