"""How jobs are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anvilmq.cli import times, values
from anvilmq.cli.output import Shape
from anvilmq.cli.tables import Column
from anvilmq_proto.v1 import types_pb2 as types

if TYPE_CHECKING:
    from collections.abc import Mapping

_STACK_LINES: Final = 12


def state_of(job: types.Job) -> str:
    """Its state, as a word."""
    return values.enum_word(types.JobState, job.state)


def shape(now_ms: int) -> Shape[types.Job]:
    """Columns, details and name of a job, as seen at that time."""
    return Shape(
        columns=(
            Column("ID", lambda job: job.job_id),
            Column("QUEUE", lambda job: job.queue),
            Column("NAME", lambda job: job.name),
            Column("STATE", _state_now),
            Column("ATTEMPT", lambda job: str(job.attempt)),
            Column("AGE", lambda job: times.age(job.created_at_ms, now_ms)),
            Column("PRIORITY", lambda job: str(job.priority), wide=True),
            Column("CREATED", lambda job: times.iso(job.created_at_ms), wide=True),
            Column("DUE", lambda job: times.iso(job.due_at_ms), wide=True),
            Column("STARTED", lambda job: times.iso(job.started_at_ms), wide=True),
            Column("FINISHED", lambda job: times.iso(job.finished_at_ms), wide=True),
            Column("REASON", lambda job: values.enum_word(types.FinishReason, job.finish_reason), wide=True),
            Column("WORKER", lambda job: job.worker_id, wide=True),
            Column("KEY", lambda job: job.idempotency_key, wide=True),
            Column("SCHEDULE", lambda job: job.scheduler, wide=True),
            Column("LABELS", lambda job: _pairs(job.labels), wide=True),
        ),
        details=lambda job: details(job, now_ms),
        name=lambda job: job.job_id,
    )


def details(job: types.Job, now_ms: int) -> list[tuple[str, str]]:
    """Everything worth reading about one job; a field without a value is left out by who prints it."""
    return [
        ("Id", job.job_id),
        ("Queue", job.queue),
        ("Name", job.name),
        ("State", _state_now(job)),
        *_why(job, now_ms),
        ("Attempt", f"{job.attempt} of {job.policy.max_attempts}"),
        ("Starts", str(job.starts)),
        ("Stalls", str(job.stalled_count or "")),
        ("Priority", str(job.priority)),
        ("Group", job.group_id),
        ("Idempotency key", job.idempotency_key),
        ("Schedule", job.scheduler),
        ("Tick", times.iso(job.tick_at_ms)),
        ("Labels", _pairs(job.labels)),
        ("Headers", _pairs(job.headers)),
        ("Created", times.relative(job.created_at_ms, now_ms)),
        ("Due", times.relative(job.due_at_ms, now_ms)),
        ("Expires", times.relative(job.expires_at_ms, now_ms)),
        ("Started", times.relative(job.started_at_ms, now_ms)),
        ("Finished", times.relative(job.finished_at_ms, now_ms)),
        ("Worker", job.worker_id),
        ("Lease ends", times.relative(job.lease_expires_at_ms, now_ms)),
        ("Policy", policy_text(job.policy)),
        ("Data", payload_text(job.data, job.content_type)),
        ("Progress", job.progress_json),
        ("Result", payload_text(job.result, job.result_content_type)),
        *((f"Attempt {attempt.number}", attempt_text(attempt, now_ms)) for attempt in job.attempts),
    ]


def why_sentence(job: types.Job, now_ms: int) -> str:
    """Why the job is where it is, in one sentence."""
    state = state_of(job)
    if job.state == types.JOB_STATE_ACTIVE:
        return f"active on worker {job.worker_id}, its lease ends {_when(job.lease_expires_at_ms, now_ms)}"
    if job.finished_at_ms:
        reason = values.enum_word(types.FinishReason, job.finish_reason)
        text = f": {job.finish_message}" if job.finish_message else ""
        return f"{state} {times.short(now_ms - job.finished_at_ms)} ago{_because(reason, state)}{text}"
    return f"{state}: {_wait_sentence(job.wait, now_ms)}"


def last_error(job: types.Job) -> str:
    """Type and message of its last failed attempt; "" without one."""
    failed = [attempt.error for attempt in job.attempts if attempt.HasField("error")]
    return _error_text(failed[-1]) if failed else ""


def payload_text(data: bytes, content_type: str) -> str:
    """A payload for reading: text as it is, else its size and kind."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes of {content_type or 'no known kind'}"


