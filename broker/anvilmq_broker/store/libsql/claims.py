"""Claims in the libSQL store: the first due jobs of the line, class by class, made active in wide statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from anvilmq_broker.domain import commands, events
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.libsql.sql import Sql
from anvilmq_broker.store.protocol import Applied, Slot

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue

NEVER: Final = 1 << 62
"""`next_ready_at` of an empty line."""
IN_DOUBT: Final = -1
"""`next_ready_at` of a line whose first job may have left it: the rows must be asked."""
MOST_BYTES: Final = 8 << 20
"""Payloads of one claim; the piece that passes it is the last."""
_PIECE: Final = 32
_BEFORE_ALL: Final = -1
_DATA: Final = 15
_TRAITS: Final = 19
"""Places in a row of `claim_heads`."""


def claim(batch: LibsqlBatch, queue: Queue, slots: Sequence[Slot]) -> list[protocol.Started]:
    """Start the next claimable jobs, at most one a slot; afterwards the queue knows when to look again.

    Fewer than slots: nothing more is claimable, or the payloads came to MOST_BYTES.
    """
    started: list[protocol.Started] = []
    earliest, above, size = NEVER, _BEFORE_ALL, 0
    if not slots or batch.ready_hint(queue) > batch.now_ms:
        return started
    while len(started) < len(slots) and size < MOST_BYTES:
        found = batch.sql.run("first_of_next_class", queue.id, above)
        if not found:
            batch.set_next_ready_at(queue, earliest)
            return started
        priority, ready_at = found[0]
        if ready_at > batch.now_ms:
            earliest, above = min(earliest, ready_at), priority
            continue
        free = slots[len(started) : len(started) + _PIECE]
        heads = batch.sql.run("claim_heads", queue.id, priority, batch.now_ms, len(free))
        started += _start(batch, queue, priority, heads, free)
        size += sum([len(head[_DATA]) for head in heads])
        if len(heads) < len(free):
            above = priority
            if (at := _next_of_class(batch.sql, queue.id, priority)) is not None:
                earliest = min(earliest, at)
    batch.set_next_ready_at(queue, IN_DOUBT)
    return started


def find_next_ready_at(sql: Sql, queue_id: int) -> int | None:
    """Place in time of the earliest job of the line, None when it is empty: a seek for each class in use."""
    return min((ready_at for _, ready_at in first_of_classes(sql, queue_id)), default=None)


def classes_of(sql: Sql, queue_id: int) -> list[int]:
    """Priorities in use in the line, the first first."""
    return [priority for priority, _ in first_of_classes(sql, queue_id)]


def first_of_classes(sql: Sql, queue_id: int) -> Iterator[tuple[int, int]]:
    """(priority, ready_at) of the first job of each class in the line."""
    above = _BEFORE_ALL
    while found := sql.run("first_of_next_class", queue_id, above):
        above, ready_at = found[0]
        yield above, ready_at


def claim_for_caller(batch: LibsqlBatch, group: list[commands.Claim]) -> list[Applied]:
    """Claims of callers without a session: their queues in order, until max_jobs are started."""
    return [_claim_one(batch, command) for command in group]


def _claim_one(batch: LibsqlBatch, command: commands.Claim) -> Applied:
    if command.claim_id and (held := _held(batch, command)):
        return Applied(commands.Claimed(held), [])
    slot = Slot(command.worker.worker_id, command.claim_id)
    started: list[protocol.Started] = []
    for name in command.queues:
        size = sum([len(one.delivery.data) for one in started])
        queue = batch.find_queue(name)
        if queue is not None and len(started) < command.max_jobs and size < MOST_BYTES:
            started += claim(batch, queue, [slot] * (command.max_jobs - len(started)))
    return Applied(commands.Claimed([item.delivery for item in started]), list(started))


def _held(batch: LibsqlBatch, command: commands.Claim) -> list[commands.Delivery]:
    """What the same claim has got before, as far as its leases live [1.4]."""
    found = batch.sql.run("held_by_claim", command.worker.worker_id, command.claim_id)
    return [
        _delivery(row, token, batch.queue_name(queue_id), priority, row[4], row[8], scheduler, tick_ms)
        for *row, token, queue_id, priority, scheduler, tick_ms in found
    ]


def _next_of_class(sql: Sql, queue_id: int, priority: int) -> int | None:
    found = sql.run("first_of_next_class", queue_id, priority - 1)
    return found[0][1] if found and found[0][0] == priority else None


def _start(
    batch: LibsqlBatch, queue: Queue, priority: int, heads: list[Row], slots: Sequence[Slot]
) -> list[protocol.Started]:
    if not heads:
        return []
    token_of, now, running = batch.chance.token, batch.now_ms, batch.staged.started
    places: dict[str, dict[str, str]] = {}
    told: dict[tuple[str, int, str], list[int]] = {}
    started: list[protocol.Started] = []
    for row, slot in zip(heads, slots, strict=False):
        number, created, name, before, attempt, traits = row[0], row[1], row[2], row[3], row[4] + 1, row[_TRAITS]
        token, worker_id, timeout = token_of(), slot.worker_id, row[7]
        places.setdefault(slot.claim_id, {})[token] = f"{number} {worker_id}"
        delivery = _delivery(row, token, queue.name, priority, attempt, row[8] + 1, row[17], row[18])
        started.append(protocol.Started(slot, delivery, now + timeout if timeout else 0, row[16]))
        if traits < rows.OWN_RETENTION:
            running[token] = (number, created, queue, name, attempt, worker_id, now, traits)
        told.setdefault((name, before, worker_id), []).extend((number, created, attempt))
    for claim_id, of_claim in places.items():
        batch.sql.run_pairs("start_jobs", of_claim, now, claim_id or None)
        if batch.changed_rows() != len(of_claim):
            raise AssertionError(f"a head of the line of queue {queue.name} was not claimable")
    for (name, before, worker_id), jobs in told.items():
        batch.log.add_run(events.Kind.STARTED, queue.name, name, State.ACTIVE, before, jobs, worker_id)
        batch.count(queue.id, before, -(len(jobs) // 3))
    batch.count(queue.id, State.ACTIVE, len(started))
    return started


def _delivery(
    row: Sequence[Any], token: str, queue: str, priority: int, attempt: int, starts: int, scheduler: str | None,
    tick_ms: int | None,
) -> commands.Delivery:  # fmt: skip
    """From a row of `claim_heads` or `held_by_claim`. attempt, starts: those of the delivered attempt."""
    return commands.Delivery(
        row[0], row[1], token, queue, row[2], row[_DATA], row[10] or "", attempt, row[5], row[6], row[7], rows.texts(row[11]),
        rows.texts(row[12]), priority, row[13] or "", starts, row[9], row[14] or "",
        scheduler=scheduler or "", tick_at_ms=tick_ms or 0,
    )  # fmt: skip
