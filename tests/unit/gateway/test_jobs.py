"""Adds by single calls and bulks, reads, waits, cancels, receipts: what the engine is handed, what the caller is told."""

from __future__ import annotations

import pytest

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.domain.errors import Refused
from anvilmq_proto.v1 import job_service_pb2, receipt_service_pb2, types_pb2
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, Bundle, record, spec

PER_ITEM = job_service_pb2.ATOMICITY_PER_ITEM
BAD = spec(queue="!")


def bulk(*specs: types_pb2.JobSpec, per_item: bool = False) -> job_service_pb2.AddJobBulkRequest:
    return job_service_pb2.AddJobBulkRequest(jobs=specs, atomic=PER_ITEM if per_item else None)


async def test_an_added_job_is_told_with_its_state_after_the_commit() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = commands.AddedJobs(7, START_MS, states=b"\3")
    response = await bundle.call("JobService/AddJob", job_service_pb2.AddJobRequest(job=spec(data=b"1")))
    assert response == job_service_pb2.AddJobResponse(job_id=JOB_ID, state="JOB_STATE_ACTIVE")
    assert bundle.broker.one(commands.AddJobs).jobs == [commands.NewJob("q", "n", b"1")]


@rule("2.1")
async def test_an_add_that_met_an_earlier_job_says_so() -> None:
    bundle = Bundle()
    earlier = commands.Earlier(0, commands.JobRef(7, START_MS), 5)
    bundle.broker.answers[commands.AddJobs] = commands.AddedJobs(9, START_MS, [earlier])
    response = await bundle.call("JobService/AddJob", job_service_pb2.AddJobRequest(job=spec()))
    assert response == job_service_pb2.AddJobResponse(
        job_id=JOB_ID, state="JOB_STATE_COMPLETED", existing=True, matched_by="MATCHED_BY_RECEIPT"
    )


async def test_a_refused_add_names_the_field_from_the_request_on() -> None:
    bundle = Bundle()
    refused = await bundle.refusal("JobService/AddJob", job_service_pb2.AddJobRequest(job=BAD))
    assert (refused.field, refused.metadata["field"]) == ("job.queue", "job.queue")
    refused = await bundle.refusal("JobService/AddJob", job_service_pb2.AddJobRequest())
    assert refused.field == "job"
    assert bundle.broker.asked == []


@rule("1.10")
async def test_ids_of_a_bulk_come_back_in_item_order_with_earlier_ones_among_them() -> None:
    bundle = Bundle()
    earlier = [
        commands.Earlier(3, commands.JobRef(2, START_MS - 9), 1),
        commands.Earlier(0, commands.JobRef(1, START_MS - 9), 7, 2),
    ]
    bundle.broker.answers[commands.AddJobs] = commands.AddedJobs(50, START_MS, earlier, states=b"\1\1")
    response = await bundle.call("JobService/AddJobBulk", bulk(spec(), spec(), spec(), spec()))
    assert list(response.job_ids) == [
        ids.encode(START_MS - 9, 1),
        ids.encode(START_MS, 50),
        ids.encode(START_MS, 51),
        ids.encode(START_MS - 9, 2),
    ]
    assert [(each.index, each.existing, each.state, each.matched_by) for each in response.earlier] == [
        (0, True, 7, 2),
        (3, True, 1, 1),
    ]


@rule("1.10")
async def test_one_bad_item_refuses_the_bulk_and_is_named() -> None:
    bundle = Bundle()
    refused = await bundle.refusal("JobService/AddJobBulk", bulk(spec(), BAD, BAD))
    assert (refused.reason, refused.field, refused.metadata["index"]) == ("INVALID_FIELD", "jobs[1].queue", "1")
    assert bundle.broker.asked == []


@rule("1.10")
async def test_an_item_that_the_engine_refuses_is_named_the_same_way() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = Refused(
        "IDEMPOTENCY_KEY_REUSED", "used", "idempotency_key", {"job_id": JOB_ID}, index=1
    )
    refused = await bundle.refusal("JobService/AddJobBulk", bulk(spec(), spec()))
    assert (refused.code, refused.metadata) == (6, {"job_id": JOB_ID, "index": "1"})


@pytest.mark.parametrize("reason", ["SEQUENCE_STALE", "OVERLOADED", "STORAGE_FULL"])
async def test_a_bulk_that_is_refused_as_a_whole_names_no_item(reason: str) -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = Refused(reason, "no", retry_after_ms=5)
    refused = await bundle.refusal("JobService/AddJobBulk", bulk(spec(), spec()))
    assert (refused.reason, "index" in refused.metadata) == (reason, False)


