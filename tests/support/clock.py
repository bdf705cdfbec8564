"""A clock that stands until a test moves it."""

from typing import Final

START_MS: Final = 1_800_000_000_000
"""Unix time at which every test begins; a time in 2027, so that nothing depends on today."""


class FakeClock:
    """Both clocks of a machine: `advance` moves them together, `set_wall` the wall alone, as an operator would."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._wall_ms = start_ms
        self._monotonic_ms = 0.0

    def wall_ms(self) -> int:
        """Unix time in ms."""
        return self._wall_ms

    def monotonic_ms(self) -> float:
        """Ms since the clock was made."""
        return self._monotonic_ms

    def advance(self, by_ms: int) -> None:
        """Let time pass. by_ms: 0 or more."""
        assert by_ms >= 0, "time passes forwards; use set_wall to step back"
        self._wall_ms += by_ms
        self._monotonic_ms += by_ms

    def set_wall(self, to_ms: int) -> None:
        """Set the wall clock, forth or back; the monotonic clock goes on as it was."""
        self._wall_ms = to_ms
