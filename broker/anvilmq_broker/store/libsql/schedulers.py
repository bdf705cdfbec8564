"""Edits of recurring definitions in the libSQL store; what a change comes to is decided in domain/definitions.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from anvilmq_broker.domain import commands, definitions, events, refusals
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.scheduler import Scheduler
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import scheduler_queries, scheduler_rows
from anvilmq_broker.store.protocol import Applied, Effect

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch


def upsert(batch: LibsqlBatch, group: list[commands.UpsertScheduler]) -> list[Applied]:
    """Make or change definitions."""
    return [_upsert_one(batch, command) for command in group]


def _upsert_one(batch: LibsqlBatch, command: commands.UpsertScheduler) -> Applied:
    stored = scheduler_rows.find(batch.sql, command.name)
    verdict = definitions.upsert(stored.it if stored else None, command, batch.chance.token, batch.now_ms)
    if isinstance(verdict, Refused):
        return Applied(verdict, [])
    effects: list[Effect] = []
    if not command.dry_run and (stored is None or verdict.after is not stored.it):
        effects.append(protocol.ticks_of(verdict.after))
        if stored is None:
            scheduler_rows.insert(batch.sql, verdict.after)
        else:
            scheduler_rows.save(batch.sql, stored, verdict.after)
        if verdict.outcome is not definitions.Outcome.UNCHANGED:
            batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, command.name)
    return Applied(commands.UpsertedScheduler(_record(batch, verdict.after), verdict.outcome), effects)


def delete(batch: LibsqlBatch, group: list[commands.DeleteScheduler]) -> list[Applied]:
    """Delete definitions; their jobs go on."""
    return [_delete_one(batch, command) for command in group]


def _delete_one(batch: LibsqlBatch, command: commands.DeleteScheduler) -> Applied:
    stored = scheduler_rows.find(batch.sql, command.name)
    if stored is None:
        missing = commands.DeletedScheduler(False)
        return Applied(missing if command.allow_missing else refusals.scheduler_not_found(command.name), [])
    if (refused := definitions.refuse_delete(stored.it, command.owner)) is not None:
        return Applied(refused, [])
    if command.owner is not None and not definitions.is_owner(stored.it, command.owner):
        return Applied(commands.DeletedScheduler(False), [])
    batch.sql.run("delete_scheduler", stored.number)
    batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, command.name)
    return Applied(commands.DeletedScheduler(True), [protocol.Ticks(stored.it.uid, None)])


def suspend(batch: LibsqlBatch, group: list[commands.SuspendScheduler]) -> list[Applied]:
    """Suspend or resume definitions."""
    return [_suspend_one(batch, command) for command in group]


def _suspend_one(batch: LibsqlBatch, command: commands.SuspendScheduler) -> Applied:
    stored = scheduler_rows.find(batch.sql, command.name)
    if stored is None:
        return Applied(refusals.scheduler_not_found(command.name), [])
    after = definitions.suspend(stored.it, command.suspended, batch.now_ms)
    if isinstance(after, Refused):
        return Applied(after, [])
    effects = _change(batch, stored, after) if after is not stored.it else []
    return Applied(commands.SchedulerFound(_record(batch, after)), effects)


def release(batch: LibsqlBatch, group: list[commands.ReleaseDefinition]) -> list[Applied]:
    """Take owners off their definitions."""
    return [_release_one(batch, command) for command in group]


def _release_one(batch: LibsqlBatch, command: commands.ReleaseDefinition) -> Applied:
    stored = scheduler_rows.find(batch.sql, command.name)
    if stored is None or not definitions.is_owner(stored.it, command.owner):
        return Applied(commands.ReleasedDefinition(False), [])
    after = replace(stored.it, owner=None, updated_ms=batch.now_ms)
    return Applied(commands.ReleasedDefinition(True), _change(batch, stored, after))


def reanchor(batch: LibsqlBatch, group: list[commands.ReanchorSchedulers]) -> list[Applied]:
    """Count slices of definitions anew, where their next tick lies later than it should."""
    return [_reanchor_one(batch, command) for command in group]


def _reanchor_one(batch: LibsqlBatch, command: commands.ReanchorSchedulers) -> Applied:
    found = batch.sql.run("schedulers_after", command.after, command.limit + 1)
    changed: list[scheduler_rows.Stored] = []
    for stored in map(scheduler_rows.to_stored, found[: command.limit]):
        after = definitions.reanchored(stored.it, batch.now_ms)
        if after is not stored.it:
            changed.append(scheduler_rows.Stored(stored.number, after))
    scheduler_rows.save_states(batch.sql, changed)
    last = found[command.limit - 1][1] if len(found) > command.limit else ""
    return Applied(commands.Reanchored(last), [protocol.ticks_of(stored.it) for stored in changed])


def _change(batch: LibsqlBatch, stored: scheduler_rows.Stored, after: Scheduler) -> list[Effect]:
    scheduler_rows.save(batch.sql, stored, after)
    batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, after.name)
    return [protocol.ticks_of(after)]


def _record(batch: LibsqlBatch, it: Scheduler) -> commands.SchedulerRecord:
    return definitions.record(it, scheduler_queries.last_state(batch.sql, it, batch.now_ms))
