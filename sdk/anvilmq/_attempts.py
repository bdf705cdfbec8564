"""One attempt as the worker sees it, from its delivery to its settlement."""

from __future__ import annotations

import asyncio
import enum
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from anvilmq_proto.v1 import worker_service_pb2 as wire

if TYPE_CHECKING:
    from anvilmq._pools import Slots
    from anvilmq.jobs import JobDef

    AnyJobDef = JobDef[Any, Any]


class Cause(enum.StrEnum):
    """Why an attempt is interrupted."""

    CANCEL_REQUESTED = "cancel_requested"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"
    ATTEMPT_TIMEOUT = "attempt_timeout"
    CHILD_FAILED = "child_failed"
    REMOVED = "removed"

    @property
    def lease_is_dead(self) -> bool:
        """Nothing can be settled any more: the job is another's, or ended."""
        return self not in (Cause.CANCEL_REQUESTED, Cause.SHUTDOWN)


class Reports(Protocol):
    """Where an attempt's progress and log lines go. May be called from any thread; never waits."""

    def report_progress(self, attempt: Attempt, progress_json: str) -> None: ...

    def append_log(self, attempt: Attempt, level: str, line: str) -> None: ...


class Attempt(msgspec.Struct, eq=False):
    """A delivery with what becomes of it.

    `cause` is written by the I/O thread and read by the handler's; a late reader does no harm, since the lease table
    decides whether a settlement leaves. `received_at`, `started_at`: monotonic seconds, 0.0 = it waits for a slot.
    `deadline_ms`: Unix time at which attempt_timeout ends it, 0 = never.
    """

    delivery: wire.Delivery
    definition: AnyJobDef
    slots: Slots
    reports: Reports
    job_id: str
    token: str
    received_at: float
    deadline_ms: int = 0
    started_at: float = 0.0
    cause: Cause | None = None
    cause_text: str = ""
    task: asyncio.Task[None] | None = None

    def interrupt(self, cause: Cause, text: str) -> bool:
        """Note the cause; False when nothing is new. The first one stays, unless a later one says the lease is dead."""
        if self.cause is not None and (self.cause.lease_is_dead or not cause.lease_is_dead):
            return False
        self.cause, self.cause_text = cause, text
        return True


class Ending(msgspec.Struct, frozen=True, eq=False):
    """How an attempt ended. settlement: None when its lease is dead, so that nothing is to be said.

    size: bytes of the settlement's payload. error: what the handler raised, if it raised. is_final: no attempt follows.
    """

    settlement: wire.Settlement | None
    size: int = 0
    error: BaseException | None = None
    is_final: bool = False


COMPLETED: Final = wire.Settlement(outcome=wire.SETTLE_OUTCOME_COMPLETE)
"""The most frequent settlement, shared by all attempts without a result: told by identity, and never to be changed.

The outbox puts the ids in; all other settlements have them.
"""

DONE: Final = Ending(COMPLETED, is_final=True)
"""The end of those attempts."""
