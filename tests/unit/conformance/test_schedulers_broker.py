"""Recurring definitions at the broker's seam: fired on time by the engine's own timers, on each store and through the socket."""

import asyncio
from typing import Any

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import CatchUp, Concurrency, FinishReason, InterruptCause, State
from tests.support.bundles import complete, new_job
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.conformance.lab import Lab, LabRig
from tests.unit.conformance.scheduling import DAY, HOUR, MINUTE, SECOND, spec


async def define(rig: LabRig, name: str = "s", **fields: Any) -> commands.SchedulerRecord:
    """Make or change a definition."""
    outcome = await rig.broker.submit(commands.UpsertScheduler(name, spec(**fields)))
    assert isinstance(outcome, commands.UpsertedScheduler), outcome
    await rig.engine.settle()
    return outcome.scheduler


async def get(rig: LabRig, name: str = "s") -> commands.SchedulerRecord:
    """A definition."""
    found = await rig.broker.query(commands.GetScheduler(name))
    assert isinstance(found, commands.SchedulerFound), found
    return found.scheduler


async def runs(rig: LabRig, name: str = "s") -> list[commands.JobRecord]:
    """What it made, oldest first."""
    wanted = commands.JobFilter(scheduler=name)
    page = await rig.broker.query(commands.ListJobs(wanted, limit=1_000, oldest_first=True))
    assert isinstance(page, commands.JobPage), page
    return page.jobs


@rule("6.3")
async def test_an_idle_broker_fires_each_tick_on_its_millisecond(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=99)
        await define(rig)
        await define(rig, "odd", every_ms=800)
        await rig.engine.advance(7 * SECOND)
        ticks = [(one.scheduler, one.tick_at_ms - START_MS, one.created_ms - START_MS) for one in worker.deliveries]
        assert sorted(ticks) == sorted(
            [("s", n * 1_000, n * 1_000) for n in range(1, 8)] + [("odd", n * 800, n * 800) for n in range(1, 9)]
        )


