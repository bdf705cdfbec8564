"""Every unary call of the contract, one typed method each: what the command line and the operator use.

Messages go in and come out as they are on the wire (`anvilmq_proto.v1`); nothing is converted, coalesced or repeated
here. Failures are the classes of `anvilmq.errors`. Programs that add jobs and work on them want `anvilmq.Anvil`.
"""

from __future__ import annotations

from typing import Final

from anvilmq._transport import Method, Req, Resp, Transport, method
from anvilmq_proto.v1 import job_service_pb2 as job
from anvilmq_proto.v1 import receipt_service_pb2 as receipt
from anvilmq_proto.v1 import scheduler_service_pb2 as scheduler
from anvilmq_proto.v1 import system_service_pb2 as system
from anvilmq_proto.v1 import worker_service_pb2 as worker

CALL_S: Final = 5.0
"""Deadline of a call that has none of its own."""
BULK_S: Final = 30.0
"""Deadline of a call that carries many items, or a filter."""

_ADD_JOB = method("JobService", "AddJob", job.AddJobRequest, job.AddJobResponse)
_ADD_JOB_BULK = method("JobService", "AddJobBulk", job.AddJobBulkRequest, job.AddJobBulkResponse)
_GET_JOB = method("JobService", "GetJob", job.GetJobRequest, job.GetJobResponse)
_LIST_JOBS = method("JobService", "ListJobs", job.ListJobsRequest, job.ListJobsResponse)
_WAIT_JOB = method("JobService", "WaitJob", job.WaitJobRequest, job.WaitJobResponse)
_LIST_JOB_LOGS = method("JobService", "ListJobLogs", job.ListJobLogsRequest, job.ListJobLogsResponse)
_CANCEL_JOB = method("JobService", "CancelJob", job.CancelJobRequest, job.CancelJobResponse)
_CLAIM_JOBS = method("WorkerService", "ClaimJobs", worker.ClaimJobsRequest, worker.ClaimJobsResponse)
_SETTLE_JOBS = method("WorkerService", "SettleJobs", worker.SettleJobsRequest, worker.SettleJobsResponse)
_RENEW_LEASES = method("WorkerService", "RenewLeases", worker.RenewLeasesRequest, worker.RenewLeasesResponse)
_REPORT_PROGRESS = method(
    "WorkerService", "ReportProgress", worker.ReportProgressRequest, worker.ReportProgressResponse
)
_APPEND_JOB_LOGS = method("WorkerService", "AppendJobLogs", worker.AppendJobLogsRequest, worker.AppendJobLogsResponse)
_LIST_WORKERS = method("WorkerService", "ListWorkers", worker.ListWorkersRequest, worker.ListWorkersResponse)
_DRAIN_WORKER = method("WorkerService", "DrainWorker", worker.DrainWorkerRequest, worker.DrainWorkerResponse)
_GET_RECEIPT = method("ReceiptService", "GetReceipt", receipt.GetReceiptRequest, receipt.GetReceiptResponse)
_LIST_RECEIPTS = method("ReceiptService", "ListReceipts", receipt.ListReceiptsRequest, receipt.ListReceiptsResponse)
_RELEASE_RECEIPT = method(
    "ReceiptService", "ReleaseReceipt", receipt.ReleaseReceiptRequest, receipt.ReleaseReceiptResponse
)
_DELETE_RECEIPT = method("ReceiptService", "DeleteReceipt", receipt.DeleteReceiptRequest, receipt.DeleteReceiptResponse)
_UPSERT_SCHEDULER = method(
    "SchedulerService", "UpsertScheduler", scheduler.UpsertSchedulerRequest, scheduler.UpsertSchedulerResponse
)
_GET_SCHEDULER = method(
    "SchedulerService", "GetScheduler", scheduler.GetSchedulerRequest, scheduler.GetSchedulerResponse
)
_LIST_SCHEDULERS = method(
    "SchedulerService", "ListSchedulers", scheduler.ListSchedulersRequest, scheduler.ListSchedulersResponse
)
_DELETE_SCHEDULER = method(
    "SchedulerService", "DeleteScheduler", scheduler.DeleteSchedulerRequest, scheduler.DeleteSchedulerResponse
)
_SET_SCHEDULER_SUSPENDED = method(
    "SchedulerService",
    "SetSchedulerSuspended",
    scheduler.SetSchedulerSuspendedRequest,
    scheduler.SetSchedulerSuspendedResponse,
)
_TRIGGER_SCHEDULER = method(
    "SchedulerService", "TriggerScheduler", scheduler.TriggerSchedulerRequest, scheduler.TriggerSchedulerResponse
)
_PREVIEW_SCHEDULE = method(
    "SchedulerService", "PreviewSchedule", scheduler.PreviewScheduleRequest, scheduler.PreviewScheduleResponse
)
_LIST_DEFINITIONS = method(
    "SystemService", "ListDefinitions", system.ListDefinitionsRequest, system.ListDefinitionsResponse
)
_RELEASE_DEFINITION = method(
    "SystemService", "ReleaseDefinition", system.ReleaseDefinitionRequest, system.ReleaseDefinitionResponse
)
_GET_SERVER_INFO = method("SystemService", "GetServerInfo", system.GetServerInfoRequest, system.GetServerInfoResponse)


