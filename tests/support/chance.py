"""Chance that repeats itself: the same seed gives the same tokens and the same jitter."""

import random


class SeededChance:
    """Tokens and spreads from one seed. `spreads`, while it has any, are handed out first."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.spreads: list[float] = []

    def token(self) -> str:
        """A token like those of production: 128 bits as text."""
        return f"{self._random.getrandbits(128):032x}"

    def spread(self) -> float:
        """A number in [0, 1)."""
        return self.spreads.pop(0) if self.spreads else self._random.random()
