"""Ticks and triggers in the libSQL store: definitions are read and written in sets, their jobs go the way of all adds.

Which ticks fire is decided in domain/scheduler.py. A tick, its job and the next tick's time are one transaction.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from anvilmq_broker.domain import commands, events, job, refusals, retention, scheduler
from anvilmq_broker.domain.errors import Constraint, Refused
from anvilmq_broker.domain.scheduler import Plan, Scheduler
from anvilmq_broker.domain.state import Concurrency
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql import adds, scheduler_rows, settlements
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.libsql.scheduler_rows import Stored
from anvilmq_broker.store.protocol import Applied, Effect

if TYPE_CHECKING:
    from anvilmq_broker.store.libsql.batch import LibsqlBatch

Tick = tuple[int, int]
"""Number of the definition, time of the tick."""


def fire_due(batch: LibsqlBatch, group: list[commands.FireDue]) -> list[Applied]:
    """Fire what is due of these definitions; one whose job the schema refuses spoils no other."""
    return [Applied(commands.Done(), _fire_all(batch, command)) for command in group]


def _fire_all(batch: LibsqlBatch, command: commands.FireDue) -> list[Effect]:
    try:
        return batch.attempt(partial(_fire, batch, command))
    except Constraint:
        effects: list[Effect] = []
        for uid in command.uids:
            alone = replace(command, uids=[uid])
            try:
                effects += batch.attempt(partial(_fire, batch, alone))
            except Constraint as error:
                effects += _fire(batch, alone, error)
        return effects


def _fire(batch: LibsqlBatch, command: commands.FireDue, error: Constraint | None = None) -> list[Effect]:
    """error: why no tick of them can make its job."""
    found = {
        row[1]: scheduler_rows.to_stored(row) for row in batch.sql.run_rows("get_due_schedulers", _of(command.uids))
    }
    due = [found[uid] for uid in command.uids if uid in found]
    plans = [(stored, scheduler.plan(stored.it, batch.now_ms, command.serving_since_ms)) for stored in due]
    firing = _Firing(batch, plans, error)
    for stored, plan in plans:
        firing.fire(stored, plan)
    firing.flush()
    return firing.effects


class _Firing:
    """The ticks of one command, and the rows that they come to."""

    def __init__(self, batch: LibsqlBatch, plans: list[tuple[Stored, Plan]], error: Constraint | None) -> None:
        self.effects: list[Effect] = []
        self._batch = batch
        self._error = error
        self._writer = adds.Writer(batch)
        self._fired = _fired_before(batch, [(stored.number, tick) for stored, plan in plans for tick in plan.ticks])
        self._open_runs = _find_open_runs(
            batch,
            [
                stored.number
                for stored, plan in plans
                if plan.ticks and stored.it.spec.concurrency_policy != Concurrency.ALLOW
            ],
        )
        self._tick_rows: list[Row] = []
        self._changed: list[Stored] = []
        self._added: dict[str, int] = {}
        self._late_ms: list[int] = []
        self._skipped = 0
        self._missed = 0

    def fire(self, stored: Stored, plan: Plan) -> None:
        """Fire the ticks of one definition."""
        before, after = stored.it, plan.after
        for tick in plan.ticks:
            if (stored.number, tick) in self._fired:
                continue
            run = self._fire_tick(stored, tick)
            if isinstance(run, commands.JobRef):
                after = scheduler.fired(after, tick, run)
                self._late_ms.append(self._batch.now_ms - (_due_ms(before) if tick == before.next_tick_ms else tick))
                self._tick_rows.append((stored.number, tick, run.number))
            else:
                after = scheduler.skipped(after, run.reason, run.message) if run else scheduler.skipped(after)
                self._batch.log.add_tick(events.Kind.SCHEDULER_SKIPPED, after.name, tick)
                self._tick_rows.append((stored.number, tick, None))
        if after != before:
            self._changed.append(Stored(stored.number, after))
        self._skipped += after.skipped_count - before.skipped_count
        self._missed += after.missed_count - before.missed_count
        self.effects.append(protocol.ticks_of(after))

    def flush(self) -> None:
        """Write what was collected."""
        self._writer.flush()
        if self._tick_rows:
            self._batch.sql.run_rows("insert_ticks", self._tick_rows, self._batch.now_ms)
        scheduler_rows.save_states(self._batch.sql, self._changed)
        self.effects += [protocol.Added(queue, count, source="scheduler") for queue, count in self._added.items()]
        if self._late_ms or self._skipped or self._missed:
            self.effects.append(protocol.Ticked(self._late_ms, self._skipped, self._missed))

    def _fire_tick(self, stored: Stored, tick: int) -> commands.JobRef | Refused | None:
        """The run of the tick; why it was refused; or None: forbidden by a run that goes on [6.6]."""
        it, batch = stored.it, self._batch
        policy, open_runs = it.spec.concurrency_policy, self._open_runs.get(stored.number, [])
        if policy == Concurrency.FORBID and open_runs:
            return None
        if (refused := self._refuse(it)) is not None:
            return refused
        assert it.spec.job is not None
        if policy == Concurrency.REPLACE and open_runs:
            self._replace(stored.number, commands.JobRef(batch.staged.next_number, batch.now_ms))
        run = self._writer.add_run(it.spec.job, job.Origin(stored.number, it.name, tick), self.effects)
        queue = it.spec.job.queue
        self._added[queue] = self._added.get(queue, 0) + 1
        self._open_runs.setdefault(stored.number, []).append(run)
        batch.log.add_tick(
            events.Kind.SCHEDULER_TICKED, it.name, tick, queue, it.spec.job.name, (run.number, run.created_ms)
        )
        return run

    def _refuse(self, it: Scheduler) -> Refused | None:
        if it.spec.job is None:
            return refusals.no_target(it.name)
        if self._error is not None:
            return refusals.by_schema(self._error.name)
        return self._writer.find_no_room(it.spec.job.queue)

    def _replace(self, number: int, by: commands.JobRef) -> None:
        """Cancel the runs that go on; one of this very command has to be written first.

        Once asked they are not asked again: a thousand ticks caught up would each look at all before it.
        """
        self._writer.flush()
        for run in self._open_runs.pop(number):
            self.effects += settlements.cancel_run(self._batch, run, by)


def trigger(batch: LibsqlBatch, group: list[commands.TriggerScheduler]) -> list[Applied]:
    """Make a run now, whatever the schedule says."""
    return [_trigger_one(batch, command) for command in group]


def _trigger_one(batch: LibsqlBatch, command: commands.TriggerScheduler) -> Applied:
    stored = scheduler_rows.find(batch.sql, command.name)
    if stored is None:
        return Applied(refusals.scheduler_not_found(command.name), [])
    earlier = batch.sql.run("get_trigger", stored.number, command.run_key) if command.run_key else []
    if earlier and earlier[0][2] > batch.now_ms - retention.TRIGGERS_MS:
        return Applied(commands.TriggeredScheduler(commands.JobRef(*earlier[0][:2]), existing=True), [])
    template = stored.it.spec.job
    if template is None:
        return Applied(refusals.no_target(command.name), [])
    writer, effects = adds.Writer(batch), list[Effect]()
    if (refused := writer.find_no_room(template.queue)) is not None:
        return Applied(refused, [])
    run = writer.add_run(template, job.Origin(stored.number, stored.it.name, batch.now_ms), effects)
    writer.flush()
    if command.run_key:
        batch.sql.run("put_trigger", stored.number, command.run_key, run.number, run.created_ms, batch.now_ms)
    after = replace(stored.it, last_run=run)
    scheduler_rows.save(batch.sql, stored, after)
    effects += [protocol.Added(template.queue, 1, source="scheduler"), protocol.ticks_of(after)]
    return Applied(commands.TriggeredScheduler(run), effects)


def _fired_before(batch: LibsqlBatch, wanted: list[Tick]) -> set[Tick]:
    return {(row[0], row[1]) for row in batch.sql.run_rows("fired_ticks", wanted)} if wanted else set()


def _find_open_runs(batch: LibsqlBatch, numbers: list[int]) -> dict[int, list[commands.JobRef]]:
    found: dict[int, list[commands.JobRef]] = {}
    for number, run, created_ms in sorted(batch.sql.run_rows("open_runs", _of(numbers))) if numbers else ():
        found.setdefault(number, []).append(commands.JobRef(run, created_ms))
    return found


def _due_ms(it: Scheduler) -> int:
    return scheduler.due_ms(it) or 0


def _of(values: list[str] | list[int]) -> list[Row]:
    return [(value,) for value in values]
