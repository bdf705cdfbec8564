"""Deliveries as the bytes of a frame. Runs for every job: terse on purpose.

Building a message field by field, and encoding it then, costs more than all else that a gateway does for a delivery. A
message's encoding is that of its fields one after the other, in any order: what all deliveries of a kind share is encoded
once by protobuf, and the rest, four fields, is put behind it by hand. A delivery with a field that is rare goes the usual way.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.gateway import mapping
from anvilmq_proto.v1 import worker_service_pb2 as pb

_MOST_KINDS: Final = 1_024
_VARINT: Final = 0
_BYTES: Final = 2


def varint(value: int) -> bytes:
    """A number, not negative, as protobuf writes it."""
    if value < 128:
        return _SMALL[value]
    if value < 16_384:
        return bytes((value & 127 | 128, value >> 7))
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_SMALL: Final = tuple(bytes((value,)) for value in range(128))


def _tag(message: type[Message], field: str, wire_type: int) -> bytes:
    number: int = message.DESCRIPTOR.fields_by_name[field].number
    return varint(number << 3 | wire_type)


_DELIVERIES: Final = _tag(pb.WorkResponse, "deliveries", _BYTES)
_JOB_ID: Final = _tag(pb.Delivery, "job_id", _BYTES) + varint(ids.LENGTH)
_LEASE_TOKEN: Final = _tag(pb.Delivery, "lease_token", _BYTES)
_DATA: Final = _tag(pb.Delivery, "data", _BYTES)
_CREATED_AT_MS: Final = _tag(pb.Delivery, "created_at_ms", _VARINT)


class Deliveries:
    """Encodes the deliveries of a session."""

    __slots__ = ("_created", "_created_ms", "_kinds")

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str, int, int, int, int, int, int, int], bytes] = {}
        self._created_ms = -1
        self._created = b""

    def encode(self, one: commands.Delivery) -> bytes:
        """The delivery as an entry of WorkResponse.deliveries."""
        if (
            one.headers or one.labels or one.key or one.stalled or one.progress_json or one.group_id or one.scheduler
        ):  # fmt: skip
            frame = pb.WorkResponse()
            mapping.put_deliveries(frame.deliveries, (one,))
            return frame.SerializeToString()
        kind = (
            one.queue, one.name, one.content_type, one.attempt, one.max_attempts, one.lease_ms, one.attempt_timeout_ms,
            one.pool, one.starts, one.priority,
        )  # fmt: skip
        shared = self._kinds.get(kind) or self._encode_kind(kind, one)
        created_ms, token, data = one.created_ms, one.token.encode(), one.data
        if created_ms != self._created_ms:
            self._created_ms, self._created = created_ms, _CREATED_AT_MS + varint(created_ms)
        fields = b"".join((
            shared, self._created, _JOB_ID, ids.encode(created_ms, one.number).encode(), _LEASE_TOKEN, varint(len(token)),
            token, _DATA, varint(len(data)), data,
        ))  # fmt: skip
        return b"".join((_DELIVERIES, varint(len(fields)), fields))

    def _encode_kind(
        self, kind: tuple[str, str, str, int, int, int, int, int, int, int], one: commands.Delivery
    ) -> bytes:
        frame = pb.WorkResponse()
        mapping.put_deliveries(frame.deliveries, (one,))
        message = frame.deliveries[0]
        for field in ("job_id", "lease_token", "data", "created_at_ms"):
            message.ClearField(field)
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        shared = self._kinds[kind] = message.SerializeToString()
        return shared
