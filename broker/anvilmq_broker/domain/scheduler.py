"""Recurring definitions: what an upsert means, which ticks fire now, what becomes of the missed (semantics 6).

Pure decisions; the stores keep the rows, the engine the timers. `next_tick_ms` is without jitter; a tick is due at
`due_ms`. Ticks that fell due while the broker did not serve are caught up as the definition says, later ones all fire.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec
from msgspec.structs import replace

from anvilmq_broker.domain import commands, schedule
from anvilmq_broker.domain.state import CatchUp

MOST_LIVE_RUNS: Final = 1_000
"""Ticks of one definition that fire in one turn; what is more waits for the next turn."""


class Scheduler(msgspec.Struct, frozen=True):
    """A definition and how far it has come.

    uid: new when the name is made again after a delete. anchor_ms: ticks count from here on, exclusive. next_tick_ms,
    last_tick_ms, last_run: None when there is none. problem_reason: why it cannot tick, "" when it can.
    """

    uid: str
    name: str
    spec: commands.SchedulerSpec
    content_hash: str
    created_ms: int
    updated_ms: int
    anchor_ms: int
    owner: commands.Owner | None = None
    suspended: bool = False
    next_tick_ms: int | None = None
    last_tick_ms: int | None = None
    last_run: commands.JobRef | None = None
    run_count: int = 0
    skipped_count: int = 0
    missed_count: int = 0
    problem_reason: str = ""
    problem_message: str = ""


class Plan(msgspec.Struct, frozen=True):
    """What a definition does now: ticks to fire, oldest first, and the definition as it is once they have.

    The run counts of `after` take no tick into account; each fired one is added by `fired` or `skipped`.
    """

    ticks: list[int]
    after: Scheduler


def timing(spec: commands.SchedulerSpec) -> schedule.Timing:
    """The checked timing of a stored definition. Raises schedule.Invalid for one that is not."""
    if spec.cron:
        return schedule.parse_cron(spec.cron, spec.time_zone)
    return schedule.parse_every(spec.every_ms, spec.offset_ms)


def content_hash(spec: commands.SchedulerSpec, suspended: bool) -> str:
    """Hash of what a definition says, defaults filled in; an upsert with the same one changes nothing [6.7]."""
    canonical = msgspec.msgpack.Encoder(order="deterministic").encode(replace(spec, suspended=suspended))
    return hashlib.sha256(canonical).hexdigest()[:32]


def jitter_ms(uid: str, tick_ms: int, most_ms: int, until_next_ms: int | None) -> int:
    """How much later than its tick a run is due: a hash of both, so the same after a restart, in 0..most_ms.

    Cut below the time to the next tick, so that order holds [9.15].
    """
    if until_next_ms is not None:
        most_ms = min(most_ms, until_next_ms - 1)
    if most_ms <= 0:
        return 0
    digest = hashlib.sha256(f"{uid}/{tick_ms}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (most_ms + 1)


def due_ms(it: Scheduler) -> int | None:
    """When the next tick is to fire, jitter included; None when there is none."""
    return None if it.next_tick_ms is None else _due_ms(it, timing(it.spec), it.next_tick_ms)


def next_tick(it: Scheduler, after_ms: int) -> int | None:
    """The first tick later than after_ms that start, end, limit and suspension let through."""
    spec = it.spec
    if it.suspended or (spec.limit and it.run_count >= spec.limit):
        return None
    found = timing(spec).next_after(max(after_ms, it.anchor_ms, spec.start_at_ms - 1))
    return None if found is None or (spec.end_at_ms and found > spec.end_at_ms) else found


def anchored(it: Scheduler, now_ms: int) -> Scheduler:
    """Counted anew from now: after an edit of its schedule, a resume, a restore, a clock set back far [6.4, 6.5]."""
    it = replace(it, anchor_ms=now_ms)
    return replace(it, next_tick_ms=next_tick(it, now_ms))


def same_timing(one: commands.SchedulerSpec, other: commands.SchedulerSpec) -> bool:
    """Whether an edit leaves the ticks where they are."""
    names = ("cron", "every_ms", "offset_ms", "time_zone", "start_at_ms", "end_at_ms")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def edited(it: Scheduler, spec: commands.SchedulerSpec, suspended: bool, now_ms: int) -> Scheduler:
    """The definition with new content; one whose timing changed, or that was resumed, counts from now."""
    after = replace(
        it,
        spec=spec,
        suspended=suspended,
        content_hash=content_hash(spec, suspended),
        updated_ms=now_ms,
        problem_reason="",
        problem_message="",
    )
    if not same_timing(it.spec, spec) or (it.suspended and not suspended):
        return anchored(after, now_ms)
    if suspended:
        return replace(after, next_tick_ms=None)
    return replace(after, next_tick_ms=next_tick(after, _before_next(it, now_ms)))


def plan(it: Scheduler, now_ms: int, serving_since_ms: int) -> Plan:
    """Which ticks fire at now_ms; every other one that is past is counted as missed [6.5].

    serving_since_ms: ticks due before it fell into downtime and follow `catch_up`. Found by arithmetic.
    """
    if it.next_tick_ms is None or it.suspended:
        return Plan([], replace(it, next_tick_ms=None))
    when = timing(it.spec)
    end = min(now_ms, it.spec.end_at_ms or now_ms)
    last = _last_due(it, when, it.next_tick_ms, end, now_ms)
    if last is None:
        return Plan([], it)
    first_live = max(it.next_tick_ms, serving_since_ms)
    down_until = min(last, first_live - 1)
    ticks, missed = _caught_up(it, when, down_until)
    live, last = _live(when, first_live, last)
    ticks += live
    if deadline := it.spec.starting_deadline_ms:
        kept = [tick for tick in ticks if now_ms - tick <= deadline]
        ticks, missed = kept, missed + len(ticks) - len(kept)
    if it.spec.limit:
        ticks = ticks[: max(it.spec.limit - it.run_count, 0)]
    after = replace(it, missed_count=it.missed_count + missed)
    return Plan(ticks, replace(after, next_tick_ms=next_tick(after, last)))


def fired(it: Scheduler, tick_ms: int, run: commands.JobRef) -> Scheduler:
    """The definition after a tick made a run."""
    return replace(
        it, last_tick_ms=tick_ms, last_run=run, run_count=it.run_count + 1, problem_reason="", problem_message=""
    )


def skipped(it: Scheduler, problem_reason: str = "", problem_message: str = "") -> Scheduler:
    """The definition after a tick made no run: forbidden by a run that goes on, or refused for the reason given."""
    after = replace(it, skipped_count=it.skipped_count + 1)
    if problem_reason:
        return replace(after, problem_reason=problem_reason, problem_message=problem_message)
    return after


def settled(it: Scheduler) -> Scheduler:
    """After its ticks have fired: none is left once the limit is reached."""
    limit = it.spec.limit
    return replace(it, next_tick_ms=None) if limit and it.run_count >= limit else it


def _due_ms(it: Scheduler, when: schedule.Timing, tick_ms: int) -> int:
    if not it.spec.jitter_ms:
        return tick_ms
    following = when.next_after(tick_ms)
    return tick_ms + jitter_ms(it.uid, tick_ms, it.spec.jitter_ms, None if following is None else following - tick_ms)


def _before_next(it: Scheduler, now_ms: int) -> int:
    return now_ms if it.next_tick_ms is None else min(it.next_tick_ms - 1, now_ms)


def _last_due(it: Scheduler, when: schedule.Timing, first_ms: int, end_ms: int, now_ms: int) -> int | None:
    """The last tick from first_ms on whose jitter is over; jitter ends before the next tick, so the rest are due."""
    last = when.last_until(end_ms, first_ms - 1)
    if last is not None and _due_ms(it, when, last) > now_ms:
        last = when.last_until(last - 1, first_ms - 1)
    return last


def _caught_up(it: Scheduler, when: schedule.Timing, until_ms: int) -> tuple[list[int], int]:
    """Of the ticks from the next one to until_ms, which fell into downtime: those to fire, and how many are missed."""
    assert it.next_tick_ms is not None
    start = it.next_tick_ms - 1
    many = when.count(start, until_ms) if until_ms > start else 0
    wanted = {CatchUp.LATEST: 1, CatchUp.NONE: 0, CatchUp.ALL: it.spec.max_catch_up_runs}[CatchUp(it.spec.catch_up)]
    ticks: list[int] = []
    end = until_ms
    while len(ticks) < min(wanted, many) and (tick := when.last_until(end, start)) is not None:
        ticks.append(tick)
        end = tick - 1
    return ticks[::-1], many - len(ticks)


def _live(when: schedule.Timing, first_ms: int, last_ms: int) -> tuple[list[int], int]:
    """Ticks that fell due while serving, at most MOST_LIVE_RUNS, and the last one dealt with."""
    ticks: list[int] = []
    at = first_ms - 1
    while len(ticks) < MOST_LIVE_RUNS and (tick := when.next_after(at)) is not None and tick <= last_ms:
        ticks.append(tick)
        at = tick
    return ticks, ticks[-1] if len(ticks) == MOST_LIVE_RUNS else last_ms
