"""Each RPC, item and list is checked against the caller's scopes; an RPC without a rule does not pass."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest
from google.protobuf.message import Message

from anvilmq_broker.domain import commands, refusals
from anvilmq_broker.gateway import access
from anvilmq_broker.gateway.access import RULES, Rule, Where
from anvilmq_broker.gateway.auth import SCOPES, Caller, Tokens
from anvilmq_broker.gateway.methods import METHODS
from anvilmq_broker.gateway.rpc import SERVICES, STREAMS
from anvilmq_proto.v1 import (
    job_service_pb2,
    receipt_service_pb2,
    scheduler_service_pb2,
    system_service_pb2,
    types_pb2,
    worker_service_pb2,
)
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, TOKEN, Bundle, Streaming, record, scheduler, spec, turns
from tests.unit.gateway.definitions_made import OWNER_MESSAGE, upsert

LEASE = types_pb2.Lease(job_id=JOB_ID, lease_token=TOKEN)
RECEIPT = {"queue": "q", "name": "n", "idempotency_key": "k"}
WORKER = worker_service_pb2.WorkerIdentity(worker_id="w")

IN_QUEUE_Q: dict[str, Message] = {
    "JobService/AddJob": job_service_pb2.AddJobRequest(job=spec()),
    "JobService/AddJobBulk": job_service_pb2.AddJobBulkRequest(jobs=[spec()]),
    "JobService/GetJob": job_service_pb2.GetJobRequest(job_id=JOB_ID),
    "JobService/WaitJob": job_service_pb2.WaitJobRequest(job_id=JOB_ID),
    "JobService/ListJobs": job_service_pb2.ListJobsRequest(filter=job_service_pb2.JobFilter(queue="q")),
    "JobService/ListJobLogs": job_service_pb2.ListJobLogsRequest(job_id=JOB_ID),
    "JobService/CancelJob": job_service_pb2.CancelJobRequest(job_id=JOB_ID),
    "WorkerService/ClaimJobs": worker_service_pb2.ClaimJobsRequest(worker=WORKER, queues=["q"], max_jobs=1),
    "WorkerService/ListWorkers": worker_service_pb2.ListWorkersRequest(queue="q"),
    "WorkerService/DrainWorker": worker_service_pb2.DrainWorkerRequest(worker_id="w"),
    "ReceiptService/GetReceipt": receipt_service_pb2.GetReceiptRequest(**RECEIPT),
    "ReceiptService/ListReceipts": receipt_service_pb2.ListReceiptsRequest(queue="q"),
    "ReceiptService/ReleaseReceipt": receipt_service_pb2.ReleaseReceiptRequest(**RECEIPT, expected_job_id=JOB_ID),
    "ReceiptService/DeleteReceipt": receipt_service_pb2.DeleteReceiptRequest(**RECEIPT),
    "SchedulerService/UpsertScheduler": upsert({"cron": "@daily"}),
    "SchedulerService/GetScheduler": scheduler_service_pb2.GetSchedulerRequest(name="nightly"),
    "SchedulerService/ListSchedulers": scheduler_service_pb2.ListSchedulersRequest(queue="q"),
    "SchedulerService/DeleteScheduler": scheduler_service_pb2.DeleteSchedulerRequest(name="nightly"),
    "SchedulerService/SetSchedulerSuspended": scheduler_service_pb2.SetSchedulerSuspendedRequest(name="nightly"),
    "SchedulerService/TriggerScheduler": scheduler_service_pb2.TriggerSchedulerRequest(name="nightly"),
}
"""Requests about queue q, for every built call that concerns a queue."""

BY_LEASE: dict[str, Message] = {
    "WorkerService/SettleJobs": worker_service_pb2.SettleJobsRequest(
        settlements=[worker_service_pb2.Settlement(job_id=JOB_ID, lease_token=TOKEN, outcome="SETTLE_OUTCOME_COMPLETE")]
    ),
    "WorkerService/RenewLeases": worker_service_pb2.RenewLeasesRequest(leases=[LEASE]),
    "WorkerService/ReportProgress": worker_service_pb2.ReportProgressRequest(
        job_id=JOB_ID, lease_token=TOKEN, progress_json="1"
    ),
    "WorkerService/AppendJobLogs": worker_service_pb2.AppendJobLogsRequest(
        job_id=JOB_ID, lease_token=TOKEN, lines=[types_pb2.JobLogLine(line="x")]
    ),
}
"""Requests whose right to their job is a lease token."""

ANYWHERE: dict[str, Message] = {
    "SchedulerService/PreviewSchedule": scheduler_service_pb2.PreviewScheduleRequest(
        schedule=scheduler_service_pb2.Schedule(cron="@daily")
    ),
    "SystemService/ListDefinitions": system_service_pb2.ListDefinitionsRequest(),
    "SystemService/ReleaseDefinition": system_service_pb2.ReleaseDefinitionRequest(
        type=system_service_pb2.DEFINITION_TYPE_SCHEDULER, name="nightly", owner=OWNER_MESSAGE
    ),
}
"""Requests that concern no queue."""


def bundle_of(**grants: list[str]) -> Bundle:
    """A gateway that knows one token, `x`, with these scopes."""
    digest = hashlib.sha256(b"x").digest()
    bundle = Bundle(authenticator=Tokens({digest: Caller("shop", digest, grants)}))
    worker = commands.WorkerRecord(commands.WorkerIdentity("w"), [commands.Pool(1, ["q"])], 0, 0, 0, 0, False, True)
    bundle.broker.answers[commands.ListWorkers] = commands.WorkerPage([worker])
    return bundle


X = {"authorization": "Bearer x"}


def rule_of(method: str) -> Rule:
    return RULES[f"/anvilmq.v1.{method}"]


def test_every_call_has_a_rule_and_no_rule_is_left_over() -> None:
    assert set(RULES) == set(METHODS)


def test_every_built_call_is_tried_below() -> None:
    assert {f"/anvilmq.v1.{name}" for name in (*IN_QUEUE_Q, *BY_LEASE, *ANYWHERE)} == set(SERVICES) - {
        "/anvilmq.v1.SystemService/GetServerInfo"
    }


@pytest.mark.parametrize("path", METHODS)
def test_a_rule_names_scopes_and_fields_that_exist(path: str) -> None:
    rule = RULES[path]
    assert set(rule.scopes) <= set(SCOPES)
    assert rule.scopes or rule.where is Where.TOKEN
    request = METHODS[path].request()
    if rule.where in (Where.QUEUE, Where.LIST) and rule.field:
        assert access._value(request, rule.field) in ("", [])
    if rule.instead is not None:
        assert access.scopes_of(rule, request) == rule.scopes


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("JobService/UpdateJob", {"lease_token": "t"}),
        ("SchedulerService/UpsertScheduler", {"scheduler": {"owner": {"kind": "k"}}}),
        ("SchedulerService/DeleteScheduler", {"owner": {}}),
        ("FlowTemplateService/UpsertFlowTemplate", {"template": {"owner": {}}}),
        ("FlowService/AddFlowMerge", {"lease": {}}),
    ],
)
def test_an_owner_or_a_lease_asks_for_other_scopes(path: str, fields: dict[str, Any]) -> None:
    rule = rule_of(path)
    request = METHODS[f"/anvilmq.v1.{path}"].request(**fields)
    assert rule.instead is not None
    assert access.scopes_of(rule, request) == rule.instead[1] != rule.scopes


@rule("7")
@pytest.mark.parametrize("path", METHODS)
async def test_without_a_token_every_call_is_refused(path: str) -> None:
    bundle = bundle_of(**{scope: ["*"] for scope in SCOPES})
    name = path.removeprefix("/anvilmq.v1.")
    for metadata, reason in (({}, "TOKEN_MISSING"), ({"authorization": "Bearer y"}, "TOKEN_INVALID")):
        if METHODS[path].streams:
            async with Streaming(bundle, name, metadata) as stream:
                assert (await stream.refusal()).reason == reason
        else:
            assert (await bundle.refusal(name, METHODS[path].request(), metadata=metadata)).reason == reason
    assert bundle.broker.asked == []


@rule("7")
@pytest.mark.parametrize("path", [path for path, rule in RULES.items() if rule.where is not Where.TOKEN])
async def test_a_token_with_every_other_scope_is_refused(path: str) -> None:
    rule = RULES[path]
    bundle = bundle_of(**{scope: ["*"] for scope in SCOPES if scope not in rule.scopes})
    name = path.removeprefix("/anvilmq.v1.")
    request = {**IN_QUEUE_Q, **BY_LEASE, **ANYWHERE}.get(name, METHODS[path].request())
    if METHODS[path].streams:
        async with Streaming(bundle, name, X) as stream:
            stream.wire.send(request)
            refused = await stream.refusal()
    else:
        refused = await bundle.refusal(name, request, metadata=X)
    assert (refused.code, refused.reason) == (7, "SCOPE_MISSING")
    assert refused.metadata["scope"] == " or ".join(rule.scopes)
    assert bundle.broker.asked == []


@pytest.mark.parametrize("name", IN_QUEUE_Q)
async def test_a_scope_for_another_queue_is_refused_and_nothing_written(name: str) -> None:
    bundle = bundle_of(**{scope: ["other", "qq*"] for scope in rule_of(name).scopes})
    refused = await bundle.refusal(name, IN_QUEUE_Q[name], metadata=X)
    assert (refused.reason, refused.metadata["queue"]) == ("SCOPE_MISSING", "q")
    looked_up = commands.GetJob | commands.ListWorkers | commands.GetScheduler
    assert all(isinstance(each, looked_up) for each in bundle.broker.asked)


@pytest.mark.parametrize("name", IN_QUEUE_Q)
async def test_each_of_the_scopes_for_the_queue_is_enough(name: str) -> None:
    for scope in rule_of(name).scopes:
        await bundle_of(**{scope: ["q*"]}).call(name, IN_QUEUE_Q[name], metadata=X)


@pytest.mark.parametrize("name", BY_LEASE)
async def test_a_lease_token_is_right_enough_for_its_job(name: str) -> None:
    await bundle_of(work=["other"]).call(name, BY_LEASE[name], metadata=X)


@pytest.mark.parametrize("name", ANYWHERE)
async def test_a_call_that_concerns_no_queue_takes_the_scope_for_any(name: str) -> None:
    for scope in rule_of(name).scopes:
        await bundle_of(**{scope: ["other"]}).call(name, ANYWHERE[name], metadata=X)


@rule("6.7")
@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("SchedulerService/UpsertScheduler", upsert({"cron": "@daily"})),
        ("SchedulerService/DeleteScheduler", scheduler_service_pb2.DeleteSchedulerRequest(name="nightly")),
    ],
)
async def test_what_comes_from_a_custom_resource_needs_operate_and_nothing_else(name: str, request_: Any) -> None:
    request = type(request_)()
    request.CopyFrom(request_)
    (request.scheduler if "Upsert" in name else request).owner.CopyFrom(OWNER_MESSAGE)
    everything_else = {scope: ["*"] for scope in SCOPES if scope != "operate"}
    refused = await bundle_of(**everything_else).refusal(name, request, metadata=X)
    assert (refused.reason, refused.metadata["scope"]) == ("SCOPE_MISSING", "operate")
    refused = await bundle_of(operate=["other"]).refusal(name, request, metadata=X)
    assert refused.metadata == {"scope": "operate", "queue": "q"}
    await bundle_of(operate=["q"]).call(name, request, metadata=X)


@rule("6.7")
async def test_a_definition_of_another_queue_cannot_be_taken_over() -> None:
    bundle = bundle_of(produce=["q"])
    theirs = scheduler(spec=commands.SchedulerSpec(cron="@daily", job=commands.NewJob("r", "n")))
    bundle.broker.answers[commands.GetScheduler] = commands.SchedulerFound(theirs)
    refused = await bundle.refusal("SchedulerService/UpsertScheduler", upsert({"cron": "@daily"}), metadata=X)
    assert refused.metadata == {"scope": "produce", "queue": "r"}
    assert not bundle.broker.of(commands.UpsertScheduler)


@rule("6.7")
async def test_a_definition_that_is_not_there_is_made_or_told_whatever_the_scopes_reach() -> None:
    bundle = bundle_of(produce=["q"], admin=["q"])
    bundle.broker.answers[commands.GetScheduler] = refusals.scheduler_not_found("nightly")
    bundle.broker.answers[commands.DeleteScheduler] = commands.DeletedScheduler(False)
    await bundle.call("SchedulerService/UpsertScheduler", upsert({"cron": "@daily"}), metadata=X)
    request = scheduler_service_pb2.DeleteSchedulerRequest(name="nightly", allow_missing=True)
    assert not (await bundle.call("SchedulerService/DeleteScheduler", request, metadata=X)).deleted


@pytest.mark.parametrize("scope", SCOPES)
async def test_any_token_may_ask_what_the_broker_is(scope: str) -> None:
    bundle = bundle_of(**{scope: ["q"]})
    info = await bundle.call("SystemService/GetServerInfo", system_service_pb2.GetServerInfoRequest(), metadata=X)
    assert (info.version, info.namespace, info.instance_id) == ("1.2.3", "shop", "instance")


async def test_in_a_batch_an_item_of_another_queue_is_refused_alone_or_names_itself() -> None:
    bundle = bundle_of(produce=["q"])
    request = job_service_pb2.AddJobBulkRequest(jobs=[spec(), spec(queue="r")], atomic="ATOMICITY_PER_ITEM")
    response = await bundle.call("JobService/AddJobBulk", request, metadata=X)
    assert [bool(job_id) for job_id in response.job_ids] == [True, False]
    assert [(error.index, error.reason, error.code) for error in response.errors] == [(1, "SCOPE_MISSING", 7)]
    request.atomic = job_service_pb2.ATOMICITY_ALL_OR_NOTHING
    refused = await bundle.refusal("JobService/AddJobBulk", request, metadata=X)
    assert (refused.reason, refused.metadata["index"], refused.metadata["queue"]) == ("SCOPE_MISSING", "1", "r")


async def test_a_list_without_a_queue_shows_only_what_the_patterns_match() -> None:
    bundle = bundle_of(read=["a*", "b"], work=["c"])
    await bundle.call("JobService/ListJobs", job_service_pb2.ListJobsRequest(), metadata=X)
    assert bundle.broker.one(commands.ListJobs).filter.allowed == ["a*", "b"]
    await bundle.call("WorkerService/ListWorkers", worker_service_pb2.ListWorkersRequest(), metadata=X)
    assert bundle.broker.one(commands.ListWorkers).allowed == ["a*", "b", "c"]
    await bundle.call("SchedulerService/ListSchedulers", scheduler_service_pb2.ListSchedulersRequest(), metadata=X)
    assert bundle.broker.one(commands.ListSchedulers).allowed == ["a*", "b"]


async def test_a_caller_of_every_queue_is_not_looked_up_first() -> None:
    bundle = bundle_of(produce=["*"])
    await bundle.call("JobService/CancelJob", job_service_pb2.CancelJobRequest(job_id=JOB_ID), metadata=X)
    assert [type(each) for each in bundle.broker.asked] == [commands.CancelJob]


async def test_a_job_of_another_queue_cannot_be_read() -> None:
    bundle = bundle_of(read=["q"])
    bundle.broker.answers[commands.GetJob] = commands.JobFound(record(queue="r"))
    refused = await bundle.refusal("JobService/GetJob", job_service_pb2.GetJobRequest(job_id=JOB_ID), metadata=X)
    assert refused.metadata == {"scope": "produce or read", "queue": "r"}


OPENING = worker_service_pb2.WorkRequest(
    open=worker_service_pb2.WorkRequest.Open(worker=WORKER, pools=[worker_service_pb2.Pool(id=1, queues=["q", "r"])])
)


async def test_a_session_needs_the_scope_for_each_of_its_queues() -> None:
    for queues, refused in ((["q"], True), (["q", "r"], False)):
        async with Streaming(bundle_of(work=queues), "WorkerService/Work", X) as stream:
            stream.wire.send(OPENING)
            if refused:
                assert (await stream.refusal()).metadata["queue"] == "r"
            else:
                assert (await stream.wire.answer()).HasField("opened")


class Changing:
    """Tokens that a test changes."""

    def __init__(self, **grants: list[str]) -> None:
        self.caller: Caller | None = Caller("shop", b"", grants)

    def authenticate(self, metadata: Any) -> Caller:
        assert self.caller is not None
        return self.caller

    def current(self, caller: Caller) -> Caller | None:
        return self.caller


@pytest.mark.parametrize("path", sorted(STREAMS))
async def test_a_stream_ends_when_its_token_does(path: str) -> None:
    tokens = Changing(work=["*"], produce=["*"])
    bundle = Bundle(authenticator=tokens)
    async with Streaming(bundle, path.removeprefix("/anvilmq.v1.")) as stream:
        await turns()
        bundle.gateway.rights_changed()
        await turns()
        assert not stream.task.done()
        tokens.caller = None
        bundle.gateway.rights_changed()
        assert (await stream.refusal()).reason == "TOKEN_INVALID"


async def test_open_streams_go_on_with_the_rights_of_now() -> None:
    tokens = Changing(work=["*"], produce=["q"])
    bundle = Bundle(authenticator=tokens)
    async with Streaming(bundle, "JobService/AddJobStream") as adds, Streaming(bundle, "WorkerService/Work") as work:
        work.wire.send(OPENING)
        await work.wire.answer()
        adds.wire.send(job_service_pb2.AddJobStreamRequest(jobs=[spec()]))
        assert len((await adds.wire.answer()).job_ids) == 1
        tokens.caller = Caller("shop", b"", {"produce": ["r"], "work": ["q"]})
        bundle.gateway.rights_changed()
        adds.wire.send(job_service_pb2.AddJobStreamRequest(jobs=[spec()]))
        assert (await adds.wire.answer()).refused.reason == "SCOPE_MISSING"
        assert (await work.refusal()).metadata == {"scope": "work", "queue": "r"}


async def test_a_cancelled_call_of_a_caller_that_was_checked_raises_no_failure() -> None:
    bundle = bundle_of(produce=["q"])
    bundle.broker.answers[commands.GetJob] = asyncio.get_running_loop().create_future()
    call = asyncio.ensure_future(
        bundle.call("JobService/CancelJob", job_service_pb2.CancelJobRequest(job_id=JOB_ID), metadata=X)
    )
    await turns()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not bundle.broker.of(commands.CancelJob)
