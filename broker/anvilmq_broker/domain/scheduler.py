"""Recurring definitions: which ticks fire now, what becomes of the missed, what an edit does to the next (semantics 6).

Pure decisions; the stores keep the rows, the engine the timers. `next_tick_ms` is without jitter; a tick is due at
`due_ms`. Ticks that fell due while the broker did not serve are caught up as the definition says, later ones all fire.
A definition whose schedule cannot be counted any more (its zone has left the data) stops alone, with a problem.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from anvilmq_broker.domain import commands, schedule
from anvilmq_broker.domain.state import CatchUp

MOST_LIVE_RUNS: Final = 1_000
"""Ticks of one definition that fire in one turn besides those caught up; what is more waits for the next turn."""
_MOST_TIMINGS: Final = 16_384
_ANSWERS_KEPT: Final = 4
_OWN_PROBLEMS: Final = ("SCHEDULE_INVALID", "TIME_ZONE_UNKNOWN")


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

    `after` does not count the ticks; each is added by `fired` or `skipped`.
    """

    ticks: list[int]
    after: Scheduler


# ------------------------------------------------------------------------------------------------ content


def timing(spec: commands.SchedulerSpec) -> schedule.Timing:
    """The timing of a spec, parsed once. Raises schedule.Invalid."""
    found = _asked(spec)
    return found.when if isinstance(found, _Remembering) else found


def content_hash(spec: commands.SchedulerSpec, suspended: bool) -> str:
    """Hash of what a definition says, defaults filled in; an upsert with the same one changes nothing [6.7]."""
    canonical = msgspec.msgpack.Encoder(order="deterministic").encode(replace(spec, suspended=suspended))
    return hashlib.sha256(canonical).hexdigest()[:32]


def edited(it: Scheduler, spec: commands.SchedulerSpec, suspended: bool, now_ms: int) -> Scheduler:
    """The definition with new content; one whose timing changed, or that was resumed, counts from now [6.5]."""
    after = replace(
        it,
        spec=spec,
        suspended=suspended,
        content_hash=content_hash(spec, suspended),
        updated_ms=now_ms,
        problem_reason="",
        problem_message="",
    )
    if not _same_timing(it.spec, spec) or it.suspended:
        return anchored(after, now_ms)
    # A tick that waits for the end of its jitter is still to come; one that was missed long ago is the plan's.
    return _counted(after, now_ms if it.next_tick_ms is None else min(it.next_tick_ms - 1, now_ms))


def _same_timing(one: commands.SchedulerSpec, other: commands.SchedulerSpec) -> bool:
    names = ("cron", "time_zone", "every_ms", "offset_ms")
    return all(getattr(one, name) == getattr(other, name) for name in names)


# --------------------------------------------------------------------------------------------------- when


def next_tick(it: Scheduler, after_ms: int) -> int | None:
    """The first tick later than after_ms that start, end, limit and suspension let through. Raises schedule.Invalid."""
    spec = it.spec
    if it.suspended or _is_spent(it):
        return None
    found = _later(_asked(spec), max(after_ms, it.anchor_ms, spec.start_at_ms - 1))
    return None if found is None or (spec.end_at_ms and found > spec.end_at_ms) else found


def anchored(it: Scheduler, now_ms: int) -> Scheduler:
    """Counted anew from now: when it is made, after an edit of its timing, a resume, a restore, a clock set back far.

    Also frees one that stopped because of its schedule, if that can be counted now.
    """
    return _counted(replace(it, anchor_ms=now_ms), now_ms)


def due_ms(it: Scheduler) -> int | None:
    """When the next tick is to fire, jitter included; None when there is none. Never raises: `plan` finds the problem."""
    if it.next_tick_ms is None:
        return None
    try:
        return _due_ms(it, _asked(it.spec), it.next_tick_ms)
    except schedule.Invalid:
        return it.next_tick_ms


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


# -------------------------------------------------------------------------------------------------- firing


def plan(it: Scheduler, now_ms: int, serving_since_ms: int) -> Plan:
    """Which ticks fire at now_ms; every other one that is past is counted as missed [6.5].

    serving_since_ms: since when the broker has served without a pause; what fell due before it follows `catch_up`. A
    start, a stop of the process and a clock set forward begin it anew. Found by arithmetic, whatever the pause.
    """
    if it.next_tick_ms is None or it.suspended:
        return Plan([], replace(it, next_tick_ms=None))
    try:
        return _plan(it, _asked(it.spec), it.next_tick_ms, now_ms, serving_since_ms)
    except schedule.Invalid as error:
        return Plan([], _stopped(it, error))


def fired(it: Scheduler, tick_ms: int, run: commands.JobRef) -> Scheduler:
    """The definition after a tick made a run; the last one of its limit is followed by none."""
    after = replace(
        it, last_tick_ms=tick_ms, last_run=run, run_count=it.run_count + 1, problem_reason="", problem_message=""
    )
    return replace(after, next_tick_ms=None) if _is_spent(after) else after


def skipped(it: Scheduler, problem_reason: str = "", problem_message: str = "") -> Scheduler:
    """The definition after a tick made no run: forbidden by a run that goes on, or refused for the reason given."""
    after = replace(it, skipped_count=it.skipped_count + 1)
    if problem_reason:
        return replace(after, problem_reason=problem_reason, problem_message=problem_message)
    return after


