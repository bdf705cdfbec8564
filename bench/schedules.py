"""Many recurring definitions of one broker: made, listed, and what their ticks came to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from anvilmq import _settings
from anvilmq._channel import Channel
from anvilmq.admin import Admin
from anvilmq_proto.v1 import job_service_pb2, scheduler_service_pb2, types_pb2

QUEUES: Final = 100
"""Over which the jobs of the definitions are spread; nobody works on them."""
_IN_FLIGHT: Final = 64


async def define(url: str, count: int, cron: str, payload: int) -> None:
    """Make so many definitions with that expression."""
    numbers = iter(range(count))
    data = b'"' + b"x" * max(0, payload - 2) + b'"'

    async def make_some(client: Admin) -> None:
        for n in numbers:
            job = types_pb2.JobSpec(queue=f"ticks-{n % QUEUES}", name="tick", data=data)
            spec = scheduler_service_pb2.SchedulerSpec(schedule=scheduler_service_pb2.Schedule(cron=cron), job=job)
            scheduler = scheduler_service_pb2.Scheduler(name=f"s{n}", spec=spec)
            await client.upsert_scheduler(scheduler_service_pb2.UpsertSchedulerRequest(scheduler=scheduler))

    async with _client(url) as client, asyncio.TaskGroup() as group:
        for _ in range(_IN_FLIGHT):
            group.create_task(make_some(client))


async def runs(url: str) -> list[tuple[str, int, int]]:
    """(definition, tick, when its job was made) of every run, in ms."""
    found: list[tuple[str, int, int]] = []
    request = job_service_pb2.ListJobsRequest(page_size=1_000)
    async with _client(url) as client:
        while True:
            page = await client.list_jobs(request)
            found += [(job.scheduler, job.tick_at_ms, job.created_at_ms) for job in page.jobs if job.scheduler]
            request.page_token = page.next_page_token
            if not request.page_token:
                return found


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[Admin]:
    channel = Channel(_settings.read(url=url))
    try:
        yield Admin(channel, timeout_s=60)
    finally:
        await channel.close()
