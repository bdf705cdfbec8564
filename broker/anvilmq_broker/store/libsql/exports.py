"""Everything stored, laid out as domain/view.py says: the same for every store, for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anvilmq_broker.domain import commands, events, view
from anvilmq_broker.store.libsql import records, rows, scheduler_rows
from anvilmq_broker.store.libsql.sql import Sql

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.store import LibsqlStore

_ALL_LINES = 1_000_000
_unpack_answer = msgspec.msgpack.Decoder(commands.AddedJobs).decode
_unpack_runs = msgspec.msgpack.Decoder(list[events.Run]).decode
Rows = list[tuple[object, ...]]


def export(store: LibsqlStore, sql: Sql, now_ms: int, counters: tuple[int, int, int]) -> dict[str, Rows]:
    """Tables of the export. counters: next job number, next number for the front, next event."""
    jobs: Rows = []
    attempts: Rows = []
    logs: Rows = []
    for number, created in sql.run("export_jobs"):
        found = records.find_job(store, sql, commands.JobRef(number, created))
        assert found is not None
        jobs.append(view.job_row(found, records.body_of(sql, found)))
        for row in sql.run("export_attempts", number):
            attempts.append((number, *msgspec.structs.astuple(rows.to_attempt(row)), *row[10:]))
        for place, at_ms, level, attempt, text in sql.run("list_log_lines", number, 0, _ALL_LINES):
            logs.append(view.log_row(number, place, commands.LogLine(at_ms, level, text, attempt)))
    return {
        "jobs": jobs,
        "attempts": attempts,
        "job_logs": logs,
        "receipts": sorted(_receipt(store, *row) for row in sql.run("export_receipts")),
        "producers": [
            (producer_id, seq, _unpack_answer(answer), used_at)
            for producer_id, seq, answer, used_at in sql.run("export_producers")
        ],
        "events": [
            row
            for first, at_ms, body in sql.run("export_events")
            for row in view.event_rows(first, at_ms, _unpack_runs(body))
        ],
        "engine": [(now_ms, *counters)],
        "schedulers": [
            view.scheduler_row(stored.number, stored.it)
            for stored in sorted(
                map(scheduler_rows.to_stored, sql.run("schedulers_after", "", _ALL_LINES)), key=_number
            )
        ],
        "ticks": sql.run("export_ticks"),
        "triggers": sql.run("export_triggers"),
    }


def _number(stored: scheduler_rows.Stored) -> int:
    return stored.number


def _receipt(store: LibsqlStore, queue_id: int, name: str, key: str, *rest: object) -> tuple[object, ...]:
    return msgspec.structs.astuple(rows.to_receipt(rest, store.queue_names[queue_id], name, key))
