"""Ends of attempts in the libSQL store, and the other writes to jobs that exist.

Completions go in sets; all else is loaded, decided by domain/job.py and saved, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anvilmq_broker.domain import commands, events, job, receipt, refusals, retention
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import (
    AttemptOutcome,
    FinishReason,
    InterruptCause,
    SettleOutcome,
    State,
)
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.protocol import Applied, Effect

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch, Queue


Done = dict[int, tuple[commands.Settlement, list[Effect]]]
"""By job number: the settlement that completed it in a set, with its effects."""


def settle(batch: LibsqlBatch, group: list[commands.Settle]) -> list[Applied]:
    """Settle a run of commands: completions of all of them in sets first, then the rest in order."""
    done = _complete_in_sets(batch, group)
    return [_settle_rest(batch, command, done) for command in group]


def _complete_in_sets(batch: LibsqlBatch, group: list[commands.Settle]) -> Done:
    """Only what is said first of a job may go before its turn: the rest then meets what it would have met in order."""
    first: dict[int, commands.Settlement] = {}
    for command in group:
        for item in command.items:
            first.setdefault(item.number, item)
    given = [(n, it.created_ms, it.token) for n, it in first.items() if it.outcome == SettleOutcome.COMPLETE]
    found = batch.sql.run_rows("complete_jobs", given, batch.now_ms) if given else []
    done: Done = {}
    results: list[Row] = []
    retained: list[Row] = []
    singletons: list[Row] = []
    for number, queue_id, name, created, attempt, worker_id, started, traits in found:
        item, queue = first[number], batch.queue_name(queue_id)
        batch.count(queue_id, State.ACTIVE, -1)
        batch.count(queue_id, State.COMPLETED, 1)
        batch.log.add(
            events.Kind.COMPLETED, queue, name, State.COMPLETED, State.ACTIVE, number, created, attempt, worker_id,
            FinishReason.COMPLETED,
        )  # fmt: skip
        done[number] = (
            item,
            [
                protocol.Freed(queue, number, item.token, AttemptOutcome.COMPLETED, started),
                protocol.Ended(queue, number, created, State.COMPLETED, FinishReason.COMPLETED),
            ],
        )
        if item.result:
            results.append((number, item.result_content_type or None, item.result))
        if traits & rows.HAS_KEY:
            (singletons if traits & rows.SINGLETON else retained).append((number,))
    if results:
        batch.sql.run_rows("insert_results", results)
    if retained:
        batch.sql.run_rows("date_receipts", retained, batch.now_ms)
    if singletons:
        batch.sql.run_rows("free_receipts", singletons)
    return done


def _settle_rest(batch: LibsqlBatch, command: commands.Settle, done: Done) -> Applied:
    states = bytearray(len(command.items))
    refused: list[Refused] = []
    effects: list[Effect] = []
    for index, item in enumerate(command.items):
        completed = done.get(item.number)
        if completed is not None and completed[0] is item:
            # The same settlement may stand here twice: its second mention is a replay.
            del done[item.number]
            states[index] = State.COMPLETED
            effects += completed[1]
            continue
        answer = _settle_one(batch, item, effects)
        if isinstance(answer, Refused):
            refused.append(msgspec.structs.replace(answer, index=index))
        else:
            states[index] = answer
    return Applied(commands.Settled(bytes(states), refused), effects)


def _settle_one(batch: LibsqlBatch, item: commands.Settlement, effects: list[Effect]) -> int | Refused:
    found = batch.load(item)
    if found is None:
        return refusals.lease_lost(item, None)
    if found.token == item.token:
        change = job.settle(found, item, batch.moment)
        effects += batch.save(change)
        return int(change.job.state)
    if (answer := job.answer_to_replay(found, item)) is not None:
        return answer
    if earlier := batch.sql.run("settled_attempt", item.number, item.token, item.outcome):
        return int(earlier[0][0])
    return refusals.lease_lost(item, found)


def report(batch: LibsqlBatch, group: list[commands.Report]) -> list[Applied]:
    """Progress and log lines of running attempts."""
    return [Applied(_report_one(batch, command), []) for command in group]


def _report_one(batch: LibsqlBatch, command: commands.Report) -> commands.Done | Refused:
    found = batch.load(command.lease)
    if found is None or found.token != command.lease.token:
        return refusals.lease_lost(command.lease, found)
    if command.progress_json is not None:
        batch.sql.run("set_progress", found.number, command.progress_json)
        batch.log.add(
            events.Kind.PROGRESS, found.queue, found.name, found.state, found.state, found.number, found.created_ms,
            found.attempt, found.worker_id,
        )  # fmt: skip
    if command.lines:
        _append_lines(batch, found, command.lines)
    return commands.Done()


def _append_lines(batch: LibsqlBatch, found: job.Job, lines: list[commands.LogLine]) -> None:
    newest = batch.sql.run("last_log_line", found.number)
    last = newest[0][0] if newest else 0
    batch.sql.run_rows(
        "insert_log_lines",
        [(last + place, line.at_ms, line.level, line.line) for place, line in enumerate(lines, 1)],
        found.number,
        found.attempt,
    )
    if (over := last + len(lines) - retention.LOG_LINES_KEPT) > 0:
        batch.sql.run("trim_log", found.number, over)


def reap(batch: LibsqlBatch, group: list[commands.Reap]) -> list[Applied]:
    """What the engine's timers found; each entry is checked against its row, a late one changes nothing."""
    return [Applied(commands.Done(), _reap_one(batch, command)) for command in group]


