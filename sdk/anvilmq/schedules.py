"""Recurring definitions: the broker makes a job at each tick. What `app.schedule` and its like send and return.

One path for async and sync: each function starts a call on the I/O loop, and the app awaits it or waits for it.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast

import msgspec

from anvilmq import _words, durations
from anvilmq._transport import method
from anvilmq.durations import Duration
from anvilmq.options import instant_ms
from anvilmq_proto.v1 import job_service_pb2, types_pb2
from anvilmq_proto.v1 import scheduler_service_pb2 as pb

if TYPE_CHECKING:
    from anvilmq._client import Client
    from anvilmq.jobs import Spec

ConcurrencyPolicy = Literal["allow", "forbid", "replace"]
CatchUp = Literal["latest", "none", "all"]
UpsertOutcome = Literal["created", "updated", "unchanged", "stale_generation", "unspecified"]

_UPSERT: Final = method("SchedulerService", "UpsertScheduler", pb.UpsertSchedulerRequest, pb.UpsertSchedulerResponse)
_LIST: Final = method("SchedulerService", "ListSchedulers", pb.ListSchedulersRequest, pb.ListSchedulersResponse)
_DELETE: Final = method("SchedulerService", "DeleteScheduler", pb.DeleteSchedulerRequest, pb.DeleteSchedulerResponse)
_TRIGGER: Final = method(
    "SchedulerService", "TriggerScheduler", pb.TriggerSchedulerRequest, pb.TriggerSchedulerResponse
)
_PREVIEW: Final = method("SchedulerService", "PreviewSchedule", pb.PreviewScheduleRequest, pb.PreviewScheduleResponse)
_GET_JOB: Final = method("JobService", "GetJob", job_service_pb2.GetJobRequest, job_service_pb2.GetJobResponse)
_PAGE: Final = 1_000


class TimingOptions(TypedDict, total=False):
    """When a schedule is due. Either cron or every.

    cron: 5 fields, or 6 with seconds first, or @daily and the like. time_zone: an IANA name, with cron only, by default
    Etc/UTC. every: at least 100 ms, counted in UTC from 1970; offset: shifts that. start, end: instants with a time
    zone, no tick lies outside. limit: ticks in all. jitter: a tick is late by up to that much.
    """

    cron: str | None
    every: Duration | None
    offset: Duration | None
    time_zone: str | None
    start: datetime | None
    end: datetime | None
    limit: int | None
    jitter: Duration | None


class ScheduleOptions(TimingOptions, total=False):
    """What a recurring definition can have beside its job.

    concurrency_policy, when the run before has not ended: "allow" both (default), "forbid": skip the tick, "replace":
    cancel the run before. catch_up, of ticks missed while the broker was down: "latest" one of them (default), "none",
    "all" up to max_catch_up_runs (1 to 1 000, by default 100). starting_deadline: ticks older than that are dropped.
    suspended: None leaves what is stored, so that a deploy does not wake what an operator has stopped.
    description: at most 1 KiB. dry_run: check only, and return what would be.
    """

    concurrency_policy: ConcurrencyPolicy | None
    catch_up: CatchUp | None
    max_catch_up_runs: int | None
    starting_deadline: Duration | None
    suspended: bool | None
    description: str | None
    dry_run: bool


class PreviewOptions(TimingOptions, total=False):
    """What `preview` takes. after: ticks later than that, by default now. count: how many, 1 to 100, by default 5."""

    after: datetime | None
    count: int | None


class Owner(msgspec.Struct, frozen=True):
    """The custom resource that a definition is kept by: it is changed there."""

    kind: str
    namespace: str
    name: str


class Scheduler(msgspec.Struct, frozen=True):
    """A recurring definition as the broker has it.

    cron or every: "" and None where the other is set. outcome: what `schedule` came to, None in lists. next_tick_at:
    without jitter; None when it is suspended, has ended, reached its limit or has a problem. run_count: ticks that made
    a run; skipped_count: those that did not, by the policy or a refusal; missed_count: those dropped after a downtime.
    problem_reason, problem_message: why it cannot tick, "" when it can. Instants are UTC.
    """

    name: str
    queue: str
    job_name: str
    cron: str
    every: timedelta | None
    offset: timedelta
    time_zone: str
    start: datetime | None
    end: datetime | None
    limit: int | None
    jitter: timedelta
    concurrency_policy: str
    catch_up: str
    max_catch_up_runs: int
    starting_deadline: timedelta | None
    suspended: bool
    description: str
    owner: Owner | None
    uid: str
    next_tick_at: datetime | None
    last_tick_at: datetime | None
    last_job_id: str | None
    last_state: str | None
    run_count: int
    skipped_count: int
    missed_count: int
    problem_reason: str
    problem_message: str
    created_at: datetime | None
    updated_at: datetime | None
    outcome: UpsertOutcome | None = None


class SchedulePreview(msgspec.Struct, frozen=True):
    """What a schedule comes to. ticks: in its time zone, without jitter. description: the expression in words.

    warnings: what changes of the clocks do to these ticks.
    """

    ticks: list[datetime]
    description: str
    warnings: list[str]


# ------------------------------------------------------------------------------------------------- the calls


async def upsert(client: Client, name: str, spec: Spec[Any], options: ScheduleOptions) -> Scheduler:
    """Make or change a definition. On the I/O loop."""
    dry_run = options.get("dry_run", False)
    request = pb.UpsertSchedulerRequest(
        scheduler=pb.Scheduler(name=name, spec=build_spec(spec, options)), dry_run=dry_run
    )
    answer = await client.call(_UPSERT, request)
    outcome = cast("UpsertOutcome", _words.word(types_pb2.UpsertOutcome, answer.outcome))
    return read(answer.scheduler, outcome)


async def list_all(client: Client, prefix: str, queue: str) -> list[Scheduler]:
    """All definitions, by name. On the I/O loop."""
    request = pb.ListSchedulersRequest(name_prefix=prefix, queue=queue, page_size=_PAGE)
    found: list[Scheduler] = []
    while True:
        page = await client.call(_LIST, request)
        found += [read(each) for each in page.schedulers]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def delete(client: Client, name: str) -> bool:
    """Delete a definition; whether it was there. On the I/O loop."""
    return (await client.call(_DELETE, pb.DeleteSchedulerRequest(name=name, allow_missing=True))).deleted


async def trigger(client: Client, name: str, run_key: str | None) -> tuple[types_pb2.Job, bool]:
    """Run it now: the job (its id, queue and name), and whether an earlier call made it. On the I/O loop."""
    # With a key of its own the call can be repeated over a break, and still makes one run.
    request = pb.TriggerSchedulerRequest(name=name, run_key=run_key or secrets.token_hex(16))
    answer = await client.call(_TRIGGER, request)
    asked = job_service_pb2.GetJobRequest(job_id=answer.job_id, view=types_pb2.JOB_VIEW_BASIC)
    return (await client.call(_GET_JOB, asked)).job, answer.existing


async def preview(client: Client, options: PreviewOptions) -> SchedulePreview:
    """The next ticks. On the I/O loop."""
    after = options.get("after")
    request = pb.PreviewScheduleRequest(
        schedule=build_schedule(options),
        after_at_ms=0 if after is None else instant_ms(after),
        count=options.get("count") or 0,
    )
    answer = await client.call(_PREVIEW, request)
    ticks = [_local(tick) for tick in answer.ticks]
    return SchedulePreview(ticks, answer.description, list(answer.warnings))


# ------------------------------------------------------------------------------------------------ conversions


def build_spec(spec: Spec[Any], options: ScheduleOptions) -> pb.SchedulerSpec:
    """The content of a definition. TypeError, ValueError name the option that cannot be right."""
    known = {*ScheduleOptions.__annotations__, *TimingOptions.__annotations__}
    if unknown := sorted(options.keys() - known):
        raise TypeError(f"a schedule has no option {unknown[0]!r}")
    message = pb.SchedulerSpec(schedule=build_schedule(options), job=spec.wire)
    if (policy := options.get("concurrency_policy")) is not None:
        message.concurrency_policy = _number("concurrency_policy", pb.ConcurrencyPolicy, policy)
    if (catch_up := options.get("catch_up")) is not None:
        message.catch_up = _number("catch_up", pb.CatchUpPolicy, catch_up)
    if (runs := options.get("max_catch_up_runs")) is not None:
        message.max_catch_up_runs = runs
    if (deadline := options.get("starting_deadline")) is not None:
        message.starting_deadline_ms = _ms("starting_deadline", deadline)
    if (suspended := options.get("suspended")) is not None:
        message.suspended = suspended
    message.description = options.get("description") or ""
    return message


def build_schedule(options: TimingOptions) -> pb.Schedule:
    """When it is due. TypeError, ValueError name the option that cannot be right."""
    cron, every = options.get("cron"), options.get("every")
    if (cron is None) == (every is None):
        raise TypeError('a schedule needs either cron, such as cron="0 2 * * *", or every, such as every="5m"')
    message = pb.Schedule(time_zone=options.get("time_zone") or "", limit=options.get("limit") or 0)
    if cron is not None:
        message.cron = cron
    if every is not None:
        message.every_ms = _ms("every", every)
    for option, field in (("offset", "offset_ms"), ("jitter", "jitter_ms")):
        if (duration := cast("dict[str, Any]", options).get(option)) is not None:
            setattr(message, field, _ms(option, duration))
    for option, field in (("start", "start_at_ms"), ("end", "end_at_ms")):
        if (instant := cast("dict[str, Any]", options).get(option)) is not None:
            setattr(message, field, _instant_ms(option, instant))
    return message


def read(message: pb.Scheduler, outcome: UpsertOutcome | None = None) -> Scheduler:
    """A definition as the broker answered it."""
    spec, schedule = message.spec, message.spec.schedule
    owner = message.owner
    return Scheduler(
        name=message.name,
        queue=spec.job.queue,
        job_name=spec.job.name,
        cron=schedule.cron,
        every=timedelta(milliseconds=schedule.every_ms) if schedule.every_ms else None,
        offset=timedelta(milliseconds=schedule.offset_ms),
        time_zone=schedule.time_zone,
        start=_words.instant(schedule.start_at_ms),
        end=_words.instant(schedule.end_at_ms),
        limit=schedule.limit or None,
        jitter=timedelta(milliseconds=schedule.jitter_ms),
        concurrency_policy=_words.word(pb.ConcurrencyPolicy, spec.concurrency_policy),
        catch_up=_words.word(pb.CatchUpPolicy, spec.catch_up),
        max_catch_up_runs=spec.max_catch_up_runs,
        starting_deadline=timedelta(milliseconds=spec.starting_deadline_ms) if spec.starting_deadline_ms else None,
        suspended=spec.suspended,
        description=spec.description,
        owner=Owner(owner.kind, owner.namespace, owner.name) if message.HasField("owner") else None,
        uid=message.uid,
        next_tick_at=_words.instant(message.next_tick_at_ms),
        last_tick_at=_words.instant(message.last_tick_at_ms),
        last_job_id=message.last_job_id or None,
        last_state=_words.word(types_pb2.JobState, message.last_state) if message.last_state else None,
        run_count=message.run_count,
        skipped_count=message.skipped_count,
        missed_count=message.missed_count,
        problem_reason=message.problem_reason,
        problem_message=message.problem_message,
        created_at=_words.instant(message.created_at_ms),
        updated_at=_words.instant(message.updated_at_ms),
        outcome=outcome,
    )


def _local(tick: pb.SchedulePreviewTick) -> datetime:
    zone = datetime.fromisoformat(tick.local).tzinfo or UTC
    return datetime.fromtimestamp(tick.at_ms / 1_000, zone)


def _number(option: str, enum: Any, word: str) -> Any:
    known = _words.words(enum)
    if word not in known:
        raise ValueError(f"{option}: is one of {', '.join(known)}, not {word!r}")
    return known[word]


def _ms(option: str, duration: Duration) -> int:
    try:
        return durations.parse_ms(duration)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{option}: {error}") from error


def _instant_ms(option: str, instant: datetime) -> int:
    try:
        return instant_ms(instant)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{option}: {error}") from error
