"""What a worker shows of itself: probes, metrics, a blocked loop, keys on log lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from anvilmq import errors
from anvilmq._attempts import Attempt, Ending
from anvilmq._http import HttpServer
from anvilmq._logs import JobFields
from anvilmq._metrics import Metrics
from anvilmq._pools import Slots
from anvilmq._watchdog import Watchdog
from anvilmq.context import Job, enter
from tests.unit.sdk.scripted import delivery


async def ask(server: HttpServer, request: str) -> tuple[str, str]:
    host, _, port = server.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{request} HTTP/1.1\r\nHost: worker\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return head.partition("\r\n")[0].removeprefix("HTTP/1.1 "), body


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        ("GET /healthz", "200 OK", "ok\n"),
        ("GET /readyz?verbose", "503 Service Unavailable", "no session, or draining\n"),
        ("GET /metrics", "200 OK", "some 1\n"),
        ("HEAD /healthz", "200 OK", ""),
        ("GET /", "404 Not Found", "/healthz, /readyz, /metrics\n"),
        ("POST /healthz", "405 Method Not Allowed", "GET and HEAD only\n"),
    ],
)
async def test_the_probes_answer(request_line: str, status: str, body: str) -> None:
    server = HttpServer("127.0.0.1:0", ready=lambda: False, metrics=lambda: b"some 1\n")
    await server.start()
    try:
        assert await ask(server, request_line) == (status, body)
    finally:
        await server.stop()


async def test_a_ready_worker_is_ready() -> None:
    server = HttpServer("127.0.0.1:0", ready=lambda: True, metrics=bytes)
    await server.start()
    try:
        assert await ask(server, "GET /readyz") == ("200 OK", "ok\n")
    finally:
        await server.stop()


async def test_an_address_that_cannot_be_had_is_named() -> None:
    first = HttpServer("127.0.0.1:0", ready=lambda: True, metrics=bytes)
    await first.start()
    try:
        with pytest.raises(errors.SettingInvalid, match=first.address):
            await HttpServer(first.address, ready=lambda: True, metrics=bytes).start()
    finally:
        await first.stop()


@pytest.mark.parametrize("address", ["8081", "localhost", "localhost:http", "localhost:70000"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    with pytest.raises(errors.SettingInvalid):
        HttpServer(address, ready=lambda: True, metrics=bytes)


def an_attempt() -> Attempt:
    nothing = cast("Any", None)
    return Attempt(delivery("a"), nothing, Slots(1, ["images"], 1), nothing, "job-a", "a", 0.0)


def test_metrics_count_runs_by_queue_and_bucket() -> None:
    metrics = Metrics(loop_stalls=lambda: 1, reconnects=lambda: 2, leases_lost=lambda: 3, adds_pending=lambda: 4)
    for run_s in (0.0005, 0.002, 0.002, 7_200.0, None):
        metrics.ended(an_attempt(), Ending(None), run_s)
    text = metrics.text().decode()
    for line in (
        'anvilmq_worker_run_seconds_bucket{le="0.001",queue="images"} 1.0',
        'anvilmq_worker_run_seconds_bucket{le="0.0025",queue="images"} 3.0',
        'anvilmq_worker_run_seconds_bucket{le="3600.0",queue="images"} 3.0',
        'anvilmq_worker_run_seconds_count{queue="images"} 4.0',
        "anvilmq_worker_loop_stalls_total 1.0",
        "anvilmq_worker_reconnects_total 2.0",
        "anvilmq_worker_leases_lost_total 3.0",
        "anvilmq_worker_adds_pending 4.0",
    ):
        assert line in text.splitlines()


def test_a_silent_handler_loop_is_reported_once_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Callable[[], None]] = []
    watchdog = Watchdog(asked.append, lambda: "in sleep()")
    for second in range(12):
        watchdog.check(float(second))
    assert watchdog.stalls == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "in sleep()" in caplog.text
    asked.pop()()
    for second in range(12, 18):
        watchdog.check(float(second))
    assert watchdog.stalls == 2


def test_a_handler_loop_that_answers_is_not_reported() -> None:
    watchdog = Watchdog(lambda answer: answer(), str)
    for second in range(100):
        watchdog.check(float(second))
    assert watchdog.stalls == 0


async def test_lines_of_a_handler_carry_the_keys_of_its_job() -> None:
    def a_line() -> logging.LogRecord:
        record = logging.LogRecord("shop", logging.INFO, __file__, 1, "resizing", None, None)
        assert JobFields().filter(record)
        return record

    async def handler() -> logging.LogRecord:
        enter(Job(an_attempt()))
        return a_line()

    record = await asyncio.create_task(handler())
    found = {name: getattr(record, name) for name in ("job_id", "job_name", "queue", "attempt")}
    assert found == {"job_id": "job-a", "job_name": "resize", "queue": "images", "attempt": 1}
    assert not hasattr(a_line(), "job_id")
