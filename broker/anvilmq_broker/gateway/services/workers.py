"""WorkerService without its stream: claims, settlements, renewals, progress, logs by single calls."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import InterruptCause
from anvilmq_broker.gateway import frames, limits, mapping, status, validate
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_broker.gateway.refusals import Rejected, at, under
from anvilmq_proto.v1 import types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb


class SettleBatch(msgspec.Struct):
    """Settlements on their way. command: None when no item is left. places: command's item → request's, None = same."""

    seq: int
    count: int
    command: commands.Settle | None
    places: list[int] | None
    refused: list[Refused]

    def answer(self, outcome: commands.Settled) -> pb.SettleJobsResponse:
        """The response, once the engine has said what became of the command."""
        if self.places is None:
            response = pb.SettleJobsResponse(seq=self.seq, states=mapping.enum(outcome.states))
            response.errors.extend(status.item_error(each, each.index) for each in outcome.refused)
            return response
        states = [0] * self.count
        for place, state in zip(self.places, outcome.states, strict=True):
            states[place] = state
        errors = [*self.refused, *(at(each, self.places[each.index]) for each in outcome.refused)]
        errors.sort(key=lambda each: each.index)
        response = pb.SettleJobsResponse(seq=self.seq, states=mapping.enum(states))
        response.errors.extend(status.item_error(each, each.index) for each in errors)
        return response


class RenewBatch(msgspec.Struct):
    """Renewals on their way. dead: leases that cannot be ones of this broker."""

    seq: int
    command: commands.Renew
    dead: list[types_pb2.Lease]

    def answer(self, outcome: commands.Renewed) -> pb.RenewLeasesResponse:
        """The response, once the engine has said which leases are lost."""
        response = pb.RenewLeasesResponse(seq=self.seq)
        mapping.put_interrupts(response.interrupts, outcome.interrupts)
        put_lost(response.interrupts, self.dead)
        return response


async def claim_jobs(context: Context, call: Call, request: pb.ClaimJobsRequest) -> pb.ClaimJobsResponse:
    """Start up to max_jobs jobs for a caller without a session."""
    worker = mapping.worker_identity(request.worker)
    validate.batch(len(request.queues), "queues", limits.MAX_POOL_QUEUES)
    queues = [validate.queue(queue, f"queues[{index}]") for index, queue in enumerate(request.queues)]
    for queue in queues:
        call.caller.require(call.scopes, queue)
    max_jobs = validate.number(request.max_jobs, "max_jobs", 1, limits.MAX_CLAIM_JOBS)
    wanted = validate.number(request.wait_ms, "wait_ms", 0, limits.MAX_WAIT_MS)
    claim_id = validate.plain_text(request.claim_id, "claim_id", limits.MAX_PRODUCER_ID_BYTES)
    wait_ms = call.wait_ms(wanted, context.clock.monotonic_ms())
    claim = commands.Claim(worker, queues, max_jobs, wait_ms, claim_id)
    # A claim that is given up is taken back by the link: its jobs return uncounted.
    claimed = await context.long_poll(context.submit(claim, commands.Claimed))
    count = frames.fitting(claimed.deliveries, limits.MAX_FRAME_BYTES, limits.MAX_CLAIM_JOBS)
    _undeliver(context, claimed.deliveries[count:])
    response = pb.ClaimJobsResponse()
    mapping.put_deliveries(response.deliveries, claimed.deliveries[:count])
    return response


async def settle_jobs(context: Context, _call: Call, request: pb.SettleJobsRequest) -> pb.SettleJobsResponse:
    """End up to 1 000 attempts, each for itself."""
    batch = settle_batch(request)
    if batch.command is None:
        return batch.answer(commands.Settled(b""))
    return batch.answer(await context.submit(batch.command, commands.Settled))


async def renew_leases(context: Context, _call: Call, request: pb.RenewLeasesRequest) -> pb.RenewLeasesResponse:
    """Extend up to 1 000 leases."""
    batch = renew_batch(request)
    return batch.answer(await context.submit(batch.command, commands.Renewed))


async def report_progress(
    context: Context, _call: Call, request: pb.ReportProgressRequest
) -> pb.ReportProgressResponse:
    """Keep the progress of a running attempt."""
    await context.submit(mapping.progress(request), commands.Done)
    return pb.ReportProgressResponse()


async def append_job_logs(context: Context, _call: Call, request: pb.AppendJobLogsRequest) -> pb.AppendJobLogsResponse:
    """Keep log lines of a running attempt."""
    await context.submit(mapping.log_lines(request), commands.Done)
    return pb.AppendJobLogsResponse()


async def list_workers(context: Context, call: Call, request: pb.ListWorkersRequest) -> pb.ListWorkersResponse:
    """One page of the workers that serve the caller's queues."""
    if request.queue:
        validate.queue(request.queue)
    allowed = None if request.queue else call.caller.patterns(call.scopes)
    after = context.pages.position(request, str) or ""
    query = commands.ListWorkers(request.queue, validate.page_size(request.page_size), after, allowed)
    page = await context.query(query, commands.WorkerPage)
    return pb.ListWorkersResponse(
        workers=[mapping.worker(record) for record in page.workers],
        next_page_token=context.pages.token(request, page.next or None),
    )


