"""What readers see of a job: pure functions that every store shares."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Final, Protocol

import msgspec

from anvilmq_broker.domain import commands, events, ids
from anvilmq_broker.domain.job import AttemptEnd, Job
from anvilmq_broker.domain.scheduler import Scheduler
from anvilmq_broker.domain.state import State, WaitReason

MOST_LOOKED_AT: Final = 10_000
"""Rows that one page of ListJobs, or its total, looks at."""
MOST_AHEAD: Final = 1_000
"""Where counting `jobs_ahead` stops."""


class Listed(Protocol):
    """As much of a job as filters look at."""

    @property
    def number(self) -> int: ...
    @property
    def created_ms(self) -> int: ...
    @property
    def queue(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def run_at_ms(self) -> int: ...
    @property
    def finished_at_ms(self) -> int: ...
    @property
    def finish_reason(self) -> int: ...
    @property
    def key(self) -> str: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def terminal(self) -> bool: ...


class Body(msgspec.Struct, frozen=True):
    """What a job carries beside its hot state. content_type "" = application/json; an empty result has no type."""

    data: bytes = b""
    content_type: str = ""
    headers: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    result: bytes = b""
    result_content_type: str = ""
    progress_json: str = ""


def reported_state(job: Listed, now_ms: int) -> State:
    """The state told to readers: stored `delayed` is `waiting` once the due time has passed [9.22]."""
    return state_reported(job.state, job.run_at_ms, now_ms)


def state_reported(state: State, run_at_ms: int, now_ms: int) -> State:
    """The same from a state and a due time."""
    return State.WAITING if state is State.DELAYED and run_at_ms <= now_ms else state


def record(job: Job, body: Body) -> commands.JobRecord:
    """The job as lists show it."""
    return commands.JobRecord(
        number=job.number,
        created_ms=job.created_ms,
        queue=job.queue,
        name=job.name,
        state=job.state,
        priority=job.priority,
        attempt=job.attempt,
        starts=job.starts,
        stalled=job.stalled,
        due_at_ms=job.due_at_ms,
        started_at_ms=job.started_at_ms,
        finished_at_ms=job.finished_at_ms,
        expires_at_ms=job.expires_at_ms,
        worker_id=job.worker_id,
        finish_reason=job.finish_reason,
        finish_message=job.finish_message,
        cancel_requested=job.cancel_requested,
        revision=job.revision,
        labels=body.labels,
        key=job.key,
        singleton=job.singleton,
        scheduler=job.scheduler,
        tick_at_ms=job.origin.tick_ms if job.origin else 0,
        caused_by=job.caused_by,
    )


def full_record(
    job: Job, body: Body, ended: Sequence[commands.AttemptRecord], wait: commands.Wait | None = None
) -> commands.JobRecord:
    """The job with all that belongs to it. ended: the kept attempts, oldest first; a running one is put after them."""
    return msgspec.structs.replace(
        record(job, body),
        data=body.data,
        content_type=body.content_type,
        headers=body.headers,
        policy=job.policy,
        result=body.result,
        result_content_type=body.result_content_type,
        progress_json=body.progress_json,
        attempts=[*ended, *running(job)],
        wait=wait,
    )


def running(job: Job) -> list[commands.AttemptRecord]:
    """The attempt that runs, if one does."""
    if job.token is None:
        return []
    return [commands.AttemptRecord(job.attempt, job.starts, job.worker_id, job.started_at_ms, 0, 0)]


def wait(job: Job, ended: Sequence[commands.AttemptRecord], ahead: int, now_ms: int) -> commands.Wait | None:
    """Why the job does not run, None when it does or has ended [1.1]. ahead: claimable jobs before it in the line.

    NEXT stands for NO_WORKER too, which the engine alone knows.
    """
    if job.terminal or job.state is State.ACTIVE:
        return None
    if job.run_at_ms > now_ms:
        since = ended[-1].ended_at_ms if ended else job.created_ms
        return commands.Wait(WaitReason.DELAY, since_at_ms=since, until_at_ms=job.run_at_ms)
    return commands.Wait(WaitReason.NEXT, since_at_ms=job.run_at_ms, jobs_ahead=min(ahead, MOST_AHEAD))


def delivery(job: Job, body: Body) -> commands.Delivery:
    """What the worker of a started job is sent."""
    return commands.Delivery(
        number=job.number,
        created_ms=job.created_ms,
        token=job.token or "",
        queue=job.queue,
        name=job.name,
        data=body.data,
        content_type=body.content_type,
        attempt=job.attempt,
        max_attempts=job.policy.max_attempts,
        lease_ms=job.policy.lease_ms,
        attempt_timeout_ms=job.policy.attempt_timeout_ms,
        headers=body.headers,
        labels=body.labels,
        priority=job.priority,
        key=job.key,
        starts=job.starts,
        stalled=job.stalled,
        progress_json=body.progress_json,
        scheduler=job.scheduler,
        tick_at_ms=job.origin.tick_ms if job.origin else 0,
    )


def matches(wanted: commands.JobFilter, job: Listed, labels: dict[str, str] | None, now_ms: int) -> bool:
    """Whether the filter lets the job through; its conditions are joined by AND. Instants are exclusive."""
    return (
        wanted.queue in ("", job.queue)
        and wanted.name in ("", job.name)
        and (not wanted.states or reported_state(job, now_ms) in wanted.states)
        and wanted.finish_reason in (0, job.finish_reason)
        and wanted.scheduler in ("", job.scheduler)
        and _in_time(wanted, job)
        and (not wanted.labels or wanted.labels.items() <= (labels or {}).items())
        and not wanted.group_id
        and (not wanted.search or _found(wanted.search, job))
        and queue_allowed(job.queue, wanted.allowed)
    )


def queue_allowed(queue: str, patterns: Sequence[str] | None) -> bool:
    """Whether one of a token's queue patterns fits, `*` standing for any text; None allows all."""
    return patterns is None or any(fnmatchcase(queue, pattern) for pattern in patterns)


