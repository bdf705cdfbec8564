"""A committed job with what hangs on it, by statements of one job each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anvilmq_broker.domain import commands, job, view
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.sql import Sql

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.store import LibsqlStore


def find_job(store: LibsqlStore, sql: Sql, ref: commands.JobRef) -> job.Job | None:
    """The committed job, None when it is not there."""
    found = sql.run("get_job", ref.number, ref.created_ms)
    return rows.to_job(found[0], store.queue_names[found[0][2]]) if found else None


def body_of(sql: Sql, found: job.Job) -> view.Body:
    """What the job carries."""
    row = sql.run("get_body", found.number)[0]
    content_type, headers, labels, progress, data, result_type, result = row
    return view.Body(
        data, content_type or "", rows.texts(headers), rows.texts(labels), result or b"", result_type or "", progress or ""
    )  # fmt: skip


def labels_of(sql: Sql, found: job.Job) -> dict[str, str] | None:
    """Its labels alone."""
    return rows.texts(sql.run("get_labels", found.number)[0][0])


def attempts_of(sql: Sql, found: job.Job) -> list[commands.AttemptRecord]:
    """The kept attempts, oldest first."""
    return [rows.to_attempt(row) for row in sql.run("list_attempts", found.number)]
