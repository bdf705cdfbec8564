"""Everything that the SDK raises on its own.

    AnvilError
    ├─ CallError                    a call was refused, or did not come through; one class for each gRPC code:
    │   ├─ InvalidArgument          PayloadTooLarge, BatchTooLarge, ScheduleInvalid, TimeZoneUnknown
    │   ├─ NotFound                 JobNotFound, QueueNotFound, ReceiptNotFound, SchedulerNotFound, WorkerNotFound
    │   ├─ AlreadyExists            IdempotencyKeyReused
    │   ├─ FailedPrecondition       LeaseLost, JobStateConflict, KeyHeld, OwnedByCrd, FlowTargetTerminal, SequenceStale
    │   ├─ Aborted                  RevisionMismatch, SessionReplaced
    │   ├─ ResourceExhausted        QueueFull, Overloaded, StorageFull
    │   ├─ Unavailable              Draining
    │   ├─ Unimplemented            FeatureNotBuilt
    │   └─ Cancelled, Unknown, DeadlineExceeded, PermissionDenied, OutOfRange, Internal, DataLoss, Unauthenticated
    ├─ JobFailed, JobCancelled      how a job ended whose result was waited for
    ├─ WaitTimeout                  it has not ended yet
    ├─ PayloadInvalid               a value that cannot be encoded, or bytes that do not decode
    ├─ BulkStopped                  a bulk ended early
    ├─ SettingInvalid               a setting of the connection is wrong
    ├─ Closed                       the app is closed
    └─ UsedAfterFork                the app was used before this process forked

A reason that has no class here gives the class of its code. Catch by class or by `reason`, never by message.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

if TYPE_CHECKING:
    from google.rpc.status_pb2 import Status

    from anvilmq.bulk import BulkResult
    from anvilmq_proto.v1 import types_pb2

Outcome = Literal["not_sent", "unknown"]
"""What is known of a write that failed: nothing was written, or it may have been."""


class AnvilError(Exception):
    """Something went wrong between this program and the broker."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or "").partition("\n")[0])

    @property
    def message(self) -> str:
        """What happened, to what, and what to do."""
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with `args` alone, which leaves out what some of them need.
        return _remade, (type(self), *self.args), vars(self)


