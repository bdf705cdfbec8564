"""Recurring definitions, made and fired without a store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from anvilmq_broker.domain import commands, scheduler
from anvilmq_broker.domain.scheduler import Scheduler

RUN = commands.JobRef(7, 1_000)


def at(text: str) -> int:
    """An instant in ms: "01T02:00" is a day and time of June 2027 in UTC; a whole date may stand instead."""
    whole = text if text.count("-") > 1 else f"2027-06-{text}"
    moment = datetime.fromisoformat(whole)
    return int((moment if moment.tzinfo else datetime.fromisoformat(f"{whole}+00:00")).timestamp() * 1000)


NOON = at("01T12:00")


def spec(cron: str = "", **fields: Any) -> commands.SchedulerSpec:
    """A spec; daily at 02:00 unless told otherwise."""
    if "every_ms" not in fields:
        fields["cron"] = cron or "0 2 * * *"
    return commands.SchedulerSpec(**fields)


def made(cron: str = "", now_ms: int = NOON, suspended: bool = False, **fields: Any) -> Scheduler:
    """A definition made at now_ms, which is noon of 1 June 2027 unless told otherwise."""
    content = spec(cron, **fields)
    new = Scheduler(
        uid="3f9c",
        name="nightly",
        spec=content,
        content_hash=scheduler.content_hash(content, suspended),
        created_ms=now_ms,
        updated_ms=now_ms,
        anchor_ms=now_ms,
        suspended=suspended,
    )
    return scheduler.anchored(new, now_ms)


def fire(it: Scheduler, now_ms: int, serving_since_ms: int = 0) -> tuple[list[int], Scheduler]:
    """What a store does in one turn when every tick makes a run: the ticks, and the definition after them."""
    plan = scheduler.plan(it, now_ms, serving_since_ms)
    after = plan.after
    for tick in plan.ticks:
        after = scheduler.fired(after, tick, RUN)
    return plan.ticks, after


def with_run_count(it: Scheduler, run_count: int) -> Scheduler:
    """The definition as if it had run so often."""
    return replace(it, run_count=run_count)
