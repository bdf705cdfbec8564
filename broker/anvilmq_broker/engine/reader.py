"""Answers queries: from the store's committed state, with what only the engine's memory knows filled in."""

from __future__ import annotations

from typing import Final

import msgspec

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import TERMINAL, State, WaitReason
from anvilmq_broker.engine.leases import Leases
from anvilmq_broker.engine.sessions import Sessions
from anvilmq_broker.store import protocol

MAX_PAGE_BYTES: Final = 4 << 20
_ROW_BYTES: Final = 512


class Reader:
    """The reading side of the engine; used between batches alone. durability: 1 full, 2 relaxed."""

    def __init__(self, store: protocol.Store, leases: Leases, sessions: Sessions, durability: int) -> None:
        self._store = store
        self._leases = leases
        self._sessions = sessions
        self._durability = durability

    def answer(self, query: commands.Query, now_ms: int) -> commands.Answer:
        """The answer as of now; to a WaitJob what GetJob would say."""
        match query:
            case commands.ListWorkers():
                return self._sessions.list_workers(query)
            case commands.GetInfo():
                return commands.Info(now_ms, self._store.schema_version, self._durability)
            case commands.WaitJob():
                return self._found(self._store.query(commands.GetJob(query.ref, query.full), now_ms))
            case commands.GetJob():
                return self._found(self._store.query(query, now_ms))
            case commands.ListJobs():
                return self._page(self._store.query(query, now_ms))
            case _:
                return self._store.query(query, now_ms)

    def must_wait(self, query: commands.WaitJob, answer: commands.Answer) -> bool:
        """Whether the job has not ended yet and the caller is willing to wait."""
        return isinstance(answer, commands.JobFound) and answer.job.state not in TERMINAL and query.wait_ms > 0

    def _found(self, answer: commands.Answer) -> commands.Answer:
        if not isinstance(answer, commands.JobFound):
            return answer
        job = answer.job
        if job.state == State.ACTIVE:
            return commands.JobFound(self._with_lease(job, self._expiries()))
        wait = job.wait
        if wait is not None and wait.reason == WaitReason.NEXT and not self._sessions.is_served(job.queue):
            wait = msgspec.structs.replace(wait, reason=int(WaitReason.NO_WORKER))
            return commands.JobFound(msgspec.structs.replace(job, wait=wait))
        return answer

    def _page(self, answer: commands.Answer) -> commands.Answer:
        if not isinstance(answer, commands.JobPage):
            return answer
        jobs, after = _cut(answer.jobs, answer.next)
        if any(job.state == State.ACTIVE for job in jobs):
            expiries = self._expiries()
            jobs = [self._with_lease(job, expiries) if job.state == State.ACTIVE else job for job in jobs]
        return msgspec.structs.replace(answer, jobs=jobs, next=after)

    def _expiries(self) -> dict[int, int]:
        return self._leases.expire_at_ms()

    def _with_lease(self, job: commands.JobRecord, expiries: dict[int, int]) -> commands.JobRecord:
        return msgspec.structs.replace(job, lease_expires_at_ms=expiries.get(job.number, 0))


def _cut(jobs: list[commands.JobRecord], next: int | None) -> tuple[list[commands.JobRecord], int | None]:
    """At most 4 MiB of a page; a page may be short, its `next` then names the last one kept (api section 6)."""
    size = 0
    for place, job in enumerate(jobs):
        size += len(job.data) + len(job.result) + len(job.progress_json) + _ROW_BYTES
        if size > MAX_PAGE_BYTES and place:
            return jobs[:place], jobs[place - 1].number
    return jobs, next
