"""Unguessable tokens and jitter, drawn from the system in bulk."""

from __future__ import annotations

import os
import random
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Final

_TOKEN_BYTES: Final = 18
"""144 bits: 24 characters without padding."""
_TOKEN_TEXT: Final = 24
_TOKENS: Final = 256


class SystemChance:
    """`protocol.Chance` for production. draw: so many bytes nobody can guess."""

    def __init__(self, draw: Callable[[int], bytes] = os.urandom) -> None:
        self._draw = draw
        self._tokens: list[str] = []
        self._spread = random.Random(draw(16)).random

    def token(self) -> str:
        """A fresh lease token: 24 characters, 144 bits."""
        if not self._tokens:
            # One draw for many: a system call a token would cost more than all else about it.
            text = urlsafe_b64encode(self._draw(_TOKEN_BYTES * _TOKENS)).decode()
            self._tokens = [text[at : at + _TOKEN_TEXT] for at in range(0, len(text), _TOKEN_TEXT)]
        return self._tokens.pop()

    def spread(self) -> float:
        """A number in [0, 1), for jitter."""
        return self._spread()