def receipt_matches(wanted: commands.ListReceipts, name: str, key: str) -> bool:
    """Whether ListReceipts asks for this name and key."""
    return wanted.name in ("", name) and key.startswith(wanted.key_prefix)


def definition_matches(wanted: commands.ListSchedulers, name: str, queue: str) -> bool:
    """Whether ListSchedulers asks for a definition of this name whose job goes to this queue."""
    return (
        name.startswith(wanted.name_prefix)
        and wanted.queue in ("", queue)
        and not wanted.flow_template
        and queue_allowed(queue, wanted.allowed)
    )


def owner_matches(wanted: commands.ListDefinitions, owner: commands.Owner) -> bool:
    """Whether ListDefinitions asks for what this resource owns."""
    return (
        wanted.namespace in ("", owner.namespace)
        and wanted.kind in ("", owner.kind)
        and wanted.manager in ("", owner.manager)
    )


def _in_time(wanted: commands.JobFilter, job: Listed) -> bool:
    return (
        (not wanted.created_after_ms or job.created_ms > wanted.created_after_ms)
        and (not wanted.created_before_ms or job.created_ms < wanted.created_before_ms)
        and (not wanted.finished_before_ms or (job.terminal and job.finished_at_ms < wanted.finished_before_ms))
    )


def _found(text: str, job: Listed) -> bool:
    return text in job.name or text in job.key or text in ids.encode(job.created_ms, job.number)


# ------------------------------------------------------------------------------------- rows of Store.export


def job_row(job: Job, body: Body) -> tuple[object, ...]:
    """A row of "jobs", by number."""
    return (*msgspec.structs.astuple(job), *msgspec.structs.astuple(body))


def attempt_row(number: int, end: AttemptEnd) -> tuple[object, ...]:
    """A row of "attempts", by number and start."""
    return (number, *msgspec.structs.astuple(end.record), end.token, end.settle_outcome, end.answer_state)


def log_row(number: int, place: int, line: commands.LogLine) -> tuple[object, ...]:
    """A row of "job_logs", by number and line."""
    return (number, place, *msgspec.structs.astuple(line))


def scheduler_row(number: int, it: Scheduler) -> tuple[object, ...]:
    """A row of "schedulers", by number."""
    return (number, *msgspec.structs.astuple(it))


def event_rows(first: int, at_ms: int, runs: Sequence[events.Run]) -> list[tuple[object, ...]]:
    """Rows of "events": (number of the commit's first, time, transition), by job inside a commit.

    Only the order of one job's transitions is a promise; neighbours may change places inside a commit.
    """
    flat = [
        (first, at_ms, number, created, attempt, *msgspec.structs.astuple(run)[:5], *msgspec.structs.astuple(run)[6:])
        for run in runs
        for number, created, attempt in zip(run.jobs[::3], run.jobs[1::3], run.jobs[2::3], strict=True)
    ]
    return sorted(flat, key=itemgetter(2))
