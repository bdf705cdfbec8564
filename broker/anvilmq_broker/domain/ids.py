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
_FORM: Final = re.compile(f"[{_ALPHABET}]{{{LENGTH - 2}}}")
_PAIRS: Final = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_PLACES: Final = {pair: place for place, pair in enumerate(_PAIRS)}
_STEM: Final = LENGTH - 2
"""Of an id: all but the lowest ten bits of the number. Jobs made at one time mostly share it, so stems are remembered."""
_NUMBER_BITS: Final = 80
_NUMBER_MASK: Final = (1 << _NUMBER_BITS) - 1
_MAX_TIME: Final = 1 << 48


@lru_cache(maxsize=1_024)
def _stem(created_ms: int, high: int) -> str:
    value = created_ms << _NUMBER_BITS - 10 | high
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(110, -1, -10)])


@lru_cache(maxsize=1_024)
def _decode_stem(stem: str) -> tuple[int, int] | None:
    """created_ms, and the number with its lowest ten bits 0."""
    if _FORM.fullmatch(stem) is None:
        return None
    value = int(stem.translate(_TO_PYTHON), 32) << 10
    created_ms = value >> _NUMBER_BITS
    return None if created_ms >= _MAX_TIME else (created_ms, value & _NUMBER_MASK)


def encode(created_ms: int, number: int) -> str:
    """The public id of the job with this creation time (ms, 0..2^48-1) and arrival number (0..2^80-1)."""
    return _stem(created_ms, number >> 10) + _PAIRS[number & 1023]


def encode_run(created_ms: int, first: int, count: int) -> list[str]:
    """The public ids of `count` jobs made together, from arrival number `first` on."""
    found: list[str] = []
    while count > 0:
        place = first & 1023
        stem = _stem(created_ms, first >> 10)
        piece = _PAIRS[place : place + count]
        found += [stem + pair for pair in piece]
        first, count = first + len(piece), count - len(piece)
    return found


def decode(text: str) -> tuple[int, int] | None:
    """(created_ms, number) of a public id, or None when the text cannot be one."""
    stem, place = _decode_stem(text[:_STEM]), _PLACES.get(text[_STEM:])
    if stem is None or place is None:
        return None
    return stem[0], stem[1] | place
