"""ListJobs of the libSQL store: one bounded walk that fills the page and counts the matches."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from anvilmq_broker.domain import commands, view
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql import records, rows
from anvilmq_broker.store.libsql.sql import Sql

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.store import LibsqlStore

PAGE_BYTES: Final = 4 << 20
"""Payloads and results of a full page; one larger job goes alone."""
_ROWS: Final = 500
_LAST: Final = (1 << 53) - 1


class Candidate(msgspec.Struct, gc=False):
    """As much of a job as filters look at; see view.Listed."""

    number: int
    created_ms: int
    queue: str
    name: str
    state: State
    run_at_ms: int
    finished_at_ms: int
    finish_reason: int
    key: str
    labels: dict[str, str] | None
    scheduler: str = ""

    @property
    def terminal(self) -> bool:
        """Whether the job has ended."""
        return self.state >= State.COMPLETED


def list_jobs(store: LibsqlStore, sql: Sql, query: commands.ListJobs, now_ms: int) -> commands.JobPage:
    """Answer ListJobs. The first page counts too, so its walk goes on to the bound, unless the kept counts know."""
    first = query.after is None
    known = _known_total(store, query.filter) if first else 0
    found: list[commands.JobRecord] = []
    total, size, last = 0, 0, query.after
    more = capped = False
    for looked, job in enumerate(_walk(store, sql, query)):
        if looked == view.MOST_LOOKED_AT:
            more = capped = True
            break
        full = len(found) == query.limit or size >= PAGE_BYTES
        if full:
            more = True
            if known is not None:
                break
        else:
            last = job.number
        if view.matches(query.filter, job, job.labels, now_ms):
            total += 1
            if not full:
                found.append(_shown(store, sql, query, job))
                size += len(found[-1].data) + len(found[-1].result)
    if not first:
        total, capped = 0, False
    elif known is not None:
        total, capped = min(known, view.MOST_LOOKED_AT), known > view.MOST_LOOKED_AT
    return commands.JobPage(found, last if more else None, total, capped)


def _shown(store: LibsqlStore, sql: Sql, query: commands.ListJobs, job: Candidate) -> commands.JobRecord:
    found = records.find_job(store, sql, commands.JobRef(job.number, job.created_ms))
    assert found is not None
    if query.full:
        return view.full_record(found, records.body_of(sql, found), records.attempts_of(sql, found))
    return view.record(found, view.Body(labels=job.labels))


def _known_total(store: LibsqlStore, wanted: commands.JobFilter) -> int | None:
    """Matches by the kept counts; None when a filter asks for more than queue and state."""
    by_state = commands.JobFilter(queue=wanted.queue, states=wanted.states)
    # A delayed job whose time has come is reported as waiting [9.22]: one of the two cannot be told from counts.
    if wanted != by_state or (State.WAITING in wanted.states) != (State.DELAYED in wanted.states):
        return None
    return sum(
        jobs
        for (queue, state), jobs in store.counts().items()
        if wanted.queue in ("", queue) and (not wanted.states or state in wanted.states)
    )


def _walk(store: LibsqlStore, sql: Sql, query: commands.ListJobs) -> Iterator[Candidate]:
    """Candidates in the order of the page: one queue by its states' index, else every job by number."""
    wanted = query.filter
    if not wanted.queue:
        yield from _pages(store, sql, "oldest_jobs" if query.oldest_first else "newest_jobs", (), query)
        return
    queue = store.queues.get(wanted.queue)
    if queue is None:
        return
    name = "oldest_jobs_in_state" if query.oldest_first else "newest_jobs_in_state"
    walks = [_pages(store, sql, name, (queue.id, state), query) for state in _stored_states(wanted.states)]
    yield from heapq.merge(*walks, key=_number, reverse=not query.oldest_first)


def _number(job: Candidate) -> int:
    return job.number


def _stored_states(reported: list[int]) -> list[int]:
    if not reported:
        return [int(state) for state in State]
    # A delayed job whose time has come is reported as waiting [9.22].
    return sorted({*reported, *([int(State.DELAYED)] if State.WAITING in reported else [])})


def _pages(
    store: LibsqlStore, sql: Sql, name: str, place: tuple[int, ...], query: commands.ListJobs
) -> Iterator[Candidate]:
    after = query.after if query.after is not None else 0 if query.oldest_first else _LAST
    # The first piece is as large as a page without filters needs.
    page = min(query.limit + 1, _ROWS)
    while found := sql.run(name, *place, after, page):
        for number, created, queue_id, of, state, run_at, finished, reason, key, labels, scheduler in found:
            yield Candidate(
                number, created, store.queue_names[queue_id], of, _STATES[state], run_at, finished or 0, reason or 0,
                key or "", rows.texts(labels), scheduler or "",
            )  # fmt: skip
        if len(found) < page:
            return
        after, page = found[-1][0], _ROWS


_STATES: Final = (State.WAITING, *State)
"""By number; 0 is none."""
