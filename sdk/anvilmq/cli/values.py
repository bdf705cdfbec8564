"""Values as they are typed: pairs, payloads, enums. What is wrong raises UsageProblem with the flag and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from anvilmq.cli.exits import UsageProblem

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    from anvilmq.cli.terminal import Terminal

JSON_TYPE: Final = "application/json"


def pairs(flag: str, texts: Iterable[str] | None) -> dict[str, str]:
    """KEY=VALUE texts as a mapping; the value may be empty and may hold further signs of equality."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageProblem(flag, f"{text!r} is no pair; write it as key=value")
        if found.setdefault(key, value) != value:
            raise UsageProblem(flag, f"{key!r} is given twice, with different values")
    return found


def listed(flag: str, text: str) -> list[str]:
    """The words of a text that commas stand between."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageProblem(flag, f"{text!r} has an empty place; write it as one,two")
    return words


def payload(flag: str, text: str | None, content_type: str, terminal: Terminal) -> bytes:
    """The bytes of a payload: the text itself, @FILE for a file, - for stdin. JSON is checked if it is to be JSON."""
    if text is None:
        return b""
    source, data = _read(flag, text, terminal)
    if content_type in {"", JSON_TYPE}:
        _check_json(flag, data, source)
    return data


def _read(flag: str, text: str, terminal: Terminal) -> tuple[str, bytes]:
    if text == "-":
        return "what came on stdin", terminal.read_bytes()
    if not text.startswith("@"):
        # What the shell handed on as undecodable bytes goes back to these bytes.
        return "the payload", text.encode("utf-8", "surrogateescape")
    path = Path(text[1:])
    try:
        return str(path), path.read_bytes()
    except OSError as problem:
        raise UsageProblem(flag, f"{path} cannot be read: {problem.strerror}") from problem


def _check_json(flag: str, data: bytes, source: str) -> None:
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError) as problem:
        remedy = "quote it for the shell, or name its kind with --content-type"
        raise UsageProblem(flag, f"{source} is no JSON: {problem}; {remedy}") from problem


def enum_name(flag: str, enum: EnumTypeWrapper, word: str) -> str:
    """The name in the contract of a value typed as a word: JOB_STATE_WAITING of waiting."""
    name = f"{_prefix(enum)}{word.upper().replace('-', '_')}"
    known = {value.name: value.number for value in enum.DESCRIPTOR.values}
    if not known.get(name):
        words = ", ".join(enum_word(enum, number) for number in known.values() if number)
        raise UsageProblem(flag, f"{word!r} is none of: {words}")
    return name


def enum_word(enum: EnumTypeWrapper, number: int) -> str:
    """The word for a value: in lower case, "" for the unspecified one, the number for one that is newer than we."""
    if number == 0:
        return ""
    value = enum.DESCRIPTOR.values_by_number.get(number)
    return value.name.removeprefix(_prefix(enum)).lower() if value is not None else str(number)


def _prefix(enum: EnumTypeWrapper) -> str:
    return enum.DESCRIPTOR.values_by_number[0].name.removesuffix("UNSPECIFIED")
