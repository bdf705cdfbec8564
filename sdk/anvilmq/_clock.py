"""Monotonic time and timers of the SDK, handed in wherever something waits: the system's, or one that a test moves."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Drop the call. Harmless when it was made, or dropped before."""


class Clock(Protocol):
    """Seconds from some fixed moment, and waits measured in them."""

    def monotonic(self) -> float:
        """Now, in seconds. Never goes back. May be called from any thread."""

    def now_ms(self) -> int:
        """The time of day: Unix milliseconds. For what is stored, never for waits."""

    async def sleep(self, seconds: float) -> None:
        """Return after that time, 0 or less: after one turn of the loop."""

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Make the call on the running loop after that time. Only on the loop of the I/O."""


class SystemClock:
    """The clock of the machine."""

    # Called several times a job: not wrapped.
    monotonic = staticmethod(time.monotonic)

    def now_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """See Clock."""
        return asyncio.get_running_loop().call_later(seconds, call)


class ManualTimer:
    """A timer of a ManualClock."""

    __slots__ = ("call", "due_at")

    def __init__(self, due_at: float, call: Callable[[], object] | None) -> None:
        self.due_at = due_at
        self.call = call

    def cancel(self) -> None:
        """See Timer."""
        self.call = None


class ManualClock:
    """A clock that stands still until it is moved. For one loop and its thread. start_ms: its time of day at first."""

    def __init__(self, now: float = 1_000.0, *, start_ms: int = 1_700_000_000_000) -> None:
        self._now = now
        self._day_ms = start_ms - round(now * 1_000)
        self._order = itertools.count()
        self._timers: list[tuple[float, int, ManualTimer]] = []

    def monotonic(self) -> float:
        """See Clock."""
        return self._now

    def now_ms(self) -> int:
        """See Clock."""
        return self._day_ms + round(self._now * 1_000)

    async def sleep(self, seconds: float) -> None:
        """See Clock. A cancelled sleep leaves no timer behind."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        over = asyncio.Event()
        timer = self.call_later(seconds, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """See Clock."""
        timer = ManualTimer(self._now + seconds, call)
        heapq.heappush(self._timers, (timer.due_at, next(self._order), timer))
        return timer

    def next_due_at(self) -> float | None:
        """When the first timer falls due; None without any."""
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def advance_to(self, moment: float) -> None:
        """Move on to that moment, making the calls that fall due on the way, in order, each at its own time.

        What a call starts on the loop runs only when the loop gets a turn: to let it set timers of its own that fall
        due on the way, advance to `next_due_at()` step by step, and give the loop turns in between.
        """
        while (due_at := self.next_due_at()) is not None and due_at <= moment:
            timer = heapq.heappop(self._timers)[2]
            self._now = max(self._now, due_at)
            call, timer.call = timer.call, None
            if call is not None:
                call()
        self._now = max(self._now, moment)

    def advance(self, seconds: float) -> None:
        """`advance_to` a moment that many seconds from now."""
        self.advance_to(self._now + seconds)
