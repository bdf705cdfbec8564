"""The one place where calls come in, by gRPC or from within the process: parse, authenticate, run, count, shape errors.

(path, bytes, metadata, deadline) → bytes, or a Failure with a google.rpc.Status. No gRPC in here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import structlog
from google.protobuf.message import DecodeError, Message

from anvilmq_broker.gateway import access, status, validate
from anvilmq_broker.gateway.adds import AddStream
from anvilmq_broker.gateway.auth import Authenticator
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_broker.gateway.methods import METHODS, Method
from anvilmq_broker.gateway.refusals import Rejected, call_not_built, draining, malformed, token_invalid
from anvilmq_broker.gateway.services import jobs, receipts, schedulers, system, workers
from anvilmq_broker.gateway.session import Session
from anvilmq_broker.gateway.telemetry import Telemetry
from anvilmq_broker.gateway.wire import Broken, Wire

log: Final = structlog.get_logger()

Service = Callable[[Context, Call, Any], Awaitable[Message]]

SERVICES: Final[Mapping[str, Service]] = {
    "/anvilmq.v1.JobService/AddJob": jobs.add_job,
    "/anvilmq.v1.JobService/AddJobBulk": jobs.add_job_bulk,
    "/anvilmq.v1.JobService/GetJob": jobs.get_job,
    "/anvilmq.v1.JobService/WaitJob": jobs.wait_job,
    "/anvilmq.v1.JobService/ListJobs": jobs.list_jobs,
    "/anvilmq.v1.JobService/ListJobLogs": jobs.list_job_logs,
    "/anvilmq.v1.JobService/CancelJob": jobs.cancel_job,
    "/anvilmq.v1.WorkerService/ClaimJobs": workers.claim_jobs,
    "/anvilmq.v1.WorkerService/SettleJobs": workers.settle_jobs,
    "/anvilmq.v1.WorkerService/RenewLeases": workers.renew_leases,
    "/anvilmq.v1.WorkerService/ReportProgress": workers.report_progress,
    "/anvilmq.v1.WorkerService/AppendJobLogs": workers.append_job_logs,
    "/anvilmq.v1.WorkerService/ListWorkers": workers.list_workers,
    "/anvilmq.v1.WorkerService/DrainWorker": workers.drain_worker,
    "/anvilmq.v1.ReceiptService/GetReceipt": receipts.get_receipt,
    "/anvilmq.v1.ReceiptService/ListReceipts": receipts.list_receipts,
    "/anvilmq.v1.ReceiptService/ReleaseReceipt": receipts.release_receipt,
    "/anvilmq.v1.ReceiptService/DeleteReceipt": receipts.delete_receipt,
    "/anvilmq.v1.SchedulerService/UpsertScheduler": schedulers.upsert_scheduler,
    "/anvilmq.v1.SchedulerService/GetScheduler": schedulers.get_scheduler,
    "/anvilmq.v1.SchedulerService/ListSchedulers": schedulers.list_schedulers,
    "/anvilmq.v1.SchedulerService/DeleteScheduler": schedulers.delete_scheduler,
    "/anvilmq.v1.SchedulerService/SetSchedulerSuspended": schedulers.set_scheduler_suspended,
    "/anvilmq.v1.SchedulerService/TriggerScheduler": schedulers.trigger_scheduler,
    "/anvilmq.v1.SchedulerService/PreviewSchedule": schedulers.preview_schedule,
    "/anvilmq.v1.SystemService/GetServerInfo": system.get_server_info,
    "/anvilmq.v1.SystemService/ListDefinitions": system.list_definitions,
    "/anvilmq.v1.SystemService/ReleaseDefinition": system.release_definition,
}
"""The unary calls that are built; any other of the contract answers FEATURE_NOT_BUILT."""

ADD_STREAM: Final = "/anvilmq.v1.JobService/AddJobStream"
WORK: Final = "/anvilmq.v1.WorkerService/Work"
STREAMS: Final = frozenset({ADD_STREAM, WORK})
"""The streams that are built."""

_CHECKED_BY_ITEM: Final = frozenset(
    {
        "/anvilmq.v1.JobService/AddJob",
        "/anvilmq.v1.JobService/AddJobBulk",
        "/anvilmq.v1.WorkerService/SettleJobs",
        "/anvilmq.v1.WorkerService/RenewLeases",
    }
)
_CANCELLED: Final = 1


class _Stream:
    """An open stream, to be told when tokens change or the broker leaves."""

    __slots__ = ("call", "ended", "served")

    def __init__(self, call: Call, served: Session | AddStream) -> None:
        self.call = call
        self.served = served
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Gateway:
    """Serves the calls of one process."""

    def __init__(self, context: Context, authenticator: Authenticator, telemetry: Telemetry) -> None:
        self.context = context
        self.telemetry = telemetry
        self._authenticator = authenticator
        self._streams: set[_Stream] = set()
        self._no_stream = asyncio.Event()
        self._draining = False

    async def unary(self, path: str, data: bytes, metadata: Mapping[str, str], timeout_s: float | None) -> bytes:
        """Carry out a unary call. Raises status.Failure.

        path: of METHODS. metadata: keys in lower case. timeout_s: what is left of the caller's deadline, None = no end.
        """
        method = METHODS[path]
        clock = self.context.clock
        started_ms = clock.monotonic_ms()
        deadline_ms = None if timeout_s is None else started_ms + timeout_s * 1_000
        with self._counted(method, started_ms):
            caller = self._admit(metadata)
            request = _parse(method, data)
            rule = access.RULES[path]
            access.check(rule, caller, request)
            service = SERVICES.get(path)
            if service is None:
                raise call_not_built(method.label)
            if path not in _CHECKED_BY_ITEM:
                validate.message(request)
            call = Call(caller, access.scopes_of(rule, request), deadline_ms)
            return (await service(self.context, call, request)).SerializeToString()

    async def stream(self, path: str, wire: Wire, metadata: Mapping[str, str]) -> None:
        """Carry out a streaming call until it ends well. Raises status.Failure; Broken when the client is gone."""
        method = METHODS[path]
        with self._counted(method, None):
            caller = self._admit(metadata)
            rule = access.RULES[path]
            if path not in STREAMS:
                await self._refuse_unbuilt(method, wire, caller, rule)
            access.check(rule, caller, None)
            call = Call(caller, rule.scopes)
            await self._run(path, call, wire)

    def rights_changed(self) -> None:
        """New tokens are in force: streams whose token is gone end, the others go on with the rights of now."""
        for stream in list(self._streams):
            caller = self._authenticator.current(stream.call.caller)
            if caller is None:
                self._end(stream, token_invalid())
                continue
            stream.call.caller = caller
            if isinstance(stream.served, Session):
                stream.served.rights_changed()

    async def drain(self, within_ms: int) -> None:
        """Take no new call; answer what was read; ask workers to connect elsewhere, and end all streams in this time."""
        self._draining = True
        self.context.leave()
        for stream in self._streams:
            if isinstance(stream.served, Session):
                stream.served.leave(within_ms)
            else:
                stream.served.leave()
        if self._streams:
            await self._none_open(within_ms)
        for stream in list(self._streams):
            self._end(stream, draining())

    async def _none_open(self, within_ms: int) -> None:
        late = self.context.timers.call_later(within_ms / 1_000, self._no_stream.set)
        try:
            self._no_stream.clear()
            await self._no_stream.wait()
        finally:
            late.cancel()

    def _admit(self, metadata: Mapping[str, str]) -> Any:
        if self._draining:
            raise draining()
        return self._authenticator.authenticate(metadata)

    async def _refuse_unbuilt(self, method: Method, wire: Wire, caller: Any, rule: access.Rule) -> None:
        # The request is looked at first, so that scopes are told before features, as for every other call.
        request = _parse(method, (await wire.read() or b""))
        access.check(rule, caller, request)
        raise call_not_built(method.label)

    async def _run(self, path: str, call: Call, wire: Wire) -> None:
        served: Session | AddStream
        if path == WORK:
            served = Session(self.context, call, wire, self.telemetry)
        else:
            served = AddStream(self.context, call, wire)
        stream = _Stream(call, served)
        self._streams.add(stream)
        task = asyncio.ensure_future(served.run())
        try:
            await asyncio.wait({task, stream.ended}, return_when=asyncio.FIRST_COMPLETED)
            if stream.ended.done():
                stream.ended.result()
            task.result()
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self._no_stream.set()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @staticmethod
    def _end(stream: _Stream, error: Rejected) -> None:
        if not stream.ended.done():
            stream.ended.set_exception(error)

    @contextmanager
    def _counted(self, method: Method, started_ms: float | None) -> Iterator[None]:
        """Counts the call, and turns what it raised into a Failure."""
        code = 0
        if started_ms is None:
            self.telemetry.stream_opened(method.label)
        try:
            yield
        except Rejected as error:
            failure = status.failure(error.refused)
            code = failure.code
            raise failure from None
        except status.Failure as error:
            code = error.code
            raise
        except (asyncio.CancelledError, Broken):
            code = _CANCELLED
            raise
        except Exception:
            log.exception("rpc_failed", method=method.label)
            code = status.INTERNAL
            raise status.internal() from None
        finally:
            if started_ms is None:
                self.telemetry.stream_closed(method.label)
            seconds = None if started_ms is None else (self.context.clock.monotonic_ms() - started_ms) / 1_000
            self.telemetry.ended(method.label, code, seconds)


def _parse(method: Method, data: bytes) -> Message:
    try:
        return method.request.FromString(data)
    except DecodeError:
        raise malformed(method.label) from None
