"""Fields of calls that are built whose own feature is not: set ones are refused FEATURE_NOT_BUILT, nothing written.

The table is the list; a test sends each of its fields. Whole calls that are not built need no entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.protobuf.message import Message

from anvilmq_broker.gateway.refusals import not_built
from anvilmq_proto.v1 import worker_service_pb2

NOT_BUILT: Final[Mapping[str, tuple[str, ...]]] = {
    "anvilmq.v1.JobSpec": ("group_id", "order_key", "deduplication"),
    "anvilmq.v1.JobFilter": ("group_id", "flow_id"),
}
"""Message → its fields that wait for groups, deduplication, flows."""

OUTCOMES_NOT_BUILT: Final = frozenset({worker_service_pb2.SETTLE_OUTCOME_AWAIT_CHILDREN})
"""Outcomes of a settlement that wait for flows."""

BUILT: Final[tuple[str, ...]] = ("schedulers",)
"""Optional abilities that are whole, as GetServerInfo and the opening of a session tell them (api section 8)."""


def refuse_unbuilt(message: Message, path: str = "") -> None:
    """Refuse the message if a field of the table is set in it. path: prefix of the fields, such as "filter."."""
    unbuilt = NOT_BUILT[message.DESCRIPTOR.full_name]
    for field, _ in message.ListFields():
        if field.name in unbuilt:
            raise not_built(path + field.name)
