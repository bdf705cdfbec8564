"""kill -9 of the broker's processes while definitions tick: each tick has one job, none is lost, none comes twice."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from anvilmq import Anvil, Job
from anvilmq.admin import Admin
from anvilmq_proto.v1 import job_service_pb2 as job_pb
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2
from tests.e2e.processes.load import admin
from tests.support.broker_process import BrokerProcess
from tests.support.rules import rule

EVERY_MS: Final = 100
NAMES: Final = tuple(f"tick-{n}" for n in range(5))
QUEUE: Final = "ticks"
RUN_S: Final = 10.0
SEED: Final = 6_202
KILLS: Final = (("engine",), ("gateway",), ("engine", "gateway"), (), ("engine",))
"""(): the whole broker, at once, as a node that loses power."""


@pytest.mark.timeout(240)
@rule("6.2")
@rule("6.5")
async def test_five_kills_among_ticks_leave_one_job_for_each(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        async with admin(broker.url) as client:
            for name in NAMES:
                await client.upsert_scheduler(
                    pb.UpsertSchedulerRequest(scheduler=pb.Scheduler(name=name, spec=_spec()))
                )
        ran: Counter[str] = Counter()
        app = Anvil(broker.url)

        @app.job(queue=QUEUE, name="tick", max_attempts=5)
        async def tick(job: Job, args: None = None) -> None:
            ran[job.id] += 1

        async with app, app.worker(queues=[QUEUE], concurrency=16):
            await _kill_among_ticks(broker, random.Random(SEED))
            async with admin(broker.url) as client:
                found = [await _stop(client, name) for name in NAMES]
                jobs = await _drained(client)
    for scheduler in found:
        ticks = [job.tick_at_ms for job in jobs if job.scheduler == scheduler.name]
        assert ticks == list(range(ticks[0], scheduler.last_tick_at_ms + EVERY_MS, EVERY_MS))
        assert len(ticks) == scheduler.run_count > 10 * RUN_S / 2
        assert (scheduler.missed_count, scheduler.skipped_count, scheduler.problem_reason) == (0, 0, "")
    print(f"seed {SEED}: {len(jobs)} ticks, {sum(ran.values())} attempts")
    assert {job.state for job in jobs} == {types_pb2.JOB_STATE_COMPLETED}
    assert ran.keys() == {job.job_id for job in jobs}


async def _kill_among_ticks(broker: BrokerProcess, chance: random.Random) -> None:
    ends = time.monotonic() + RUN_S
    for parts in KILLS:
        await asyncio.sleep(RUN_S / len(KILLS) + chance.uniform(-0.5, 0.5))
        await asyncio.to_thread(_kill, broker, parts)
    await asyncio.sleep(max(1.0, ends - time.monotonic()))


def _spec() -> pb.SchedulerSpec:
    return pb.SchedulerSpec(
        schedule=pb.Schedule(every_ms=EVERY_MS),
        job=types_pb2.JobSpec(queue=QUEUE, name="tick", data=b"null"),
        catch_up=pb.CATCH_UP_POLICY_ALL,
        max_catch_up_runs=1_000,
    )


def _kill(broker: BrokerProcess, parts: tuple[str, ...]) -> None:
    if not parts:
        broker.kill_all()
        broker.start()
        return
    for part in parts:
        broker.kill(part)
    broker.wait_gone_and_back(parts)


async def _stop(client: Admin, name: str) -> pb.Scheduler:
    """Suspend it; what it is then."""
    answer = await client.set_scheduler_suspended(pb.SetSchedulerSuspendedRequest(name=name, suspended=True))
    return answer.scheduler


async def _drained(client: Admin) -> list[types_pb2.Job]:
    """Every job, by tick, when the worker has ended them all."""
    deadline = time.monotonic() + 60
    while True:
        jobs = [job for name in NAMES for job in await _runs(client, name)]
        if all(job.state >= types_pb2.JOB_STATE_COMPLETED for job in jobs):
            return sorted(jobs, key=lambda job: job.tick_at_ms)
        assert time.monotonic() < deadline, "the worker does not get on"
        await asyncio.sleep(0.2)


async def _runs(client: Admin, name: str) -> list[types_pb2.Job]:
    jobs: list[types_pb2.Job] = []
    request = job_pb.ListJobsRequest(filter=job_pb.JobFilter(scheduler=name), page_size=1_000)
    while True:
        page = await client.list_jobs(request)
        jobs += page.jobs
        request.page_token = page.next_page_token
        if not request.page_token:
            return jobs
