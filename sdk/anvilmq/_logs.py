"""What the SDK writes to the standard log, and the job's keys on lines that handlers write. Never payloads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from anvilmq import context
from anvilmq._attempts import DONE, Ending
from anvilmq_proto.v1 import worker_service_pb2 as wire

if TYPE_CHECKING:
    from anvilmq._attempts import Attempt

_log = logging.getLogger("anvilmq.worker")


class JobFields(logging.Filter):
    """Puts job_id, job_name, queue and attempt on every line that is written while a handler runs. Hangs on a handler
    of the logging library; it drops nothing.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """See logging.Filter."""
        try:
            job = context.current_job()
        except LookupError:
            return True
        fields = {"job_id": job.id, "job_name": job.name, "queue": job.queue, "attempt": job.attempt}
        for name, value in fields.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class AttemptLog:
    """An observer: one line for each attempt that failed, with the stack at the last; one for each lost lease."""

    def ended(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
        """See Observer."""
        if ending is DONE:
            return
        if ending.settlement is None:
            _log.warning("attempt_interrupted: %s: %s", _name(attempt), attempt.cause, extra=_fields(attempt))
        elif ending.settlement.outcome == wire.SETTLE_OUTCOME_FAIL:
            error = ending.settlement.error
            _log.log(
                logging.ERROR if ending.is_final else logging.WARNING,
                "attempt_failed: %s: %s: %s",
                _name(attempt),
                error.type,
                error.message,
                exc_info=ending.error if ending.is_final else None,
                extra=_fields(attempt) | {"err_type": error.type},
            )


def _name(attempt: Attempt) -> str:
    it = attempt.delivery
    return f"job {attempt.job_id} ({it.queue}/{it.name}), attempt {it.attempt} of {it.max_attempts}"


def _fields(attempt: Attempt) -> dict[str, object]:
    it = attempt.delivery
    return {"job_id": attempt.job_id, "job_name": it.name, "queue": it.queue, "attempt": it.attempt}
