"""Rows of recurring definitions to values and back; the only place that knows the order of their columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from anvilmq_broker.domain import commands, scheduler
from anvilmq_broker.domain.scheduler import Scheduler
from anvilmq_broker.store.libsql.driver import Row, Scalar
from anvilmq_broker.store.libsql.sql import Sql

_encode = msgspec.msgpack.Encoder().encode
_decode_spec = msgspec.msgpack.Decoder(commands.SchedulerSpec).decode
decode_owner = msgspec.msgpack.Decoder(commands.Owner).decode
_UNREADABLE: Final = commands.SchedulerSpec()


class Stored(msgspec.Struct, frozen=True):
    """A definition with its number, which is never used again."""

    number: int
    it: Scheduler


def find(sql: Sql, name: str) -> Stored | None:
    """The definition of that name, as it stands in this transaction."""
    found = sql.run("get_scheduler", name)
    return to_stored(found[0]) if found else None


def to_stored(row: Row) -> Stored:
    """From a row of `get_scheduler`. Content that this broker cannot read is empty, and stands with a problem."""
    reason, message, spec = row[12] or "", row[13] or "", _UNREADABLE
    try:
        spec = _decode_spec(row[18])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason, message = "SCHEDULE_INVALID", f"what is stored cannot be read, send the definition again: {error}"
    it = Scheduler(
        uid=row[1],
        name=row[2],
        spec=spec,
        content_hash=row[16],
        created_ms=row[14],
        updated_ms=row[15],
        anchor_ms=row[4],
        owner=decode_owner(row[17]) if row[17] else None,
        suspended=bool(row[3]),
        next_tick_ms=row[5],
        last_tick_ms=row[6],
        last_run=None if row[7] is None else commands.JobRef(row[7], row[8]),
        run_count=row[9],
        skipped_count=row[10],
        missed_count=row[11],
        problem_reason=reason,
        problem_message=message,
    )
    return Stored(row[0], it)


def insert(sql: Sql, it: Scheduler) -> Stored:
    """Write a new definition."""
    stored = Stored(sql.run("insert_scheduler", it.uid, it.name, it.created_ms)[0][0], it)
    _put_spec(sql, stored)
    save_states(sql, [stored])
    return stored


def save(sql: Sql, before: Stored, after: Scheduler) -> None:
    """Write what has changed."""
    stored = Stored(before.number, after)
    if (after.spec, after.content_hash, after.owner) != (before.it.spec, before.it.content_hash, before.it.owner):
        _put_spec(sql, stored)
    save_states(sql, [stored])


def save_states(sql: Sql, changed: Iterable[Stored]) -> None:
    """Write how far definitions have come."""
    if rows := [_state_row(stored.number, stored.it) for stored in changed]:
        sql.run_rows("save_schedulers", rows)


def _put_spec(sql: Sql, stored: Stored) -> None:
    it, owner = stored.it, stored.it.owner
    whose = (owner.kind, owner.namespace, owner.name, _encode(owner)) if owner else (None, None, None, None)
    sql.run("put_scheduler_spec", stored.number, it.name, it.content_hash, *whose, _encode(it.spec))


def _state_row(number: int, it: Scheduler) -> tuple[Scalar, ...]:
    return (
        number,
        int(it.suspended),
        it.anchor_ms,
        it.next_tick_ms,
        scheduler.due_ms(it),
        it.last_tick_ms,
        it.last_run.number if it.last_run else None,
        it.last_run.created_ms if it.last_run else None,
        it.run_count,
        it.skipped_count,
        it.missed_count,
        it.problem_reason or None,
        it.problem_message or None,
        it.updated_ms,
        it.spec.job.queue if it.spec.job else None,
    )
