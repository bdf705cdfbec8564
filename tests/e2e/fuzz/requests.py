"""Requests made at random from the descriptors: good values, values at the edges, values that are wrong."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

TEXTS: Final = (
    "",
    "q",
    "n",
    "a b",
    "\0",
    "ä" * 200,
    "x" * 300,
    "{}",
    "[1,2",
    "!",
    "\u2028",
    "🎉",
    "w1",
    "0" * 26,
    "Z" * 26,
)
INTEGERS: Final = (0, 1, -1, 2, 5, 99, 1_000, 1_001, 2**31 - 1, -(2**31), 2**53 - 1, 2**53, 2**63 - 1, -(2**63))
DOUBLES: Final = (0.0, 1.0, 0.5, -1.0, float("nan"), float("inf"))
GOOD: Final = {
    "queue": "q",
    "queues": "q",
    "name": "n",
    "worker_id": "w",
    "producer_id": "p",
    "progress_json": "1",
    "cron": "*/5 * * * *",
    "time_zone": "Europe/Berlin",
    "kind": "JobScheduler",
    "namespace": "shop",
    "uid": "u",
}
_DEEPEST: Final = 4


class Requests:
    """Makes requests. What the broker has answered is used in later ones, so that some of them hit something."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._job_ids: list[str] = []
        self._tokens: list[str] = []

    def make(self, kind: type[Message]) -> Message:
        """One request, with so many of its fields set at random."""
        request = kind()
        self._fill(request, 0, self._random.choice((0.2, 0.5, 0.9)))
        if hasattr(request, "wait_ms"):
            request.wait_ms = min(request.wait_ms, 1)
        return request

    def bytes(self) -> bytes:
        """What may or may not be a message."""
        return self._random.randbytes(self._random.choice((0, 1, 2, 5, 40)))

    def learn(self, answer: Any) -> None:
        """Remember ids and tokens of an answer."""
        self._job_ids += [*getattr(answer, "job_ids", ()), *filter(None, [getattr(answer, "job_id", "")])]
        for delivery in getattr(answer, "deliveries", ()):
            self._job_ids.append(delivery.job_id)
            self._tokens.append(delivery.lease_token)
        del self._job_ids[:-20], self._tokens[:-20]

    def _fill(self, message: Any, depth: int, density: float) -> None:
        for field in message.DESCRIPTOR.fields:
            if self._random.random() > density:
                continue
            if field.message_type is None:
                self._put_scalar(message, field)
            elif depth < _DEEPEST:
                self._put_message(message, field, depth, density)

    def _put_scalar(self, message: Any, field: FieldDescriptor) -> None:
        if field.is_repeated:
            getattr(message, field.name).extend(self._value(field) for _ in range(self._random.choice((1, 1, 3))))
        else:
            setattr(message, field.name, self._value(field))

    def _put_message(self, message: Any, field: FieldDescriptor, depth: int, density: float) -> None:
        held = getattr(message, field.name)
        if not field.is_repeated:
            held.SetInParent()
            self._fill(held, depth + 1, density)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            for _ in range(self._random.choice((1, 2, 33))):
                held[self._random.choice(TEXTS)] = self._random.choice(TEXTS)
        else:
            for _ in range(self._random.choice((1, 1, 3))):
                self._fill(held.add(), depth + 1, density)

    def _value(self, field: FieldDescriptor) -> Any:
        choose = self._random.choice
        match field.type:
            case FieldDescriptor.TYPE_STRING:
                return self._text(field.name)
            case FieldDescriptor.TYPE_BYTES:
                return choose((b"", b"{}", b"\xff\x00", b"x" * 2_000))
            case FieldDescriptor.TYPE_BOOL:
                return choose((False, True))
            case FieldDescriptor.TYPE_DOUBLE:
                return choose(DOUBLES)
            case FieldDescriptor.TYPE_ENUM:
                return choose((0, 1, 2, 3, 4, 99, -1))
            case FieldDescriptor.TYPE_UINT32:
                return abs(choose(INTEGERS)) % 2**32
            case FieldDescriptor.TYPE_UINT64:
                return abs(choose(INTEGERS))
            case FieldDescriptor.TYPE_INT32:
                return max(-(2**31), min(2**31 - 1, choose(INTEGERS)))
            case _:
                return choose(INTEGERS)

    def _text(self, name: str) -> str:
        known = {"job_id": self._job_ids, "expected_job_id": self._job_ids, "lease_token": self._tokens}.get(name)
        if known and self._random.random() < 0.7:
            return self._random.choice(known)
        if name in GOOD and self._random.random() < 0.7:
            return GOOD[name]
        return self._random.choice(TEXTS)
