"""Jobs as a broker would show them."""

from typing import Any

from anvilmq_proto.v1 import types_pb2 as types
from tests.unit.sdk.cli.shell import NOW_MS


def job(job_id: str = "j1", **fields: Any) -> types.Job:
    """A waiting job, two minutes old, with these fields changed."""
    made = types.Job(
        job_id=job_id, queue="mail", name="send", state=types.JOB_STATE_WAITING, created_at_ms=NOW_MS - 120_000
    )
    made.MergeFrom(types.Job(**fields))
    return made


def completed(job_id: str = "j1", result: bytes = b'{"ok":true}', **fields: Any) -> types.Job:
    """A job that completed a second ago."""
    return job(
        job_id,
        state=types.JOB_STATE_COMPLETED,
        finish_reason=types.FINISH_REASON_COMPLETED,
        finished_at_ms=NOW_MS - 1_000,
        attempt=1,
        result=result,
        **fields,
    )


def failed(job_id: str = "j1", **fields: Any) -> types.Job:
    """A job that failed a second ago, with its last attempt."""
    attempt = types.Attempt(
        number=3,
        worker_id="w1",
        started_at_ms=NOW_MS - 2_000,
        ended_at_ms=NOW_MS - 1_000,
        outcome=types.ATTEMPT_OUTCOME_FAILED,
        error=types.JobError(type="ValueError", message="no such image", stack="Traceback …\n  line 1\n  line 2"),
    )
    return job(
        job_id,
        state=types.JOB_STATE_FAILED,
        finish_reason=types.FINISH_REASON_ATTEMPTS_EXHAUSTED,
        finished_at_ms=NOW_MS - 1_000,
        attempt=3,
        attempts=[attempt],
        **fields,
    )
