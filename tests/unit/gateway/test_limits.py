"""Each limit of a job, settlement or list passes at n and is refused at n + 1, with the path of its field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anvilmq_broker.gateway import limits, mapping
from anvilmq_broker.gateway.limits import KIB, MIB, Limits
from anvilmq_broker.gateway.refusals import Rejected
from anvilmq_proto.v1 import job_service_pb2, types_pb2, worker_service_pb2
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, TOKEN, Bundle, spec

YEARS_100 = 100 * 365 * 86_400_000
LAST_INSTANT = 253_402_300_799_999
POLICY = types_pb2.JobPolicy
BACKOFF = types_pb2.Backoff

JOB: list[tuple[str, types_pb2.JobSpec, types_pb2.JobSpec]] = [
    ("queue", spec(queue="q" * 128), spec(queue="q" * 129)),
    ("queue", spec(queue="_-.:"), spec(queue="")),
    ("queue", spec(queue="A.b:c-d_9"), spec(queue=".a")),
    ("queue", spec(queue="9"), spec(queue="a b")),
    ("queue", spec(queue="a"), spec(queue="ä")),
    ("queue", spec(queue="a"), spec(queue="a\n")),
    ("name", spec(name="ä" * 64), spec(name="ä" * 64 + "x")),
    ("name", spec(name="a b/c"), spec(name="")),
    ("name", spec(name="\u2028"), spec(name="a\x7f")),
    ("name", spec(name="a"), spec(name="a\x00")),
    ("content_type", spec(content_type="t" * 128), spec(content_type="t" * 129)),
    ("priority", spec(priority=2_097_151), spec(priority=2_097_152)),
    ("priority", spec(priority=0), spec(priority=-1)),
    ("delay_ms", spec(delay_ms=YEARS_100), spec(delay_ms=YEARS_100 + 1)),
    ("delay_ms", spec(delay_ms=1), spec(delay_ms=-1)),
    ("run_at_ms", spec(run_at_ms=LAST_INSTANT), spec(run_at_ms=LAST_INSTANT + 1)),
    ("run_at_ms", spec(run_at_ms=1), spec(run_at_ms=1, delay_ms=1)),
    ("expires_at_ms", spec(expires_at_ms=LAST_INSTANT), spec(expires_at_ms=LAST_INSTANT + 1)),
    ("expires_after_ms", spec(expires_after_ms=YEARS_100), spec(expires_after_ms=YEARS_100 + 1)),
    ("expires_after_ms", spec(expires_after_ms=1), spec(expires_at_ms=1, expires_after_ms=1)),
    ("lifo", spec(lifo=True), spec(lifo=True, delay_ms=1)),
    ("lifo", spec(lifo=True), spec(lifo=True, run_at_ms=1)),
    ("idempotency_key", spec(idempotency_key="€" * 85), spec(idempotency_key="€" * 85 + "x")),
    ("idempotency_key", spec(idempotency_key="a b"), spec(idempotency_key="a\x01")),
    ("labels", spec(labels={str(i): "" for i in range(32)}), spec(labels={str(i): "" for i in range(33)})),
    ("labels." + "k" * 64, spec(labels={"k" * 63: ""}), spec(labels={"k" * 64: ""})),
    ("labels.", spec(labels={"k": ""}), spec(labels={"": "v"})),
    ("labels.k", spec(labels={"k": "v" * 128}), spec(labels={"k": "v" * 129})),
    ("labels", spec(labels={"k": "v"}), spec(labels={"k": "v\0"})),
    ("headers", spec(headers={str(i): "" for i in range(32)}), spec(headers={str(i): "" for i in range(33)})),
    ("headers", spec(headers={"k": "v" * (8 * KIB - 1)}), spec(headers={"k": "v" * 8 * KIB})),
    ("headers.K", spec(headers={"k": "V"}), spec(headers={"K": "v"})),
    ("headers", spec(headers={"k": "v"}), spec(headers={"k": "\0"})),
    ("data", spec(data=b"x" * MIB), spec(data=b"x" * (MIB + 1))),
]  # fmt: skip

POLICIES: list[tuple[str, types_pb2.JobPolicy, types_pb2.JobPolicy]] = [
    ("max_attempts", POLICY(max_attempts=1_000, max_starts=1_000), POLICY(max_attempts=1_001)),
    ("max_attempts", POLICY(max_attempts=1), POLICY(max_attempts=0)),
    ("lease_ms", POLICY(lease_ms=3_600_000), POLICY(lease_ms=3_600_001)),
    ("lease_ms", POLICY(lease_ms=1_000), POLICY(lease_ms=999)),
    ("attempt_timeout_ms", POLICY(attempt_timeout_ms=YEARS_100), POLICY(attempt_timeout_ms=YEARS_100 + 1)),
    ("max_stalled", POLICY(max_stalled=100), POLICY(max_stalled=101)),
    ("max_stalled", POLICY(max_stalled=0), POLICY(max_stalled=-1)),
    ("max_starts", POLICY(max_starts=10_000), POLICY(max_starts=10_001)),
    ("max_starts", POLICY(max_starts=3), POLICY(max_starts=2)),
    ("max_starts", POLICY(max_attempts=9, max_starts=9), POLICY(max_attempts=9, max_starts=8)),
    ("retain_completed_ms", POLICY(retain_completed_ms=0), POLICY(retain_completed_ms=-1)),
    ("retain_failed_ms", POLICY(retain_failed_ms=YEARS_100), POLICY(retain_failed_ms=YEARS_100 + 1)),
    ("receipt_ttl_ms", POLICY(receipt_ttl_ms=YEARS_100), POLICY(receipt_ttl_ms=YEARS_100 + 1)),
    (
        "backoff.delay_ms",
        POLICY(backoff=BACKOFF(delay_ms=604_800_000)),
        POLICY(backoff=BACKOFF(delay_ms=604_800_001)),
    ),
    (
        "backoff.max_delay_ms",
        POLICY(backoff=BACKOFF(max_delay_ms=604_800_000)),
        POLICY(backoff=BACKOFF(max_delay_ms=604_800_001)),
    ),
    ("backoff.jitter", POLICY(backoff=BACKOFF(jitter=1.0)), POLICY(backoff=BACKOFF(jitter=1.01))),
    ("backoff.jitter", POLICY(backoff=BACKOFF(jitter=0.0)), POLICY(backoff=BACKOFF(jitter=float("nan")))),
]


@rule("7")
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [*JOB, *((f"policy.{field}", spec(policy=good), spec(policy=bad)) for field, good, bad in POLICIES)],
)
def test_a_job_at_its_limit_is_taken_and_one_beyond_names_the_field(
    field: str, good: types_pb2.JobSpec, bad: types_pb2.JobSpec
) -> None:
    mapping.new_job(good, Limits())
    with pytest.raises(Rejected) as caught:
        mapping.new_job(bad, Limits())
    assert caught.value.refused.field == field


def test_a_payload_counts_bytes_and_says_size_and_limit() -> None:
    bounds = Limits(max_payload_bytes=4)
    mapping.new_job(spec(data="€x".encode()), bounds)
    with pytest.raises(Rejected) as caught:
        mapping.new_job(spec(data="€€".encode()), bounds)
    assert caught.value.refused.reason == "PAYLOAD_TOO_LARGE"
    assert caught.value.refused.metadata == {"size": "6", "limit": "4"}


def settlement(**fields: Any) -> worker_service_pb2.Settlement:
    return worker_service_pb2.Settlement(**{"job_id": JOB_ID, "lease_token": TOKEN, "outcome": 1, **fields})


def error(**fields: str) -> worker_service_pb2.Settlement:
    return settlement(outcome=2, error=types_pb2.JobError(**fields))


SETTLEMENTS: list[tuple[str, worker_service_pb2.Settlement, worker_service_pb2.Settlement]] = [
    ("result", settlement(result=b"x" * 256 * KIB), settlement(result=b"x" * (256 * KIB + 1))),
    ("result_content_type", settlement(result_content_type="t" * 128), settlement(result_content_type="t" * 129)),
    ("outcome", settlement(), settlement(outcome=0)),
    ("retry_after_ms", settlement(outcome=2, retry_after_ms=604_800_000), settlement(outcome=2, retry_after_ms=604_800_001)),
    ("delay_ms", settlement(outcome=3, delay_ms=YEARS_100), settlement(outcome=3, delay_ms=YEARS_100 + 1)),
    ("reason", settlement(outcome=3, reason="r" * KIB), settlement(outcome=3, reason="r" * (KIB + 1))),
    ("error.details_json", error(details_json='"' + "x" * (16 * KIB - 2) + '"'), error(details_json='"' + "x" * 16 * KIB + '"')),
    ("error.details_json", error(details_json="{}"), error(details_json="{")),
    ("error.details_json", error(details_json="[[]]"), error(details_json="[" * 6_000 + "]" * 6_000)),
    ("error.message", error(message="m"), error(message="m\0")),
    ("job_id", settlement(), settlement(job_id="")),
    ("lease_token", settlement(lease_token="t" * 64), settlement(lease_token="")),
]  # fmt: skip


@rule("1.8")
@pytest.mark.parametrize(("field", "good", "bad"), SETTLEMENTS)
def test_a_settlement_at_its_limit_is_taken_and_one_beyond_names_the_field(
    field: str, good: worker_service_pb2.Settlement, bad: worker_service_pb2.Settlement
) -> None:
    mapping.settlement(good)
    with pytest.raises(Rejected) as caught:
        mapping.settlement(bad)
    assert caught.value.refused.field == field


@rule("1.8")
def test_texts_of_an_error_are_cut_at_whole_characters_and_a_stack_keeps_its_end() -> None:
    mapped = mapping.settlement(error(type="ä" * 200, message="€" * 4_096, stack="a" + "€" * 20_000)).error
    assert mapped is not None
    assert mapped.type == "ä" * 127
    assert mapped.message == "€" * (4 * KIB // 3)
    assert mapped.stack == "€" * (32 * KIB // 3)


@rule("1.8")
def test_progress_is_one_json_text_of_at_most_64_kib() -> None:
    def report(text: str) -> worker_service_pb2.ReportProgressRequest:
        return worker_service_pb2.ReportProgressRequest(job_id=JOB_ID, lease_token=TOKEN, progress_json=text)

    largest = '"' + "x" * (64 * KIB - 2) + '"'
    assert mapping.progress(report(largest)).progress_json == largest
    for text in (largest[:-1] + 'x"', "", "{", "1 2", '"\0"', "[" * 60_000, "[" * 30_000 + "]" * 30_000):
        with pytest.raises(Rejected):
            mapping.progress(report(text))


@rule("1.8")
def test_a_log_line_is_cut_at_4_kib_and_a_call_has_at_most_100() -> None:
    def lines(count: int, **fields: Any) -> worker_service_pb2.AppendJobLogsRequest:
        line = types_pb2.JobLogLine(**{"line": "x", **fields})
        return worker_service_pb2.AppendJobLogsRequest(job_id=JOB_ID, lease_token=TOKEN, lines=[line] * count)

    assert len(mapping.log_lines(lines(100)).lines) == 100
    assert len(mapping.log_lines(lines(1, line="x" * 5_000)).lines[0].line) == 4 * KIB
    assert mapping.log_lines(lines(1, level="l" * 16)).lines[0].level == "l" * 16
    for bad in (lines(101), lines(0), lines(1, level="l" * 17), lines(1, at_ms=-1), lines(1, line="\0")):
        with pytest.raises(Rejected):
            mapping.log_lines(bad)


async def test_a_bulk_of_1000_jobs_is_taken_and_one_of_1001_or_none_is_not() -> None:
    bundle = Bundle()
    request = job_service_pb2.AddJobBulkRequest(jobs=[spec()] * 1_000)
    assert len((await bundle.call("JobService/AddJobBulk", request)).job_ids) == 1_000
    request.jobs.append(spec())
    refused = await bundle.refusal("JobService/AddJobBulk", request)
    assert (refused.reason, refused.metadata["unit"], refused.metadata["limit"]) == ("BATCH_TOO_LARGE", "items", "1000")
    refused = await bundle.refusal("JobService/AddJobBulk", job_service_pb2.AddJobBulkRequest())
    assert (refused.reason, refused.field) == ("INVALID_FIELD", "jobs")


async def test_a_bulk_of_16_mib_is_taken_and_one_byte_more_is_not() -> None:
    def bulk(last: int) -> job_service_pb2.AddJobBulkRequest:
        jobs = [spec(data=b"x" * MIB) for _ in range(15)]
        return job_service_pb2.AddJobBulkRequest(jobs=[*jobs, spec(data=b"x" * last)])

    bundle = Bundle()
    room = 16 * MIB - bulk(MIB // 2).ByteSize()
    request = bulk(MIB // 2 + room)
    assert request.ByteSize() == 16 * MIB
    await bundle.call("JobService/AddJobBulk", request)
    refused = await bundle.refusal("JobService/AddJobBulk", bulk(MIB // 2 + room + 1))
    assert (refused.reason, refused.metadata["unit"]) == ("BATCH_TOO_LARGE", "bytes")


@pytest.mark.parametrize(
    ("producer_id", "seq", "field"),
    [("p" * 64, 1, ""), ("p" * 65, 1, "producer_id"), ("p", 0, "seq"), ("", 1, "producer_id"), ("p", 1 << 53, "seq")],
)
async def test_producer_and_seq_come_together_and_within_their_ranges(producer_id: str, seq: int, field: str) -> None:
    bundle = Bundle()
    request = job_service_pb2.AddJobBulkRequest(jobs=[spec()], producer_id=producer_id, seq=seq)
    if not field:
        await bundle.call("JobService/AddJobBulk", request)
        return
    assert (await bundle.refusal("JobService/AddJobBulk", request)).field == field
    assert bundle.broker.asked == []


BATCHES: list[tuple[str, str, Callable[[int], Any]]] = [
    (
        "WorkerService/SettleJobs",
        "settlements",
        lambda count: worker_service_pb2.SettleJobsRequest(settlements=[settlement()] * count),
    ),
    (
        "WorkerService/RenewLeases",
        "leases",
        lambda count: worker_service_pb2.RenewLeasesRequest(
            leases=[types_pb2.Lease(job_id=JOB_ID, lease_token=TOKEN)] * count
        ),
    ),
]


@pytest.mark.parametrize(("method", "field", "request_of"), BATCHES)
async def test_settlements_and_renewals_come_by_the_thousand(
    method: str, field: str, request_of: Callable[[int], Any]
) -> None:
    bundle = Bundle()
    await bundle.call(method, request_of(1_000))
    assert (await bundle.refusal(method, request_of(1_001))).reason == "BATCH_TOO_LARGE"
    assert (await bundle.refusal(method, request_of(0))).field == field


async def test_a_page_is_cut_to_1000_entries_and_defaults_to_100() -> None:
    bundle = Bundle()
    for asked, expected in ((0, 100), (1_000, 1_000), (1_001, 1_000), (2**31 - 1, 1_000)):
        await bundle.call("JobService/ListJobs", job_service_pb2.ListJobsRequest(page_size=asked))
        query = bundle.broker.asked[-1]
        assert query.limit == expected
    refused = await bundle.refusal("JobService/ListJobs", job_service_pb2.ListJobsRequest(page_size=-1))
    assert refused.field == "page_size"


CLAIM: dict[str, Any] = {"worker": worker_service_pb2.WorkerIdentity(worker_id="w"), "queues": ["q"], "max_jobs": 1}


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("max_jobs", {"max_jobs": 256}, {"max_jobs": 257}),
        ("max_jobs", {"max_jobs": 1}, {"max_jobs": 0}),
        ("wait_ms", {"wait_ms": 60_000}, {"wait_ms": 60_001}),
        ("queues", {"queues": [f"q{i}" for i in range(64)]}, {"queues": []}),
        ("queues[1]", {"queues": ["a", "b"]}, {"queues": ["a", "!"]}),
        ("claim_id", {"claim_id": "c" * 64}, {"claim_id": "c" * 65}),
        (
            "worker.worker_id",
            {"worker": worker_service_pb2.WorkerIdentity(worker_id="w" * 128)},
            {"worker": worker_service_pb2.WorkerIdentity(worker_id="w" * 129)},
        ),
    ],
)
async def test_a_claim_keeps_to_its_ranges(field: str, good: dict[str, Any], bad: dict[str, Any]) -> None:
    bundle = Bundle()
    await bundle.call("WorkerService/ClaimJobs", worker_service_pb2.ClaimJobsRequest(**{**CLAIM, **good}))
    request = worker_service_pb2.ClaimJobsRequest(**{**CLAIM, **bad})
    assert (await bundle.refusal("WorkerService/ClaimJobs", request)).field == field


async def test_a_wait_is_at_most_60_s_and_a_reason_1_kib() -> None:
    bundle = Bundle()
    await bundle.call("JobService/WaitJob", job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=60_000))
    request = job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=60_001)
    assert (await bundle.refusal("JobService/WaitJob", request)).field == "wait_ms"
    await bundle.call("JobService/CancelJob", job_service_pb2.CancelJobRequest(job_id=JOB_ID, reason="r" * KIB))
    cancel = job_service_pb2.CancelJobRequest(job_id=JOB_ID, reason="r" * (KIB + 1))
    assert (await bundle.refusal("JobService/CancelJob", cancel)).field == "reason"


async def test_the_limits_that_the_broker_tells_are_those_it_keeps() -> None:
    bundle = Bundle(limits=Limits(max_payload_bytes=2_048, max_flow_depth=3))
    told = (await bundle.call("SystemService/GetServerInfo", _info())).limits
    assert told.max_payload_bytes == 2_048
    assert told.max_flow_depth == 3
    assert told.max_bulk_jobs == limits.MAX_BULK_JOBS
    assert all(value for _, value in told.ListFields())
    assert len(told.ListFields()) == len(told.DESCRIPTOR.fields)


def _info() -> Any:
    from anvilmq_proto.v1 import system_service_pb2

    return system_service_pb2.GetServerInfoRequest()
