"""What a handler knows of the job it runs, and what it can say about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from anvilmq import errors
from anvilmq._attempts import Attempt, Cause

MAX_PROGRESS_BYTES: Final = 64 << 10
MAX_LINE_BYTES: Final = 4 << 10

_current: ContextVar[Job] = ContextVar("anvilmq_job")


class Interrupted(asyncio.CancelledError):
    """The attempt is to stop: raised by `Job.check`. In an async handler the await raises its base, CancelledError.

    cause: cancel_requested, shutdown, lease_lost, attempt_timeout, child_failed or removed.
    """

    def __init__(self, cause: Cause, text: str = "") -> None:
        super().__init__(f"{cause}: {text}" if text else str(cause))
        self.cause = cause


class Job:
    """One attempt of a job, as its handler sees it. All methods may be called from any thread; none of them waits."""

    __slots__ = ("_attempt",)

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    @property
    def id(self) -> str:
        """Issued by the broker; sorts by creation."""
        return self._attempt.job_id

    @property
    def name(self) -> str:
        """The name of the handler's definition."""
        return self._attempt.delivery.name

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._attempt.delivery.queue

    @property
    def attempt(self) -> int:
        """Which try this is, from 1. Stalls and releases do not count."""
        return self._attempt.delivery.attempt

    @property
    def max_attempts(self) -> int:
        """All tries the job has."""
        return self._attempt.delivery.max_attempts

    @property
    def is_last(self) -> bool:
        """No try is left after this one."""
        return self.attempt >= self.max_attempts

    @property
    def starts(self) -> int:
        """Starts of any cause, this one included."""
        return self._attempt.delivery.starts

    @property
    def stalled_count(self) -> int:
        """Earlier starts that ended without a word from their worker."""
        return self._attempt.delivery.stalled_count

    @property
    def group_id(self) -> str | None:
        """Its group, if it has one."""
        return self._attempt.delivery.group_id or None

    @property
    def flow_id(self) -> str | None:
        """The root's id when the job is part of a flow."""
        return self._attempt.delivery.flow_id or None

    @property
    def node_key(self) -> str | None:
        """Its name among its siblings in a flow."""
        return self._attempt.delivery.node_key or None

    @property
    def idempotency_key(self) -> str | None:
        """The producer's key, if it gave one."""
        return self._attempt.delivery.idempotency_key or None

    @property
    def priority(self) -> int:
        """0 is first."""
        return self._attempt.delivery.priority

    @property
    def labels(self) -> Mapping[str, str]:
        """As given by the producer."""
        return self._attempt.delivery.labels

    @property
    def headers(self) -> Mapping[str, str]:
        """As given by the producer, trace context included."""
        return self._attempt.delivery.headers

    @property
    def created_at(self) -> datetime:
        """When it was added, UTC."""
        return _instant(self._attempt.delivery.created_at_ms)

    @property
    def scheduler(self) -> str | None:
        """The scheduler whose tick made it."""
        return self._attempt.delivery.scheduler or None

    @property
    def tick_at(self) -> datetime | None:
        """The tick that made it, UTC."""
        tick_at_ms = self._attempt.delivery.tick_at_ms
        return _instant(tick_at_ms) if tick_at_ms else None

    @property
    def deadline(self) -> datetime | None:
        """When `attempt_timeout` ends this attempt, UTC, as near as this machine's clock knows; None without one."""
        deadline_ms = self._attempt.deadline_ms
        return _instant(deadline_ms) if deadline_ms else None

    @property
    def last_progress(self) -> Any:
        """What an earlier attempt reported last, as a checkpoint; None if it reported nothing."""
        progress_json = self._attempt.delivery.progress_json
        return msgspec.json.decode(progress_json) if progress_json else None

    def progress(self, value: object) -> None:
        """Report how far it is, in any JSON; the last value is kept, and the next attempt finds it.

        ValueError above 64 KiB, TypeError for what is no JSON. Nothing happens when the lease is lost.
        """
        encoded = msgspec.json.encode(value)
        if len(encoded) > MAX_PROGRESS_BYTES:
            raise ValueError(f"progress of {len(encoded)} bytes; at most {MAX_PROGRESS_BYTES} are kept")
        self._attempt.reports.report_progress(self._attempt, encoded.decode())

    def log(self, line: str, *, level: str = "info") -> None:
        """Add a line to the job's log at the broker (the last 1 000 are kept). Cut at 4 KiB."""
        encoded = line.encode(errors="replace")
        if len(encoded) > MAX_LINE_BYTES:
            line = encoded[:MAX_LINE_BYTES].decode(errors="ignore")
        self._attempt.reports.append_log(self._attempt, level, line)

    @property
    def cancelled(self) -> bool:
        """The attempt is to stop, for whatever cause: a cancel, a lost lease, a timeout, the end of this worker."""
        return self._attempt.cause is not None

    @property
    def cause(self) -> Cause | None:
        """Why it is to stop; None while it may go on."""
        return self._attempt.cause

    def check(self) -> None:
        """Raise `Interrupted` if the attempt is to stop. For plain handlers, which nothing else can interrupt."""
        if (cause := self._attempt.cause) is not None:
            raise Interrupted(cause, self._attempt.cause_text)

    def add_children(self, children: Mapping[str, object]) -> None:
        """Add jobs below this one. Needs flows, which this version does not have."""
        raise errors.not_built("Job.add_children")

    def children(self, result_type: type[Any]) -> Mapping[str, Any]:
        """The direct children by key. Needs flows, which this version does not have."""
        raise errors.not_built("Job.children")

    @classmethod
    def stub(cls, **fields: Any) -> Job:
        """A job for calling a handler directly in a test, such as `Job.stub(attempt=2)`.

        fields: id, queue, name, attempt, max_attempts, starts, labels, headers and what else the wire's Delivery has;
        last_progress: any JSON; cause: why it is to stop, such as "cancel_requested".
        What the handler reports is in `anvilmq.testing.reports(job)`.
        """
        from anvilmq.testing import stub_attempt

        return cls(stub_attempt(**fields))

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.queue}/{self.name} attempt {self.attempt} of {self.max_attempts}>"


def current_job() -> Job:
    """The job whose handler is running here; LookupError outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("no job is running here: current_job() is for handlers and what they call") from None


def enter(job: Job) -> None:
    """Make it the current job of this context. The runner's alone: every attempt has a context of its own."""
    _current.set(job)


def _instant(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