def policy_text(policy: types.JobPolicy) -> str:
    """What of the policy the job has itself, one field a line, named as the flags of `add`; the rest is the queue's."""
    lines = [f"backoff {_backoff_text(policy.backoff)}"] if policy.HasField("backoff") else []
    for field, _ in policy.ListFields():
        name, is_duration = field.name.removesuffix("_ms"), field.name.endswith("_ms")
        if name not in {"backoff", "max_attempts"}:
            value = getattr(policy, field.name)
            lines.append(f"{name.replace('_', '-')} {times.exact(value) if is_duration else value}")
    return "\n".join(lines)


def _backoff_text(backoff: types.Backoff) -> str:
    kind = values.enum_word(types.BackoffKind, backoff.kind) or "exponential"
    longest = f",max={times.exact(backoff.max_delay_ms)}" if kind == "exponential" else ""
    return f"{kind}:{times.exact(backoff.delay_ms)}{longest},jitter={backoff.jitter:g}"


def attempt_text(attempt: types.Attempt, now_ms: int) -> str:
    """One attempt: how it ended, where, for how long, and the end of its stack."""
    outcome = values.enum_word(types.AttemptOutcome, attempt.outcome) or "running"
    took = times.short((attempt.ended_at_ms or now_ms) - attempt.started_at_ms)
    lines = [f"{outcome} after {took} on {attempt.worker_id}, started {times.iso(attempt.started_at_ms)}"]
    if attempt.HasField("error"):
        lines.append(_error_text(attempt.error))
        lines.extend(attempt.error.stack.splitlines()[-_STACK_LINES:])
    return "\n".join(lines)


def _error_text(error: types.JobError) -> str:
    return ": ".join(part for part in (error.type, error.message) if part)


def _why(job: types.Job, now_ms: int) -> list[tuple[str, str]]:
    if job.finished_at_ms:
        reason = values.enum_word(types.FinishReason, job.finish_reason)
        return [("Reason", ": ".join(part for part in (reason, job.finish_message) if part))]
    if job.HasField("wait"):
        return [("Why", _wait_sentence(job.wait, now_ms))]
    return []


def _state_now(job: types.Job) -> str:
    return f"{state_of(job)}, to be cancelled" if job.cancel_requested and not job.finished_at_ms else state_of(job)


def _because(reason: str, state: str) -> str:
    return f" ({reason})" if reason and reason != state else ""


def _when(at_ms: int, now_ms: int) -> str:
    if not at_ms:
        return "at a time that is not known"
    return f"in {times.short(at_ms - now_ms)}" if at_ms > now_ms else f"{times.short(now_ms - at_ms)} ago"


def _wait_sentence(wait: types.WaitInfo, now_ms: int) -> str:
    sentence = _REASONS.get(wait.reason, values.enum_word(types.WaitReason, wait.reason) or "nothing is known")
    filled = sentence.format(
        job=wait.holder_job_id or "another job",
        worker=wait.holder_worker_id or "another worker",
        ahead=_ahead(wait.jobs_ahead),
        children=wait.pending_children,
        whose="its group's" if wait.by_group else "the queue's",
    )
    until = f" until {times.relative(wait.until_at_ms, now_ms)}" if wait.until_at_ms else ""
    since = f", since {times.relative(wait.since_at_ms, now_ms)}" if wait.since_at_ms else ""
    return f"{filled}{until}{since}"


def _ahead(jobs: int) -> str:
    return "1 job is" if jobs == 1 else f"{jobs if jobs < 1_000 else '1000 or more'} jobs are"


def _pairs(mapping: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(mapping.items()))


_REASONS: Final[dict[int, str]] = {
    types.WAIT_REASON_QUEUE_PAUSED: "the queue is paused",
    types.WAIT_REASON_GROUP_BUSY: "job {job} of its group runs on {worker}",
    types.WAIT_REASON_GROUP_BACKOFF: "job {job} is before it in its group, and waits",
    types.WAIT_REASON_GROUP_PAUSED: "its group is paused, or halted by job {job}",
    types.WAIT_REASON_RATE_LIMITED: "{whose} rate limit is used up",
    types.WAIT_REASON_CONCURRENCY: "the queue runs as many jobs as it may",
    types.WAIT_REASON_DELAY: "it is not due",
    types.WAIT_REASON_CHILDREN: "{children} of its children have not ended, such as {job}",
    types.WAIT_REASON_NO_WORKER: "no worker has asked for jobs of this queue (start one for it)",
    types.WAIT_REASON_NEXT: "nothing holds it, {ahead} before it; it starts when a worker has a free slot",
    types.WAIT_REASON_DEDUPLICATION: "job {job} with its deduplication id is active",
}
