"""The delay before the next try of a job (semantics 1.6)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec


class Kind(IntEnum):
    """How the delay grows with the failures."""

    FIXED = 1
    EXPONENTIAL = 2


class Backoff(msgspec.Struct, frozen=True, array_like=True):
    """delay_ms, max_delay_ms: 0..7 d in ms. jitter_permille: 0..1000, the share that chance may take off."""

    kind: Kind = Kind.EXPONENTIAL
    delay_ms: int = 1_000
    max_delay_ms: int = 300_000
    jitter_permille: int = 250


DEFAULT: Final = Backoff()
_MAX_DOUBLINGS: Final = 40


def next_delay_ms(policy: Backoff, failures: int, spread: float) -> int:
    """Delay before the next try, in ms.

    failures: failed tries so far, from 1. spread: in [0, 1), drawn by the caller.
    Exponential base·2^(failures-1), capped, then taken from [d·(1-jitter), d] (semantics 1.6).
    Never raises: a Backoff is checked when it is parsed.
    """
    delay = policy.delay_ms
    if policy.kind is Kind.EXPONENTIAL:
        # Past 2^40 every base of at least 1 ms is above the longest cap; the bound keeps the integer small.
        delay <<= min(failures - 1, _MAX_DOUBLINGS)
    delay = min(delay, policy.max_delay_ms)
    return delay - int(delay * policy.jitter_permille * spread) // 1_000