@rule("1.10")
async def test_per_item_each_bad_item_is_answered_and_the_rest_is_added() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.AddJobs] = commands.AddedJobs(
        50,
        START_MS,
        [commands.Earlier(1, commands.JobRef(7, START_MS), 1)],
        [Refused("QUEUE_FULL", "full", index=2, retry_after_ms=3)],
    )
    # Command items 0 to 3 are request items 1, 2, 4, 5.
    response = await bundle.call("JobService/AddJobBulk", bulk(BAD, spec(), spec(), BAD, spec(), spec(), per_item=True))
    command = bundle.broker.one(commands.AddJobs)
    assert (len(command.jobs), command.atomic) == (4, False)
    assert list(response.job_ids) == ["", ids.encode(START_MS, 50), JOB_ID, "", "", ids.encode(START_MS, 51)]
    assert [each.index for each in response.earlier] == [2]
    assert [(each.index, each.reason, each.retry_after_ms) for each in response.errors] == [
        (0, "INVALID_FIELD", 0),
        (3, "INVALID_FIELD", 0),
        (4, "QUEUE_FULL", 3),
    ]


async def test_a_bulk_of_bad_items_alone_does_not_reach_the_engine() -> None:
    bundle = Bundle()
    response = await bundle.call("JobService/AddJobBulk", bulk(BAD, BAD, per_item=True))
    assert (list(response.job_ids), len(response.errors)) == (["", ""], 2)
    assert bundle.broker.asked == []


async def test_producer_and_seq_are_handed_on() -> None:
    bundle = Bundle()
    request = bulk(spec())
    request.producer_id, request.seq = "p", 9
    await bundle.call("JobService/AddJobBulk", request)
    command = bundle.broker.one(commands.AddJobs)
    assert (command.producer_id, command.seq, command.atomic) == ("p", 9, True)


async def test_a_job_is_shown_in_full_with_its_wait_reason_unless_asked_otherwise() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.GetJob] = commands.JobFound(record(data=b"x", wait=commands.Wait(10)))
    job = (await bundle.call("JobService/GetJob", job_service_pb2.GetJobRequest(job_id=JOB_ID))).job
    assert (job.data, job.wait.reason) == (b"x", types_pb2.WAIT_REASON_NEXT)
    basic = job_service_pb2.GetJobRequest(job_id=JOB_ID, view=types_pb2.JOB_VIEW_BASIC)
    assert (await bundle.call("JobService/GetJob", basic)).job.data == b""
    assert bundle.broker.asked == [
        commands.GetJob(commands.JobRef(7, START_MS), True, True),
        commands.GetJob(commands.JobRef(7, START_MS), False, True),
    ]


@pytest.mark.parametrize("job_id", ["x", "0" * 27, "!" * 26, JOB_ID.lower()])
async def test_an_id_that_no_job_can_have_is_not_found(job_id: str) -> None:
    bundle = Bundle()
    refused = await bundle.refusal("JobService/GetJob", job_service_pb2.GetJobRequest(job_id=job_id))
    assert (refused.code, refused.reason) == (5, "JOB_NOT_FOUND")
    assert bundle.broker.asked == []


async def test_a_missing_id_is_asked_for() -> None:
    assert (await Bundle().refusal("JobService/GetJob", job_service_pb2.GetJobRequest())).field == "job_id"


async def test_a_wait_ends_at_once_for_a_job_that_has_ended() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.GetJob] = commands.JobFound(record(state=6))
    response = await bundle.call("JobService/WaitJob", job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=9))
    assert (response.finished, response.job.state) == (True, types_pb2.JOB_STATE_FAILED)
    assert not bundle.broker.of(commands.WaitJob)


async def test_a_wait_tells_whether_the_job_has_ended_by_then() -> None:
    bundle = Bundle()
    for state, finished in ((3, False), (5, True)):
        bundle.broker.answers[commands.WaitJob] = commands.JobFound(record(state=state))
        response = await bundle.call("JobService/WaitJob", job_service_pb2.WaitJobRequest(job_id=JOB_ID, wait_ms=9))
        assert response.finished is finished