class CallError(AnvilError):
    """The call was refused, or did not come through.

    code: number of the gRPC code. reason: the stable name that the contract lists, "" when the refusal has none.
    metadata: what the contract lists for the reason. fields: path in the request → what is wrong with it.
    retry_after: when another try makes sense; None when nothing was said. index: the item of a batch, or None.
    """

    code: ClassVar[int] = 2
    reason: str = ""

    def __init__(
        self,
        message: str = "",
        *,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        if reason:
            self.reason = reason
        self.metadata: Mapping[str, str] = metadata or {}
        self.fields: Mapping[str, str] = fields or {}
        self.retry_after = retry_after

    @property
    def index(self) -> int | None:
        """The item of the batch that this is about."""
        index = self.metadata.get("index", "")
        return int(index) if index.isdecimal() else None

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.reason else self.message


class Cancelled(CallError):
    """The call was cancelled."""

    code = 1


class Unknown(CallError):
    """The call failed for a reason that nobody gave."""

    code = 2


class InvalidArgument(CallError):
    """The request is not valid."""

    code = 3


class DeadlineExceeded(CallError):
    """No answer came in time. A write may have gone through."""

    code = 4


class NotFound(CallError):
    """There is no such thing."""

    code = 5


class AlreadyExists(CallError):
    """There is such a thing already."""

    code = 6


class PermissionDenied(CallError):
    """The token lacks a scope."""

    code = 7


class ResourceExhausted(CallError):
    """A limit is reached."""

    code = 8


class FailedPrecondition(CallError):
    """The state of things does not allow it."""

    code = 9


class Aborted(CallError):
    """Another write came first."""

    code = 10


class OutOfRange(CallError):
    """The request reaches beyond what there is."""

    code = 11


class Unimplemented(CallError):
    """The broker does not offer this."""

    code = 12


class Internal(CallError):
    """The broker made a mistake, or the connection did."""

    code = 13


class Unavailable(CallError):
    """The broker cannot be reached, or does not serve now.

    outcome, of a write: "not_sent" when nothing was written, "unknown" when it may have been.
    """

    code = 14

    def __init__(
        self,
        message: str = "",
        *,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        retry_after: timedelta | None = None,
        outcome: Outcome = "unknown",
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata, fields=fields, retry_after=retry_after)
        self.outcome: Outcome = outcome


class DataLoss(CallError):
    """Data is lost or corrupt."""

    code = 15


class Unauthenticated(CallError):
    """The token is missing or not valid."""

    code = 16


class PayloadTooLarge(InvalidArgument):
    """The payload is larger than the broker takes."""

    reason = "PAYLOAD_TOO_LARGE"


class BatchTooLarge(InvalidArgument):
    """The request holds more items, or more bytes, than the broker takes."""

    reason = "BATCH_TOO_LARGE"


class ScheduleInvalid(InvalidArgument):
    """The schedule cannot be: a wrong cron expression, interval or bound, or one that never comes."""

    reason = "SCHEDULE_INVALID"


class TimeZoneUnknown(InvalidArgument):
    """There is no time zone of that name."""

    reason = "TIME_ZONE_UNKNOWN"


class JobNotFound(NotFound):
    """There is no such job, or no more."""

    reason = "JOB_NOT_FOUND"


class QueueNotFound(NotFound):
    """There is no such queue."""

    reason = "QUEUE_NOT_FOUND"


class ReceiptNotFound(NotFound):
    """There is no receipt of that key."""

    reason = "RECEIPT_NOT_FOUND"


class SchedulerNotFound(NotFound):
    """There is no recurring definition of that name."""

    reason = "SCHEDULER_NOT_FOUND"


class WorkerNotFound(NotFound):
    """There is no such worker."""

    reason = "WORKER_NOT_FOUND"


class IdempotencyKeyReused(AlreadyExists):
    """The idempotency key was used before, with another request."""

    reason = "IDEMPOTENCY_KEY_REUSED"


class LeaseLost(FailedPrecondition):
    """The lease is no longer held: it ran out, or the job was cancelled or removed."""

    reason = "LEASE_LOST"


class JobStateConflict(FailedPrecondition):
    """The job is in a state that does not allow it."""

    reason = "JOB_STATE"


class KeyHeld(FailedPrecondition):
    """Another job has the idempotency key now."""

    reason = "KEY_HELD"


class SequenceStale(FailedPrecondition):
    """A later request of this producer was answered already."""

    reason = "SEQUENCE_STALE"


class OwnedByCrd(FailedPrecondition):
    """A custom resource owns this; change the resource."""

    reason = "OWNED_BY_CRD"


class FlowTargetTerminal(FailedPrecondition):
    """The job to add under has ended."""

    reason = "FLOW_TARGET_TERMINAL"


class RevisionMismatch(Aborted):
    """The job was changed meanwhile."""

    reason = "REVISION_MISMATCH"


class SessionReplaced(Aborted):
    """Another process opened a session under the same worker id."""

    reason = "SESSION_REPLACED"


class QueueFull(ResourceExhausted):
    """The queue holds as many jobs as it may."""

    reason = "QUEUE_FULL"


class Overloaded(ResourceExhausted):
    """The broker has more to do than it can keep up with."""

    reason = "OVERLOADED"


class StorageFull(ResourceExhausted):
    """The broker's disk is full."""

    reason = "STORAGE_FULL"


class Draining(Unavailable):
    """This broker process is going away; another takes over."""

    reason = "DRAINING"


class FeatureNotBuilt(Unimplemented):
    """This version of the broker does not have that yet."""

    reason = "FEATURE_NOT_BUILT"


class JobEnded(AnvilError):
    """The job ended without a result. Base of JobFailed and JobCancelled.

    finish_reason: in lower case, such as "attempts_exhausted". attempts: how many it took.
    """

    def __init__(self, message: str, *, job_id: str, finish_reason: str, attempts: int) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.finish_reason = finish_reason
        self.attempts = attempts


class JobFailed(JobEnded):
    """The job failed for good. error_type and error_message are those of its last failed attempt, "" without one."""

    def __init__(
        self,
        message: str,
        *,
        job_id: str,
        finish_reason: str,
        attempts: int,
        error_type: str = "",
        error_message: str = "",
        error_stack: str = "",
    ) -> None:
        super().__init__(message, job_id=job_id, finish_reason=finish_reason, attempts=attempts)
        self.error_type = error_type
        self.error_message = error_message
        self.error_stack = error_stack


class JobCancelled(JobEnded):
    """The job was cancelled, or expired before it started."""


class WaitTimeout(AnvilError, TimeoutError):
    """The job has not ended yet."""


class PayloadInvalid(AnvilError):
    """A value cannot be encoded, or bytes do not decode. path: where, from `$`, such as `$.width`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BulkStopped(AnvilError):
    """A bulk ended early: a batch was refused as a whole, or did not come through.

    error: why. done: the answers of the batches before; items from `len(done)` on were not added, but for those of
    the failed batch, up to 1 000, when `error` is Unavailable with the outcome "unknown".
    """

    def __init__(self, error: CallError, done: BulkResult[Any]) -> None:
        super().__init__(f"after {len(done)} jobs: {error}")
        self.error = error
        self.done = done


class SettingInvalid(AnvilError, ValueError):
    """A setting of the connection is wrong. variable: the name it has in the environment."""

    def __init__(self, variable: str, message: str) -> None:
        super().__init__(f"{variable}: {message}")
        self.variable = variable


class Closed(AnvilError):
    """The app is closed: nothing can be added any more."""


class UsedAfterFork(AnvilError):
    """This process is a fork of one that had used AnvilMQ: the thread and the connection stayed there. Make the app
    anew in the child, or start processes by spawn.
    """


_BY_CODE: Final[dict[int, type[CallError]]] = {
    found.code: found
    for found in (
        Cancelled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied,
        ResourceExhausted, FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal, Unavailable, DataLoss,
        Unauthenticated,
    )
}  # fmt: skip
_BY_REASON: Final[dict[str, type[CallError]]] = {
    found.reason: found
    for found in (
        PayloadTooLarge, BatchTooLarge, ScheduleInvalid, TimeZoneUnknown, JobNotFound, QueueNotFound,
        ReceiptNotFound, SchedulerNotFound, WorkerNotFound,
        IdempotencyKeyReused, LeaseLost, JobStateConflict, KeyHeld, SequenceStale, OwnedByCrd, FlowTargetTerminal,
        RevisionMismatch, SessionReplaced, QueueFull, Overloaded, StorageFull, Draining, FeatureNotBuilt,
    )
}  # fmt: skip


def from_code(
    code: int,
    message: str,
    *,
    reason: str = "",
    metadata: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
    retry_after: timedelta | None = None,
) -> CallError:
    """The error of a gRPC code and a reason, "" when there is none."""
    found = _BY_CODE.get(code, Unknown)
    named = _BY_REASON.get(reason, found)
    # A known reason under another code: the code decides, since it says what may be repeated.
    kind = named if issubclass(named, found) else found
    return kind(message, reason=reason, metadata=metadata, fields=fields, retry_after=retry_after)


def from_status(status: Status) -> CallError:
    """The error that a google.rpc.Status tells of, with what its details add."""
    from google.rpc import error_details_pb2

    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    found = {type(known) for known in (info, bad, retry) for detail in status.details if detail.Unpack(known)}
    return from_code(
        status.code,
        status.message,
        reason=info.reason,
        metadata=dict(info.metadata),
        fields={violation.field: violation.description for violation in bad.field_violations},
        retry_after=retry.retry_delay.ToTimedelta() if type(retry) in found else None,
    )


def from_item_error(item: types_pb2.ItemError) -> CallError:
    """The error of one item of a batch. Its `fields` are relative to the item."""
    return from_code(
        item.code,
        item.message,
        reason=item.reason,
        metadata=dict(item.metadata),
        fields={item.field: item.message} if item.field else None,
        retry_after=timedelta(milliseconds=item.retry_after_ms) if item.retry_after_ms else None,
    )


def _remade(kind: type[AnvilError], *args: object) -> AnvilError:
    return kind.__new__(kind, *args)


def not_built(what: str) -> FeatureNotBuilt:
    """The error for a use of what this version of the SDK does not have yet."""
    return FeatureNotBuilt(f"{what} is not available in this version", metadata={"field": what})