def _plan(it: Scheduler, when: schedule.Timing, first_ms: int, now_ms: int, serving_since_ms: int) -> Plan:
    last = _last_due(it, when, first_ms, now_ms)
    if last is None:
        # Not due, or the zone's data is newer than the tick, which is none any more: then it must not stay due.
        return Plan([], it if _due_ms(it, when, first_ms) > now_ms else _counted(it, now_ms))
    down = _last_due(it, when, first_ms, min(serving_since_ms - 1, now_ms)) if first_ms < serving_since_ms else None
    ticks, missed = ([], 0) if down is None else _caught_up(it, when, first_ms, down)
    live = _walk(when, first_ms - 1 if down is None else down, last, MOST_LIVE_RUNS)
    done = live[-1] if len(live) == MOST_LIVE_RUNS else last
    ticks += live
    if deadline := it.spec.starting_deadline_ms:
        kept = [tick for tick in ticks if now_ms - _due_ms(it, when, tick) <= deadline]
        ticks, missed = kept, missed + len(ticks) - len(kept)
    if it.spec.limit and len(ticks) > (room := max(it.spec.limit - it.run_count, 0)):
        # One that is skipped uses up nothing: the others come in the next turn, if the limit still has room for them.
        ticks = ticks[:room]
        done = ticks[-1] if ticks else done
    return Plan(ticks, _counted(replace(it, missed_count=it.missed_count + missed), done))


def _last_due(it: Scheduler, when: schedule.Timing, first_ms: int, by_ms: int) -> int | None:
    """The last tick from first_ms on that is due by then; jitter ends before the next tick, so all before it are too."""
    last = when.last_until(min(by_ms, it.spec.end_at_ms or by_ms), first_ms - 1)
    if last is not None and _due_ms(it, when, last) > by_ms:
        last = when.last_until(last - 1, first_ms - 1)
    return last


def _caught_up(it: Scheduler, when: schedule.Timing, first_ms: int, last_ms: int) -> tuple[list[int], int]:
    """Of the ticks from the first to the last, which fell into downtime: those to fire, and how many are missed."""
    many = when.count(first_ms - 1, last_ms)
    wanted = {CatchUp.LATEST: 1, CatchUp.NONE: 0, CatchUp.ALL: it.spec.max_catch_up_runs}[CatchUp(it.spec.catch_up)]
    ticks: list[int] = []
    end = last_ms
    while len(ticks) < wanted and (tick := when.last_until(end, first_ms - 1)) is not None:
        ticks.append(tick)
        end = tick - 1
    return ticks[::-1], many - len(ticks)


def _walk(when: schedule.Timing, after_ms: int, until_ms: int, most: int) -> list[int]:
    ticks: list[int] = []
    at = after_ms
    while at < until_ms and len(ticks) < most and (tick := _later(when, at)) is not None and tick <= until_ms:
        ticks.append(tick)
        at = tick
    return ticks


# ----------------------------------------------------------------------------------------------- inside


def _asked(spec: commands.SchedulerSpec) -> schedule.Timing:
    return _timing(spec.cron, spec.time_zone, spec.every_ms, spec.offset_ms)


@lru_cache(maxsize=_MOST_TIMINGS)
def _timing(cron: str, time_zone: str, every_ms: int, offset_ms: int) -> schedule.Timing:
    # Kept, as parsing costs more than the rest of a turn, and many definitions share an expression.
    return _Remembering(schedule.parse_cron(cron, time_zone)) if cron else schedule.parse_every(every_ms, offset_ms)


class _Remembering:
    """A timing that knows its last answers: at a full minute all definitions of one expression ask it the same."""

    __slots__ = ("_lasts", "_nexts", "count", "when")

    def __init__(self, when: schedule.Cron) -> None:
        self.when = when
        self._nexts: dict[int, int | None] = {}
        self._lasts: dict[tuple[int, int], int | None] = {}
        self.count = when.count

    def next_after(self, after_ms: int) -> int | None:
        if after_ms not in self._nexts:
            if len(self._nexts) == _ANSWERS_KEPT:
                self._nexts.clear()
            self._nexts[after_ms] = self.when.next_after(after_ms)
        return self._nexts[after_ms]

    def last_until(self, until_ms: int, after_ms: int) -> int | None:
        asked = (until_ms, after_ms)
        if asked not in self._lasts:
            if len(self._lasts) == _ANSWERS_KEPT:
                self._lasts.clear()
            self._lasts[asked] = self.when.last_until(until_ms, after_ms)
        return self._lasts[asked]


def _later(when: schedule.Timing, after_ms: int) -> int | None:
    """The next tick; a schedule that did not move on would spin the loop."""
    found = when.next_after(after_ms)
    if found is not None and found <= after_ms:
        raise schedule.Invalid("", f"the tick {found} is not later than {after_ms}: please report this schedule")
    return found


def _due_ms(it: Scheduler, when: schedule.Timing, tick_ms: int) -> int:
    if not it.spec.jitter_ms:
        return tick_ms
    following = _later(when, tick_ms)
    return tick_ms + jitter_ms(it.uid, tick_ms, it.spec.jitter_ms, None if following is None else following - tick_ms)


def _counted(it: Scheduler, after_ms: int) -> Scheduler:
    try:
        found = next_tick(it, after_ms)
    except schedule.Invalid as error:
        return _stopped(it, error)
    if it.problem_reason in _OWN_PROBLEMS:
        it = replace(it, problem_reason="", problem_message="")
    return replace(it, next_tick_ms=found)


def _stopped(it: Scheduler, error: schedule.Invalid) -> Scheduler:
    return replace(it, next_tick_ms=None, problem_reason=error.reason, problem_message=str(error))


def _is_spent(it: Scheduler) -> bool:
    return bool(it.spec.limit) and it.run_count >= it.spec.limit
