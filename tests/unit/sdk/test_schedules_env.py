"""Schedules as a program's own tests see them: the real engine in this process, a clock that the test turns."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from anvilmq import Anvil, Job, errors, testing
from tests.support.rules import rule


@rule("6.2")
@rule("6.4")
async def test_a_nightly_job_runs_each_night_at_its_local_time_and_knows_its_tick() -> None:
    app = Anvil()

    @app.job(queue="reports")
    async def report(job: Job, args: str) -> str:
        return f"{args} {job.scheduler} {job.tick_at}"

    async with testing.env(app) as env:
        made = await app.schedule("nightly", report.spec("pdf"), cron="30 2 * * *", time_zone="Europe/Berlin")
        assert (env.now, made.next_tick_at) == (
            datetime(2027, 1, 15, 8, tzinfo=UTC),
            datetime(2027, 1, 16, 1, 30, tzinfo=UTC),
        )
        await env.advance("17h29m59s")
        assert await env.jobs() == []
        await env.advance("1s")
        [job] = await env.jobs(report, state="completed")
        assert (job.scheduler, job.result) == ("nightly", b'"pdf nightly 2027-01-16 01:30:00+00:00"')


@rule("6.6")
async def test_a_run_that_goes_on_holds_back_the_next_tick_when_it_is_forbidden() -> None:
    app = Anvil()

    @app.job(queue="reports", attempt_timeout="25s", max_attempts=1)
    async def stuck(job: Job, args: None) -> None:
        await asyncio.Event().wait()

    async with testing.env(app) as env:
        await app.schedule("often", stuck.spec(None), every="10s", concurrency_policy="forbid")
        await env.advance("30s")
        [found] = await app.schedules()
        assert (found.run_count, found.skipped_count, found.last_state) == (1, 2, "active")


@rule("6.7")
async def test_a_lost_answer_makes_neither_a_second_definition_nor_a_second_run() -> None:
    app = Anvil()

    @app.job(queue="reports")
    async def report(job: Job, args: None) -> None: ...

    async with testing.env(app) as env:
        env.lose_answer("UpsertScheduler")
        again = await app.schedule("yearly", report.spec(None), cron="@yearly")
        assert again.outcome == "unchanged"
        env.lose_answer("TriggerScheduler")
        handle = await app.trigger("yearly")
        assert handle.existing
        assert [job.job_id for job in await env.jobs(report)] == [handle.id]


@rule("6.7")
async def test_what_is_deleted_leaves_its_jobs_and_is_not_there_any_more() -> None:
    app = Anvil()

    @app.job(queue="reports")
    async def report(job: Job, args: None) -> str:
        return "done"

    async with testing.env(app) as env:
        await app.schedule("s", report.spec(None), every="10s")
        await env.advance("10s")
        assert await app.unschedule("s")
        await env.advance("60s")
        assert len(await env.jobs(report)) == 1
        with pytest.raises(errors.SchedulerNotFound):
            await app.trigger("s")
