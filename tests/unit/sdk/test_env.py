"""The environment for users' tests: the real engine and gateway, the real SDK, one loop, a clock that stands."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from anvilmq import Anvil, JobCancelled, JobFailed, exponential, outcomes, testing
from anvilmq._clock import SystemClock
from anvilmq.context import Interrupted, Job, current_job
from tests.support.rules import rule


class Resize(msgspec.Struct):
    url: str
    width: int = 800


class Shop:
    """An app with handlers of many kinds, and what they did."""

    def __init__(self) -> None:
        self.app = Anvil()
        self.seen: list[Any] = []
        self.held = asyncio.Event()
        app = self.app

        @app.job(queue="images", max_attempts=3, backoff=exponential("1s", jitter=0))
        async def resize(job: Job, args: Resize) -> str:
            self.seen.append(("resize", job.attempt, job.starts))
            return f"{args.url} at {args.width}"

        @app.job(queue="images", max_attempts=3, backoff=exponential("1s", jitter=0))
        async def failing(job: Job, args: None) -> None:
            self.seen.append(("failing", job.attempt))
            raise ValueError(f"attempt {job.attempt}")

        @app.job(queue="images")
        async def holding(job: Job, args: None) -> str:
            self.seen.append("holding")
            try:
                await self.held.wait()
            except asyncio.CancelledError:
                self.seen.append(str(job.cause))
                raise
            return "let go"

        @app.job(queue="images")
        def plain(job: Job, args: Resize) -> int:
            assert current_job() is job
            self.seen.append(threading.current_thread() is threading.main_thread())
            resize.add_sync(args)
            return args.width

        self.resize, self.failing, self.holding, self.plain = resize, failing, holding, plain


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def test_a_job_is_added_runs_and_gives_its_result(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.resize.add(Resize("u"))
        assert await handle.result() == "u at 800"
        assert await handle.state() == "completed"
        assert [job.job_id for job in await env.jobs(shop.resize, state="completed")] == [handle.id]
        assert await env.jobs(shop.resize, state="failed") == []


async def test_a_delayed_job_starts_when_its_time_has_come(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        begun = env.now
        handle = await shop.resize.add(Resize("u"), delay="5m")
        await env.advance("4m59s")
        assert shop.seen == []
        await env.advance("1s")
        assert shop.seen == [("resize", 1, 1)]
        assert (env.now - begun).total_seconds() == 300
        assert await handle.state() == "completed"


@rule("1.6")
async def test_a_failing_job_is_tried_again_after_each_backoff_until_its_attempts_are_used_up(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.failing.add(None)
        await env.run_until_idle()
        assert await handle.state() == "delayed"
        await env.advance("1s")
        await env.advance("2s")
        assert shop.seen == [("failing", 1), ("failing", 2), ("failing", 3)]
        with pytest.raises(JobFailed, match="attempt 3"):
            await handle.result()


@rule("1.5")
async def test_a_job_survives_a_lost_worker_and_its_attempt_is_not_counted(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        env.crash_worker(on=shop.resize)
        handle = await shop.resize.add(Resize("u"))
        await env.run_until_idle()
        assert await handle.state() == "active"
        await env.advance("31s")
        assert shop.seen == [("resize", 1, 2)]
        assert await handle.result() == "u at 800"


@rule("1.5")
async def test_a_worker_lost_after_the_work_and_before_the_settlement_does_it_twice(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        env.crash_worker(on=shop.resize, at="end")
        await shop.resize.add(Resize("u"))
        await env.advance("31s")
        assert shop.seen == [("resize", 1, 1), ("resize", 1, 2)]


@rule("1.5")
async def test_a_worker_lost_inside_a_plain_handler(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        env.crash_worker(on=shop.plain)
        handle = await shop.plain.add(Resize("u", 3))
        await env.advance("31s")
        assert await handle.result() == 3


@rule("1.4")
async def test_a_job_that_runs_long_keeps_its_lease(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.holding.add(None, lease="30s")
        await env.advance("10m")
        assert await handle.state() == "active"
        shop.held.set()
        assert await handle.result() == "let go"
        assert shop.seen == ["holding"]


@rule("1.4")
async def test_a_job_that_exceeds_its_attempt_timeout_is_interrupted(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.holding.add(None, attempt_timeout="20s", max_attempts=1)
        await env.advance("21s")
        assert shop.seen == ["holding", "attempt_timeout"]
        with pytest.raises(JobFailed) as failed:
            await handle.result()
        assert failed.value.finish_reason == "attempt_timeout"


@rule("1.9")
async def test_a_running_job_is_cancelled_from_outside(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.holding.add(None)
        await env.run_until_idle()
        await handle.cancel()
        with pytest.raises(JobCancelled):
            await handle.result()
        assert shop.seen == ["holding", "cancel_requested"]


async def test_a_plain_handler_runs_in_a_thread_and_may_add_jobs(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.plain.add(Resize("u", 3))
        await env.run_until_idle()
        assert await handle.result() == 3
        assert shop.seen == [False, ("resize", 1, 1)]


@rule("2.1")
async def test_a_lost_answer_adds_nothing_twice(shop: Shop) -> None:
    async with testing.env(shop.app, work=False) as env:
        env.lose_answer("AddJobStream")
        handle = await shop.resize.add(Resize("u"))
        assert [job.job_id for job in await env.jobs()] == [handle.id]


@rule("1.4")
async def test_a_lost_delivery_comes_again_at_once_without_a_stall(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        env.lose_answer("Work")
        handle = await shop.resize.add(Resize("u"))
        await env.run_until_idle()
        assert await handle.result() == "u at 800"
        (job,) = await env.jobs(shop.resize)
        assert (job.attempt, job.stalled_count) == (1, 0)


@rule("1.4")
async def test_a_lost_answer_to_a_settlement_settles_once(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        handle = await shop.holding.add(None)
        await env.run_until_idle()
        env.lose_answer("Work")
        shop.held.set()
        await env.run_until_idle()
        assert await handle.result() == "let go"
        assert shop.seen == ["holding"]


@rule("1.7")
async def test_a_released_job_comes_back_and_no_attempt_is_consumed(shop: Shop) -> None:
    @shop.app.job(queue="images", max_attempts=1)
    async def picky(job: Job, args: None) -> int:
        if job.starts < 4:
            raise outcomes.Release("not ready", delay="10s")
        return job.attempt

    async with testing.env(shop.app) as env:
        handle = await picky.add(None)
        await env.advance("30s")
        assert await handle.result() == 1


@rule("1.7")
async def test_a_job_that_circles_stops_at_max_starts(shop: Shop) -> None:
    @shop.app.job(queue="images", max_starts=10)
    async def circling(job: Job, args: None) -> None:
        shop.seen.append(job.starts)
        raise outcomes.Release

    async with testing.env(shop.app) as env:
        handle = await circling.add(None)
        await env.run_until_idle()
        assert await handle.state() == "failed"
        assert len(shop.seen) <= 10


async def test_a_job_that_adds_itself_for_ever_is_named(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "MOST_RUNS", 50)

    @shop.app.job(queue="images")
    async def breeding(job: Job, args: None) -> None:
        if not shop.held.is_set():
            await breeding.add(None)

    async with testing.env(shop.app) as env:
        await breeding.add(None)
        with pytest.raises(RuntimeError, match="images/breeding"):
            await env.run_until_idle()
        shop.held.set()


@rule("1.8")
async def test_progress_is_a_checkpoint_for_the_next_attempt(shop: Shop) -> None:
    @shop.app.job(queue="images", backoff=exponential("1s", jitter=0))
    async def stepping(job: Job, args: None) -> Any:
        if job.last_progress is None:
            job.progress({"done": 7})
            job.log("did seven")
            raise ValueError("half way")
        return job.last_progress

    async with testing.env(shop.app) as env:
        handle = await stepping.add(None)
        await env.advance("1s")
        assert await handle.result() == {"done": 7}


async def test_without_a_worker_jobs_wait(shop: Shop) -> None:
    async with testing.env(shop.app, work=False) as env:
        handle = await shop.resize.add(Resize("u"))
        await env.run_until_idle()
        assert await handle.state() == "waiting"
        assert shop.seen == []


async def test_an_app_is_as_before_after_its_environment(shop: Shop) -> None:
    before = shop.app.use_client(None)
    async with testing.env(shop.app):
        await shop.resize.add(Resize("u"))
    assert shop.app.use_client(None) is before
    async with testing.env(shop.app) as env:
        assert await env.jobs() == []


async def test_days_pass_in_moments(shop: Shop) -> None:
    clock = SystemClock()
    async with testing.env(shop.app) as env:
        await shop.resize.add(Resize("u"), delay="1d")
        begun = clock.monotonic()
        await env.advance("1d")
        assert shop.seen == [("resize", 1, 1)]
        assert clock.monotonic() - begun < 60


async def test_the_environment_ends_while_handlers_hang(shop: Shop) -> None:
    async with testing.env(shop.app) as env:
        await shop.holding.add(None)
        await env.run_until_idle()
    assert shop.seen == ["holding", "shutdown"]


# ------------------------------------------------------------------------------------------------------------- stubs


async def test_a_stub_is_a_job_for_calling_a_handler_directly(shop: Shop) -> None:
    assert await shop.resize(Job.stub(attempt=2), Resize("u", 3)) == "u at 3"
    assert shop.seen == [("resize", 2, 2)]


def test_a_stub_takes_the_fields_of_a_delivery_and_keeps_what_is_reported() -> None:
    job = Job.stub(id="j1", attempt=4, max_attempts=4, labels={"a": "b"}, last_progress=[1])
    assert (job.id, job.is_last, dict(job.labels), job.last_progress) == ("j1", True, {"a": "b"}, [1])
    job.progress({"n": 1})
    job.log("line")
    assert testing.reports(job).progress == [{"n": 1}]
    assert testing.reports(job).lines == ["line"]
    assert not job.cancelled


def test_a_stub_can_be_one_that_is_to_stop() -> None:
    job = Job.stub(cause="cancel_requested")
    with pytest.raises(Interrupted, match="cancel_requested"):
        job.check()
