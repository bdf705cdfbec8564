"""protobuf ↔ domain of recurring definitions and their owners; each value is checked on its way in (api 9.13-9.16).

Every fault of a schedule is SCHEDULE_INVALID, of its zone TIME_ZONE_UNKNOWN, with the path of the field in the request.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from anvilmq_broker.domain import commands, schedule
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import CatchUp, Concurrency
from anvilmq_broker.gateway import limits, mapping, validate
from anvilmq_broker.gateway.refusals import (
    Rejected,
    invalid,
    parameter_invalid,
    required,
    schedule_invalid,
    template_not_found,
    under,
)
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import system_service_pb2, types_pb2

DEFAULT_CATCH_UP_RUNS: Final = 100
MAX_CATCH_UP_RUNS: Final = 1_000
_RESOURCE_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_MAX_OWNER_TEXT: Final = 253

# ------------------------------------------------------------------------------------------------ inwards


def scheduler_name(text: str, field: str = "name") -> str:
    """A definition's name: the letters of a queue's."""
    return validate.queue(text, field)


def scheduler_spec(message: pb.SchedulerSpec, field: str, bounds: limits.Limits) -> commands.SchedulerSpec:
    """A definition's content, checked alone, with defaults filled in. field: its path, such as "scheduler.spec"."""
    timing = schedule_of(message, f"{field}.schedule")
    runs = message.max_catch_up_runs if message.HasField("max_catch_up_runs") else DEFAULT_CATCH_UP_RUNS
    return msgspec.structs.replace(
        timing,
        job=_job(message, field, bounds),
        concurrency_policy=mapping.known(pb.ConcurrencyPolicy, message.concurrency_policy) or int(Concurrency.ALLOW),
        catch_up=mapping.known(pb.CatchUpPolicy, message.catch_up) or int(CatchUp.LATEST),
        max_catch_up_runs=validate.number(runs, f"{field}.max_catch_up_runs", 1, MAX_CATCH_UP_RUNS),
        starting_deadline_ms=validate.duration(message.starting_deadline_ms, f"{field}.starting_deadline_ms"),
        suspended=message.suspended if message.HasField("suspended") else None,
        description=validate.text(message.description, f"{field}.description", limits.MAX_DESCRIPTION_BYTES),
    )


def schedule_of(message: pb.SchedulerSpec | pb.PreviewScheduleRequest, field: str) -> commands.SchedulerSpec:
    """The timing of a message with a `schedule`, in a spec without a target. Raises Rejected SCHEDULE_INVALID."""
    if not message.HasField("schedule"):
        raise schedule_invalid(field, "is required: set cron or every_ms in it")
    it = message.schedule
    timing = it.WhichOneof("timing")
    try:
        if timing == "cron":
            found = _cron(it, field)
        elif timing == "every_ms":
            found = _every(it, field)
        else:
            raise schedule_invalid(field, "needs one of cron and every_ms")
    except schedule.Invalid as error:
        path = f"{field}.{error.field}"
        raise Rejected(Refused(error.reason, f"{path}: {error}", path)) from None
    return _with_bounds(found, it, field)


def owner(message: types_pb2.Owner, field: str) -> commands.Owner:
    """The custom resource that a request comes from."""
    for part in ("kind", "namespace", "name", "uid"):
        if not getattr(message, part):
            raise required(f"{field}.{part}")
    for part in ("kind", "namespace", "name"):
        # They stand in a command that a refusal tells its reader to type.
        if _RESOURCE_NAME.fullmatch(getattr(message, part)) is None:
            raise invalid(f"{field}.{part}", "must be 1-253 of A-Z a-z 0-9 . - as Kubernetes has it")
    validate.number(message.generation, f"{field}.generation", 0, limits.MAX_INTEGER)
    return commands.Owner(
        kind=message.kind,
        namespace=message.namespace,
        name=message.name,
        uid=validate.plain_text(message.uid, f"{field}.uid", limits.MAX_NAME_BYTES),
        generation=message.generation,
        spec_hash=validate.plain_text(message.spec_hash, f"{field}.spec_hash", limits.MAX_NAME_BYTES),
        manager=validate.plain_text(message.manager, f"{field}.manager", _MAX_OWNER_TEXT),
        retain=message.retain,
    )


def owner_filter(text: str, field: str) -> str:
    """What a list of definitions is narrowed to; "" = everything."""
    return validate.plain_text(text, field, _MAX_OWNER_TEXT)


def _cron(it: pb.Schedule, field: str) -> commands.SchedulerSpec:
    if it.offset_ms:
        raise schedule_invalid(f"{field}.offset_ms", "is for every_ms: leave it out with cron")
    parsed = schedule.parse_cron(it.cron, it.time_zone)
    return commands.SchedulerSpec(cron=it.cron.strip(), time_zone=parsed.zone_name)


def _every(it: pb.Schedule, field: str) -> commands.SchedulerSpec:
    if it.time_zone:
        raise schedule_invalid(f"{field}.time_zone", "every_ms is counted in UTC: leave time_zone out, or use cron")
    if it.every_ms > limits.MAX_DURATION_MS:
        raise schedule_invalid(f"{field}.every_ms", f"{it.every_ms} is more than 100 years")
    parsed = schedule.parse_every(it.every_ms, it.offset_ms)
    return commands.SchedulerSpec(every_ms=parsed.every_ms, offset_ms=parsed.offset_ms)


