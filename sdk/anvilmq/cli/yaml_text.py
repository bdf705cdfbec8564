"""YAML of what JSON can say, so that `-o yaml` needs no library."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Line breaks and marks to YAML, plain characters to JSON.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# Plain, these would be read as booleans, null or numbers by one of the YAML versions in use.
_NOT_TEXT: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


def dump(value: Any) -> str:
    """One document, without a line end after it. Value: what json.loads can return."""
    return "\n".join(_lines(value))


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict) and value:
        return [line for key, item in value.items() for line in _entry(f"{_scalar(key)}:", item)]
    if isinstance(value, list) and value:
        return [line for item in value for line in _element(item)]
    return [_scalar(value)]


def _entry(key: str, value: Any) -> list[str]:
    inner = _lines(value)
    if not _is_block(value):
        return [f"{key} {inner[0]}"]
    indent = "" if isinstance(value, list) else "  "
    return [key, *(f"{indent}{line}" for line in inner)]


def _element(value: Any) -> list[str]:
    first, *rest = _lines(value)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _is_block(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    if isinstance(value, float) and "." not in (text := json.dumps(value)):
        # Without a point, YAML 1.1 reads 1e-06 as a text.
        return text.replace("e", ".0e")
    # A JSON scalar is a YAML scalar, but for some characters.
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
