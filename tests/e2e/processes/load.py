"""A load for the process tests: producers and workers on the public SDK, recording what they see."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from anvilmq import Anvil, Job, _settings, errors
from anvilmq._channel import Channel
from anvilmq.admin import Admin
from anvilmq_proto.v1 import job_service_pb2 as job_pb
from anvilmq_proto.v1 import types_pb2 as types_pb
from tests.support.history import Add, Final, History, Start

PRODUCERS = 4
SLOTS = 16


class Load:
    """Producers that each wait for one add at a time, and one worker; `history` grows meanwhile."""

    def __init__(self, url: str, queue: str = "load") -> None:
        self.history = History()
        self.app = Anvil(url)
        self._url = url
        self._queue = queue
        self._stop = False
        self._numbers: Iterator[int] = itertools.count(1)
        self._answered = asyncio.Semaphore(0)
        history = self.history

        @self.app.job(queue=queue, name="note", max_attempts=3)
        async def note(job: Job, args: str) -> None:
            history.starts.append(Start(args, job.id, job.starts, job.attempt, time.monotonic()))

        self.note = note

    async def produce(self, per_producer: int) -> None:
        """Add that many jobs in each producer, one after the other, however often the broker dies meanwhile."""
        async with asyncio.TaskGroup() as group:
            for _ in range(PRODUCERS):
                group.create_task(self._producer(per_producer))

    async def _producer(self, jobs: int) -> None:
        for _ in range(jobs):
            if self._stop:
                return
            await self._add(f"job-{next(self._numbers)}")

    async def _add(self, payload: str) -> None:
        try:
            handle = await self.note.add(payload)
        except errors.Unavailable:
            self.history.adds.append(Add(payload, None))
        else:
            self.history.adds.append(Add(payload, handle.id))
            self._answered.release()

    async def acknowledged(self, adds: int) -> None:
        """Return when that many more adds have been answered than were when it was called."""
        self._answered = asyncio.Semaphore(0)
        for _ in range(adds):
            await self._answered.acquire()

    def stop_producing(self) -> None:
        """Let each producer finish its open add."""
        self._stop = True

    async def drained(self, within_s: float = 60) -> None:
        """Return when every job of the queue has ended; read the final list into the history."""
        deadline = time.monotonic() + within_s
        while True:
            finals = await self._list()
            if all(final.state in ("completed", "failed", "cancelled") for final in finals):
                self.history.finals = finals
                return
            assert time.monotonic() < deadline, f"still open: {[f for f in finals if f.state != 'completed'][:5]}"
            await asyncio.sleep(0.05)

    async def _list(self) -> list[Final]:
        async with admin(self._url) as client:
            return [final async for final in _jobs_of(client, self._queue)]


@asynccontextmanager
async def admin(url: str, token: str | None = None) -> AsyncIterator[Admin]:
    """The calls of the broker at `url` on this loop."""
    channel = Channel(_settings.read(url=url, token=token))
    try:
        yield Admin(channel)
    finally:
        await channel.close()


async def _jobs_of(client: Admin, queue: str) -> AsyncIterator[Final]:
    request = job_pb.ListJobsRequest(filter=job_pb.JobFilter(queue=queue), view=types_pb.JOB_VIEW_FULL, page_size=1000)
    while True:
        page = await client.list_jobs(request)
        for job in page.jobs:
            state = types_pb.JobState.Name(job.state).removeprefix("JOB_STATE_").lower()
            yield Final(job.job_id, state, job.attempt, job.policy.max_attempts)
        request.page_token = page.next_page_token
        if not request.page_token:
            return
