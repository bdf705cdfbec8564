"""When definitions are due: one timer each, so many of them fired in a batch as others can bear (semantics 6.2 to 6.5).

Everything about a tick is decided and written by the store in FireDue; here is only the time. A definition that waits
costs an entry of a heap, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands
from anvilmq_broker.engine.timers import Timers
from anvilmq_broker.store import protocol

FIRST_FIRED: Final = 50
LEAST_FIRED: Final = 20
MOST_FIRED: Final = 200
"""Definitions in one batch: as many as take 8 ms, within these bounds."""
_FIRING_MS: Final = 8.0
"""Ten thousand of one minute must not hold up whoever else wants something, nor take all of that minute."""
PAUSE_MS: Final = 30_000
"""The loop looks at the clock every 10 s: when it says so much more, the broker was stopped, or the clock set forward."""
LOOK_AGAIN_MS: Final = 1_000
"""While the volume is full."""


class Scheduler:
    """The timers of all definitions, and since when ticks have been fired on time.

    serving_since_ms: ticks that were due before it fell into downtime and are caught up as their definition says.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: Timers[str] = Timers()
        self._standings: dict[str, str] = {}
        self._last_ms = 0
        self.serving_since_ms = 0
        self._firing: list[str] = []
        self._most = FIRST_FIRED
        self._full_until: float | None = None
        self._reanchor_after: str | None = None

    def restore(self, ticks: list[protocol.Ticks], now_ms: int) -> None:
        """Begin from what the store has found."""
        self.serving_since_ms = self._last_ms = now_ms
        for effect in ticks:
            self.follow(effect)

    def follow(self, effect: protocol.Ticks) -> None:
        """After the commit: when the definition is due next, if ever."""
        if effect.due_ms is None:
            self._timers.drop(effect.uid)
        else:
            self._timers.set(effect.uid, effect.due_ms)
        if effect.standing:
            self._standings[effect.uid] = effect.standing
        else:
            self._standings.pop(effect.uid, None)

    def next_wall_ms(self) -> float | None:
        """The next moment of the broker's time at which a definition is due; 0: there is something to do now."""
        if self._reanchor_after is not None:
            return 0
        return None if self._full_until is not None else self._timers.next_ms()

    def next_monotonic_ms(self) -> float | None:
        """When to look again whether there is room for jobs."""
        return self._full_until

    def stepped_back(self, now_ms: int) -> None:
        """The clock was set back far: no tick is late by it, and every definition is counted anew [6.4]."""
        self.serving_since_ms = self._last_ms = now_ms
        self._reanchor_after = ""

    def due(self, now_ms: int, has_room: Callable[[], bool]) -> list[commands.Command]:
        """What the timers found, as commands. has_room: whether the store takes new jobs, asked when it matters."""
        if now_ms - self._last_ms > PAUSE_MS:
            self.serving_since_ms = now_ms
        self._last_ms = now_ms
        if self._full_until is not None:
            self._look_for_room(now_ms, has_room)
        found: list[commands.Command] = []
        if self._reanchor_after is not None:
            found.append(commands.ReanchorSchedulers(self._reanchor_after))
        if self._may_fire(now_ms, has_room):
            self._firing = self._timers.pop_due(now_ms, self._most)
            found.append(commands.FireDue(self._firing, self.serving_since_ms))
        return found

    def took(self, ms: float) -> None:
        """So long were the commands of this turn applied."""
        if len(self._firing) == self._most:
            fitting = int(self._most * _FIRING_MS / ms) if ms > 0 else MOST_FIRED
            # Half of the way: one turn says little on a busy machine.
            self._most = min(MOST_FIRED, max(LEAST_FIRED, (self._most + fitting) // 2))

    def reanchored(self, outcome: commands.Reanchored) -> None:
        """A slice was counted anew."""
        self._reanchor_after = outcome.next or None

    def committed(self) -> None:
        """What was fired has said by effects when it is due next."""
        self._firing = []

    def undo(self, now_ms: int) -> None:
        """The volume had no room for the batch: its ticks wait until there is some."""
        for uid in self._firing:
            self._timers.set(uid, now_ms)
        self._firing = []
        self._full_until = self._clock.monotonic_ms() + LOOK_AGAIN_MS

    def standings(self) -> dict[str, int]:
        """How many definitions there are, by standing."""
        counted: dict[str, int] = {}
        for standing in self._standings.values():
            counted[standing] = counted.get(standing, 0) + 1
        return counted

    def _look_for_room(self, now_ms: int, has_room: Callable[[], bool]) -> None:
        mono = self._clock.monotonic_ms()
        if self._full_until is not None and mono >= self._full_until:
            self._full_until = None if has_room() else mono + LOOK_AGAIN_MS
            # Ticks have waited for room as they would have for a broker.
            self.serving_since_ms = now_ms

    def _may_fire(self, now_ms: int, has_room: Callable[[], bool]) -> bool:
        at_ms = self._timers.next_ms()
        if at_ms is None or at_ms > now_ms or self._full_until is not None:
            return False
        if not has_room():
            self._full_until = self._clock.monotonic_ms() + LOOK_AGAIN_MS
        return self._full_until is None
