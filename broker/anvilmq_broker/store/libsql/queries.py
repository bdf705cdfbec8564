"""Queries of the libSQL store: committed rows, keyset pages, every walk bounded."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from anvilmq_broker.domain import commands, job, refusals, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.libsql.sql import Sql

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.store import LibsqlStore

_PAGE = 200
_EVERY_TEXT_IS_BELOW = "\U0010ffff"


def answer(store: LibsqlStore, sql: Sql, query: commands.Query, now_ms: int) -> commands.Answer:
    """Answer one query. Raises TypeError for those that only the engine can answer."""
    match query:
        case commands.GetJob():
            return _get_job(store, sql, query, now_ms)
        case commands.ListJobs():
            return _list_jobs(store, sql, query, now_ms)
        case commands.ListJobLogs():
            return _list_logs(store, sql, query)
        case commands.GetReceipt():
            return _get_receipt(store, sql, query, now_ms)
        case commands.ListReceipts():
            return _list_receipts(store, sql, query, now_ms)
        case _:
            raise TypeError(f"{type(query).__name__} is not the store's to answer")


def find_job(store: LibsqlStore, sql: Sql, ref: commands.JobRef) -> job.Job | None:
    """The committed job, None when it is not there."""
    found = sql.run("get_job", ref.number, ref.created_ms)
    return rows.to_job(found[0], store.queue_names[found[0][2]]) if found else None


def _get_job(store: LibsqlStore, sql: Sql, query: commands.GetJob, now_ms: int) -> commands.JobFound | Refused:
    found = find_job(store, sql, query.ref)
    if found is None:
        return refusals.job_not_found(query.ref)
    attempts = _attempts(sql, found) if query.full or query.wait else []
    wait = _wait(store, sql, found, attempts, now_ms) if query.wait else None
    if query.full:
        return commands.JobFound(view.full_record(found, body_of(sql, found), attempts, wait))
    record = view.record(found, view.Body(labels=_labels(sql, found)))
    return commands.JobFound(msgspec.structs.replace(record, wait=wait) if wait else record)


def _wait(
    store: LibsqlStore, sql: Sql, found: job.Job, attempts: list[commands.AttemptRecord], now_ms: int
) -> commands.Wait | None:
    ahead = 0
    if found.ready_at_ms is not None and found.ready_seq is not None:
        queue = store.queues[found.queue].id
        ahead = sql.run("jobs_ahead", queue, found.priority, found.ready_at_ms, found.ready_seq, now_ms)[0][0]
    return view.wait(found, attempts, ahead, now_ms)


def body_of(sql: Sql, found: job.Job) -> view.Body:
    """What the job carries."""
    row = sql.run("get_body", found.number)[0]
    content_type, headers, labels, progress, data, result_type, result = row
    return view.Body(
        data, content_type or "", rows.texts(headers), rows.texts(labels), result or b"", result_type or "", progress or ""
    )  # fmt: skip


def _labels(sql: Sql, found: job.Job) -> dict[str, str] | None:
    return rows.texts(sql.run("get_labels", found.number)[0][0])


def _attempts(sql: Sql, found: job.Job) -> list[commands.AttemptRecord]:
    return [rows.to_attempt(row) for row in sql.run("list_attempts", found.number)]


def _list_logs(store: LibsqlStore, sql: Sql, query: commands.ListJobLogs) -> commands.LogPage | Refused:
    found = find_job(store, sql, query.ref)
    if found is None:
        return refusals.job_not_found(query.ref)
    lines = sql.run("list_log_lines", found.number, query.after, query.limit + 1)
    page = lines[: query.limit]
    return commands.LogPage(
        [commands.LogLine(at_ms, level, text, attempt) for _, at_ms, level, attempt, text in page],
        page[-1][0] if len(lines) > query.limit else None,
    )


# ------------------------------------------------------------------------------------------------- receipts


def _get_receipt(
    store: LibsqlStore, sql: Sql, query: commands.GetReceipt, now_ms: int
) -> commands.ReceiptFound | Refused:
    queue = store.queues.get(query.queue)
    found = sql.run("get_receipt", queue.id, query.name, query.key) if queue else []
    if not found or (found[0][5] and found[0][5] <= now_ms):
        return refusals.receipt_not_found(query.queue, query.name, query.key)
    return commands.ReceiptFound(_receipt(store, sql, query.queue, (query.name, query.key, *found[0])))


def _list_receipts(store: LibsqlStore, sql: Sql, query: commands.ListReceipts, now_ms: int) -> commands.ReceiptPage:
    queue = store.queues.get(query.queue)
    if queue is None:
        return commands.ReceiptPage([], None)
    page: list[commands.ReceiptRecord] = []
    after = query.after or (query.name, "")
    looked = 0
    while looked < view.MOST_LOOKED_AT:
        found = _receipt_rows(sql, queue.id, query, after, now_ms)
        for row in found:
            looked, after = looked + 1, (row[0], row[1])
            if row[1].startswith(query.key_prefix):
                page.append(_receipt(store, sql, query.queue, row))
                if len(page) == query.limit:
                    return commands.ReceiptPage(page, after)
        if len(found) < _PAGE:
            return commands.ReceiptPage(page, None)
    return commands.ReceiptPage(page, after)


def _receipt_rows(
    sql: Sql, queue_id: int, query: commands.ListReceipts, after: tuple[str, str], now_ms: int
) -> list[Row]:
    if not query.name:
        return sql.run("list_receipts", queue_id, *after, now_ms, _PAGE)
    below = query.key_prefix + _EVERY_TEXT_IS_BELOW
    return sql.run("list_receipts_of_name", queue_id, query.name, after[1], query.key_prefix, below, now_ms, _PAGE)


def _receipt(store: LibsqlStore, sql: Sql, queue: str, row: Row) -> commands.ReceiptRecord:
    name, key, singleton, number, created, digest, made, expires = row
    ref = commands.JobRef(number, created)
    holder = find_job(store, sql, ref)
    return commands.ReceiptRecord(
        queue, name, key, bool(singleton), ref, int(holder.state) if holder else 0, digest, made, expires or 0
    )


# ----------------------------------------------------------------------------------------------------- list


def _list_jobs(store: LibsqlStore, sql: Sql, query: commands.ListJobs, now_ms: int) -> commands.JobPage:
    found: list[commands.JobRecord] = []
    last, looked, more = query.after, 0, False
    for ref in _walk(store, sql, query):
        if looked == view.MOST_LOOKED_AT or len(found) == query.limit:
            more = True
            break
        looked, last = looked + 1, ref.number
        if (record := _match(store, sql, query, ref, now_ms)) is not None:
            found.append(record)
    total, capped = _total(store, sql, query, now_ms) if query.after is None else (0, False)
    return commands.JobPage(found, last if more else None, total, capped)


def _match(
    store: LibsqlStore, sql: Sql, query: commands.ListJobs, ref: commands.JobRef, now_ms: int
) -> commands.JobRecord | None:
    found = find_job(store, sql, ref)
    if found is None:
        return None
    labels = _labels(sql, found)
    if not view.matches(query.filter, found, labels, now_ms):
        return None
    if query.full:
        return view.full_record(found, body_of(sql, found), _attempts(sql, found))
    return view.record(found, view.Body(labels=labels))


def _total(store: LibsqlStore, sql: Sql, query: commands.ListJobs, now_ms: int) -> tuple[int, bool]:
    total = 0
    for looked, ref in enumerate(_walk(store, sql, query)):
        if looked == view.MOST_LOOKED_AT:
            return total, True
        found = find_job(store, sql, ref)
        if found is not None:
            labels = _labels(sql, found) if query.filter.labels else None
            total += view.matches(query.filter, found, labels, now_ms)
    return total, False


def _walk(store: LibsqlStore, sql: Sql, query: commands.ListJobs) -> Iterator[commands.JobRef]:
    """Candidates in the order of the page: one queue by its states' index, else every job by number."""
    wanted = query.filter
    if not wanted.queue:
        yield from _pages(sql, "oldest_jobs" if query.oldest_first else "newest_jobs", (), query)
        return
    queue = store.queues.get(wanted.queue)
    if queue is None:
        return
    name = "oldest_jobs_in_state" if query.oldest_first else "newest_jobs_in_state"
    walks = [_pages(sql, name, (queue.id, state), query) for state in _stored_states(wanted.states)]
    yield from heapq.merge(*walks, key=lambda ref: ref.number, reverse=not query.oldest_first)


def _stored_states(reported: list[int]) -> list[int]:
    if not reported:
        return [int(state) for state in State]
    # A delayed job whose time has come is reported as waiting [9.22].
    return sorted({*reported, *([int(State.DELAYED)] if State.WAITING in reported else [])})


def _pages(sql: Sql, name: str, place: tuple[int, ...], query: commands.ListJobs) -> Iterator[commands.JobRef]:
    start = 0 if query.oldest_first else (1 << 53) - 1
    after = query.after if query.after is not None else start
    while found := sql.run(name, *place, after, _PAGE):
        for number, created in found:
            yield commands.JobRef(number, created)
        after = found[-1][0]
