"""A refusal as gRPC tells it: code, google.rpc.Status with its details, or the ItemError of a batch. One table: CODES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.rpc import error_details_pb2, status_pb2

from anvilmq_broker.domain.errors import (
    CODES,
    INVALID_ARGUMENT,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    Refused,
)
from anvilmq_proto.v1 import types_pb2

DOMAIN: Final = "anvilmq.io"
INTERNAL: Final = 13
DEFAULT_RETRY_MS: Final = 1_000
_WITH_FIELD: Final = frozenset({INVALID_ARGUMENT, UNIMPLEMENTED})
_MAY_REPEAT: Final = frozenset({RESOURCE_EXHAUSTED, UNAVAILABLE})

NAMES: Final[Mapping[int, str]] = {
    0: "ok",
    1: "cancelled",
    3: "invalid_argument",
    4: "deadline_exceeded",
    5: "not_found",
    6: "already_exists",
    7: "permission_denied",
    8: "resource_exhausted",
    9: "failed_precondition",
    10: "aborted",
    12: "unimplemented",
    13: "internal",
    14: "unavailable",
    16: "unauthenticated",
}
"""Codes as metrics and log lines spell them."""


class Failure(Exception):
    """A call that failed. status: the google.rpc.Status that its caller is given."""

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status

    @property
    def code(self) -> int:
        """The gRPC code."""
        return int(self.status.code)


def of(refused: Refused, *, index: int | None = None) -> status_pb2.Status:
    """The status of a refused call. index: place of the item that refused its batch, told in the metadata."""
    code = CODES[refused.reason]
    status = status_pb2.Status(code=code, message=refused.message)
    metadata = dict(refused.metadata)
    if refused.field and code in _WITH_FIELD:
        metadata["field"] = refused.field
    if index is not None:
        metadata["index"] = str(index)
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=refused.reason, domain=DOMAIN, metadata=metadata))
    if refused.field and code == INVALID_ARGUMENT:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=refused.field, description=refused.message, reason=refused.reason
        )
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if delay := retry_after_ms(refused):
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromMilliseconds(delay)
        status.details.add().Pack(info)
    return status


def failure(refused: Refused, *, index: int | None = None) -> Failure:
    """The same, to be raised."""
    return Failure(of(refused, index=index))


def internal() -> Failure:
    """What a fault of the broker itself is answered with; the log has the rest."""
    return Failure(status_pb2.Status(code=INTERNAL, message="the broker failed; its log says why"))


def item_error(refused: Refused, index: int) -> types_pb2.ItemError:
    """The refusal of item `index` of a batch; its field path stays relative to the item."""
    return types_pb2.ItemError(
        index=index,
        code=CODES[refused.reason],
        reason=refused.reason,
        message=refused.message,
        field=refused.field,
        metadata=refused.metadata,
        retry_after_ms=retry_after_ms(refused),
    )


def retry_after_ms(refused: Refused) -> int:
    """When a repeat may help, in ms; 0 when it cannot."""
    if CODES[refused.reason] not in _MAY_REPEAT:
        return 0
    return refused.retry_after_ms or DEFAULT_RETRY_MS
