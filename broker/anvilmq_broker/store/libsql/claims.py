"""Claims in the libSQL store: the first due jobs of the line, class by class, made active in wide statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anvilmq_broker.domain import commands, events
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.libsql.sql import Sql
from anvilmq_broker.store.protocol import Applied, Slot

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue

_BEFORE_ALL = -1
_NEVER = 1 << 62


def claim(batch: LibsqlBatch, queue: Queue, slots: Sequence[Slot]) -> list[protocol.Started]:
    """Start the next claimable jobs, at most one a slot; afterwards the queue knows when to look again."""
    started: list[protocol.Started] = []
    earliest, above = _NEVER, _BEFORE_ALL
    if batch.line_is_clear(queue):
        return started
    while len(started) < len(slots):
        found = batch.sql.run("first_of_next_class", queue.id, above)
        if not found:
            batch.set_next_ready_at(queue, earliest)
            break
        above, ready_at = found[0]
        if ready_at > batch.now_ms:
            earliest = min(earliest, ready_at)
            continue
        free = slots[len(started) :]
        heads = batch.sql.run("claim_heads", queue.id, above, batch.now_ms, len(free))
        started += _start(batch, queue, above, heads, free)
        if len(heads) < len(free) and (at := _next_of_class(batch.sql, queue.id, above)) is not None:
            earliest = min(earliest, at)
    return started


def find_next_ready_at(sql: Sql, queue_id: int) -> int | None:
    """Place in time of the earliest job of the line, None when it is empty: a seek for each class in use."""
    earliest, above = None, _BEFORE_ALL
    while found := sql.run("first_of_next_class", queue_id, above):
        above, ready_at = found[0]
        earliest = ready_at if earliest is None else min(earliest, ready_at)
    return earliest


def claim_for_caller(batch: LibsqlBatch, group: list[commands.Claim]) -> list[Applied]:
    """Claims of callers without a session: their queues in order, until max_jobs are started."""
    return [_claim_one(batch, command) for command in group]


def _claim_one(batch: LibsqlBatch, command: commands.Claim) -> Applied:
    slot = Slot(command.worker.worker_id, command.claim_id)
    started: list[protocol.Started] = []
    for name in command.queues:
        queue = batch.find_queue(name)
        if queue is not None and len(started) < command.max_jobs:
            started += claim(batch, queue, [slot] * (command.max_jobs - len(started)))
    return Applied(commands.Claimed([item.delivery for item in started]), list(started))


def _next_of_class(sql: Sql, queue_id: int, priority: int) -> int | None:
    found = sql.run("first_of_next_class", queue_id, priority - 1)
    return found[0][1] if found and found[0][0] == priority else None


def _start(
    batch: LibsqlBatch, queue: Queue, priority: int, heads: list[Row], slots: Sequence[Slot]
) -> list[protocol.Started]:
    if not heads:
        return []
    token = batch.chance.token
    given = [(row[0], token(), slot.worker_id, slot.claim_id or None) for row, slot in zip(heads, slots, strict=False)]
    if len(batch.sql.run_rows("start_jobs", given, batch.now_ms)) != len(given):
        raise AssertionError(f"a head of the line of queue {queue.name} was not claimable")
    started: list[protocol.Started] = []
    for row, (number, lease_token, worker_id, _), slot in zip(heads, given, slots, strict=False):
        timeout = row[7]
        delivery = commands.Delivery(
            number, row[1], lease_token, queue.name, row[2], row[15], row[10] or "", row[4] + 1, row[5], row[6], timeout,
            rows.texts(row[11]), rows.texts(row[12]), priority, row[13] or "", row[8] + 1, row[9], row[14] or "",
        )  # fmt: skip
        started.append(protocol.Started(slot, delivery, batch.now_ms + timeout if timeout else 0, row[16]))
        batch.count(queue.id, row[3], -1)
        batch.log.add(
            events.Kind.STARTED, queue.name, row[2], State.ACTIVE, row[3], number, row[1], row[4] + 1, worker_id
        )
    batch.count(queue.id, State.ACTIVE, len(started))
    return started
