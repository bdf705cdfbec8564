"""Calls that are safe to repeat, made again while a broker that was there is away."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from anvilmq import _retry, errors

if TYPE_CHECKING:
    from anvilmq._clock import Clock

T = TypeVar("T")
LONGEST_S: Final = 60.0


class Patience:
    """Gives a broker a minute to come back; one that never answered gets no second try.

    note: told when it is away.
    """

    def __init__(self, clock: Clock, note: Callable[[str], None], chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._note = note
        self._chance = chance
        self._was_there = False

    async def call(self, make: Callable[[], Awaitable[T]], until: float | None = None) -> T:
        """The answer. `make` starts the call, each time anew.

        until: monotonic seconds after which no further try is made; None = when a minute is over. Raises what the last
        try raised.
        """
        given_up_at = self._clock.monotonic() + LONGEST_S
        failures = 0
        while True:
            try:
                answer = await make()
            except errors.CallError as error:
                failures += 1
                pause_s = _retry.delay_s(failures, self._chance(), error)
                ends_at = given_up_at if until is None else min(until, given_up_at)
                if not self._may_help(error) or self._clock.monotonic() + pause_s > ends_at:
                    raise
                if failures == 1:
                    self._note(f"the broker does not answer ({error.message}); trying again for a minute")
                await self._clock.sleep(pause_s)
            else:
                self._was_there = True
                return answer

    def _may_help(self, error: errors.CallError) -> bool:
        # An error with a reason comes from the broker itself.
        return (self._was_there or bool(error.reason)) and _retry.is_transient(error)
