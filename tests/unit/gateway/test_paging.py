"""Page tokens: opaque, signed, bound to their list and filter."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.gateway.paging import Pages
from anvilmq_broker.gateway.refusals import Rejected
from anvilmq_proto.v1 import job_service_pb2, receipt_service_pb2
from tests.unit.gateway.bundle import JOB_ID, Bundle, receipt, record

KEY = b"k" * 32


def jobs(**fields: Any) -> job_service_pb2.ListJobsRequest:
    return job_service_pb2.ListJobsRequest(**fields)


def in_queue(queue: str) -> job_service_pb2.JobFilter:
    return job_service_pb2.JobFilter(queue=queue)


def test_a_token_brings_its_position_back_whatever_the_page_size() -> None:
    pages = Pages(KEY)
    token = pages.token(jobs(filter=in_queue("q"), page_size=10), 4_711)
    assert pages.position(jobs(filter=in_queue("q"), page_size=50, page_token=token), int) == 4_711
    assert Pages(KEY).position(jobs(filter=in_queue("q"), page_token=token), int) == 4_711


def test_there_is_no_token_at_the_end_and_none_for_the_first_page() -> None:
    assert Pages(KEY).token(jobs(), None) == ""
    assert Pages(KEY).position(jobs(), int) is None


def test_a_token_of_another_filter_list_broker_or_hand_is_refused() -> None:
    pages = Pages(KEY)
    token = pages.token(jobs(filter=in_queue("q")), 1)
    forged = base64.urlsafe_b64encode(base64.urlsafe_b64decode(token)[:-1] + b"\x02").decode()
    others = [
        (pages, jobs(filter=in_queue("r"), page_token=token)),
        (pages, jobs(filter=in_queue("q"), oldest_first=True, page_token=token)),
        (pages, receipt_service_pb2.ListReceiptsRequest(page_token=token)),
        (Pages(b"x" * 32), jobs(filter=in_queue("q"), page_token=token)),
        *(
            (pages, jobs(filter=in_queue("q"), page_token=bad))
            for bad in (forged, "x", "ä", "====", "A" * 3_000, token[:-4])
        ),
    ]
    for reader, request in others:
        with pytest.raises(Rejected) as caught:
            reader.position(request, int)
        assert caught.value.refused.reason == "PAGE_TOKEN_INVALID"


async def test_lists_go_on_where_the_page_ended() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.ListJobs] = commands.JobPage([record()], 7, 12, True)
    page = await bundle.call("JobService/ListJobs", jobs(filter=in_queue("q")))
    assert (page.jobs[0].job_id, page.total, page.total_is_capped) == (JOB_ID, 12, True)
    await bundle.call("JobService/ListJobs", jobs(filter=in_queue("q"), page_token=page.next_page_token))
    assert [query.after for query in bundle.broker.of(commands.ListJobs)] == [None, 7]

    bundle.broker.answers[commands.ListReceipts] = commands.ReceiptPage([receipt()], ("n", "k"))
    request = receipt_service_pb2.ListReceiptsRequest(queue="q")
    request.page_token = (await bundle.call("ReceiptService/ListReceipts", request)).next_page_token
    await bundle.call("ReceiptService/ListReceipts", request)
    assert bundle.broker.of(commands.ListReceipts)[1].after == ("n", "k")

    bundle.broker.answers[commands.ListJobLogs] = commands.LogPage([commands.LogLine(1, "info", "x", 2)], 9)
    logs = job_service_pb2.ListJobLogsRequest(job_id=JOB_ID)
    page = await bundle.call("JobService/ListJobLogs", logs)
    assert (page.lines[0].line, page.lines[0].attempt) == ("x", 2)
    logs.page_token = page.next_page_token
    await bundle.call("JobService/ListJobLogs", logs)
    assert bundle.broker.of(commands.ListJobLogs)[1].after == 9
