"""Checks of single values, each with the path of its field (api sections 6 and 9). Called for every job: terse on purpose.

Each takes a value and the field's path, and returns the value, or raises Rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from anvilmq_broker.domain import ids
from anvilmq_broker.gateway import limits
from anvilmq_broker.gateway.refusals import batch_too_large, invalid, job_not_found, payload_too_large, required

_QUEUE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WIDE: Final = frozenset(
    {
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_FIXED64,
        FieldDescriptor.TYPE_SFIXED64,
    }
)


@lru_cache(maxsize=4_096)
def queue(text: str, field: str = "queue") -> str:
    """A queue's name: 1–128 of `A-Z a-z 0-9 _ . : -`, not starting with `. : -`."""
    if not text:
        raise required(field)
    if _QUEUE.fullmatch(text) is None:
        raise invalid(field, "must be 1-128 of A-Z a-z 0-9 _ . : - and must not start with . : -")
    return text


@lru_cache(maxsize=4_096)
def name(text: str, field: str = "name") -> str:
    """A job's name or a worker_id: 1–128 bytes of UTF-8 without control characters."""
    if not text:
        raise required(field)
    return plain_text(text, field, limits.MAX_NAME_BYTES)


def key(text: str, field: str = "idempotency_key") -> str:
    """An idempotency key: 1–255 bytes of UTF-8 without control characters."""
    if not text:
        raise required(field)
    return plain_text(text, field, limits.MAX_KEY_BYTES)


def plain_text(value: str, field: str, limit: int) -> str:
    """A text of at most `limit` bytes without control characters; may be empty."""
    if value.isascii() and value.isprintable() and len(value) <= limit:
        return value
    if (size := byte_length(value)) > limit:
        raise invalid(field, f"has {size} bytes, at most {limit} are allowed")
    if _CONTROL.search(value):
        raise invalid(field, "must not have control characters")
    return value


def text(value: str, field: str, limit: int) -> str:
    """Free text of at most `limit` bytes, without U+0000."""
    without_nul(value, field)
    if len(value) * 4 > limit and (size := byte_length(value)) > limit:
        raise invalid(field, f"has {size} bytes, at most {limit} are allowed")
    return value


def without_nul(value: str, field: str) -> str:
    """A text without U+0000."""
    if "\0" in value:
        raise invalid(field, "must not have the character U+0000")
    return value


def json_text(value: str, field: str, limit: int) -> str:
    """One JSON text of at most `limit` bytes."""
    without_nul(value, field)
    if len(value) * 4 > limit and (size := byte_length(value)) > limit:
        raise payload_too_large(field, size, limit)
    try:
        msgspec.json.decode(value, type=msgspec.Raw)
    except msgspec.DecodeError:
        raise invalid(field, "must be one JSON text") from None
    except RecursionError:
        raise invalid(field, "is nested too deeply for a JSON text that others can read") from None
    return value


def byte_length(value: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(value) if value.isascii() else len(value.encode())


def cut(value: str, limit: int) -> str:
    """The beginning of the text, at most `limit` bytes, whole characters."""
    if len(value) * 4 <= limit:
        return value
    return value.encode()[:limit].decode(errors="ignore")


def cut_front(value: str, limit: int) -> str:
    """The end of the text, at most `limit` bytes, whole characters."""
    if len(value) * 4 <= limit:
        return value
    return value.encode()[-limit:].decode(errors="ignore")


def number(value: int, field: str, low: int, high: int) -> int:
    """An integer in low..high."""
    if not low <= value <= high:
        raise invalid(field, f"{value} is not in {low}..{high}")
    return value


def duration(value: int, field: str, high: int = limits.MAX_DURATION_MS) -> int:
    """A duration in ms, at most 100 years unless `high` says less."""
    return number(value, field, 0, high)


def instant(value: int, field: str) -> int:
    """Unix ms, up to the end of the year 9999."""
    return number(value, field, 0, limits.MAX_INSTANT_MS)


def headers(entries: Mapping[str, str], field: str = "headers") -> dict[str, str]:
    """At most 32 headers of 8 KiB in all; keys in lower case."""
    found = dict(entries)
    _count(found, field)
    size = 0
    for key_, value in found.items():
        _entry_text(key_, value, field)
        if not key_ or key_ != key_.lower():
            raise invalid(f"{field}.{key_}", "keys must not be empty and must be in lower case")
        size += byte_length(key_) + byte_length(value)
    if size > limits.MAX_HEADER_BYTES:
        raise payload_too_large(field, size, limits.MAX_HEADER_BYTES)
    return found


def labels(entries: Mapping[str, str], field: str = "labels") -> dict[str, str]:
    """At most 32 labels; keys of 1–63 bytes, values of at most 128."""
    found = dict(entries)
    _count(found, field)
    for key_, value in found.items():
        _entry_text(key_, value, field)
        if not 1 <= byte_length(key_) <= limits.MAX_LABEL_KEY_BYTES:
            raise invalid(f"{field}.{key_[:80]}", f"keys have 1-{limits.MAX_LABEL_KEY_BYTES} bytes")
        if byte_length(value) > limits.MAX_LABEL_VALUE_BYTES:
            raise invalid(f"{field}.{key_}", f"values have at most {limits.MAX_LABEL_VALUE_BYTES} bytes")
    return found


def job_id(text_: str, field: str = "job_id") -> tuple[int, int]:
    """(created_ms, number) of a job's id. Raises Rejected JOB_NOT_FOUND for a text that no job can have as id."""
    if not text_:
        raise required(field)
    if (found := ids.decode(text_)) is None:
        raise job_not_found(text_[:64].replace("\0", ""))
    return found


def page_size(value: int) -> int:
    """Entries of one page: 0 = 100, more than 1 000 is cut."""
    if value < 0:
        raise invalid("page_size", "must not be negative")
    return min(value or limits.DEFAULT_PAGE_SIZE, limits.MAX_PAGE_SIZE)


def batch(size: int, field: str, limit: int) -> None:
    """A batch of 1..limit entries."""
    if not size:
        raise invalid(field, "must have at least one entry")
    if size > limit:
        raise batch_too_large(field, size, limit)


def message(request: Message, path: str = "") -> None:
    """U+0000 in texts and integers from 2^53, in every field; for the requests that are not frequent."""
    for field, value in request.ListFields():
        here = f"{path}{field.name}"
        if field.is_repeated:
            _repeated(field, value, here)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            message(value, f"{here}.")
        else:
            _scalar(field, value, here)


def _repeated(field: FieldDescriptor, values: Any, path: str) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        for key_, value in values.items():
            _entry_text(key_, value, path)
        return
    for index, value in enumerate(values):
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            message(value, f"{path}[{index}].")
        else:
            _scalar(field, value, f"{path}[{index}]")


def _scalar(field: FieldDescriptor, value: Any, path: str) -> None:
    if field.type == FieldDescriptor.TYPE_STRING:
        without_nul(value, path)
    elif field.type in _WIDE and abs(value) > limits.MAX_INTEGER:
        raise invalid(path, "must be below 2^53")


def _count(entries: Mapping[str, str], field: str) -> None:
    if len(entries) > limits.MAX_ENTRIES:
        raise batch_too_large(field, len(entries), limits.MAX_ENTRIES)


def _entry_text(key_: str, value: str, field: str) -> None:
    if "\0" in key_ or "\0" in value:
        raise invalid(field, "must not have the character U+0000")
