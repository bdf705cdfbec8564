"""JobService: adds, reads, waits, cancels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from anvilmq_broker.gateway import limits, mapping, status, validate
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_broker.gateway.refusals import Rejected, at, batch_too_large, invalid, under
from anvilmq_proto.v1 import job_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2

OF_THE_WHOLE: Final = frozenset(
    {"SEQUENCE_STALE", "OVERLOADED", "STORAGE_FULL", "NOT_READY", "DRAINING", "MAINTENANCE", "BATCH_TOO_LARGE"}
)
"""Reasons for which the engine refuses a batch as a whole; any other is that of one item, named by its index."""

BULK_FIELD: Final = "jobs"


class BatchRefused(Exception):
    """A batch was refused and wrote nothing. index: the item it was refused for, None for the batch itself."""

    def __init__(self, refused: Refused, index: int | None) -> None:
        super().__init__(refused.message)
        self.refused = refused
        self.index = index


class Batch(msgspec.Struct):
    """Adds on their way. command: None when no item is left. places: command's item → request's, None = the same."""

    command: commands.AddJobs | None
    count: int
    places: list[int] | None
    refused: list[Refused]


async def add_job(context: Context, call: Call, request: pb.AddJobRequest) -> pb.AddJobResponse:
    """Add one job."""
    if not request.HasField("job"):
        raise invalid("job", "is required")
    try:
        new = mapping.new_job(request.job, context.limits, context.shapes)
        call.caller.require(call.scopes, new.queue)
        added = await context.submit(commands.AddJobs([new]), commands.AddedJobs)
    except Rejected as error:
        raise Rejected(under(error.refused, "job.")) from None
    if added.earlier:
        met = added.earlier[0]
        return pb.AddJobResponse(
            job_id=mapping.job_id(met.ref),
            state=mapping.enum(met.state),
            existing=True,
            matched_by=mapping.enum(met.matched_by),
        )
    state = added.states[0] if added.states else State.WAITING
    return pb.AddJobResponse(job_id=ids.encode(added.created_ms, added.first_number), state=mapping.enum(state))


async def add_job_bulk(context: Context, call: Call, request: pb.AddJobBulkRequest) -> pb.AddJobBulkResponse:
    """Add up to 1 000 jobs in one transaction."""
    try:
        batch = prepare(context, call, request, request.ByteSize())
        response = pb.AddJobBulkResponse()
        fill(response, batch, await _send(context, batch))
    except BatchRefused as error:
        if error.index is None:
            raise Rejected(error.refused) from None
        refused = under(error.refused, f"{BULK_FIELD}[{error.index}].")
        raise status.failure(refused, index=error.index) from None
    return response


def prepare(context: Context, call: Call, request: Any, size: int) -> Batch:
    """Check a batch (AddJobBulkRequest or AddJobStreamRequest) of `size` bytes. Raises BatchRefused."""
    specs, producer_id, seq = request.jobs, request.producer_id, request.seq
    atomic = request.atomic != pb.ATOMICITY_PER_ITEM
    try:
        validate.batch(len(specs), BULK_FIELD, limits.MAX_BULK_JOBS)
        if size > limits.MAX_BULK_BYTES:
            raise batch_too_large(BULK_FIELD, size, limits.MAX_BULK_BYTES, "bytes")
        if producer_id or seq:
            _check_producer(producer_id, seq)
    except Rejected as error:
        raise BatchRefused(error.refused, None) from None
    jobs: list[commands.NewJob] = []
    places: list[int] | None = None
    refused: list[Refused] = []
    new_job, bounds, shapes, allowed = mapping.new_job, context.limits, context.shapes, None
    for index, spec in enumerate(specs):
        try:
            new = new_job(spec, bounds, shapes)
            if new.queue is not allowed:
                call.caller.require(call.scopes, new.queue)
                allowed = new.queue
            jobs.append(new)
        except Rejected as error:
            if atomic:
                raise BatchRefused(at(error.refused, index), index) from None
            refused.append(at(error.refused, index))
            if places is None:
                places = list(range(index))
        else:
            if places is not None:
                places.append(index)
    command = commands.AddJobs(jobs, atomic, producer_id, seq) if jobs else None
    return Batch(command, len(specs), places, refused)


def refusal(batch: Batch, refused: Refused) -> BatchRefused:
    """How the engine's refusal of a batch is told. Raises Rejected when there was no engine."""
    if refused.reason == "NOT_READY":
        raise Rejected(refused)
    if refused.reason in OF_THE_WHOLE:
        return BatchRefused(refused, None)
    index = _place(batch, refused.index)
    return BatchRefused(at(refused, index), index)


def fill(response: Any, batch: Batch, added: commands.AddedJobs) -> None:
    """Put the answer's columns into an AddJobBulkResponse or AddJobStreamResponse."""
    if not (added.earlier or added.refused or batch.refused):
        response.job_ids.extend(ids.encode_run(added.created_ms, added.first_number, batch.count))
        return
    refused = [*batch.refused, *(at(each, _place(batch, each.index)) for each in added.refused)]
    refused.sort(key=lambda each: each.index)
    earlier = {_place(batch, met.index): met for met in added.earlier}
    response.job_ids.extend(_ids(batch.count, added, earlier, {each.index for each in refused}))
    for index in sorted(earlier):
        met = earlier[index]
        response.earlier.add(index=index, existing=True, matched_by=met.matched_by, state=met.state)
    response.errors.extend(status.item_error(each, each.index) for each in refused)


