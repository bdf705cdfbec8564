"""Queries that must count nothing (sql/invariants.sql): structural ones refuse a start, derived ones are for checks."""

from __future__ import annotations

from collections.abc import Iterable

from anvilmq_broker.store.libsql.batch import Queue
from anvilmq_broker.store.libsql.claims import IN_DOUBT, NEVER, find_next_ready_at
from anvilmq_broker.store.libsql.sql import Sql


def violations(sql: Sql, *, structural_only: bool) -> list[str]:
    """Names of the invariants that do not hold, with how many rows break them."""
    prefixes = ("structural_",) if structural_only else ("structural_", "derived_")
    counted = {name: sql.run(name)[0][0] for name in sql.names() if name.startswith(prefixes)}
    return [f"{name}: {count}" for name, count in counted.items() if count]


def wrong_hints(sql: Sql, queues: Iterable[Queue]) -> list[str]:
    """Queues whose `next_ready_at` in memory is not what their rows say."""
    wrong = []
    for queue in queues:
        at = find_next_ready_at(sql, queue.id)
        if queue.next_ready_at not in (IN_DOUBT, NEVER if at is None else at):
            wrong.append(f"next_ready_at of {queue.name}: {queue.next_ready_at} is not {at}")
    return wrong
