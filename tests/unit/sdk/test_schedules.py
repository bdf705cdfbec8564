"""Recurring definitions as a program makes, lists, runs and previews them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from anvilmq import Anvil, Job, errors
from anvilmq.schedules import Owner, Scheduler
from anvilmq_proto.v1 import job_service_pb2, types_pb2
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from tests.support.rules import rule
from tests.unit.sdk.fake_broker import World

AT = datetime(2027, 3, 28, 1, 0, tzinfo=UTC)
AT_MS = 1_806_195_600_000


def album(app: Anvil) -> Any:
    """A job to be made by ticks."""

    @app.job(queue="images", name="album", max_attempts=2)
    async def album(job: Job, args: int) -> str:
        return str(args)

    return album


def answer(world: World, name: str, *given: Any) -> None:
    """What the broker answers, one after the other; the last one again and again. Exceptions are raised."""
    rest = list(given)

    def next_one(_request: Any) -> Any:
        found = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(found, Exception):
            raise found
        return found

    world.broker.answers[name] = next_one


def upserted(**fields: Any) -> pb.UpsertSchedulerResponse:
    """The answer to a definition of that content."""
    return pb.UpsertSchedulerResponse(
        scheduler=pb.Scheduler(name="nightly", spec=pb.SchedulerSpec(schedule=pb.Schedule(**fields))),
        outcome="UPSERT_OUTCOME_CREATED",
    )


@rule("6.1")
async def test_a_definition_goes_out_as_it_is_written(world: World) -> None:
    answer(world, "UpsertScheduler", upserted(cron="@daily"))
    found = await world.app.schedule(
        "nightly",
        album(world.app).spec(7, labels={"a": "b"}, delay="1s"),
        cron="0 2 * * *",
        time_zone="Europe/Berlin",
        start=AT,
        end=AT + timedelta(milliseconds=1),
        limit=3,
        jitter="30s",
        concurrency_policy="forbid",
        catch_up="all",
        max_catch_up_runs=5,
        starting_deadline=timedelta(hours=1),
        suspended=False,
        description="Reports",
        dry_run=True,
    )
    assert found.outcome == "created"
    (request,) = world.broker.calls
    assert request == pb.UpsertSchedulerRequest(
        scheduler=pb.Scheduler(
            name="nightly",
            spec=pb.SchedulerSpec(
                schedule=pb.Schedule(
                    cron="0 2 * * *",
                    time_zone="Europe/Berlin",
                    start_at_ms=AT_MS,
                    end_at_ms=AT_MS + 1,
                    limit=3,
                    jitter_ms=30_000,
                ),
                job=types_pb2.JobSpec(
                    queue="images",
                    name="album",
                    data=b"7",
                    labels={"a": "b"},
                    delay_ms=1_000,
                    policy=types_pb2.JobPolicy(max_attempts=2),
                ),
                concurrency_policy="CONCURRENCY_POLICY_FORBID",
                catch_up="CATCH_UP_POLICY_ALL",
                max_catch_up_runs=5,
                starting_deadline_ms=3_600_000,
                suspended=False,
                description="Reports",
            ),
        ),
        dry_run=True,
    )


@rule("6.7")
async def test_what_is_not_said_is_left_to_the_broker(world: World) -> None:
    answer(world, "UpsertScheduler", upserted(every_ms=300_000))
    found = await world.app.schedule("often", album(world.app).spec(1), every="5m", offset="15s", suspended=None)
    assert found.every == timedelta(minutes=5)
    spec = world.broker.calls[0].scheduler.spec
    assert spec.schedule == pb.Schedule(every_ms=300_000, offset_ms=15_000)
    assert not spec.HasField("suspended")
    assert not spec.HasField("max_catch_up_runs")
    assert spec.concurrency_policy == spec.catch_up == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs either cron"),
        ({"cron": "@daily", "every": "5m"}, "needs either cron"),
        ({"every": 5}, "every: a duration"),
        ({"every": "5"}, "every: a duration"),
        ({"cron": "@daily", "jitter": "x"}, "jitter: "),
        ({"cron": "@daily", "start": AT.replace(tzinfo=None)}, "start: needs a time zone"),
        ({"cron": "@daily", "end": "tomorrow"}, "end: is a datetime"),
        ({"cron": "@daily", "concurrency_policy": "deny"}, "concurrency_policy: is one of allow, forbid, replace"),
        ({"cron": "@daily", "catch_up": "some"}, "catch_up: is one of latest, none, all"),
        ({"cron": "@daily", "starting_deadline": 3}, "starting_deadline: a duration"),
        ({"cron": "@daily", "timezone": "Etc/UTC"}, "no option 'timezone'"),
    ],
)
async def test_an_option_that_cannot_be_right_is_named(world: World, options: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        await world.app.schedule("s", album(world.app).spec(1), **options)
    assert world.broker.calls == []


async def test_an_upsert_is_sent_again_over_a_break(world: World) -> None:
    answer(world, "UpsertScheduler", errors.Unavailable("away"), upserted(cron="@daily"))
    asking = asyncio.create_task(world.app.schedule("nightly", album(world.app).spec(1), cron="@daily"))
    await world.advance(3)
    assert (await asking).cron == "@daily"
    assert len(world.broker.calls) == 2


@rule("6.7")
async def test_one_that_a_resource_owns_says_which(world: World) -> None:
    owned = errors.OwnedByCrd("kubectl -n shop edit jobscheduler nightly", metadata={"namespace": "shop"})
    answer(world, "UpsertScheduler", owned)
    with pytest.raises(errors.OwnedByCrd, match="kubectl -n shop edit jobscheduler nightly"):
        await world.app.schedule("nightly", album(world.app).spec(1), cron="@daily")


@rule("6.7")
async def test_a_definition_is_read_whole(world: World) -> None:
    stored = pb.Scheduler(
        name="nightly",
        spec=pb.SchedulerSpec(
            schedule=pb.Schedule(
                cron="@daily", time_zone="Etc/UTC", start_at_ms=AT_MS, end_at_ms=AT_MS, limit=9, jitter_ms=5
            ),
            job=types_pb2.JobSpec(queue="images", name="album"),
            concurrency_policy="CONCURRENCY_POLICY_REPLACE",
            catch_up="CATCH_UP_POLICY_NONE",
            max_catch_up_runs=100,
            starting_deadline_ms=1_000,
            suspended=True,
            description="d",
        ),
        owner=types_pb2.Owner(kind="JobScheduler", namespace="shop", name="nightly", uid="u"),
        uid="uid",
        next_tick_at_ms=AT_MS,
        last_tick_at_ms=AT_MS,
        last_job_id="j",
        last_state="JOB_STATE_FAILED",
        run_count=1,
        skipped_count=2,
        missed_count=3,
        problem_reason="QUEUE_FULL",
        problem_message="full",
        created_at_ms=AT_MS,
        updated_at_ms=AT_MS,
    )
    bare = pb.Scheduler(name="often", spec=pb.SchedulerSpec(schedule=pb.Schedule(every_ms=100, offset_ms=1)))
    answer(
        world,
        "ListSchedulers",
        pb.ListSchedulersResponse(schedulers=[stored], next_page_token="more"),
        pb.ListSchedulersResponse(schedulers=[bare]),
    )
    first, second = await world.app.schedules(prefix="n", queue="images")
    assert first == Scheduler(
        name="nightly",
        queue="images",
        job_name="album",
        cron="@daily",
        every=None,
        offset=timedelta(),
        time_zone="Etc/UTC",
        start=AT,
        end=AT,
        limit=9,
        jitter=timedelta(milliseconds=5),
        concurrency_policy="replace",
        catch_up="none",
        max_catch_up_runs=100,
        starting_deadline=timedelta(seconds=1),
        suspended=True,
        description="d",
        owner=Owner("JobScheduler", "shop", "nightly"),
        uid="uid",
        next_tick_at=AT,
        last_tick_at=AT,
        last_job_id="j",
        last_state="failed",
        run_count=1,
        skipped_count=2,
        missed_count=3,
        problem_reason="QUEUE_FULL",
        problem_message="full",
        created_at=AT,
        updated_at=AT,
    )
    assert (second.every, second.offset, second.cron) == (timedelta(milliseconds=100), timedelta(milliseconds=1), "")
    assert (second.owner, second.last_job_id, second.last_state, second.next_tick_at, second.limit) == (None,) * 5
    assert [(request.name_prefix, request.queue) for request in world.broker.calls] == [("n", "images")] * 2


async def test_a_definition_that_is_gone_already_is_no_error(world: World) -> None:
    answer(world, "DeleteScheduler", pb.DeleteSchedulerResponse(deleted=True), pb.DeleteSchedulerResponse())
    assert await world.app.unschedule("nightly")
    assert not await world.app.unschedule("nightly")
    assert world.broker.calls[0] == pb.DeleteSchedulerRequest(name="nightly", allow_missing=True)


async def test_a_run_now_is_a_handle_of_the_job_that_the_app_knows(world: World) -> None:
    job = album(world.app)
    answer(world, "TriggerScheduler", pb.TriggerSchedulerResponse(job_id="j", existing=True))
    made = types_pb2.Job(job_id="j", queue="images", name="album", state="JOB_STATE_COMPLETED", result=b'"7"')
    made.result_content_type = "application/json"
    answer(world, "GetJob", job_service_pb2.GetJobResponse(job=made))
    answer(world, "WaitJob", job_service_pb2.WaitJobResponse(job=made, finished=True))
    handle = await world.app.trigger("nightly", run_key="monday")
    assert (handle.id, handle.existing) == ("j", True)
    assert repr(handle) == "<images/album j existing>"
    assert await handle.result() == "7"
    assert world.broker.calls[0] == pb.TriggerSchedulerRequest(name="nightly", run_key="monday")
    assert job.name == "album"


async def test_a_run_now_without_a_key_is_made_once_over_a_break_and_anew_by_another_call(world: World) -> None:
    lost = errors.Unavailable("away")
    answer(world, "TriggerScheduler", lost, pb.TriggerSchedulerResponse(job_id="j"))
    foreign = types_pb2.Job(job_id="j", queue="mail", name="send")
    answer(world, "GetJob", job_service_pb2.GetJobResponse(job=foreign))
    asking = asyncio.create_task(world.app.trigger("nightly"))
    await world.advance(3)
    assert repr(await asking) == "<mail/send j>"
    await world.app.trigger("nightly")
    first, again, other = [each.run_key for each in world.broker.calls if isinstance(each, pb.TriggerSchedulerRequest)]
    assert first == again != other
    assert first


@rule("6.8")
async def test_a_preview_has_ticks_in_the_zone_of_the_schedule(world: World) -> None:
    ticks = [
        pb.SchedulePreviewTick(at_ms=AT_MS, local="2027-03-28T03:00:00+02:00"),
        pb.SchedulePreviewTick(at_ms=AT_MS + 1, local="2027-03-28T03:00:00+02:00"),
    ]
    answer(world, "PreviewSchedule", pb.PreviewScheduleResponse(ticks=ticks, description="At two", warnings=["gap"]))
    found = await world.app.preview(cron="0 2 * * *", time_zone="Europe/Berlin", after=AT, count=2)
    assert found.ticks == [AT, AT + timedelta(milliseconds=1)]
    assert found.ticks[0].isoformat() == "2027-03-28T03:00:00+02:00"
    assert (found.description, found.warnings) == ("At two", ["gap"])
    assert world.broker.calls == [
        pb.PreviewScheduleRequest(
            schedule=pb.Schedule(cron="0 2 * * *", time_zone="Europe/Berlin"), after_at_ms=AT_MS, count=2
        )
    ]


async def test_a_wrong_schedule_has_an_error_of_its_own(world: World) -> None:
    answer(
        world,
        "PreviewSchedule",
        errors.from_code(3, "schedule.cron: never comes", reason="SCHEDULE_INVALID"),
        errors.from_code(3, "no such zone", reason="TIME_ZONE_UNKNOWN"),
        errors.from_code(5, "none", reason="SCHEDULER_NOT_FOUND"),
    )
    for kind in (errors.ScheduleInvalid, errors.TimeZoneUnknown, errors.SchedulerNotFound):
        with pytest.raises(kind):
            await world.app.preview(every="5m")


async def test_the_sync_twins_refuse_a_loop_and_name_the_other(world: World) -> None:
    app = world.app
    calls: dict[str, Any] = {
        "schedule": lambda: app.schedule_sync("s", album(app).spec(1), cron="@daily"),
        "unschedule": lambda: app.unschedule_sync("s"),
        "schedules": app.schedules_sync,
        "trigger": lambda: app.trigger_sync("s"),
        "preview": lambda: app.preview_sync(cron="@daily"),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=rf"await {name}\(\)"):
            call()
    assert world.broker.calls == []