async def get_job(context: Context, call: Call, request: pb.GetJobRequest) -> pb.GetJobResponse:
    """One job, with the reason why it waits."""
    full = request.view != types_pb2.JOB_VIEW_BASIC
    record = await _find(context, call, request.job_id, full=full, wait=True)
    return pb.GetJobResponse(job=mapping.job(record, context.clock.wall_ms(), full=full))


async def wait_job(context: Context, call: Call, request: pb.WaitJobRequest) -> pb.WaitJobResponse:
    """The job once it is terminal, or after wait_ms as it is then."""
    wanted = validate.number(request.wait_ms, "wait_ms", 0, limits.MAX_WAIT_MS)
    full = request.view != types_pb2.JOB_VIEW_BASIC
    record = await _find(context, call, request.job_id, full=full)
    if record.state < State.COMPLETED and wanted:
        wait_ms = call.wait_ms(wanted, context.clock.monotonic_ms())
        ref = commands.JobRef(record.number, record.created_ms)
        wait = commands.WaitJob(ref, wait_ms, full)
        record = (await context.long_poll(context.query(wait, commands.JobFound))).job
    finished = record.state >= State.COMPLETED
    return pb.WaitJobResponse(job=mapping.job(record, context.clock.wall_ms(), full=full), finished=finished)


async def list_jobs(context: Context, call: Call, request: pb.ListJobsRequest) -> pb.ListJobsResponse:
    """One page of jobs."""
    allowed = None if request.filter.queue else call.caller.patterns(call.scopes)
    full = request.view == types_pb2.JOB_VIEW_FULL
    query = commands.ListJobs(
        mapping.job_filter(request.filter, allowed),
        validate.page_size(request.page_size),
        context.pages.position(request, int),
        request.oldest_first,
        full,
    )
    page = await context.query(query, commands.JobPage)
    now_ms = context.clock.wall_ms()
    return pb.ListJobsResponse(
        jobs=[mapping.job(record, now_ms, full=full) for record in page.jobs],
        next_page_token=context.pages.token(request, page.next),
        total=page.total,
        total_is_capped=page.total_is_capped,
    )


async def list_job_logs(context: Context, call: Call, request: pb.ListJobLogsRequest) -> pb.ListJobLogsResponse:
    """One page of a job's log, oldest first."""
    size = validate.page_size(request.page_size)
    after = context.pages.position(request, int) or 0
    ref = await find_ref(context, call, request.job_id)
    page = await context.query(commands.ListJobLogs(ref, size, after), commands.LogPage)
    return pb.ListJobLogsResponse(
        lines=[mapping.log_line(line) for line in page.lines], next_page_token=context.pages.token(request, page.next)
    )


async def cancel_job(context: Context, call: Call, request: pb.CancelJobRequest) -> pb.CancelJobResponse:
    """Cancel a job in whatever state it is."""
    reason = validate.text(request.reason, "reason", limits.MAX_REASON_BYTES)
    ref = await find_ref(context, call, request.job_id)
    done = await context.submit(commands.CancelJob(ref, reason, request.cascade), commands.CancelledJob)
    return pb.CancelJobResponse(state=mapping.enum(done.state), signalled=done.signalled)


async def find_ref(context: Context, call: Call, job_id: str) -> commands.JobRef:
    """The job of an id, which the caller's scopes must reach. It is looked up only if they do not reach every queue."""
    created_ms, number = validate.job_id(job_id)
    if call.caller.patterns(call.scopes) is not None:
        await _find(context, call, job_id, full=False)
    return commands.JobRef(number, created_ms)


async def _find(context: Context, call: Call, job_id: str, *, full: bool, wait: bool = False) -> commands.JobRecord:
    created_ms, number = validate.job_id(job_id)
    query = commands.GetJob(commands.JobRef(number, created_ms), full, wait)
    record = (await context.query(query, commands.JobFound)).job
    call.caller.require(call.scopes, record.queue)
    return record


async def _send(context: Context, batch: Batch) -> commands.AddedJobs:
    if batch.command is None:
        return commands.AddedJobs(0, 0)
    try:
        return await context.submit(batch.command, commands.AddedJobs)
    except Rejected as error:
        raise refusal(batch, error.refused) from None


def _check_producer(producer_id: str, seq: int) -> None:
    validate.plain_text(producer_id, "producer_id", limits.MAX_PRODUCER_ID_BYTES)
    validate.number(seq, "seq", 0, limits.MAX_INTEGER)
    if not producer_id:
        raise invalid("producer_id", "is required with seq")
    if not seq:
        raise invalid("seq", "is required with producer_id, from 1")


def _place(batch: Batch, index: int) -> int:
    return index if batch.places is None else batch.places[index]


def _ids(
    count: int, added: commands.AddedJobs, earlier: dict[int, commands.Earlier], refused: set[int]
) -> Sequence[str]:
    fresh = count - len(earlier) - len(refused)
    new = iter(ids.encode_run(added.created_ms, added.first_number, fresh))
    return [
        "" if index in refused else mapping.job_id(earlier[index].ref) if index in earlier else next(new, "")
        for index in range(count)
    ]