def _with_bounds(found: commands.SchedulerSpec, it: pb.Schedule, field: str) -> commands.SchedulerSpec:
    for name, highest in _SCHEDULE_RANGES.items():
        value = getattr(it, name)
        if not 0 <= value <= highest:
            raise schedule_invalid(f"{field}.{name}", f"{value} is not in 0..{highest}")
    if it.end_at_ms and it.end_at_ms < it.start_at_ms:
        raise schedule_invalid(f"{field}.end_at_ms", "must not lie before start_at_ms")
    return msgspec.structs.replace(
        found, start_at_ms=it.start_at_ms, end_at_ms=it.end_at_ms, limit=it.limit, jitter_ms=it.jitter_ms
    )


_SCHEDULE_RANGES: Final = {
    "start_at_ms": limits.MAX_INSTANT_MS,
    "end_at_ms": limits.MAX_INSTANT_MS,
    "limit": limits.MAX_INTEGER,
    "jitter_ms": limits.MAX_DURATION_MS,
}

_NOT_IN_TEMPLATES: Final = {
    "idempotency_key": "the tick is the key of its job: leave it out",
    "idempotency_mode": "the tick is the key of its job: leave it out",
    "deduplication": "is not for jobs of a schedule: use concurrency_policy",
    "run_at_ms": "the schedule says when: use delay_ms for a time after the tick",
    "expires_at_ms": "is the same for every tick: use expires_after_ms",
}


def _job(message: pb.SchedulerSpec, field: str, bounds: limits.Limits) -> commands.NewJob:
    target = message.WhichOneof("target")
    if target == "flow":
        _refuse_flow(message.flow, f"{field}.flow")
    if target != "job":
        raise invalid(f"{field}.job", "is required: say which job a tick makes")
    for name, _ in message.job.ListFields():
        if (why := _NOT_IN_TEMPLATES.get(name.name)) is not None:
            raise invalid(f"{field}.job.{name.name}", why)
    try:
        return mapping.new_job(message.job, bounds)
    except Rejected as error:
        raise Rejected(under(error.refused, f"{field}.job.")) from None


def _refuse_flow(target: pb.FlowTarget, field: str) -> None:
    """There are no templates yet, so every well-formed target names one that is not there."""
    name = validate.queue(target.template, f"{field}.template")
    text = target.parameters_json
    if text:
        validate.text(text, f"{field}.parameters_json", limits.MAX_PARAMETERS_BYTES)
        try:
            msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            raise parameter_invalid(f"{field}.parameters_json", "must be one JSON object, such as {}") from None
    raise template_not_found(name, f"{field}.template")


# ----------------------------------------------------------------------------------------------- outwards


def scheduler(record: commands.SchedulerRecord) -> pb.Scheduler:
    """A definition as readers see it."""
    message = pb.Scheduler(
        name=record.name,
        spec=_spec_message(record.spec),
        uid=record.uid,
        content_hash=record.content_hash,
        next_tick_at_ms=record.next_tick_at_ms,
        last_tick_at_ms=record.last_tick_at_ms,
        last_job_id=mapping.job_id(record.last_run),
        last_state=mapping.enum(record.last_state),
        run_count=record.run_count,
        skipped_count=record.skipped_count,
        missed_count=record.missed_count,
        problem_reason=record.problem_reason,
        problem_message=record.problem_message,
        created_at_ms=record.created_at_ms,
        updated_at_ms=record.updated_at_ms,
    )
    if record.owner is not None:
        message.owner.CopyFrom(_owner_message(record.owner))
    return message


def definition(record: commands.DefinitionRecord) -> system_service_pb2.Definition:
    """A definition as its owner's controller compares it."""
    return system_service_pb2.Definition(
        type=mapping.enum(record.type),
        name=record.name,
        owner=_owner_message(record.owner),
        last_tick_at_ms=record.last_tick_at_ms,
        next_tick_at_ms=record.next_tick_at_ms,
        last_job_id=mapping.job_id(record.last_run),
        problem_reason=record.problem_reason,
        problem_message=record.problem_message,
    )


def _spec_message(spec: commands.SchedulerSpec) -> pb.SchedulerSpec:
    return pb.SchedulerSpec(
        schedule=_schedule_message(spec),
        job=None if spec.job is None else mapping.job_spec(spec.job),
        concurrency_policy=mapping.enum(spec.concurrency_policy),
        catch_up=mapping.enum(spec.catch_up),
        max_catch_up_runs=spec.max_catch_up_runs,
        starting_deadline_ms=spec.starting_deadline_ms,
        suspended=bool(spec.suspended),
        description=spec.description,
    )


def _schedule_message(spec: commands.SchedulerSpec) -> pb.Schedule:
    message = pb.Schedule(
        offset_ms=spec.offset_ms,
        time_zone=spec.time_zone,
        start_at_ms=spec.start_at_ms,
        end_at_ms=spec.end_at_ms,
        limit=spec.limit,
        jitter_ms=spec.jitter_ms,
    )
    if spec.cron:
        message.cron = spec.cron
    else:
        message.every_ms = spec.every_ms
    return message


def _owner_message(it: commands.Owner) -> types_pb2.Owner:
    return types_pb2.Owner(
        kind=it.kind,
        namespace=it.namespace,
        name=it.name,
        uid=it.uid,
        generation=it.generation,
        spec_hash=it.spec_hash,
        manager=it.manager,
        retain=it.retain,
    )
