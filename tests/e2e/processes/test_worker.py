"""The last minute of a worker process, and the ones before: signals, a stopped process, a gateway that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from anvilmq import Anvil, Handle
from anvilmq.admin import Admin
from anvilmq_proto.v1 import job_service_pb2 as job_pb
from anvilmq_proto.v1 import types_pb2 as types_pb
from tests.support.broker_process import BrokerProcess
from tests.support.rules import rule

WITHIN_S = 30.0

SHOP = """
import asyncio
import time

from anvilmq import Anvil, Job

app = Anvil()


def say(*words: object) -> None:
    print(*words, flush=True)


@app.job(queue="QUEUE")
async def hold(job: Job, seconds: float) -> str:
    say("started", job.id)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        say("interrupted", job.cause)
        raise
    return "held"


@app.job(queue="QUEUE")
async def block(job: Job, seconds: float) -> None:
    say("started", job.id)
    time.sleep(seconds)
"""


class WorkerProcess:
    """`anvilmq worker run` on a queue, in a process whose lines the test reads."""

    def __init__(self, broker: BrokerProcess, folder: Path, queue: str, grace: str = "20s") -> None:
        folder.mkdir(exist_ok=True)
        (folder / "shop.py").write_text(SHOP.replace("QUEUE", queue))
        self.errors = folder / "worker.err"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "anvilmq.cli",
                    "worker",
                    "run",
                    "shop:app",
                    "--grace",
                    grace,
                    "--concurrency",
                    "1",
                ],
                cwd=folder,
                env=inherited | {"ANVILMQ_URL": broker.url},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    async def line(self) -> list[str]:
        """The words of the next line that a handler prints."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            line = await asyncio.to_thread(self.process.stdout.readline)
        assert line, f"the worker has ended:\n{self.errors.read_text()}"
        return line.decode().split()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.process.wait, WITHIN_S)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One for all: each test has a queue of its own."""
    folder = tmp_path_factory.mktemp("broker")
    with BrokerProcess(folder, settings={"ANVILMQ_STORE": "memory"}) as started:
        yield started


async def stored(app: Anvil, handle: Handle[Any]) -> types_pb.Job:
    """The job as the broker has it."""
    reply = app.client.io.run(lambda: _stored(app, handle.id))
    return await reply


async def _stored(app: Anvil, job_id: str) -> types_pb.Job:
    answer = await Admin(app.client.transport()).get_job(job_pb.GetJobRequest(job_id=job_id))
    return answer.job


@rule("1.7")
async def test_at_sigterm_the_running_job_ends_and_the_process_with_exit_code_0(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    async with Anvil(broker.url) as app:
        with WorkerProcess(broker, tmp_path, "term") as worker:
            handle = await app.ref("term", "hold", float, str).add(2.0)
            await worker.line()
            worker.signal(signal.SIGTERM)
            late = await app.ref("term", "hold", float, str).add(0.0)
            assert await worker.exit_code() == 0
        assert await handle.result() == "held"
        assert await late.state() == "waiting"


@rule("1.7")
async def test_at_the_end_of_the_grace_the_handler_is_cancelled_and_its_job_handed_back(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    async with Anvil(broker.url) as app:
        with WorkerProcess(broker, tmp_path, "grace", grace="6s") as worker:
            handle = await app.ref("grace", "hold", float, str).add(600.0)
            await worker.line()
            worker.signal(signal.SIGTERM)
            assert await worker.line() == ["interrupted", "shutdown"]
            assert await worker.exit_code() == 0
        job = await stored(app, handle)
        assert (job.state, job.attempt, job.stalled_count) == (types_pb.JOB_STATE_WAITING, 0, 0)


@rule("1.7")
async def test_the_second_sigterm_hands_back_at_once_also_what_blocks_its_loop(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    async with Anvil(broker.url) as app:
        with WorkerProcess(broker, tmp_path, "twice") as worker:
            handle = await app.ref("twice", "block", float).add(600.0)
            await worker.line()
            worker.signal(signal.SIGTERM)
            worker.signal(signal.SIGINT)
            assert await worker.exit_code() == 0
        job = await stored(app, handle)
        assert (job.state, job.stalled_count) == (types_pb.JOB_STATE_WAITING, 0)


@rule("1.4")
async def test_a_stopped_worker_that_wakes_after_its_lease_changes_nothing(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    async with Anvil(broker.url) as app:
        with WorkerProcess(broker, tmp_path / "a", "stopped") as first:
            handle = await app.ref("stopped", "hold", float, str).add(3.0, lease="1s")
            await first.line()
            first.signal(signal.SIGSTOP)
            with WorkerProcess(broker, tmp_path / "b", "stopped") as second:
                assert await second.line() == ["started", handle.id]
                first.signal(signal.SIGCONT)
                assert await first.line() == ["interrupted", "lease_lost"]
                assert await handle.result(timeout="30s") == "held"
        job = await stored(app, handle)
        assert (job.attempt, job.starts, job.stalled_count) == (1, 2, 1)


@rule("1.4")
async def test_a_job_outlives_the_gateway_it_came_through(broker: BrokerProcess, tmp_path: Path) -> None:
    async with Anvil(broker.url) as app:
        with WorkerProcess(broker, tmp_path, "gateway") as worker:
            handle = await app.ref("gateway", "hold", float, str).add(4.0)
            await worker.line()
            await asyncio.to_thread(broker.kill, "gateway")
            assert await handle.result(timeout="30s") == "held"
        job = await stored(app, handle)
        assert (job.attempt, job.starts, job.stalled_count) == (1, 1, 0)
