"""What the broker refuses, and how it says so.

    BrokerError
    ├── StoreError            the store could not do its work: stop answering
    │   ├── Constraint        a promise of the schema was broken; names it
    │   ├── StorageFull       no room on the volume; the transaction was rolled back
    │   ├── StorageIO         reading, writing or flushing failed: outcome unknown
    │   ├── Busy              somebody else writes to the file
    │   ├── Corrupt           the file is damaged
    │   └── Fenced            another broker has taken the file over
    └── StartRefused          the engine must not start; has a reason, a message with a remedy

A refusal of one command or item is a value, `Refused`, never an exception: one bad item must not end the others.
`CODES` is the one table from a stable reason (semantics 7, api section 5) to its gRPC code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=0, omit_defaults=True):
    """One command or item that was refused; nothing was written for it.

    reason: a key of CODES. field: path relative to the item. index: place of the item in its batch, 0 for a
    command that stands alone. retry_after_ms: 0 when a repeat cannot help.
    """

    reason: str
    message: str
    field: str = ""
    metadata: dict[str, str] = {}
    index: int = 0
    retry_after_ms: int = 0


class BrokerError(Exception):
    """An error of the broker itself."""


class StoreError(BrokerError):
    """The store could not do its work; the outcome of the open transaction is unknown."""


class Constraint(StoreError):
    """A named constraint of the schema refused a row."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class StorageFull(StoreError):
    """The volume has no room; the statement wrote nothing."""


class StorageIO(StoreError):
    """Reading, writing or flushing the file failed."""


class Busy(StoreError):
    """Another connection holds the file's write lock."""


class Corrupt(StoreError):
    """The file is damaged or not a database."""


class Fenced(StoreError):
    """Another broker has started on this file since; this one must stop."""


class StartRefused(BrokerError):
    """The engine must not start on this data. reason: a stable snake_case word; the message has the remedy."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


INVALID_ARGUMENT: Final = 3
NOT_FOUND: Final = 5
ALREADY_EXISTS: Final = 6
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
ABORTED: Final = 10
UNIMPLEMENTED: Final = 12
UNAVAILABLE: Final = 14
UNAUTHENTICATED: Final = 16

_BY_CODE: Final[dict[int, Sequence[str]]] = {
    INVALID_ARGUMENT: (
        "INVALID_FIELD SESSION_PROTOCOL MALFORMED_MESSAGE PAYLOAD_TOO_LARGE BATCH_TOO_LARGE SCHEDULE_INVALID "
        "TIME_ZONE_UNKNOWN TEMPLATE_INVALID PARAMETER_INVALID PAGE_TOKEN_INVALID CURSOR_INVALID CONFIRMATION_MISMATCH"
    ).split(),
    NOT_FOUND: (
        "JOB_NOT_FOUND FLOW_NOT_FOUND FLOW_TARGET_NOT_FOUND QUEUE_NOT_FOUND GROUP_NOT_FOUND RECEIPT_NOT_FOUND "
        "DEDUPLICATION_NOT_FOUND SCHEDULER_NOT_FOUND TEMPLATE_NOT_FOUND WORKER_NOT_FOUND"
    ).split(),
    ALREADY_EXISTS: "IDEMPOTENCY_KEY_REUSED FLOW_CHILD_EXISTS NAME_CONFLICT".split(),
    PERMISSION_DENIED: ("SCOPE_MISSING",),
    RESOURCE_EXHAUSTED: "QUEUE_FULL OVERLOADED STORAGE_FULL".split(),
    FAILED_PRECONDITION: (
        "LEASE_LOST JOB_STATE JOB_ACTIVE CHILDREN_PENDING SEQUENCE_STALE KEY_HELD OWNED_BY_CRD TEMPLATE_IN_USE "
        "MAINTENANCE_REQUIRED FLOW_TARGET_TERMINAL FLOW_TARGET_ACTIVE FLOW_TOO_DEEP FLOW_TOO_LARGE"
    ).split(),
    ABORTED: "REVISION_MISMATCH SESSION_REPLACED".split(),
    UNIMPLEMENTED: ("FEATURE_NOT_BUILT",),
    UNAVAILABLE: "NOT_READY DRAINING MAINTENANCE SESSION_TIMEOUT".split(),
    UNAUTHENTICATED: "TOKEN_MISSING TOKEN_INVALID".split(),
}

CODES: Final[dict[str, int]] = {reason: code for code, reasons in _BY_CODE.items() for reason in reasons}
"""gRPC code of each stable reason."""