@rule("6.3")
async def test_a_definition_that_is_due_earlier_wakes_the_broker(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        await define(rig, "late", every_ms=HOUR)
        await rig.engine.advance(SECOND)
        await define(rig, "soon", every_ms=2 * SECOND)
        await rig.engine.advance(SECOND)
        assert [one.scheduler for one in worker.deliveries] == ["soon"]


@rule("6.7")
async def test_an_edit_and_a_delete_move_the_timer(lab: Lab) -> None:
    async with lab.open() as rig:
        await define(rig, every_ms=MINUTE)
        await define(rig, every_ms=HOUR)
        await define(rig, "gone")
        await rig.broker.submit(commands.DeleteScheduler("gone"))
        await define(rig, "suspended", suspended=True)
        await rig.engine.advance(HOUR - 1)
        for name in ("s", "gone", "suspended"):
            assert await runs(rig, name) == []
        await rig.engine.advance(1)
        assert len(await runs(rig)) == 1


@rule("6.2")
async def test_ticks_go_on_after_a_restart_and_the_missed_are_caught_up(lab: Lab) -> None:
    async with lab.open() as rig:
        await define(rig, "latest", every_ms=MINUTE)
        await define(rig, "all", every_ms=MINUTE, catch_up=int(CatchUp.ALL))
        await define(rig, "none", every_ms=MINUTE, catch_up=int(CatchUp.NONE))
        await rig.engine.advance(MINUTE)
    lab.clock.advance(5 * MINUTE + 1)
    async with lab.open() as rig:
        await rig.engine.settle()
        made = {
            name: [run.tick_at_ms - START_MS for run in await runs(rig, name)] for name in ("latest", "all", "none")
        }
        assert made == {
            "latest": [MINUTE, 6 * MINUTE],
            "all": [n * MINUTE for n in range(1, 7)],
            "none": [MINUTE],
        }
        await rig.engine.advance(MINUTE)
        assert [len(await runs(rig, name)) for name in made] == [3, 7, 2]


@rule("6.5")
async def test_a_wall_clock_set_forward_is_a_downtime(lab: Lab) -> None:
    async with lab.open() as rig:
        await define(rig)
        await rig.engine.advance(SECOND)
        lab.clock.set_wall(lab.clock.wall_ms() + DAY + 1)
        await rig.engine.advance(SECOND)
        found = await get(rig)
        assert (found.run_count, found.missed_count) == (3, DAY // SECOND - 1)


@rule("6.5")
async def test_a_pause_of_a_few_seconds_is_none(lab: Lab) -> None:
    async with lab.open() as rig:
        await define(rig, catch_up=int(CatchUp.NONE))
        await rig.engine.advance(SECOND)
        lab.clock.advance(9 * SECOND)
        await rig.engine.advance(1)
        found = await get(rig)
        assert (found.run_count, found.missed_count) == (10, 0)


@rule("6.4")
async def test_a_wall_clock_set_back_far_silences_no_definition(lab: Lab) -> None:
    async with lab.open() as rig:
        lab.clock.set_wall(START_MS + 30 * DAY)
        await rig.engine.advance(1)
        for n in range(3):
            await define(rig, f"s{n}", every_ms=MINUTE)
        await rig.engine.advance(MINUTE)
        lab.clock.set_wall(START_MS)
        await rig.engine.advance(10 * SECOND)
        await rig.engine.advance(2 * MINUTE)
        for n in range(3):
            ticks = [run.tick_at_ms - START_MS for run in await runs(rig, f"s{n}")]
            assert sorted(ticks)[:2] == [MINUTE, 2 * MINUTE]
            assert (await get(rig, f"s{n}")).missed_count == 0


@rule("6.2")
async def test_a_thousand_definitions_of_one_moment_all_fire_once(lab: Lab) -> None:
    async with lab.open() as rig:
        specs = [spec(every_ms=MINUTE, job=new_job(f"q{n % 7}")) for n in range(1_000)]
        upserts = (commands.UpsertScheduler(f"s{n}", one) for n, one in enumerate(specs))
        await asyncio.gather(*(rig.broker.submit(upsert) for upsert in upserts))
        await rig.engine.settle()
        # A turn takes some of them, and a millisecond of this clock.
        await rig.engine.advance(MINUTE + 20)
        found: list[commands.JobRecord] = []
        after: int | None = 0
        while after is not None:
            page = await rig.broker.query(commands.ListJobs(commands.JobFilter(), 500, after, oldest_first=True))
            assert isinstance(page, commands.JobPage)
            found, after = found + page.jobs, page.next
        assert sorted(one.scheduler for one in found) == sorted(f"s{n}" for n in range(1_000))
        assert {one.tick_at_ms for one in found} == {START_MS + MINUTE}
        assert rig.metric("anvilmq_scheduler_ticks_total", "fired") == 1_000
        assert rig.metric("anvilmq_scheduler_tick_lag_seconds") == 1_000
        assert rig.metric("anvilmq_schedulers", "active") == 1_000
        assert rig.metric("anvilmq_jobs_added_total", "q0", "scheduler") == 143


@rule("6.6")
async def test_the_worker_of_a_replaced_run_is_told(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        await define(rig, concurrency_policy=int(Concurrency.REPLACE), every_ms=10 * SECOND)
        await rig.engine.advance(20 * SECOND)
        first, second = worker.deliveries
        assert [(one.token, one.cause) for one in worker.interrupts] == [(first.token, InterruptCause.CANCEL_REQUESTED)]
        await rig.settle(complete(first), complete(second))
        states = [(run.state, run.finish_reason) for run in await runs(rig)]
        assert states == [(State.CANCELLED, FinishReason.REPLACED), (State.COMPLETED, FinishReason.COMPLETED)]


@rule("6.6")
async def test_caught_up_runs_that_replace_each_other_reach_workers_in_order(lab: Lab) -> None:
    async with lab.open() as rig:
        await define(rig, concurrency_policy=int(Concurrency.REPLACE), every_ms=MINUTE, catch_up=int(CatchUp.ALL))
    lab.clock.advance(3 * MINUTE + 1)
    async with lab.open() as rig:
        worker = await rig.working()
        await rig.engine.advance(1)
        assert [one.tick_at_ms - START_MS for one in worker.deliveries][-1] == 3 * MINUTE
        assert (
            await rig.state(commands.JobRef(worker.deliveries[-1].number, worker.deliveries[-1].created_ms))
        ) is State.ACTIVE
