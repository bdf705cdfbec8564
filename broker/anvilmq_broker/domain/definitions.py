"""Who may change a recurring definition, and what a change comes to (semantics 6.5, 6.7, api 9.16); pure decisions.

A definition that comes from a custom resource is its owner's: only a call from that resource changes it. A resource of
the same kind, namespace and name under a new uid was deleted and made again: it takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from anvilmq_broker.domain import commands, refusals, scheduler
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.scheduler import Scheduler

DRY_RUN_UID: Final = "dry-run"
SCHEDULER_TYPE: Final = 1
"""`DefinitionRecord.type` of a recurring definition."""


class Outcome(IntEnum):
    """What an upsert did; the numbers are those of the wire."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3
    STALE_GENERATION = 4


class Upserted(msgspec.Struct, frozen=True):
    """What an upsert comes to. after: the definition then; the very `stored` one when nothing is to be written."""

    outcome: Outcome
    after: Scheduler


def upsert(
    stored: Scheduler | None, wanted: commands.UpsertScheduler, make_uid: Callable[[], str], now_ms: int
) -> Upserted | Refused:
    """Make or change a definition, idempotent by content [6.7]. make_uid: drawn only for one that is really made."""
    if stored is None:
        uid = DRY_RUN_UID if wanted.dry_run else make_uid()
        return Upserted(Outcome.CREATED, _made(wanted, uid, now_ms))
    if (refused := _not_its_own(stored, wanted)) is not None:
        return refused
    if wanted.owner and is_owner(stored, wanted.owner) and _is_older(wanted.owner, stored.owner):
        return Upserted(Outcome.STALE_GENERATION, stored)
    suspended = stored.suspended if wanted.spec.suspended is None else wanted.spec.suspended
    after = stored if wanted.owner == stored.owner else replace(stored, owner=wanted.owner)
    if scheduler.content_hash(wanted.spec, suspended) != stored.content_hash:
        return Upserted(Outcome.UPDATED, scheduler.edited(after, _stored(wanted.spec), suspended, now_ms))
    if stored.next_tick_ms is None and stored.problem_reason:
        # It stopped for want of something, such as a time zone, that may be there again.
        freed = scheduler.edited(after, _stored(wanted.spec), suspended, now_ms)
        if freed.next_tick_ms is not None:
            return Upserted(Outcome.UPDATED, freed)
    return Upserted(Outcome.UPDATED if stored.owner is None and after.owner else Outcome.UNCHANGED, after)


def refuse_delete(stored: Scheduler, owner: commands.Owner | None) -> Refused | None:
    """A definition with an owner is not deleted by a call without one."""
    return refusals.owned_by_crd(stored.name, stored.owner, "delete") if stored.owner and owner is None else None


def is_owner(stored: Scheduler, owner: commands.Owner) -> bool:
    """Whether the definition belongs to this very resource."""
    return stored.owner is not None and stored.owner.uid == owner.uid


def suspend(stored: Scheduler, suspended: bool, now_ms: int) -> Scheduler | Refused:
    """Suspend or resume; the very `stored` one when it is so already. A resumed one counts from now [6.5]."""
    if stored.owner is not None:
        return refusals.owned_by_crd(stored.name, stored.owner, "suspend" if suspended else "resume")
    if stored.suspended == suspended:
        return stored
    return scheduler.edited(stored, stored.spec, suspended, now_ms)


def reanchored(it: Scheduler, now_ms: int) -> Scheduler:
    """After the clock was set back far: the next tick from now, where that is earlier; else the very same [6.4]."""
    after = scheduler.anchored(it, now_ms)
    if after.next_tick_ms is None or (it.next_tick_ms is not None and it.next_tick_ms <= after.next_tick_ms):
        return it
    return after


# ------------------------------------------------------------------------------------------------- shown


def record(it: Scheduler, last_state: int) -> commands.SchedulerRecord:
    """The definition as readers see it. last_state: reported state of the last run, 0 when it is gone."""
    return commands.SchedulerRecord(
        name=it.name,
        spec=replace(it.spec, suspended=it.suspended),
        owner=it.owner,
        uid=it.uid,
        content_hash=it.content_hash,
        next_tick_at_ms=it.next_tick_ms or 0,
        last_tick_at_ms=it.last_tick_ms or 0,
        last_run=it.last_run,
        last_state=last_state,
        run_count=it.run_count,
        skipped_count=it.skipped_count,
        missed_count=it.missed_count,
        problem_reason=it.problem_reason,
        problem_message=it.problem_message,
        created_at_ms=it.created_ms,
        updated_at_ms=it.updated_ms,
    )


def owned_record(it: Scheduler, owner: commands.Owner) -> commands.DefinitionRecord:
    """The definition as its owner's controller compares it."""
    return commands.DefinitionRecord(
        SCHEDULER_TYPE,
        it.name,
        owner,
        it.next_tick_ms or 0,
        it.last_tick_ms or 0,
        it.last_run,
        it.problem_reason,
        it.problem_message,
    )


# ------------------------------------------------------------------------------------------------ inside


def _not_its_own(stored: Scheduler, wanted: commands.UpsertScheduler) -> Refused | None:
    if wanted.owner is None:
        return refusals.owned_by_crd(stored.name, stored.owner, "edit") if stored.owner else None
    if stored.owner is None:
        return None if wanted.adopt else refusals.name_conflict(stored.name, None)
    if _resource(wanted.owner) == _resource(stored.owner):
        # The same uid, or a resource that was made anew under its old name: that one takes over.
        return None
    return refusals.name_conflict(stored.name, stored.owner)


def _resource(owner: commands.Owner) -> tuple[str, str, str]:
    return owner.kind, owner.namespace, owner.name


def _is_older(owner: commands.Owner, stored: commands.Owner | None) -> bool:
    return stored is not None and owner.generation < stored.generation


def _made(wanted: commands.UpsertScheduler, uid: str, now_ms: int) -> Scheduler:
    suspended = bool(wanted.spec.suspended)
    made = Scheduler(
        uid=uid,
        name=wanted.name,
        spec=_stored(wanted.spec),
        content_hash=scheduler.content_hash(wanted.spec, suspended),
        created_ms=now_ms,
        updated_ms=now_ms,
        anchor_ms=now_ms,
        owner=wanted.owner,
        suspended=suspended,
    )
    return scheduler.anchored(made, now_ms)


def _stored(spec: commands.SchedulerSpec) -> commands.SchedulerSpec:
    """The spec as stored: whether it is suspended stands beside it, as edits leave it alone."""
    return replace(spec, suspended=None)
