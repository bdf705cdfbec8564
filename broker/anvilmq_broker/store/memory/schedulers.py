"""Recurring definitions in the memory store: their commands, their ticks, and the queries about them."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from anvilmq_broker.domain import commands, definitions, events, job, refusals, retention, scheduler, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.scheduler import Scheduler
from anvilmq_broker.domain.state import Concurrency
from anvilmq_broker.store import protocol
from anvilmq_broker.store.memory.tables import Definition
from anvilmq_broker.store.protocol import Effect, TakeSlot

if TYPE_CHECKING:
    from anvilmq_broker.store.memory.batch import MemoryBatch
    from anvilmq_broker.store.memory.store import MemoryStore

Outcome = tuple[commands.Outcome, list[Effect]]
PAGE_BYTES = 3 << 20


def apply(batch: MemoryBatch, command: commands.SchedulerCommand, take_slot: TakeSlot) -> Outcome:
    """Carry out one command."""
    match command:
        case commands.UpsertScheduler():
            return _upsert(batch, command)
        case commands.DeleteScheduler():
            return _delete(batch, command)
        case commands.SuspendScheduler():
            return _suspend(batch, command)
        case commands.TriggerScheduler():
            return _trigger(batch, command, take_slot)
        case commands.FireDue():
            return commands.Done(), _fire_due(batch, command, take_slot)
        case commands.ReanchorSchedulers():
            return _reanchor(batch, command)
        case commands.ReleaseDefinition():
            return _release(batch, command)


def _upsert(batch: MemoryBatch, command: commands.UpsertScheduler) -> Outcome:
    store, kept = batch.store, batch.store.schedulers.get(command.name)
    verdict = definitions.upsert(kept.it if kept else None, command, store.chance.token, batch.now_ms)
    if isinstance(verdict, Refused):
        return verdict, []
    effects: list[Effect] = []
    if not command.dry_run and (kept is None or verdict.after is not kept.it):
        if kept is None:
            number = store.numbers["scheduler"]
            store.numbers.put("scheduler", number + 1)
            kept = Definition(number, verdict.after)
        effects = _save(batch, replace(kept, it=verdict.after))
        if verdict.outcome is not definitions.Outcome.UNCHANGED:
            batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, command.name)
    record = definitions.record(verdict.after, _last_state(store, verdict.after, batch.now_ms))
    return commands.UpsertedScheduler(record, verdict.outcome), effects


def _delete(batch: MemoryBatch, command: commands.DeleteScheduler) -> Outcome:
    kept = batch.store.schedulers.get(command.name)
    if kept is None:
        missing = commands.DeletedScheduler(False)
        return missing if command.allow_missing else refusals.scheduler_not_found(command.name), []
    if (refused := definitions.refuse_delete(kept.it, command.owner)) is not None:
        return refused, []
    if command.owner is not None and not definitions.is_owner(kept.it, command.owner):
        return commands.DeletedScheduler(False), []
    batch.store.schedulers.put(command.name, None)
    batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, command.name)
    return commands.DeletedScheduler(True), [protocol.Ticks(kept.it.uid, None)]


def _suspend(batch: MemoryBatch, command: commands.SuspendScheduler) -> Outcome:
    kept = batch.store.schedulers.get(command.name)
    if kept is None:
        return refusals.scheduler_not_found(command.name), []
    after = definitions.suspend(kept.it, command.suspended, batch.now_ms)
    if isinstance(after, Refused):
        return after, []
    effects: list[Effect] = []
    if after is not kept.it:
        effects = _save(batch, replace(kept, it=after))
        batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, command.name)
    return commands.SchedulerFound(definitions.record(after, _last_state(batch.store, after, batch.now_ms))), effects


def _release(batch: MemoryBatch, command: commands.ReleaseDefinition) -> Outcome:
    kept = batch.store.schedulers.get(command.name)
    if kept is None or not definitions.is_owner(kept.it, command.owner):
        return commands.ReleasedDefinition(False), []
    effects = _save(batch, replace(kept, it=replace(kept.it, owner=None, updated_ms=batch.now_ms)))
    batch.log.add_tick(events.Kind.SCHEDULER_CHANGED, command.name)
    return commands.ReleasedDefinition(True), effects


def _reanchor(batch: MemoryBatch, command: commands.ReanchorSchedulers) -> Outcome:
    later = sorted((it for it in batch.store.schedulers.values() if it.it.uid > command.after), key=_uid)
    effects: list[Effect] = []
    for kept in later[: command.limit]:
        after = definitions.reanchored(kept.it, batch.now_ms)
        if after is not kept.it:
            effects += _save(batch, replace(kept, it=after))
    return commands.Reanchored(later[command.limit - 1].it.uid if len(later) > command.limit else ""), effects


def _save(batch: MemoryBatch, kept: Definition) -> list[Effect]:
    batch.store.schedulers.put(kept.it.name, kept)
    return [protocol.ticks_of(kept.it)]


def _uid(kept: Definition) -> str:
    return kept.it.uid


# ---------------------------------------------------------------------------------------- ticks and triggers


def _trigger(batch: MemoryBatch, command: commands.TriggerScheduler, take_slot: TakeSlot) -> Outcome:
    store, kept = batch.store, batch.store.schedulers.get(command.name)
    if kept is None:
        return refusals.scheduler_not_found(command.name), []
    place = (kept.number, command.run_key)
    earlier = store.triggers.get(place) if command.run_key else None
    if earlier is not None and earlier[1] > batch.now_ms - retention.TRIGGERS_MS:
        return commands.TriggeredScheduler(earlier[0], existing=True), []
    if (refused := _refuse_run(batch, kept.it)) is not None:
        return refused, []
    assert kept.it.spec.job is not None
    effects: list[Effect] = [protocol.Added(kept.it.spec.job.queue, 1, source="scheduler")]
    run = _run(batch, kept, batch.now_ms, take_slot, effects)
    if command.run_key:
        store.triggers.put(place, (run, batch.now_ms))
    effects += _save(batch, replace(kept, it=replace(kept.it, last_run=run)))
    return commands.TriggeredScheduler(run), effects


def _fire_due(batch: MemoryBatch, command: commands.FireDue, take_slot: TakeSlot) -> list[Effect]:
    effects: list[Effect] = []
    told, first = protocol.Ticked([]), batch.store.numbers["job"]
    by_uid = {it.it.uid: it for it in batch.store.schedulers.values()}
    for uid in command.uids:
        if (kept := by_uid.get(uid)) is not None:
            told = _fire(batch, kept, command.serving_since_ms, take_slot, effects, told)
    if told != protocol.Ticked([]):
        effects.append(told)
    made = [batch.store.jobs[number].job.queue for number in range(first, batch.store.numbers["job"])]
    effects += [protocol.Added(queue, made.count(queue), source="scheduler") for queue in dict.fromkeys(made)]
    return effects


def _fire(
    batch: MemoryBatch,
    kept: Definition,
    since_ms: int,
    take_slot: TakeSlot,
    effects: list[Effect],
    told: protocol.Ticked,
) -> protocol.Ticked:
    plan = scheduler.plan(kept.it, batch.now_ms, since_ms)
    after, late = plan.after, list[int]()
    for tick in plan.ticks:
        if (kept.number, tick) not in batch.store.ticks:
            run = _fire_tick(batch, kept, tick, take_slot, effects)
            number = None
            if isinstance(run, commands.JobRef):
                after, number = scheduler.fired(after, tick, run), run.number
                late.append(batch.now_ms - (scheduler.due_ms(kept.it) or 0 if tick == kept.it.next_tick_ms else tick))
            else:
                after = scheduler.skipped(after, *(run or ()))
                batch.log.add_tick(events.Kind.SCHEDULER_SKIPPED, after.name, tick)
            batch.store.ticks.put((kept.number, tick), (batch.now_ms, number))
    if after != kept.it:
        _save(batch, replace(kept, it=after))
    effects.append(protocol.ticks_of(after))
    return protocol.Ticked(
        told.late_ms + late,
        told.skipped + after.skipped_count - kept.it.skipped_count,
        told.missed + after.missed_count - kept.it.missed_count,
    )


def _fire_tick(
    batch: MemoryBatch, kept: Definition, tick: int, take_slot: TakeSlot, effects: list[Effect]
) -> commands.JobRef | tuple[str, str] | None:
    """The run of the tick; why it was refused; or None: forbidden by a run that goes on [6.6]."""
    policy, going_on = kept.it.spec.concurrency_policy, sorted(batch.store.jobs.runs.get(kept.number, ()))
    if policy == Concurrency.FORBID and going_on:
        return None
    if (refused := _refuse_run(batch, kept.it)) is not None:
        return refused.reason, refused.message
    by = commands.JobRef(batch.store.numbers["job"], batch.now_ms)
    for number in going_on if policy == Concurrency.REPLACE else ():
        effects += batch.cancel_run(number, by)
    run = _run(batch, kept, tick, take_slot, effects)
    batch.log.add_tick(
        events.Kind.SCHEDULER_TICKED, kept.it.name, tick, *_target(kept.it.spec), (run.number, run.created_ms)
    )
    return run


def _refuse_run(batch: MemoryBatch, it: Scheduler) -> Refused | None:
    return refusals.no_target(it.name) if it.spec.job is None else batch.find_no_room(it.spec.job.queue)


def _run(
    batch: MemoryBatch, kept: Definition, tick: int, take_slot: TakeSlot, effects: list[Effect]
) -> commands.JobRef:
    assert kept.it.spec.job is not None
    return batch.make_run(kept.it.spec.job, job.Origin(kept.number, kept.it.name, tick), take_slot, effects)


def _target(spec: commands.SchedulerSpec) -> tuple[str, str]:
    assert spec.job is not None
    return spec.job.queue, spec.job.name


# --------------------------------------------------------------------------------------------------- queries


def query(
    store: MemoryStore, query: commands.GetScheduler | commands.ListSchedulers | commands.ListDefinitions, now_ms: int
) -> commands.Answer:
    """Answer from committed state."""
    match query:
        case commands.GetScheduler():
            kept = store.schedulers.get(query.name)
            if kept is None:
                return refusals.scheduler_not_found(query.name)
            return commands.SchedulerFound(definitions.record(kept.it, _last_state(store, kept.it, now_ms)))
        case commands.ListSchedulers():
            return _list(store, query, now_ms)
        case commands.ListDefinitions():
            return _list_owned(store, query)


def _last_state(store: MemoryStore, it: Scheduler, now_ms: int) -> int:
    entry = store.jobs.find(it.last_run) if it.last_run is not None else None
    return int(view.reported_state(entry.job, now_ms)) if entry is not None else 0


def _list(store: MemoryStore, query: commands.ListSchedulers, now_ms: int) -> commands.SchedulerPage:
    found: list[commands.SchedulerRecord] = []
    last, size = query.after, 0
    names = [name for name in sorted(store.schedulers) if name > query.after]
    for looked, name in enumerate(names):
        it = store.schedulers[name].it
        matched = view.definition_matches(query, name, it.spec.job.queue if it.spec.job else "")
        size += len(it.spec.job.data) if matched and it.spec.job else 0
        full = matched and bool(found) and (len(found) == query.limit or size > PAGE_BYTES)
        if full or looked == view.MOST_LOOKED_AT:
            return commands.SchedulerPage(found, last)
        last = name
        if matched:
            found.append(definitions.record(it, _last_state(store, it, now_ms)))
    return commands.SchedulerPage(found)


def _list_owned(store: MemoryStore, query: commands.ListDefinitions) -> commands.DefinitionPage:
    owned = sorted(
        ((of.kind, of.namespace, of.name, definitions.SCHEDULER_TYPE, kept.it.name), kept.it, of)
        for kept in store.schedulers.values()
        if (of := kept.it.owner) is not None and view.owner_matches(query, of)
    )
    after = [one for one in owned if query.after is None or one[0] > query.after]
    page = after[: query.limit]
    records = [definitions.owned_record(it, of) for _, it, of in page]
    return commands.DefinitionPage(records, page[-1][0] if len(after) > len(page) else None)


def export(store: MemoryStore) -> dict[str, list[tuple[object, ...]]]:
    """Rows of definitions, ticks and triggers, as `view` lays them out."""
    return {
        "schedulers": [
            view.scheduler_row(kept.number, kept.it)
            for kept in sorted(store.schedulers.values(), key=attrgetter("number"))
        ],
        "ticks": [(*key, *row) for key, row in sorted(store.ticks.items())],
        "triggers": [(*key, run.number, run.created_ms, at) for key, (run, at) in sorted(store.triggers.items())],
    }
