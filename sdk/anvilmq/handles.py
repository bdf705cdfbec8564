"""A job that was added, or that is known by its id: its state, its result, why it waits, and its end."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

import msgspec

from anvilmq import _codec, _retry, _words, durations, errors
from anvilmq._iothread import Reply, forbid_on_loop
from anvilmq._transport import method
from anvilmq.durations import Duration
from anvilmq_proto.v1 import job_service_pb2, types_pb2

if TYPE_CHECKING:
    from anvilmq._client import Client
    from anvilmq.jobs import JobRef

R = TypeVar("R")

State = Literal["waiting", "delayed", "active", "waiting_children", "completed", "failed", "cancelled", "unspecified"]
"""The last one is what a newer broker has and this version does not know."""
MatchedBy = Literal["receipt", "deduplication"]

POLL_S: Final = 60.0
"""How long one call of WaitJob waits, at most."""
_GET: Final = method("JobService", "GetJob", job_service_pb2.GetJobRequest, job_service_pb2.GetJobResponse)
_WAIT: Final = method("JobService", "WaitJob", job_service_pb2.WaitJobRequest, job_service_pb2.WaitJobResponse)
_CANCEL: Final = method("JobService", "CancelJob", job_service_pb2.CancelJobRequest, job_service_pb2.CancelJobResponse)
MATCHED_BY: Final[dict[int, MatchedBy]] = {1: "receipt", 2: "deduplication"}


class Wait(msgspec.Struct, frozen=True):
    """Why a job does not run now.

    reason: such as "delay", "no_worker" or "next". holder_job_id, holder_worker_id: what holds it, "" when nothing
    does. until: when that ends, if known. jobs_ahead: counted up to 1 000. pending_children: those it waits for.
    """

    reason: str
    holder_job_id: str
    holder_worker_id: str
    since: datetime | None
    until: datetime | None
    jobs_ahead: int
    pending_children: int


class Handle(Generic[R]):
    """One job. `existing`: the add met an earlier job, this one, by what `matched_by` says. Any loop, any thread."""

    __slots__ = ("_ref", "existing", "id", "matched_by", "replaced_job_id")

    def __init__(
        self,
        ref: JobRef[Any, R],
        job_id: str,
        *,
        existing: bool = False,
        matched_by: MatchedBy | None = None,
        replaced_job_id: str = "",
    ) -> None:
        self._ref = ref
        self.id = job_id
        self.existing = existing
        self.matched_by = matched_by
        self.replaced_job_id = replaced_job_id

    def __repr__(self) -> str:
        return f"<{self._ref.queue}/{self._ref.name} {self.id}{' existing' if self.existing else ''}>"

    async def state(self) -> State:
        """Its state now. JobNotFound."""
        return await self._state()

    def state_sync(self) -> State:
        """The same in a thread without a loop."""
        forbid_on_loop("state_sync()", "await state()")
        return self._state().result()

    async def why(self) -> Wait | None:
        """Why it does not run now; None when it runs or has ended. JobNotFound."""
        return await self._why()

    def why_sync(self) -> Wait | None:
        """The same in a thread without a loop."""
        forbid_on_loop("why_sync()", "await why()")
        return self._why().result()

    async def cancel(self, reason: str = "") -> State:
        """Cancel it, and return its state then: still "active" when its worker was told. reason: at most 1 KiB.

        A job that has ended is left as it is. JobNotFound.
        """
        return await self._cancel(reason)

    def cancel_sync(self, reason: str = "") -> State:
        """The same in a thread without a loop."""
        forbid_on_loop("cancel_sync()", "await cancel()")
        return self._cancel(reason).result()

    async def result(self, *, timeout: Duration | None = None) -> R:
        """Wait until it ends, and return what its handler returned. timeout: None = as long as it takes.

        Raises JobFailed, JobCancelled, WaitTimeout; PayloadInvalid when the result is not of the declared type;
        JobNotFound, also when it ended and its retention is over. A broker that is away for a while is waited for.
        """
        return await self._result(timeout)

    def result_sync(self, *, timeout: Duration | None = None) -> R:
        """The same in a thread without a loop."""
        forbid_on_loop("result_sync()", "await result()")
        return self._result(timeout).result()

    # ------------------------------------------------------------------------------------------- one path for both

    def _state(self) -> Reply[State]:
        client = self._ref.app.client

        async def asked() -> State:
            return _state_of((await _get(client, self.id)).state)

        return client.io.run(asked)

    def _why(self) -> Reply[Wait | None]:
        client = self._ref.app.client

        async def asked() -> Wait | None:
            job = await _get(client, self.id)
            return _read_wait(job.wait) if job.HasField("wait") else None

        return client.io.run(asked)

    def _cancel(self, reason: str) -> Reply[State]:
        client = self._ref.app.client

        async def asked() -> State:
            return _state_of(await _send_cancel(client, self.id, reason))

        return client.io.run(asked)

    def _result(self, timeout: Duration | None) -> Reply[R]:
        client = self._ref.app.client
        timeout_s = None if timeout is None else durations.parse_s(timeout)

        async def waited() -> R:
            job = await _wait(client, self.id, timeout_s)
            return _read_result(job, self._ref)

        return client.io.run(waited)


async def _get(client: Client, job_id: str) -> types_pb2.Job:
    answer = await client.call(_GET, job_service_pb2.GetJobRequest(job_id=job_id, view=types_pb2.JOB_VIEW_BASIC))
    return answer.job


async def _send_cancel(client: Client, job_id: str, reason: str) -> types_pb2.JobState:
    answer = await client.call(_CANCEL, job_service_pb2.CancelJobRequest(job_id=job_id, reason=reason))
    return answer.state


async def _wait(client: Client, job_id: str, timeout_s: float | None) -> types_pb2.Job:
    """The job once it is terminal. Long polls, one after the other, also over breaks of the connection."""
    until = math.inf if timeout_s is None else client.clock.monotonic() + timeout_s
    failures = 0
    while True:
        wait_s = min(POLL_S, max(0.0, until - client.clock.monotonic()))
        request = job_service_pb2.WaitJobRequest(
            job_id=job_id, wait_ms=math.ceil(wait_s * 1_000), view=types_pb2.JOB_VIEW_FULL
        )
        try:
            answer = await client.transport().unary(_WAIT, request, timeout_s=wait_s + 5)
        except errors.CallError as error:
            failures += 1
            pause_s = _retry.delay_s(failures, client.chance(), error)
            if not _retry.is_transient(error):
                raise
            if client.clock.monotonic() + pause_s >= until:
                raise errors.WaitTimeout(f"job {job_id}: {error}") from error
            await client.clock.sleep(pause_s)
            continue
        failures = 0
        if answer.finished:
            return answer.job
        if client.clock.monotonic() >= until:
            raise errors.WaitTimeout(f"job {job_id} is {_state_of(answer.job.state)}")


def _read_result(job: types_pb2.Job, ref: JobRef[Any, R]) -> R:
    if job.state == types_pb2.JOB_STATE_COMPLETED:
        return _codec.decode(job.result, job.result_content_type, ref.result_type, ref.app.codec)
    reason = _words.word(types_pb2.FinishReason, job.finish_reason)
    if job.state == types_pb2.JOB_STATE_CANCELLED:
        text = f"job {job.job_id} was cancelled: {job.finish_message or reason}"
        raise errors.JobCancelled(text, job_id=job.job_id, finish_reason=reason, attempts=job.attempt)
    failed = [attempt.error for attempt in job.attempts if attempt.HasField("error")]
    last = failed[-1] if failed else types_pb2.JobError()
    what = f"{last.type}: {last.message}" if last.type else job.finish_message
    raise errors.JobFailed(
        f"job {job.job_id} failed ({reason}){': ' if what else ''}{what}",
        job_id=job.job_id,
        finish_reason=reason,
        attempts=job.attempt,
        error_type=last.type,
        error_message=last.message,
        error_stack=last.stack,
    )


def _read_wait(wait: types_pb2.WaitInfo) -> Wait:
    return Wait(
        reason=_words.word(types_pb2.WaitReason, wait.reason),
        holder_job_id=wait.holder_job_id,
        holder_worker_id=wait.holder_worker_id,
        since=_words.instant(wait.since_at_ms),
        until=_words.instant(wait.until_at_ms),
        jobs_ahead=wait.jobs_ahead,
        pending_children=wait.pending_children,
    )


def _state_of(state: types_pb2.JobState) -> State:
    return cast("State", _words.word(types_pb2.JobState, state))