async def test_a_list_hands_its_filter_on() -> None:
    bundle = Bundle()
    await bundle.call(
        "JobService/ListJobs",
        job_service_pb2.ListJobsRequest(
            filter=job_service_pb2.JobFilter(
                queue="q",
                states=["JOB_STATE_WAITING", "JOB_STATE_FAILED"],
                name="n",
                labels={"a": "b"},
                created_after_at_ms=1,
                created_before_at_ms=2,
                finished_before_at_ms=3,
                finish_reason=types_pb2.FINISH_REASON_STALLED,
                search="x",
            ),
            oldest_first=True,
            view=types_pb2.JOB_VIEW_FULL,
        ),
    )
    assert bundle.broker.one(commands.ListJobs) == commands.ListJobs(
        commands.JobFilter("q", [1, 6], "n", {"a": "b"}, 1, 2, 3, 4, "x"), 100, None, True, True
    )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"states": [1, 0]}, "filter.states[1]"),
        ({"states": [99]}, "filter.states[0]"),
        ({"queue": "!"}, "filter.queue"),
        ({"name": "a\n"}, "filter.name"),
        ({"labels": {"a": "v" * 129}}, "filter.labels.a"),
        ({"created_after_at_ms": -1}, "filter.created_after_at_ms"),
        ({"search": "x" * 256}, "filter.search"),
    ],
)
async def test_a_filter_that_is_wrong_names_its_field(fields: dict[str, object], path: str) -> None:
    request = job_service_pb2.ListJobsRequest(filter=job_service_pb2.JobFilter(**fields))  # type: ignore[arg-type]
    assert (await Bundle().refusal("JobService/ListJobs", request)).field == path


async def test_an_unknown_finish_reason_reads_as_any() -> None:
    bundle = Bundle()
    request = job_service_pb2.ListJobsRequest(filter=job_service_pb2.JobFilter(finish_reason=99))  # type: ignore[arg-type]
    await bundle.call("JobService/ListJobs", request)
    assert bundle.broker.one(commands.ListJobs).filter.finish_reason == 0


@rule("1.9")
async def test_a_cancel_is_handed_on_and_tells_what_came_of_it() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.CancelJob] = commands.CancelledJob(3, True)
    request = job_service_pb2.CancelJobRequest(job_id=JOB_ID, reason="no longer wanted", cascade=True)
    response = await bundle.call("JobService/CancelJob", request)
    assert (response.state, response.signalled) == (types_pb2.JOB_STATE_ACTIVE, True)
    assert bundle.broker.asked == [commands.CancelJob(commands.JobRef(7, START_MS), "no longer wanted", True)]


KEY = {"queue": "q", "name": "n", "idempotency_key": "k"}


@rule("2.2")
async def test_a_receipt_is_released_only_from_the_expected_job() -> None:
    bundle = Bundle()
    request = receipt_service_pb2.ReleaseReceiptRequest(**KEY, expected_job_id=JOB_ID)
    bundle.broker.answers[commands.ReleaseReceipt] = commands.FreedReceipt(True, commands.JobRef(7, START_MS))
    response = await bundle.call("ReceiptService/ReleaseReceipt", request)
    assert (response.released, response.job_id) == (True, "")
    bundle.broker.answers[commands.ReleaseReceipt] = commands.FreedReceipt(False, commands.JobRef(8, START_MS))
    response = await bundle.call("ReceiptService/ReleaseReceipt", request)
    assert (response.released, response.job_id) == (False, ids.encode(START_MS, 8))
    assert bundle.broker.asked[0] == commands.ReleaseReceipt("q", "n", "k", commands.JobRef(7, START_MS))


@rule("2.2")
async def test_a_receipt_is_deleted_whoever_has_it() -> None:
    bundle = Bundle()
    request = receipt_service_pb2.DeleteReceiptRequest(**KEY)
    assert not (await bundle.call("ReceiptService/DeleteReceipt", request)).deleted
    bundle.broker.answers[commands.DeleteReceipt] = commands.FreedReceipt(True, commands.JobRef(7, START_MS))
    assert (await bundle.call("ReceiptService/DeleteReceipt", request)).job_id == JOB_ID


@rule("2.2")
async def test_receipts_are_found_by_key_and_listed_by_prefix() -> None:
    bundle = Bundle()
    found = await bundle.call("ReceiptService/GetReceipt", receipt_service_pb2.GetReceiptRequest(**KEY))
    assert (found.receipt.job_id, found.receipt.digest) == (JOB_ID, "0102")
    request = receipt_service_pb2.ListReceiptsRequest(queue="q", name="n", key_prefix="up", page_size=5)
    await bundle.call("ReceiptService/ListReceipts", request)
    assert bundle.broker.one(commands.ListReceipts) == commands.ListReceipts("q", "n", "up", 5, None)


@pytest.mark.parametrize("missing", ["queue", "name", "idempotency_key"])
async def test_a_receipt_is_named_by_all_three_parts(missing: str) -> None:
    request = receipt_service_pb2.GetReceiptRequest(**{**KEY, missing: ""})
    assert (await Bundle().refusal("ReceiptService/GetReceipt", request)).field == missing
