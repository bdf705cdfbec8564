"""Queries of the libSQL store: committed rows, keyset pages, every walk bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anvilmq_broker.domain import commands, job, refusals, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.store.libsql import claims, listing, records, scheduler_queries
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
            return listing.list_jobs(store, sql, query, now_ms)
        case commands.ListJobLogs():
            return _list_logs(store, sql, query)
        case commands.GetReceipt():
            return _get_receipt(store, sql, query, now_ms)
        case commands.ListReceipts():
            return _list_receipts(store, sql, query, now_ms)
        case commands.GetScheduler():
            return scheduler_queries.get_scheduler(sql, query, now_ms)
        case commands.ListSchedulers():
            return scheduler_queries.list_schedulers(sql, query, now_ms)
        case commands.ListDefinitions():
            return scheduler_queries.list_definitions(sql, query)
        case _:
            raise TypeError(f"{type(query).__name__} is not the store's to answer")


def _get_job(store: LibsqlStore, sql: Sql, query: commands.GetJob, now_ms: int) -> commands.JobFound | Refused:
    found = records.find_job(store, sql, query.ref)
    if found is None:
        return refusals.job_not_found(query.ref)
    attempts = records.attempts_of(sql, found) if query.full or query.wait else []
    wait = _wait(store, sql, found, attempts, now_ms) if query.wait else None
    if query.full:
        return commands.JobFound(view.full_record(found, records.body_of(sql, found), attempts, wait))
    record = view.record(found, view.Body(labels=records.labels_of(sql, found)))
    return commands.JobFound(msgspec.structs.replace(record, wait=wait) if wait else record)


def _wait(
    store: LibsqlStore, sql: Sql, found: job.Job, attempts: list[commands.AttemptRecord], now_ms: int
) -> commands.Wait | None:
    return view.wait(found, attempts, _ahead(store, sql, found, now_ms), now_ms)


def _ahead(store: LibsqlStore, sql: Sql, found: job.Job, now_ms: int) -> int:
    """Claimable jobs before this one in its line; counting stops at view.MOST_AHEAD."""
    if found.ready_at_ms is None or found.ready_seq is None:
        return 0
    queue, ahead = store.queues[found.queue].id, 0
    for priority, ready_at in claims.first_of_classes(sql, queue):
        if priority >= found.priority or ahead == view.MOST_AHEAD:
            break
        if ready_at <= now_ms:
            ahead += sql.run("due_in_class", queue, priority, now_ms, view.MOST_AHEAD - ahead)[0][0]
    place = (found.priority, found.ready_at_ms, found.ready_seq)
    return ahead + int(sql.run("due_before", queue, *place, now_ms, view.MOST_AHEAD - ahead)[0][0])


def _list_logs(store: LibsqlStore, sql: Sql, query: commands.ListJobLogs) -> commands.LogPage | Refused:
    found = records.find_job(store, sql, query.ref)
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
    # Of every name a prefix is looked for row by row; else each row found is one of the page.
    piece = _PAGE if query.key_prefix and not query.name else min(query.limit, _PAGE)
    while looked < view.MOST_LOOKED_AT:
        found = _receipt_rows(sql, queue.id, query, after, now_ms, piece)
        for row in found:
            looked, after = looked + 1, (row[0], row[1])
            if row[1].startswith(query.key_prefix):
                page.append(_receipt(store, sql, query.queue, row))
                if len(page) == query.limit:
                    return commands.ReceiptPage(page, after)
        if len(found) < piece:
            return commands.ReceiptPage(page, None)
    return commands.ReceiptPage(page, after)


def _receipt_rows(
    sql: Sql, queue_id: int, query: commands.ListReceipts, after: tuple[str, str], now_ms: int, piece: int
) -> list[Row]:
    if not query.name:
        return sql.run("list_receipts", queue_id, *after, now_ms, piece)
    below = query.key_prefix + _EVERY_TEXT_IS_BELOW
    return sql.run("list_receipts_of_name", queue_id, query.name, after[1], query.key_prefix, below, now_ms, piece)


def _receipt(store: LibsqlStore, sql: Sql, queue: str, row: Row) -> commands.ReceiptRecord:
    name, key, singleton, number, created, digest, made, expires = row
    ref = commands.JobRef(number, created)
    holder = records.find_job(store, sql, ref)
    return commands.ReceiptRecord(
        queue, name, key, bool(singleton), ref, int(holder.state) if holder else 0, digest, made, expires or 0
    )
