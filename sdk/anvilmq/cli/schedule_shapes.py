"""How recurring definitions are shown."""

from __future__ import annotations

from anvilmq.cli import job_shapes, times, values
from anvilmq.cli.output import Shape
from anvilmq.cli.tables import Column
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2


def shape(now_ms: int) -> Shape[pb.Scheduler]:
    """Columns, details and name of a definition, as seen at that time."""
    return Shape(
        columns=(
            Column("NAME", lambda it: it.name),
            Column("WHEN", lambda it: when(it.spec.schedule)),
            Column("ZONE", lambda it: it.spec.schedule.time_zone),
            Column("QUEUE", lambda it: it.spec.job.queue),
            Column("JOB", lambda it: it.spec.job.name or it.spec.flow.template),
            Column("STATE", state),
            Column("NEXT", lambda it: _until(it.next_tick_at_ms, now_ms)),
            Column("LAST", lambda it: times.age(it.last_tick_at_ms, now_ms)),
            Column("LAST JOB", lambda it: it.last_job_id, wide=True),
            Column("LAST STATE", lambda it: values.enum_word(types_pb2.JobState, it.last_state), wide=True),
            Column("RUNS", lambda it: str(it.run_count), wide=True),
            Column("SKIPPED", lambda it: str(it.skipped_count), wide=True),
            Column("MISSED", lambda it: str(it.missed_count), wide=True),
            Column("OWNER", owner, wide=True),
        ),
        details=lambda it: details(it, now_ms),
        name=lambda it: it.name,
    )


def outcomes(now_ms: int) -> Shape[pb.UpsertSchedulerResponse]:
    """What became of definitions that were applied."""
    return Shape(
        columns=(
            Column("NAME", lambda it: it.scheduler.name),
            Column("OUTCOME", lambda it: values.enum_word(types_pb2.UpsertOutcome, it.outcome).replace("_", " ")),
            Column("NEXT", lambda it: times.relative(it.scheduler.next_tick_at_ms, now_ms)),
        ),
        details=lambda it: details(it.scheduler, now_ms),
        name=lambda it: it.scheduler.name,
    )


def details(it: pb.Scheduler, now_ms: int) -> list[tuple[str, str]]:
    """Everything worth reading about one definition; a field without a value is left out by who prints it."""
    spec, schedule = it.spec, it.spec.schedule
    return [
        ("Name", it.name),
        ("Description", spec.description),
        ("State", state(it)),
        ("Problem", ": ".join(part for part in (it.problem_reason, it.problem_message) if part)),
        ("When", when(schedule)),
        ("Time zone", schedule.time_zone),
        ("Start", times.relative(schedule.start_at_ms, now_ms)),
        ("End", times.relative(schedule.end_at_ms, now_ms)),
        ("Jitter", f"up to {times.exact(schedule.jitter_ms)}" if schedule.jitter_ms else ""),
        ("Next", times.relative(it.next_tick_at_ms, now_ms)),
        ("Last", times.relative(it.last_tick_at_ms, now_ms)),
        ("Last job", " ".join(part for part in (it.last_job_id, _last_state(it)) if part)),
        ("Runs", f"{it.run_count} of {schedule.limit}" if schedule.limit else str(it.run_count)),
        ("Skipped", str(it.skipped_count or "")),
        ("Missed", str(it.missed_count or "")),
        ("Concurrency", values.enum_word(pb.ConcurrencyPolicy, spec.concurrency_policy)),
        ("Catch up", _catch_up(spec)),
        ("Deadline", times.exact(spec.starting_deadline_ms) if spec.starting_deadline_ms else ""),
        ("Queue", spec.job.queue),
        ("Job", spec.job.name),
        ("Template", spec.flow.template),
        ("Policy", job_shapes.policy_text(spec.job.policy)),
        ("Labels", ",".join(f"{key}={value}" for key, value in sorted(spec.job.labels.items()))),
        ("Data", job_shapes.payload_text(spec.job.data, spec.job.content_type)),
        ("Owner", owner(it)),
        ("Created", times.relative(it.created_at_ms, now_ms)),
        ("Updated", times.relative(it.updated_at_ms, now_ms)),
    ]


def when(schedule: pb.Schedule) -> str:
    """The expression, or the interval."""
    if schedule.HasField("cron"):
        return schedule.cron
    shift = f" +{times.exact(schedule.offset_ms)}" if schedule.offset_ms else ""
    return f"every {times.exact(schedule.every_ms)}{shift}"


def state(it: pb.Scheduler) -> str:
    """How it stands, as a word."""
    if it.problem_reason:
        return "problem"
    if it.spec.suspended:
        return "suspended"
    return "active" if it.next_tick_at_ms else "ended"


def owner(it: pb.Scheduler) -> str:
    """The resource that keeps it; "" for none."""
    return f"{it.owner.kind} {it.owner.namespace}/{it.owner.name}" if it.HasField("owner") else ""


def _until(at_ms: int, now_ms: int) -> str:
    if not at_ms:
        return ""
    return f"in {times.short(at_ms - now_ms)}" if at_ms > now_ms else "now"


def _last_state(it: pb.Scheduler) -> str:
    if not it.last_job_id:
        return ""
    return f"({values.enum_word(types_pb2.JobState, it.last_state) or 'removed'})"


def _catch_up(spec: pb.SchedulerSpec) -> str:
    word = values.enum_word(pb.CatchUpPolicy, spec.catch_up)
    return f"{word}, at most {spec.max_catch_up_runs}" if spec.catch_up == pb.CATCH_UP_POLICY_ALL else word
