"""Ends of attempts in the libSQL store, and the other writes to jobs that exist.

Completions go in sets; all else is loaded, decided by domain/job.py and saved, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from anvilmq_broker.domain import commands, events, job, receipt, refusals, retention
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import (
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


_COMPLETE: Final = int(SettleOutcome.COMPLETE)
_COMPLETED: Final = int(State.COMPLETED)


def settle(batch: LibsqlBatch, group: list[commands.Settle]) -> list[Applied]:
    """Settle a run of commands: completions of all of them in a set first, then the rest in order."""
    completions = _Completions(batch)
    parts = [completions.take(command) for command in group]
    completions.write()
    return [_settle_rest(batch, command, *part) for command, part in zip(group, parts, strict=True)]


class _Completions:
    """The completions of a run that can go in one set.

    Only what is said first of a job may go before its turn: the rest then meets what it would have met in order.
    """

    def __init__(self, batch: LibsqlBatch) -> None:
        self._batch = batch
        self._met: set[int] = set()
        self._numbers: list[int] = []
        self._told: dict[tuple[int, str, str], tuple[Queue, list[int]]] = {}
        self._results: list[Row] = []
        self._keyed: list[tuple[int, int]] = []

    def take(self, command: commands.Settle) -> tuple[bytearray, list[int], list[Effect]]:
        """Pick a command's completions: its states so far, the places of what is left, and the effects."""
        staged, known = self._batch.staged, self._batch.known_running
        started, ended, met, told = staged.started, staged.ended, self._met, self._told
        states, rest = bytearray(len(command.items)), list[int]()
        by_queue: dict[str, list[tuple[int, int, str, int]]] = {}
        for index, item in enumerate(command.items):
            number, token = item.number, item.token
            running = started.get(token) or known.get(token)
            if number in met or item.outcome != _COMPLETE or running is None or token in ended:
                met.add(number)
                rest.append(index)
                continue
            met.add(number)
            its_number, created, queue, name, attempt, worker_id, began, traits = running
            if its_number != number or created != item.created_ms:
                rest.append(index)
                continue
            states[index] = _COMPLETED
            ended.add(token)
            self._numbers.append(number)
            _, jobs = told.get((queue.id, name, worker_id)) or told.setdefault((queue.id, name, worker_id), (queue, []))
            jobs += (number, created, attempt)
            done = by_queue.get(queue.name)
            if done is None:
                done = by_queue[queue.name] = []
            done.append((number, created, token, began))
            if item.result:
                self._results.append((number, item.result_content_type or None, item.result))
            if traits:
                self._keyed.append((number, traits))
        return states, rest, [protocol.Completed(queue_name, jobs) for queue_name, jobs in by_queue.items()]

    def write(self) -> None:
        """Complete what was picked."""
        if not self._numbers:
            return
        batch, sql = self._batch, self._batch.sql
        sql.run_each("complete_jobs", self._numbers, batch.now_ms)
        if batch.changed_rows() != len(self._numbers):
            raise AssertionError("an attempt that memory knows does not run")
        for (queue_id, name, worker_id), (queue, jobs) in self._told.items():
            batch.log.add_run(
                events.Kind.COMPLETED, queue.name, name, State.COMPLETED, State.ACTIVE, jobs, worker_id,
                FinishReason.COMPLETED,
            )  # fmt: skip
            batch.count(queue_id, State.ACTIVE, -(len(jobs) // 3))
            batch.count(queue_id, State.COMPLETED, len(jobs) // 3)
        if self._results:
            sql.run_rows("insert_results", self._results)
        if retained := [(number,) for number, traits in self._keyed if not traits & rows.SINGLETON]:
            sql.run_rows("date_receipts", retained, batch.now_ms)
        if singletons := [(number,) for number, traits in self._keyed if traits & rows.SINGLETON]:
            sql.run_rows("free_receipts", singletons)


def _settle_rest(
    batch: LibsqlBatch, command: commands.Settle, states: bytearray, rest: list[int], effects: list[Effect]
) -> Applied:
    refused: list[Refused] = []
    for index in rest:
        answer = _settle_one(batch, command.items[index], effects)
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
