"""The one place where calls come in: bad bytes, calls and fields that are not built, errors, counting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import CODES, Refused
from anvilmq_broker.gateway import features, status
from anvilmq_broker.gateway.methods import METHODS
from anvilmq_broker.gateway.rpc import SERVICES, STREAMS
from anvilmq_broker.gateway.status import Failure
from anvilmq_proto.v1 import job_service_pb2, system_service_pb2, types_pb2, worker_service_pb2
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, LOST, TOKEN, Bundle, Refusal, Streaming, spec, turns
from tests.unit.gateway.definitions_made import upsert

UNARY = [path for path, method in METHODS.items() if not method.streams]
NOT_BUILT = [path for path in METHODS if path not in SERVICES and path not in STREAMS]


def name(path: str) -> str:
    return path.removeprefix("/anvilmq.v1.")


@rule("7")
@pytest.mark.parametrize("path", UNARY)
async def test_bytes_that_are_no_request_are_refused_as_malformed(path: str) -> None:
    bundle = Bundle()
    for data in (b"\xff\xff\xff", b"\x0a", b"\x00"):
        with pytest.raises(Failure) as caught:
            await bundle.gateway.unary(path, data, {}, None)
        assert Refusal.of(caught.value).reason == "MALFORMED_MESSAGE"
    assert bundle.broker.asked == []


@pytest.mark.parametrize("path", NOT_BUILT)
async def test_a_call_that_is_not_built_says_so(path: str) -> None:
    bundle = Bundle()
    if METHODS[path].streams:
        async with Streaming(bundle, name(path)) as stream:
            stream.wire.send(METHODS[path].request())
            refused = await stream.refusal()
    else:
        refused = await bundle.refusal(name(path), METHODS[path].request())
    assert (refused.code, refused.reason) == (12, "FEATURE_NOT_BUILT")


def test_the_calls_for_jobs_are_built() -> None:
    assert {path for path in NOT_BUILT if "/anvilmq.v1.JobService/" in path} == {
        f"/anvilmq.v1.JobService/{verb}"
        for verb in (
            *("UpdateJob", "RetryJob", "PromoteJob", "DeleteJob"),
            *("RetryJobs", "PromoteJobs", "CancelJobs", "DeleteJobs"),
        )
    }
    whole = ("WorkerService", "ReceiptService", "SchedulerService")
    assert not [path for path in NOT_BUILT if any(service in path for service in whole)]


async def test_what_is_whole_is_told_as_a_feature() -> None:
    info = await Bundle().call("SystemService/GetServerInfo", system_service_pb2.GetServerInfoRequest())
    assert list(info.features) == ["schedulers"]


UNBUILT_FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    ("anvilmq.v1.JobSpec", "group_id"): {"group_id": "g"},
    ("anvilmq.v1.JobSpec", "order_key"): {"order_key": 0},
    ("anvilmq.v1.JobSpec", "deduplication"): {"deduplication": types_pb2.Deduplication(id="d")},
    ("anvilmq.v1.JobFilter", "group_id"): {"group_id": "g"},
    ("anvilmq.v1.JobFilter", "flow_id"): {"flow_id": "f"},
}


def test_every_field_that_is_not_built_is_tried_below() -> None:
    listed = {(message, field) for message, fields in features.NOT_BUILT.items() for field in fields}
    assert listed == set(UNBUILT_FIELDS)


@pytest.mark.parametrize(("place", "fields"), UNBUILT_FIELDS.items(), ids=str)
async def test_a_set_field_of_a_feature_that_is_not_built_is_refused_and_nothing_written(
    place: tuple[str, str], fields: dict[str, Any]
) -> None:
    bundle = Bundle()
    message, field = place
    if message == "anvilmq.v1.JobSpec":
        refused = await bundle.refusal("JobService/AddJob", job_service_pb2.AddJobRequest(job=spec(**fields)))
        assert refused.metadata["field"] == f"job.{field}"
    else:
        request = job_service_pb2.ListJobsRequest(filter=job_service_pb2.JobFilter(**fields))
        refused = await bundle.refusal("JobService/ListJobs", request)
        assert refused.metadata["field"] == f"filter.{field}"
    assert refused.reason == "FEATURE_NOT_BUILT"
    assert bundle.broker.asked == []


@pytest.mark.parametrize("outcome", sorted(features.OUTCOMES_NOT_BUILT))
async def test_an_outcome_that_is_not_built_is_refused_for_its_item_alone(outcome: Any) -> None:
    bundle = Bundle()
    good = worker_service_pb2.Settlement(job_id=JOB_ID, lease_token=TOKEN, outcome="SETTLE_OUTCOME_COMPLETE")
    bad = worker_service_pb2.Settlement(job_id=JOB_ID, lease_token=TOKEN, outcome=outcome)
    request = worker_service_pb2.SettleJobsRequest(seq=3, settlements=[bad, good])
    response = await bundle.call("WorkerService/SettleJobs", request)
    assert list(response.states) == [0, 5]
    assert [(error.index, error.reason, error.code) for error in response.errors] == [(0, "FEATURE_NOT_BUILT", 12)]
    assert len(bundle.broker.one(commands.Settle).items) == 1


# -------------------------------------------------------------------------- U+0000 and integers from 2^53

VALID: dict[str, Message] = {
    "JobService/AddJob": job_service_pb2.AddJobRequest(job=spec()),
    "JobService/AddJobBulk": job_service_pb2.AddJobBulkRequest(jobs=[spec()], producer_id="p", seq=1),
    "JobService/WaitJob": job_service_pb2.WaitJobRequest(job_id=JOB_ID),
    "WorkerService/ClaimJobs": worker_service_pb2.ClaimJobsRequest(
        worker=worker_service_pb2.WorkerIdentity(worker_id="w"), queues=["q"], max_jobs=1
    ),
    "SchedulerService/UpsertScheduler": upsert({"cron": "@daily"}),
}
NOT_SPOKEN_OF_HERE = frozenset({"group_id", "order_key", "deduplication", "flow_id"})
WIDE = frozenset({FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64})


def leaves(descriptor: Any, path: tuple[FieldDescriptor, ...] = ()) -> Iterator[tuple[FieldDescriptor, ...]]:
    """Every text and every 64-bit integer of a request, by its path."""
    for field in descriptor.fields:
        if field.name in NOT_SPOKEN_OF_HERE:
            continue
        here = (*path, field)
        if field.message_type is not None:
            yield from leaves(field.message_type, here)
        elif field.type == FieldDescriptor.TYPE_STRING or field.type in WIDE:
            yield here


def put(message: Any, path: tuple[FieldDescriptor, ...], value: object) -> None:
    """Set the field at the path, in the first entry of what is repeated."""
    field, *rest = path
    held = getattr(message, field.name)
    if not field.is_repeated:
        if rest:
            held.SetInParent()
            put(held, tuple(rest), value)
        else:
            setattr(message, field.name, value)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        held.update({str(value): "v"} if rest[0].name == "key" else {"k": str(value)})
    elif rest:
        put(held[0] if len(held) else held.add(), tuple(rest), value)
    else:
        held.append(value)


def cases(kinds: frozenset[int]) -> list[tuple[str, tuple[FieldDescriptor, ...]]]:
    return [
        (name(path), leaf)
        for path in SERVICES
        for leaf in leaves(METHODS[path].request.DESCRIPTOR)
        if leaf[-1].type in kinds
    ]


def shown(value: object) -> str | None:
    return ".".join(field.name for field in value) if isinstance(value, tuple) else None


async def refused_with(method: str, leaf: tuple[FieldDescriptor, ...], value: object) -> bool:
    """Whether the request is refused, as a whole or for its item, with nothing handed to the engine that has the value."""
    bundle = Bundle()
    request = METHODS[f"/anvilmq.v1.{method}"].request()
    request.MergeFrom(VALID.get(method, request))
    put(request, leaf, value)
    try:
        response = await bundle.call(method, request)
    except Failure as failure:
        return failure.code == 3
    if method == "WorkerService/RenewLeases":
        return len(response.interrupts) == 1
    return len(getattr(response, "errors", ())) == 1


@rule("7")
@pytest.mark.parametrize(("method", "leaf"), cases(frozenset({FieldDescriptor.TYPE_STRING})), ids=shown)
async def test_a_text_with_u0000_is_refused_wherever_it_stands(method: str, leaf: tuple[FieldDescriptor, ...]) -> None:
    assert await refused_with(method, leaf, "a\0b")


@rule("7")
@pytest.mark.parametrize(("method", "leaf"), cases(WIDE), ids=shown)
async def test_an_integer_from_2_53_is_refused_wherever_it_stands(
    method: str, leaf: tuple[FieldDescriptor, ...]
) -> None:
    assert await refused_with(method, leaf, 1 << 53)


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(("reason", "code"), CODES.items())
def test_every_reason_becomes_its_code_with_error_info(reason: str, code: int) -> None:
    found = Refusal.of(status.failure(Refused(reason, "why", "a.b", {"k": "v"})))
    assert (found.code, found.reason, found.message) == (code, reason, "why")
    assert found.metadata["k"] == "v"
    assert found.fields == (["a.b"] if code == 3 else [])
    assert (found.retry_ms > 0) == (code in (8, 14))


def test_a_refusal_says_when_to_come_back() -> None:
    assert Refusal.of(status.failure(Refused("OVERLOADED", "", retry_after_ms=250))).retry_ms == 250


async def test_a_lost_engine_is_unavailable_and_told_to_be_tried_again() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = LOST
    refused = await bundle.refusal("JobService/AddJob", job_service_pb2.AddJobRequest(job=spec()))
    assert (refused.code, refused.reason, refused.retry_ms > 0) == (14, "NOT_READY", True)
    bundle.context.lost()
    refused = await bundle.refusal("JobService/GetJob", job_service_pb2.GetJobRequest(job_id=JOB_ID))
    assert refused.reason == "NOT_READY"


async def test_a_fault_of_the_broker_itself_is_internal_and_tells_nothing() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = RuntimeError("secret")
    with pytest.raises(Failure) as caught:
        await bundle.call("JobService/AddJob", job_service_pb2.AddJobRequest(job=spec()))
    assert caught.value.code == 13
    assert "secret" not in caught.value.status.message


# ----------------------------------------------------------------------------------------------- counting


def counted(bundle: Bundle, metric: str) -> dict[tuple[str, ...], float]:
    (family,) = [family for family in bundle.telemetry.snapshot() if family.name == metric]
    return {tuple(sample.labels): sample.value or sum(sample.buckets) for sample in family.samples}


async def test_calls_are_counted_by_method_and_code() -> None:
    bundle = Bundle()
    await bundle.call("JobService/AddJob", job_service_pb2.AddJobRequest(job=spec()))
    await bundle.refusal("JobService/AddJob", job_service_pb2.AddJobRequest())
    assert counted(bundle, "anvilmq_rpc_requests_total") == {
        ("JobService/AddJob", "ok", "0"): 1,
        ("JobService/AddJob", "invalid_argument", "0"): 1,
    }
    assert counted(bundle, "anvilmq_rpc_seconds") == {("JobService/AddJob", "0"): 2}


async def test_open_streams_are_counted_while_they_are_open() -> None:
    bundle = Bundle()
    async with Streaming(bundle, "JobService/AddJobStream") as stream:
        await turns()
        assert counted(bundle, "anvilmq_rpc_streams") == {("JobService/AddJobStream", "0"): 1}
        stream.wire.close()
        await stream.ends()
    assert counted(bundle, "anvilmq_rpc_streams") == {("JobService/AddJobStream", "0"): 0}
    assert counted(bundle, "anvilmq_rpc_requests_total") == {("JobService/AddJobStream", "ok", "0"): 1}


# ------------------------------------------------------------------------------------------------ leaving


async def test_a_broker_that_leaves_refuses_new_calls_and_gives_up_long_polls() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.WaitJob] = asyncio.get_running_loop().create_future()
    request = job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=60_000)
    waiting = asyncio.ensure_future(bundle.refusal("JobService/WaitJob", request))
    await turns()
    await bundle.gateway.drain(0)
    assert (await waiting).reason == "DRAINING"
    assert (await bundle.refusal("JobService/WaitJob", request)).reason == "DRAINING"


async def test_a_cancelled_long_poll_stays_cancelled() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.WaitJob] = asyncio.get_running_loop().create_future()
    request = job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=60_000)
    waiting = asyncio.ensure_future(bundle.call("JobService/WaitJob", request))
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_long_poll_leaves_time_to_answer_before_its_deadline() -> None:
    bundle = Bundle()
    request = job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=60_000)
    await bundle.call("JobService/WaitJob", request, timeout_s=5)
    assert bundle.broker.one(commands.WaitJob).wait_ms == 4_750
