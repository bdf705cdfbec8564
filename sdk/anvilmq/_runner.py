"""One attempt, in named steps: record start, decode, run, classify, settle, tell observers.

Hot: once a job, on the handler loop or in the thread of a plain handler. Nothing that user code does raises out of
here. What each end of a handler becomes is the table of `Runner._raised`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from anvilmq import _codec, context, errors, outcomes
from anvilmq._attempts import DONE, Attempt, Ending
from anvilmq.context import Job
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire

if TYPE_CHECKING:
    from anvilmq._outbox import Said

_log = logging.getLogger("anvilmq.worker")

MAX_TYPE_BYTES: Final = 255
MAX_MESSAGE_BYTES: Final = 4 << 10
MAX_STACK_BYTES: Final = 32 << 10
MAX_REASON_BYTES: Final = 1 << 10


class Observer(Protocol):
    """Is told how every attempt ended: for logs, metrics, tests."""

    def ended(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
        """run_s: how long the handler ran; None when it never started. In the thread of the handler; must not raise."""


class _Undecodable(Exception):
    """The payload does not fit the handler. Told apart from the same error raised by the handler itself."""


class Runner:
    """Runs attempts. settle: takes what is to be said to the broker. monotonic: seconds."""

    def __init__(
        self,
        *,
        codec: _codec.Codec | None,
        settle: Callable[[Attempt, Ending], None],
        observers: Sequence[Observer],
        monotonic: Callable[[], float],
    ) -> None:
        self._codec = codec
        self._settle = settle
        self._observers = tuple(observers)
        self._monotonic = monotonic

    async def run(self, attempt: Attempt) -> Attempt | None:
        """One attempt of an async handler, to its settlement; returns the attempt that has its slot now."""
        job = self._begin(attempt)
        if job is None:
            return self._end(attempt, interrupted(attempt))
        try:
            args = self._decode(attempt)
            ending = self._returned(attempt, await attempt.definition.fn(job, args))
        except GeneratorExit:
            # The loop is being torn down: nobody is left to settle.
            raise
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is an outcome
            ending = self._raised(attempt, error)
        return self._end(attempt, ending)

    def run_plain(self, attempt: Attempt) -> Attempt | None:
        """The same for a plain handler, in a thread of its own."""
        job = self._begin(attempt)
        if job is None:
            return self._end(attempt, interrupted(attempt))
        try:
            args = self._decode(attempt)
            ending = self._returned(attempt, attempt.definition.fn(job, args))
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is an outcome
            ending = self._raised(attempt, error)
        return self._end(attempt, ending)

    def end_unstarted(self, attempt: Attempt, ending: Ending) -> None:
        """End an attempt that never had a slot."""
        self._tell(attempt, ending, None)

    # ------------------------------------------------------------------------------------------------------- steps

    def _begin(self, attempt: Attempt) -> Job | None:
        """Record the start; None when it was interrupted before."""
        if attempt.cause is not None:
            return None
        attempt.started_at = self._monotonic()
        job = Job(attempt)
        context.enter(job)
        return job

    def _decode(self, attempt: Attempt) -> object:
        delivery = attempt.delivery
        try:
            value: object = _codec.decode(
                delivery.data, delivery.content_type, attempt.definition.payload_type, self._codec
            )
        except errors.PayloadInvalid as error:
            raise _Undecodable(str(error)) from error
        return value

    def _returned(self, attempt: Attempt, value: object) -> Ending:
        if (cause := attempt.cause) is not None and cause.lease_is_dead:
            return Ending(None)
        if value is None:
            return DONE
        if inspect.iscoroutine(value):
            value.close()
            raise TypeError(f"{attempt.definition.name} is a plain function, but returned a coroutine nobody awaited")
        try:
            result, content_type = _codec.encode(value, self._codec)
        except errors.PayloadInvalid as error:
            return fail(attempt, error, non_retryable=True)
        settlement = wire.Settlement(
            job_id=attempt.job_id,
            lease_token=attempt.token,
            outcome=wire.SETTLE_OUTCOME_COMPLETE,
            result=result,
            result_content_type=content_type,
        )
        return Ending(settlement, size=len(result), is_final=True)

    def _raised(self, attempt: Attempt, error: BaseException) -> Ending:
        """The table of outcomes. The order matters: a dead lease first, then our own exceptions, then the rest."""
        cause = attempt.cause
        if cause is not None and cause.lease_is_dead:
            return Ending(None, error=error)
        if isinstance(error, asyncio.CancelledError) and cause is not None:
            return interrupted(attempt, error)
        if isinstance(error, outcomes.Retry):
            return fail(attempt, error, retry_after_ms=error.after_ms)
        if isinstance(error, outcomes.Release):
            return release(attempt, error.reason, delay_ms=error.delay_ms, error=error)
        if isinstance(error, _Undecodable):
            return fail(attempt, cast("Exception", error.__cause__), non_retryable=True)
        final = isinstance(error, (outcomes.Fail, *attempt.definition.no_retry_on))
        return fail(attempt, error, non_retryable=final)

    def _end(self, attempt: Attempt, ending: Ending) -> Attempt | None:
        run_s = self._monotonic() - attempt.started_at if attempt.started_at else None
        # Before the settlement is said: its frame takes the credit for the free slot along.
        following = attempt.slots.free(attempt, run_s)
        self._tell(attempt, ending, run_s)
        return following

    def _tell(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
        self._settle(attempt, ending)
        for observer in self._observers:
            observer.ended(attempt, ending, run_s)


# --------------------------------------------------------------------------------------------------------- settlements


def interrupted(attempt: Attempt, error: BaseException | None = None) -> Ending:
    """The end of an attempt that was stopped: handed back while its lease is good, otherwise nothing to be said.

    A cancelled job ends cancelled whatever is settled.
    """
    if attempt.cause is None or attempt.cause.lease_is_dead:
        return Ending(None, error=error)
    return release(attempt, attempt.cause_text or str(attempt.cause), error=error)


def release(attempt: Attempt, reason: str, *, delay_ms: int = 0, error: BaseException | None = None) -> Ending:
    """Hand the job back."""
    settlement = wire.Settlement(
        job_id=attempt.job_id,
        lease_token=attempt.token,
        outcome=wire.SETTLE_OUTCOME_RELEASE,
        delay_ms=delay_ms,
        reason=_cut(reason, MAX_REASON_BYTES),
    )
    return Ending(settlement, size=MAX_REASON_BYTES, error=error)


def fail(
    attempt: Attempt, error: BaseException, *, non_retryable: bool = False, retry_after_ms: int | None = None
) -> Ending:
    """The attempt failed. retry_after_ms: in place of the computed backoff."""
    described = describe(error)
    settlement = wire.Settlement(
        job_id=attempt.job_id,
        lease_token=attempt.token,
        outcome=wire.SETTLE_OUTCOME_FAIL,
        error=described,
        non_retryable=non_retryable,
        retry_after_ms=retry_after_ms,
    )
    is_final = non_retryable or attempt.delivery.attempt >= attempt.delivery.max_attempts
    return Ending(settlement, size=described.ByteSize(), error=error, is_final=is_final)


def refused(said: Said, error: types.ItemError) -> tuple[wire.Settlement, int] | None:
    """What to settle in place of what the broker refused, with its size: a failure that says why. None: it was one.

    Its lease is good, so that without another settlement the job would stall.
    """
    if said.settlement.outcome == wire.SETTLE_OUTCOME_FAIL:
        _log.error("failure_refused: %s: %s", error.reason, error.message, extra={"job_id": said.lease.job_id})
        return None
    ending = fail(said.lease.owner, errors.from_item_error(error), non_retryable=True)
    return cast("wire.Settlement", ending.settlement), ending.size


def describe(error: BaseException) -> types.JobError:
    """An exception as the broker keeps it: class, message and the end of the stack, cut to its limits."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in {"builtins", "anvilmq.outcomes"} else _full_name(kind)
    # The first frame is the runner's own.
    stack = error.__traceback__ and error.__traceback__.tb_next
    text = "".join(traceback.format_exception(kind, error, stack))
    return types.JobError(
        type=_cut(name, MAX_TYPE_BYTES),
        message=_cut(_text(error), MAX_MESSAGE_BYTES),
        stack=_clean(text).encode()[-MAX_STACK_BYTES:].decode(errors="ignore"),
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is must still end its attempt
        return "<its message could not be made>"


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _cut(text: str, size: int) -> str:
    return _clean(text).encode()[:size].decode(errors="ignore")


def _clean(text: str) -> str:
    # The broker refuses U+0000, UTF-8 a lone surrogate: a strange message must not make the failure unsayable.
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
