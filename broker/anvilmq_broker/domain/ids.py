"""The public id of a job: 26 characters of Crockford base32 over (created, number).

48 bits of creation time in ms and 80 bits of arrival number, upper case, sortable by creation. It is a name,
not a secret. Both parts must match at a lookup, so a number used again after a restore never names another job.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LENGTH: Final = 26
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PYTHON_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
_TO_PYTHON: Final = str.maketrans(_ALPHABET, _PYTHON_DIGITS)
_FORM: Final = re.compile(f"[{_ALPHABET}]{{{LENGTH}}}")
_PAIRS: Final = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_NUMBER_BITS: Final = 80
_NUMBER_MASK: Final = (1 << _NUMBER_BITS) - 1
_MAX_TIME: Final = 1 << 48


@lru_cache(maxsize=256)
def _prefix(created_ms: int) -> str:
    pairs = _PAIRS
    return "".join(pairs[(created_ms >> shift) & 1023] for shift in (40, 30, 20, 10, 0))


@lru_cache(maxsize=64)
def _high(value: int) -> str:
    return "".join(_PAIRS[(value >> shift) & 1023] for shift in (40, 30, 20, 10, 0))


def encode(created_ms: int, number: int) -> str:
    """The public id of the job with this creation time (ms, 0..2^48-1) and arrival number (0..2^80-1)."""
    pairs = _PAIRS
    return (
        _prefix(created_ms)
        + _high(number >> 30)
        + pairs[(number >> 20) & 1023]
        + pairs[(number >> 10) & 1023]
        + pairs[number & 1023]
    )


def decode(text: str) -> tuple[int, int] | None:
    """(created_ms, number) of a public id, or None when the text cannot be one."""
    if _FORM.fullmatch(text) is None:
        return None
    value = int(text.translate(_TO_PYTHON), 32)
    created_ms = value >> _NUMBER_BITS
    if created_ms >= _MAX_TIME:
        return None
    return created_ms, value & _NUMBER_MASK
