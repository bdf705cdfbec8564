"""Claims, settlements, renewals, reports by single calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.gateway.limits import MIB
from anvilmq_proto.v1 import types_pb2, worker_service_pb2
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, TOKEN, Bundle, delivery, turns

WORKER = worker_service_pb2.WorkerIdentity(worker_id="w", name="img", pod="p", node="n", sdk="python", sdk_version="1")
IDENTITY = commands.WorkerIdentity("w", "img", "p", "n", "python", "1")


def claim(**fields: Any) -> worker_service_pb2.ClaimJobsRequest:
    return worker_service_pb2.ClaimJobsRequest(worker=WORKER, queues=["a", "b"], **{"max_jobs": 10, **fields})


async def test_a_claim_brings_deliveries() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.Claim] = commands.Claimed([delivery(7), delivery(8)])
    response = await bundle.call("WorkerService/ClaimJobs", claim(wait_ms=5_000), timeout_s=3)
    assert [each.lease_token for each in response.deliveries] == ["token-7", "token-8"]
    # The wait ends before the call's deadline does, or what was started could not be told.
    assert bundle.broker.one(commands.Claim) == commands.Claim(IDENTITY, ["a", "b"], 10, 2_750)


async def test_an_answer_to_a_claim_is_cut_at_4_mib_and_the_rest_goes_back() -> None:
    bundle = Bundle()
    large = [delivery(number, data=b"x" * MIB) for number in range(5)]
    bundle.broker.answers[commands.Claim] = commands.Claimed(large)
    response = await bundle.call("WorkerService/ClaimJobs", claim())
    assert len(response.deliveries) == 3
    (given_back,) = bundle.broker.messages
    assert [lease.token for lease in given_back.leases] == ["token-3", "token-4"]


async def test_a_claim_of_a_caller_that_leaves_is_no_longer_waited_for() -> None:
    bundle = Bundle()
    waiting = bundle.broker.answers[commands.Claim] = asyncio.get_running_loop().create_future()
    call = asyncio.ensure_future(bundle.call("WorkerService/ClaimJobs", claim(wait_ms=60_000)))
    await turns()
    call.cancel()
    await turns()
    assert waiting.cancelled()


def settlement(job_id: str = JOB_ID, token: str = TOKEN, outcome: int = 1) -> worker_service_pb2.Settlement:
    return worker_service_pb2.Settlement(job_id=job_id, lease_token=token, outcome=outcome)  # type: ignore[arg-type]


@rule("1.4")
async def test_each_settlement_stands_for_itself() -> None:
    bundle = Bundle()
    lost = Refused("LEASE_LOST", "gone", metadata={"job_id": JOB_ID, "state": "completed", "worker_id": ""}, index=1)
    bundle.broker.answers[commands.Settle] = commands.Settled(b"\5\0\2", [lost])
    # Command items 0 to 2 are request items 0, 2, 4.
    items = [settlement(), settlement("no id"), settlement(), settlement(outcome=0), settlement(outcome=3)]
    response = await bundle.call(
        "WorkerService/SettleJobs", worker_service_pb2.SettleJobsRequest(seq=9, settlements=items)
    )
    assert (response.seq, list(response.states)) == (9, [5, 0, 0, 0, 2])
    assert [(each.index, each.code, each.reason) for each in response.errors] == [
        (1, 9, "LEASE_LOST"),
        (2, 9, "LEASE_LOST"),
        (3, 3, "INVALID_FIELD"),
    ]


async def test_settlements_that_are_all_refused_here_do_not_reach_the_engine() -> None:
    bundle = Bundle()
    request = worker_service_pb2.SettleJobsRequest(settlements=[settlement(outcome=0)])
    response = await bundle.call("WorkerService/SettleJobs", request)
    assert (list(response.states), len(response.errors)) == ([0], 1)
    assert bundle.broker.asked == []


async def test_a_renewal_names_only_what_is_lost() -> None:
    bundle = Bundle()
    interrupt = commands.Interrupt(7, START_MS, TOKEN, 1, "no longer wanted")
    bundle.broker.answers[commands.Renew] = commands.Renewed([interrupt])
    leases = [types_pb2.Lease(job_id=JOB_ID, lease_token=TOKEN), types_pb2.Lease(job_id="x", lease_token="y")]
    response = await bundle.call(
        "WorkerService/RenewLeases", worker_service_pb2.RenewLeasesRequest(seq=4, leases=leases)
    )
    assert response == worker_service_pb2.RenewLeasesResponse(
        seq=4,
        interrupts=[
            worker_service_pb2.Interrupt(
                job_id=JOB_ID, lease_token=TOKEN, cause="INTERRUPT_CAUSE_CANCEL_REQUESTED", reason="no longer wanted"
            ),
            worker_service_pb2.Interrupt(job_id="x", lease_token="y", cause="INTERRUPT_CAUSE_LEASE_LOST"),
        ],
    )
    assert bundle.broker.one(commands.Renew).leases == [commands.LeaseRef(7, START_MS, TOKEN)]


@rule("1.8")
async def test_progress_and_logs_are_handed_on_with_their_lease() -> None:
    bundle = Bundle()
    progress = worker_service_pb2.ReportProgressRequest(job_id=JOB_ID, lease_token=TOKEN, progress_json="[1, 2]")
    await bundle.call("WorkerService/ReportProgress", progress)
    lines = [types_pb2.JobLogLine(at_ms=5, level="info", line="half way")]
    logs = worker_service_pb2.AppendJobLogsRequest(job_id=JOB_ID, lease_token=TOKEN, lines=lines)
    await bundle.call("WorkerService/AppendJobLogs", logs)
    lease = commands.LeaseRef(7, START_MS, TOKEN)
    assert bundle.broker.asked == [
        commands.Report(lease, "[1, 2]"),
        commands.Report(lease, None, [commands.LogLine(5, "info", "half way")]),
    ]
    bundle.broker.answers[commands.Report] = Refused("LEASE_LOST", "gone", metadata={"job_id": JOB_ID})
    assert (await bundle.refusal("WorkerService/ReportProgress", progress)).reason == "LEASE_LOST"


async def test_workers_are_listed_page_by_page() -> None:
    bundle = Bundle()
    worker = commands.WorkerRecord(IDENTITY, [commands.Pool(1, ["a"], 4)], 2, 3, 4, 5, True, True)
    bundle.broker.answers[commands.ListWorkers] = commands.WorkerPage([worker], "w")
    request = worker_service_pb2.ListWorkersRequest(queue="a")
    page = await bundle.call("WorkerService/ListWorkers", request)
    assert page.workers[0] == worker_service_pb2.Worker(
        identity=WORKER,
        pools=[worker_service_pb2.Pool(id=1, queues=["a"], concurrency=4)],
        running=2,
        open_credit=3,
        connected_at_ms=4,
        last_seen_at_ms=5,
        draining=True,
        session=True,
    )
    request.page_token = page.next_page_token
    bundle.broker.answers[commands.ListWorkers] = commands.WorkerPage([])
    assert (await bundle.call("WorkerService/ListWorkers", request)).next_page_token == ""
    assert [query.after for query in bundle.broker.of(commands.ListWorkers)] == ["", "w"]


async def test_a_worker_is_asked_to_drain_by_its_id() -> None:
    bundle = Bundle()
    request = worker_service_pb2.DrainWorkerRequest(worker_id="w", reason="node leaves")
    await bundle.call("WorkerService/DrainWorker", request)
    assert bundle.broker.asked == [commands.DrainWorker("w", "node leaves")]
    bundle.broker.answers[commands.DrainWorker] = Refused("WORKER_NOT_FOUND", "none")
    assert (await bundle.refusal("WorkerService/DrainWorker", request)).code == 5


@pytest.mark.parametrize("field", ["name", "pod", "node", "sdk", "sdk_version"])
async def test_what_a_worker_tells_of_itself_has_at_most_255_bytes(field: str) -> None:
    request = claim()
    setattr(request.worker, field, "x" * 255)
    await Bundle().call("WorkerService/ClaimJobs", request)
    setattr(request.worker, field, "x" * 256)
    assert (await Bundle().refusal("WorkerService/ClaimJobs", request)).field == f"worker.{field}"
