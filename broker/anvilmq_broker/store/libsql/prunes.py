"""Retention in the libSQL store: bounded slices by age and number, found by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anvilmq_broker.domain import commands, retention
from anvilmq_broker.domain.state import TERMINAL
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.protocol import Applied

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue


def prune(batch: LibsqlBatch, group: list[commands.Prune]) -> list[Applied]:
    """Remove what retention has passed, at most `limit` rows a command."""
    return [Applied(_prune_one(batch, command.limit), []) for command in group]


def _prune_one(batch: LibsqlBatch, limit: int) -> commands.Pruned:
    # One more than the limit is looked for, to know whether another slice would find work.
    jobs = _jobs(batch, limit + 1)
    batch.delete_jobs(jobs[:limit])
    left = limit + 1 - len(jobs)
    now, first_kept = batch.now_ms, batch.next_event - retention.EVENTS_MAX
    for find, delete, args in (
        ("expired_receipts", "delete_receipts", (now,)),
        ("idle_producers", "delete_producers", (now - retention.PRODUCER_IDLE_MS,)),
        ("superfluous_events", "delete_events", (first_kept,)),
        ("old_events", "delete_events", (now - retention.EVENTS_MAX_AGE_MS, first_kept)),
        ("old_ticks", "delete_ticks", (now - retention.TICKS_MS,)),
        ("old_triggers", "delete_triggers", (now - retention.TRIGGERS_MS,)),
    ):
        found: list[Row] = batch.sql.run(find, *args, left) if left else []
        left -= len(found)
        if gone := found[: len(found) - (not left)]:
            batch.sql.run_rows(delete, gone)
            if delete == "delete_producers":
                batch.staged.producers |= dict.fromkeys(row[0] for row in gone)
    return commands.Pruned(min(len(jobs), limit), limit - max(left - 1, 0), left == 0)


def _jobs(batch: LibsqlBatch, limit: int) -> list[int]:
    found = [row[0] for row in batch.sql.run("past_own_retention", batch.now_ms, limit)]
    for queue in batch.every_queue():
        for state in sorted(TERMINAL):
            if len(found) < limit:
                found += _of_state(batch, queue, int(state), limit - len(found))
    return found


def _of_state(batch: LibsqlBatch, queue: Queue, state: int, limit: int) -> list[int]:
    present = batch.jobs_in(queue.id, state) - batch.jobs_in(queue.id, rows.own_slot(state))
    if not present:
        return []
    before = batch.now_ms - queue.rules.age_ms(state)
    old = [row[0] for row in batch.sql.run("ended_before", queue.id, state, before, limit)]
    most = queue.rules.most(state)
    over = min(present - most, limit) if most else 0
    if over <= len(old):
        return old
    return [row[0] for row in batch.sql.run("oldest_ended", queue.id, state, over)]