def _reap_one(batch: LibsqlBatch, command: commands.Reap) -> list[Effect]:
    effects: list[Effect] = []
    for decide, leases in (
        (job.undeliver, command.undelivered),
        (job.time_out, command.timed_out),
        (job.stall, command.stalled),
    ):
        for lease in leases:
            found = batch.load(lease)
            if found is not None and found.token == lease.token:
                effects += batch.save(decide(found, batch.moment))
    for ref in command.expired:
        found = batch.load(ref)
        if found is not None and (change := job.expire(found, batch.now_ms)) is not None:
            effects += batch.save(change)
    for ref in command.parked:
        found = batch.load(ref)
        if found is not None and (change := job.unpark(found, batch.moment)) is not None:
            effects += batch.save(change)
    return effects


def cancel(batch: LibsqlBatch, group: list[commands.CancelJob]) -> list[Applied]:
    """Cancel jobs in any state."""
    return [_cancel_one(batch, command) for command in group]


def _cancel_one(batch: LibsqlBatch, command: commands.CancelJob) -> Applied:
    found = batch.load(command.ref)
    if found is None:
        return Applied(refusals.job_not_found(command.ref), [])
    change = job.cancel(found, command.reason, batch.now_ms)
    if change is None:
        return Applied(commands.CancelledJob(int(found.state), found.state is State.ACTIVE), [])
    return Applied(
        commands.CancelledJob(int(change.job.state), change.job.token is not None), _save_cancel(batch, change)
    )


def cancel_run(batch: LibsqlBatch, run: commands.JobRef, caused_by: commands.JobRef) -> list[Effect]:
    """Cancel a run because another takes its place [6.6]."""
    found = batch.load(run)
    change = job.cancel(found, "", batch.now_ms, caused_by) if found else None
    if change is None:
        return []
    effects = _save_cancel(batch, change)
    batch.sql.run("set_cause", run.number, caused_by.number, caused_by.created_ms)
    return effects


def _save_cancel(batch: LibsqlBatch, change: job.Change) -> list[Effect]:
    effects, it = batch.save(change), change.job
    if it.token is not None:
        cause = InterruptCause.CANCEL_REQUESTED
        effects.append(protocol.Interrupted(it.number, it.created_ms, it.token, cause, it.finish_message))
    return effects


def release_receipt(batch: LibsqlBatch, group: list[commands.ReleaseReceipt]) -> list[Applied]:
    """Free keys whose holder is the expected job."""
    return [Applied(_free(batch, command, command.expected), []) for command in group]


def delete_receipt(batch: LibsqlBatch, group: list[commands.DeleteReceipt]) -> list[Applied]:
    """Free keys whoever has them."""
    return [Applied(_free(batch, command, None), []) for command in group]


def _free(
    batch: LibsqlBatch, command: commands.ReleaseReceipt | commands.DeleteReceipt, expected: commands.JobRef | None
) -> commands.FreedReceipt:
    queue = batch.find_queue(command.queue)
    found = batch.sql.run("get_receipt", queue.id, command.name, command.key) if queue else []
    held = rows.to_receipt(found[0], command.queue, command.name, command.key) if found else None
    if queue is None or held is None or not held.live(batch.now_ms):
        return commands.FreedReceipt(False)
    holder = commands.JobRef(held.number, held.job_created_ms)
    if expected not in (None, holder):
        return commands.FreedReceipt(False, holder)
    batch.sql.run("free_receipt", queue.id, command.name, command.key, holder.number)
    return commands.FreedReceipt(True, holder)


def end_receipt(batch: LibsqlBatch, ended: job.Job, queue: Queue) -> None:
    """In the transaction that ends a job: its singleton key is free, its RETAIN receipt's lifetime starts [2.1]."""
    if not ended.key:
        return
    expires = receipt.expires_at_ms(ended, batch.now_ms)
    if expires is None:
        batch.sql.run("free_receipt", queue.id, ended.name, ended.key, ended.number)
    else:
        batch.sql.run("date_receipt", queue.id, ended.name, ended.key, ended.number, expires)
