"""Retention in the libSQL store: bounded slices by age and number, found by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anvilmq_broker.domain import commands, retention
from anvilmq_broker.domain.state import TERMINAL
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.protocol import Applied

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue


def prune(batch: LibsqlBatch, group: list[commands.Prune]) -> list[Applied]:
    """Remove what retention has passed, at most `limit` rows a command."""
    return [Applied(_prune_one(batch, command.limit), []) for command in group]


def _prune_one(batch: LibsqlBatch, limit: int) -> commands.Pruned:
    jobs = _prune_jobs(batch, limit)
    removed, now, sql = jobs, batch.now_ms, batch.sql
    if removed < limit:
        removed += len(sql.run("prune_receipts", now, limit - removed))
    if removed < limit:
        removed += len(sql.run("prune_producers", now - retention.PRODUCER_IDLE_MS, limit - removed))
    if removed < limit:
        first_kept = batch.next_event - retention.EVENTS_MAX
        removed += len(sql.run("prune_events", now - retention.EVENTS_MAX_AGE_MS, first_kept, limit - removed))
    return commands.Pruned(jobs, removed, removed >= limit)


def _prune_jobs(batch: LibsqlBatch, limit: int) -> int:
    removed = 0
    own = batch.sql.run("past_own_retention", batch.now_ms, limit)
    removed += _delete(batch, [row[0] for row in own], own=True)
    for queue in batch.every_queue():
        for state in sorted(TERMINAL):
            if removed >= limit:
                return removed
            removed += _prune_state(batch, queue, int(state), limit - removed)
    return removed


def _prune_state(batch: LibsqlBatch, queue: Queue, state: int, limit: int) -> int:
    if not batch.jobs_in(queue.id, state):
        return 0
    before = batch.now_ms - queue.rules.age_ms(state)
    removed = _delete(batch, [row[0] for row in batch.sql.run("ended_before", queue.id, state, before, limit)])
    most = queue.rules.most(state)
    if not most:
        return removed
    kept = batch.jobs_in(queue.id, state) - batch.jobs_in(queue.id, rows.own_slot(state))
    over = min(kept - most, limit - removed)
    if over > 0:
        removed += _delete(batch, [row[0] for row in batch.sql.run("oldest_ended", queue.id, state, over)])
    return removed


def _delete(batch: LibsqlBatch, numbers: list[int], own: bool = False) -> int:
    if not numbers:
        return 0
    gone = batch.sql.run_rows("delete_jobs", [(number,) for number in numbers])
    for _, queue_id, state in gone:
        batch.count(queue_id, state, -1)
        if own:
            batch.count(queue_id, rows.own_slot(state), -1)
    return len(gone)
