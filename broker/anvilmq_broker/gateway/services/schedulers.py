"""SchedulerService: recurring definitions (semantics 6). A call reaches a definition by the queue of its job."""

from __future__ import annotations

import asyncio
from typing import Final

from anvilmq_broker.domain import commands, schedule_words
from anvilmq_broker.gateway import definitions, limits, mapping, validate
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_broker.gateway.refusals import Rejected, required
from anvilmq_proto.v1 import scheduler_service_pb2 as pb

DEFAULT_PREVIEW: Final = 5
MAX_PREVIEW: Final = 100
_NOT_FOUND: Final = "SCHEDULER_NOT_FOUND"


async def upsert_scheduler(
    context: Context, call: Call, request: pb.UpsertSchedulerRequest
) -> pb.UpsertSchedulerResponse:
    """Make or change a definition, idempotent by content."""
    if not request.HasField("scheduler"):
        raise required("scheduler")
    wanted = request.scheduler
    name = definitions.scheduler_name(wanted.name, "scheduler.name")
    if not wanted.HasField("spec"):
        raise required("scheduler.spec")
    spec = definitions.scheduler_spec(wanted.spec, "scheduler.spec", context.limits)
    owner = definitions.owner(wanted.owner, "scheduler.owner") if wanted.HasField("owner") else None
    _require(call, spec)
    await _reach_stored(context, call, name)
    command = commands.UpsertScheduler(name, spec, owner, request.dry_run, request.adopt)
    done = await context.submit(command, commands.UpsertedScheduler)
    return pb.UpsertSchedulerResponse(
        scheduler=definitions.scheduler(done.scheduler), outcome=mapping.enum(done.outcome)
    )


async def get_scheduler(context: Context, call: Call, request: pb.GetSchedulerRequest) -> pb.GetSchedulerResponse:
    """One definition by its name."""
    record = await _find(context, call, definitions.scheduler_name(request.name))
    return pb.GetSchedulerResponse(scheduler=definitions.scheduler(record))


async def list_schedulers(context: Context, call: Call, request: pb.ListSchedulersRequest) -> pb.ListSchedulersResponse:
    """One page of definitions, by name."""
    query = commands.ListSchedulers(
        validate.plain_text(request.name_prefix, "name_prefix", limits.MAX_NAME_BYTES),
        validate.queue(request.queue) if request.queue else "",
        validate.queue(request.flow_template, "flow_template") if request.flow_template else "",
        validate.page_size(request.page_size),
        context.pages.position(request, str) or "",
        None if request.queue else call.caller.patterns(call.scopes),
    )
    page = await context.query(query, commands.SchedulerPage)
    return pb.ListSchedulersResponse(
        schedulers=[definitions.scheduler(record) for record in page.schedulers],
        next_page_token=context.pages.token(request, page.next or None),
    )


async def delete_scheduler(
    context: Context, call: Call, request: pb.DeleteSchedulerRequest
) -> pb.DeleteSchedulerResponse:
    """Delete a definition; its jobs go on."""
    name = definitions.scheduler_name(request.name)
    owner = definitions.owner(request.owner, "owner") if request.HasField("owner") else None
    await _reach_stored(context, call, name)
    command = commands.DeleteScheduler(name, owner, request.allow_missing)
    done = await context.submit(command, commands.DeletedScheduler)
    return pb.DeleteSchedulerResponse(deleted=done.deleted)


async def set_scheduler_suspended(
    context: Context, call: Call, request: pb.SetSchedulerSuspendedRequest
) -> pb.SetSchedulerSuspendedResponse:
    """Suspend or resume a definition; what would have been due meanwhile is not caught up."""
    name = definitions.scheduler_name(request.name)
    await _reach_stored(context, call, name)
    done = await context.submit(commands.SuspendScheduler(name, request.suspended), commands.SchedulerFound)
    return pb.SetSchedulerSuspendedResponse(scheduler=definitions.scheduler(done.scheduler))


async def trigger_scheduler(
    context: Context, call: Call, request: pb.TriggerSchedulerRequest
) -> pb.TriggerSchedulerResponse:
    """One run now."""
    name = definitions.scheduler_name(request.name)
    run_key = validate.plain_text(request.run_key, "run_key", limits.MAX_RUN_KEY_BYTES)
    await _reach_stored(context, call, name)
    done = await context.submit(commands.TriggerScheduler(name, run_key), commands.TriggeredScheduler)
    return pb.TriggerSchedulerResponse(job_id=mapping.job_id(done.run), existing=done.existing)


async def preview_schedule(
    context: Context, _call: Call, request: pb.PreviewScheduleRequest
) -> pb.PreviewScheduleResponse:
    """The next ticks, the expression in words, what the clocks' changes do to it; nothing is stored."""
    spec = definitions.schedule_of(request, "schedule")
    count = validate.number(request.count, "count", 0, MAX_PREVIEW) or DEFAULT_PREVIEW
    after_ms = validate.instant(request.after_at_ms, "after_at_ms") or context.clock.wall_ms()
    # Ticks that are decades apart take a second to find: other calls go on meanwhile.
    found = await asyncio.to_thread(schedule_words.preview, spec, after_ms, count)
    return pb.PreviewScheduleResponse(
        ticks=[pb.SchedulePreviewTick(at_ms=tick.at_ms, local=tick.local) for tick in found.ticks],
        description=found.description,
        warnings=found.warnings,
    )


async def _find(context: Context, call: Call, name: str) -> commands.SchedulerRecord:
    """The definition, which the caller's scopes must reach."""
    record = (await context.query(commands.GetScheduler(name), commands.SchedulerFound)).scheduler
    _require(call, record.spec)
    return record


async def _reach_stored(context: Context, call: Call, name: str) -> None:
    """The caller's scopes must reach the definition that is there under this name, if one is: nobody takes over
    that of another queue. It is looked up only if the scopes do not reach every queue."""
    if call.caller.patterns(call.scopes) is None:
        return
    try:
        await _find(context, call, name)
    except Rejected as error:
        if error.refused.reason != _NOT_FOUND:
            raise


def _require(call: Call, spec: commands.SchedulerSpec) -> None:
    if spec.job is not None:
        call.caller.require(call.scopes, spec.job.queue)
