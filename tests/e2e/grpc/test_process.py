"""The gateway's process without its engine: it serves what it can, says that it is not ready, and leaves when told."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import grpc
import pytest

from anvilmq_broker.clock import SystemClock
from anvilmq_broker.engine.reporting import Handler
from anvilmq_broker.gateway.auth import TokensInvalid
from anvilmq_broker.gateway.context import Identity
from anvilmq_broker.gateway.main import Config, Process
from anvilmq_broker.gateway.server import Binding
from anvilmq_proto.v1 import job_service_pb2, types_pb2
from tests.e2e.grpc.serving import call, reason_of
from tests.support.broker_process import free_ports


class RecordingReporter:
    """The line to a supervisor that listens and never speaks."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self.said: list[object] = []
        self.handler: Handler | None = None

    @property
    def unsent(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._ours.fileno()

    def serve(self, handler: Handler) -> None:
        self.handler = handler

    def readable(self) -> None:
        assert self.handler is not None
        self.handler.stop(0)

    def flush(self) -> None:
        pass

    def ready(self, *, serving: bool = True, facts: dict[str, str] | None = None) -> None:
        self.said.append(serving)

    def stopping(self) -> None:
        self.said.append("stopping")

    def lose_supervisor(self) -> None:
        self._theirs.close()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


def config(folder: Path, port: int = 0, tokens_file: Path | None = None) -> Config:
    return Config(0, folder / "no-engine", Binding("127.0.0.1", port), Identity("1"), tokens_file=tokens_file)


async def test_without_an_engine_calls_are_not_ready_and_the_process_leaves_in_good_order(tmp_path: Path) -> None:
    reporter, port = RecordingReporter(), free_ports(1)[0]
    process = Process(config(tmp_path, port), reporter, SystemClock())
    running = asyncio.ensure_future(process.run())
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        request = job_service_pb2.AddJobRequest(job=types_pb2.JobSpec(queue="q", name="n"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, "JobService/AddJob", request, wait_for_ready=True)
        assert reason_of(caught.value) == "NOT_READY"
    assert any(family.name == "anvilmq_rpc_requests_total" for family in process.snapshot())
    process.stop(1_000)
    assert await running == 0
    assert reporter.said == ["stopping"]
    reporter.close()


async def test_a_process_whose_supervisor_is_gone_leaves(tmp_path: Path) -> None:
    reporter = RecordingReporter()
    running = asyncio.ensure_future(Process(config(tmp_path), reporter, SystemClock()).run())
    reporter.lose_supervisor()
    assert await running == 0
    reporter.close()


def test_a_process_does_not_start_with_a_tokens_file_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text("- {name: a}")
    reporter = RecordingReporter()
    with pytest.raises(TokensInvalid):
        Process(config(tmp_path, tokens_file=path), reporter, SystemClock())
    reporter.close()
