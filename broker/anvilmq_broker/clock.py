"""Where the time comes from: handed in everywhere, so that a test can hold it."""

from __future__ import annotations

import time
from typing import Final, Protocol

MAX_STANDSTILL_MS: Final = 60_000
"""How far the wall clock may fall behind before the broker follows it."""


class Clock(Protocol):
    """The two clocks of a machine."""

    def wall_ms(self) -> int:
        """Unix time in ms; may be set back or forth at any moment."""

    def monotonic_ms(self) -> float:
        """Ms since some fixed moment, never falling; for waits and for measuring."""


class SystemClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        """Unix time in ms."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Ms since some fixed moment, never falling."""
        return time.monotonic_ns() / 1_000_000


class BrokerTime:
    """The time of the broker's decisions: the wall clock, kept from running backwards (storage.md 2).

    It stands still while the wall clock is behind, up to a minute. After a longer step back it takes the wall clock
    and tells so once by `stepped_back`.
    """

    def __init__(self, clock: Clock, last_ms: int = 0) -> None:
        self._clock = clock
        self._now_ms = last_ms
        self._stepped_back = False

    def now_ms(self) -> int:
        """Unix time in ms, not below an earlier answer, but after a long step back."""
        wall = self._clock.wall_ms()
        if wall >= self._now_ms:
            self._now_ms = wall
        elif self._now_ms - wall > MAX_STANDSTILL_MS:
            self._now_ms = wall
            self._stepped_back = True
        return self._now_ms

    def until_ms(self, at_ms: int) -> int:
        """Ms of wall time until `now_ms` reaches at_ms; 0 when it has."""
        return max(0, at_ms - self._clock.wall_ms()) if at_ms > self.now_ms() else 0

    def stepped_back(self) -> bool:
        """Whether a long step back was followed since the last question."""
        stepped, self._stepped_back = self._stepped_back, False
        return stepped