async def drain_worker(context: Context, call: Call, request: pb.DrainWorkerRequest) -> pb.DrainWorkerResponse:
    """Ask a worker to finish and leave. The caller's scopes must reach every queue that it serves."""
    worker_id = validate.name(request.worker_id, "worker_id")
    reason = validate.text(request.reason, "reason", limits.MAX_REASON_BYTES)
    if call.caller.patterns(call.scopes) is not None:
        await _require_queues_of(context, call, worker_id)
    await context.submit(commands.DrainWorker(worker_id, reason), commands.Done)
    return pb.DrainWorkerResponse()


def settle_batch(request: pb.SettleJobsRequest, path: str = "") -> SettleBatch:
    """The settlements, checked each for itself. Raises Rejected for the request as a whole."""
    validate.batch(len(request.settlements), f"{path}settlements", limits.MAX_SETTLE_BATCH)
    seq = validate.number(request.seq, f"{path}seq", 0, limits.MAX_INTEGER)
    good: list[commands.Settlement] = []
    places: list[int] | None = None
    refused: list[Refused] = []
    for index, item in enumerate(request.settlements):
        try:
            good.append(mapping.settlement(item))
        except Rejected as error:
            refused.append(at(error.refused, index))
            if places is None:
                places = list(range(index))
        else:
            if places is not None:
                places.append(index)
    command = commands.Settle(good) if good else None
    return SettleBatch(seq, len(request.settlements), command, places, refused)


def renew_batch(request: pb.RenewLeasesRequest, worker_id: str = "", path: str = "") -> RenewBatch:
    """The renewals. Raises Rejected for the request as a whole."""
    validate.batch(len(request.leases), f"{path}leases", limits.MAX_SETTLE_BATCH)
    seq = validate.number(request.seq, f"{path}seq", 0, limits.MAX_INTEGER)
    good, dead = leases(request.leases, f"{path}leases")
    return RenewBatch(seq, commands.Renew(good, worker_id), dead)


def leases(items: Iterable[types_pb2.Lease], path: str) -> tuple[list[commands.LeaseRef], list[types_pb2.Lease]]:
    """Good leases, and those that cannot be ones of this broker. Raises Rejected for an empty id or token."""
    good: list[commands.LeaseRef] = []
    dead: list[types_pb2.Lease] = []
    for index, item in enumerate(items):
        try:
            good.append(mapping.lease(item))
        except Rejected as error:
            if error.refused.reason != "LEASE_LOST":
                raise Rejected(under(error.refused, f"{path}[{index}].")) from None
            dead.append(item)
    return good, dead


def put_lost(target: Iterable[pb.Interrupt], dead: Iterable[types_pb2.Lease]) -> None:
    """Append LEASE_LOST interrupts for leases that cannot be ones of this broker."""
    for lease in dead:
        target.add(  # type: ignore[attr-defined]
            job_id=lease.job_id, lease_token=lease.lease_token, cause=InterruptCause.LEASE_LOST
        )


def _undeliver(context: Context, deliveries: list[commands.Delivery]) -> None:
    if deliveries and context.ready:
        context.broker.attach(commands.Undeliver(0, [frames.lease_of(one) for one in deliveries]))


async def _require_queues_of(context: Context, call: Call, worker_id: str) -> None:
    after = ""
    while True:
        page = await context.query(commands.ListWorkers(limit=limits.MAX_PAGE_SIZE, after=after), commands.WorkerPage)
        for record in page.workers:
            if record.identity.worker_id == worker_id:
                for pool in record.pools:
                    for queue in pool.queues:
                        call.caller.require(call.scopes, queue)
                return
        if not (after := page.next):
            return