class Admin:
    """The calls of one broker. Use it on the loop that its transport lives on; closing that is the caller's.

    `timeout_s` of each method is the deadline of that call in seconds. Without one it is that of the instance, and
    without that the default of the contract: 5 s; 30 s with many items or a filter; 5 s beyond `wait_ms`.
    """

    def __init__(self, transport: Transport, *, timeout_s: float | None = None) -> None:
        self._transport = transport
        self._timeout_s = timeout_s

    async def _call(
        self, rpc: Method[Req, Resp], request: Req, timeout_s: float | None, default_s: float = CALL_S
    ) -> Resp:
        chosen = timeout_s if timeout_s is not None else self._timeout_s
        return await self._transport.unary(rpc, request, timeout_s=default_s if chosen is None else chosen)

    # ------------------------------------------------------------------------------------------------ jobs

    async def add_job(self, request: job.AddJobRequest, *, timeout_s: float | None = None) -> job.AddJobResponse:
        """Add one job. Raises IdempotencyKeyReused, QueueFull, PayloadTooLarge, InvalidArgument.

        Safe to repeat only with an idempotency key: after Unavailable or DeadlineExceeded the job may have been added.
        """
        return await self._call(_ADD_JOB, request, timeout_s)

    async def add_job_bulk(
        self, request: job.AddJobBulkRequest, *, timeout_s: float | None = None
    ) -> job.AddJobBulkResponse:
        """Add at most 1 000 jobs, 16 MiB, in one transaction. Raises BatchTooLarge, SequenceStale.

        Safe to repeat with `producer_id` and `seq`, or with a key in each job.
        """
        return await self._call(_ADD_JOB_BULK, request, timeout_s, BULK_S)

    async def get_job(self, request: job.GetJobRequest, *, timeout_s: float | None = None) -> job.GetJobResponse:
        """One job, with what it waits for. Raises JobNotFound."""
        return await self._call(_GET_JOB, request, timeout_s)

    async def list_jobs(self, request: job.ListJobsRequest, *, timeout_s: float | None = None) -> job.ListJobsResponse:
        """A page of the jobs that a filter matches, newest first. A page may be short; an empty token ends."""
        return await self._call(_LIST_JOBS, request, timeout_s, BULK_S)

    async def wait_job(self, request: job.WaitJobRequest, *, timeout_s: float | None = None) -> job.WaitJobResponse:
        """The job once it has ended, or as it is after `wait_ms`, at most 60 000. Raises JobNotFound."""
        return await self._call(_WAIT_JOB, request, timeout_s, request.wait_ms / 1_000 + CALL_S)

    async def list_job_logs(
        self, request: job.ListJobLogsRequest, *, timeout_s: float | None = None
    ) -> job.ListJobLogsResponse:
        """A page of the lines that a job has logged, oldest first; the last 1 000 are kept. Raises JobNotFound."""
        return await self._call(_LIST_JOB_LOGS, request, timeout_s)

    async def cancel_job(
        self, request: job.CancelJobRequest, *, timeout_s: float | None = None
    ) -> job.CancelJobResponse:
        """Cancel a job in any state; one that has ended stays as it is. Raises JobNotFound."""
        return await self._call(_CANCEL_JOB, request, timeout_s)

    # --------------------------------------------------------------------------------------------- workers

    async def claim_jobs(
        self, request: worker.ClaimJobsRequest, *, timeout_s: float | None = None
    ) -> worker.ClaimJobsResponse:
        """Lease at most `max_jobs` jobs, waiting up to `wait_ms` for the first. Safe to repeat with a `claim_id`."""
        return await self._call(_CLAIM_JOBS, request, timeout_s, request.wait_ms / 1_000 + CALL_S)

    async def settle_jobs(
        self, request: worker.SettleJobsRequest, *, timeout_s: float | None = None
    ) -> worker.SettleJobsResponse:
        """End attempts, each by its token; refused ones stand in `errors`. Safe to repeat."""
        return await self._call(_SETTLE_JOBS, request, timeout_s, BULK_S)

    async def renew_leases(
        self, request: worker.RenewLeasesRequest, *, timeout_s: float | None = None
    ) -> worker.RenewLeasesResponse:
        """Extend leases, each by its own length from now; those lost stand in `interrupts`. Safe to repeat."""
        return await self._call(_RENEW_LEASES, request, timeout_s)

    async def report_progress(
        self, request: worker.ReportProgressRequest, *, timeout_s: float | None = None
    ) -> worker.ReportProgressResponse:
        """Store the progress of an attempt, JSON of at most 64 KiB. Raises LeaseLost. Safe to repeat."""
        return await self._call(_REPORT_PROGRESS, request, timeout_s)

    async def append_job_logs(
        self, request: worker.AppendJobLogsRequest, *, timeout_s: float | None = None
    ) -> worker.AppendJobLogsResponse:
        """Add at most 100 lines to the log of a job. Raises LeaseLost. A repeat doubles them."""
        return await self._call(_APPEND_JOB_LOGS, request, timeout_s)

    async def list_workers(
        self, request: worker.ListWorkersRequest, *, timeout_s: float | None = None
    ) -> worker.ListWorkersResponse:
        """A page of the workers that are connected, or have asked for jobs lately."""
        return await self._call(_LIST_WORKERS, request, timeout_s)

    async def drain_worker(
        self, request: worker.DrainWorkerRequest, *, timeout_s: float | None = None
    ) -> worker.DrainWorkerResponse:
        """Ask a worker to finish what it runs, and leave. Raises WorkerNotFound."""
        return await self._call(_DRAIN_WORKER, request, timeout_s)

    # -------------------------------------------------------------------------------------------- receipts

    async def get_receipt(
        self, request: receipt.GetReceiptRequest, *, timeout_s: float | None = None
    ) -> receipt.GetReceiptResponse:
        """The receipt of a key. Raises ReceiptNotFound."""
        return await self._call(_GET_RECEIPT, request, timeout_s)

    async def list_receipts(
        self, request: receipt.ListReceiptsRequest, *, timeout_s: float | None = None
    ) -> receipt.ListReceiptsResponse:
        """A page of the receipts of a queue, by name and key."""
        return await self._call(_LIST_RECEIPTS, request, timeout_s)

    async def release_receipt(
        self, request: receipt.ReleaseReceiptRequest, *, timeout_s: float | None = None
    ) -> receipt.ReleaseReceiptResponse:
        """Free a key if it belongs to `expected_job_id`; else `released` is false. Safe to repeat."""
        return await self._call(_RELEASE_RECEIPT, request, timeout_s)

    async def delete_receipt(
        self, request: receipt.DeleteReceiptRequest, *, timeout_s: float | None = None
    ) -> receipt.DeleteReceiptResponse:
        """Free a key whoever has it. A missing receipt is no error. A repeat may hit the next holder."""
        return await self._call(_DELETE_RECEIPT, request, timeout_s)

    # ------------------------------------------------------------------------------------------ schedulers

    async def upsert_scheduler(
        self, request: scheduler.UpsertSchedulerRequest, *, timeout_s: float | None = None
    ) -> scheduler.UpsertSchedulerResponse:
        """Make or change a recurring definition, idempotent by content. Safe to repeat.

        Raises ScheduleInvalid, TimeZoneUnknown, OwnedByCrd; AlreadyExists for an owner that it does not belong to.
        """
        return await self._call(_UPSERT_SCHEDULER, request, timeout_s)

    async def get_scheduler(
        self, request: scheduler.GetSchedulerRequest, *, timeout_s: float | None = None
    ) -> scheduler.GetSchedulerResponse:
        """A recurring definition. Raises SchedulerNotFound."""
        return await self._call(_GET_SCHEDULER, request, timeout_s)

    async def list_schedulers(
        self, request: scheduler.ListSchedulersRequest, *, timeout_s: float | None = None
    ) -> scheduler.ListSchedulersResponse:
        """A page of the recurring definitions, by name. A page may be short; an empty token ends."""
        return await self._call(_LIST_SCHEDULERS, request, timeout_s)

    async def delete_scheduler(
        self, request: scheduler.DeleteSchedulerRequest, *, timeout_s: float | None = None
    ) -> scheduler.DeleteSchedulerResponse:
        """Delete a recurring definition; its jobs go on. Raises SchedulerNotFound, OwnedByCrd.

        Safe to repeat with `allow_missing`.
        """
        return await self._call(_DELETE_SCHEDULER, request, timeout_s)

    async def set_scheduler_suspended(
        self, request: scheduler.SetSchedulerSuspendedRequest, *, timeout_s: float | None = None
    ) -> scheduler.SetSchedulerSuspendedResponse:
        """Suspend or resume a recurring definition. Raises SchedulerNotFound, OwnedByCrd. Safe to repeat."""
        return await self._call(_SET_SCHEDULER_SUSPENDED, request, timeout_s)

    async def trigger_scheduler(
        self, request: scheduler.TriggerSchedulerRequest, *, timeout_s: float | None = None
    ) -> scheduler.TriggerSchedulerResponse:
        """One run now, whatever the schedule says. Raises SchedulerNotFound. Safe to repeat with a `run_key`."""
        return await self._call(_TRIGGER_SCHEDULER, request, timeout_s)

    async def preview_schedule(
        self, request: scheduler.PreviewScheduleRequest, *, timeout_s: float | None = None
    ) -> scheduler.PreviewScheduleResponse:
        """The next ticks of a schedule, and what it says in words. Raises ScheduleInvalid, TimeZoneUnknown."""
        return await self._call(_PREVIEW_SCHEDULE, request, timeout_s)

    # ---------------------------------------------------------------------------------------------- system

    async def list_definitions(
        self, request: system.ListDefinitionsRequest, *, timeout_s: float | None = None
    ) -> system.ListDefinitionsResponse:
        """A page of the definitions that custom resources own, by kind, namespace and name of the owner."""
        return await self._call(_LIST_DEFINITIONS, request, timeout_s)

    async def release_definition(
        self, request: system.ReleaseDefinitionRequest, *, timeout_s: float | None = None
    ) -> system.ReleaseDefinitionResponse:
        """Take the owner off a definition, which goes on; that of another uid stays. Safe to repeat."""
        return await self._call(_RELEASE_DEFINITION, request, timeout_s)

    async def get_server_info(
        self, request: system.GetServerInfoRequest, *, timeout_s: float | None = None
    ) -> system.GetServerInfoResponse:
        """Version, abilities and limits of the broker."""
        return await self._call(_GET_SERVER_INFO, request, timeout_s)
