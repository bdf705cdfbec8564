"""What programs, workers and the operator see of recurring definitions, over a real broker and its restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anvilmq import Anvil, Job, OwnedByCrd, ScheduleInvalid, _settings
from anvilmq._channel import Channel
from anvilmq.admin import Admin
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import system_service_pb2, types_pb2
from tests.support.broker_process import BrokerProcess
from tests.support.rules import rule

PATIENCE_S = 30
OWNER = types_pb2.Owner(kind="JobScheduler", namespace="shop", name="report", uid="u-1", generation=2, spec_hash="h")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that lets everybody in."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


@asynccontextmanager
async def admin_of(broker: BrokerProcess) -> AsyncIterator[Admin]:
    channel = Channel(_settings.read(url=broker.url))
    try:
        yield Admin(channel, timeout_s=PATIENCE_S)
    finally:
        await channel.close()


@rule("6.2")
@rule("6.7")
async def test_ticks_reach_a_worker_each_once_and_name_their_definition(broker: BrokerProcess) -> None:
    app = Anvil(broker.url)
    seen: list[tuple[str | None, datetime | None, int]] = []
    enough = asyncio.Event()

    @app.job(queue="ticks")
    async def tick(job: Job, args: int) -> None:
        seen.append((job.scheduler, job.tick_at, args))
        if len(seen) >= 4:
            enough.set()

    async with app, app.worker(queues=["ticks"], concurrency=2):
        made = await app.schedule("often", tick.spec(7), every="200ms")
        assert made.outcome == "created"
        assert (await app.schedule("often", tick.spec(7), every="200ms")).outcome == "unchanged"
        async with asyncio.timeout(PATIENCE_S):
            await enough.wait()
        assert await app.unschedule("often")
        assert not await app.unschedule("often")
    instants = [at for _, at, _ in seen]
    assert {(name, args) for name, _, args in seen} == {("often", 7)}
    assert len(set(instants)) == len(instants)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert all(at is not None and (at - epoch) % timedelta(milliseconds=200) == timedelta() for at in instants)


@rule("6.1")
@rule("6.8")
async def test_a_wrong_expression_is_refused_and_a_right_one_previewed(broker: BrokerProcess) -> None:
    async with Anvil(broker.url) as app:
        with pytest.raises(ScheduleInvalid, match="22-23,0-2") as caught:
            await app.schedule("wrong", app.ref("q", "n").spec(None), cron="0 22-2 * * *")
        assert list(caught.value.fields) == ["scheduler.spec.schedule.cron"]
        assert await app.schedules(prefix="wrong") == []
        found = await app.preview(
            cron="30 2 * * *", time_zone="Europe/Berlin", after=datetime(2027, 3, 27, 12, tzinfo=UTC), count=2
        )
        assert [tick.isoformat() for tick in found.ticks] == ["2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"]
        assert found.warnings


@rule("6.7")
async def test_a_run_now_is_made_once_for_its_key_also_of_what_is_suspended(broker: BrokerProcess) -> None:
    async with Anvil(broker.url) as app:
        spec = app.ref("manual", "report").spec({"a": 1})
        await app.schedule("yearly", spec, cron="@yearly", suspended=True)
        first = await app.trigger("yearly", run_key="k")
        again = await app.trigger("yearly", run_key="k")
        other = await app.trigger("yearly")
        assert (first.existing, again.existing, again.id == first.id) == (False, True, True)
        assert other.id != first.id
        [found] = await app.schedules(prefix="yearly")
        assert (found.suspended, found.next_tick_at, found.run_count, found.last_job_id) == (True, None, 0, other.id)


@rule("6.7")
async def test_what_a_custom_resource_owns_is_changed_there_alone_until_it_is_released(broker: BrokerProcess) -> None:
    schedule = pb.Schedule(cron="0 2 * * *", time_zone="Europe/Berlin")
    job = types_pb2.JobSpec(queue="owned", name="report")
    owned = pb.Scheduler(name="report", spec=pb.SchedulerSpec(schedule=schedule, job=job), owner=OWNER)
    async with admin_of(broker) as admin, Anvil(broker.url) as app:
        await admin.upsert_scheduler(pb.UpsertSchedulerRequest(scheduler=owned))
        with pytest.raises(OwnedByCrd, match="kubectl -n shop edit jobscheduler report"):
            await app.schedule("report", app.ref("owned", "report").spec(None), cron="@daily")
        with pytest.raises(OwnedByCrd, match="kubectl -n shop delete jobscheduler report"):
            await app.unschedule("report")
        with pytest.raises(OwnedByCrd, match="kubectl -n shop patch jobscheduler report"):
            await admin.set_scheduler_suspended(pb.SetSchedulerSuspendedRequest(name="report", suspended=True))
        assert (await app.trigger("report")).id
        owned.owner.generation = 1
        stale = await admin.upsert_scheduler(pb.UpsertSchedulerRequest(scheduler=owned))
        assert stale.outcome == types_pb2.UPSERT_OUTCOME_STALE_GENERATION
        listed = await admin.list_definitions(system_service_pb2.ListDefinitionsRequest(owner_namespace="shop"))
        assert [(it.name, it.owner) for it in listed.definitions] == [("report", OWNER)]
        release = system_service_pb2.ReleaseDefinitionRequest(
            type=system_service_pb2.DEFINITION_TYPE_SCHEDULER, name="report", owner=OWNER
        )
        assert (await admin.release_definition(release)).released
        listed = await admin.list_definitions(system_service_pb2.ListDefinitionsRequest())
        assert not [it for it in listed.definitions if it.name == "report"]
        assert (await app.schedule("report", app.ref("owned", "report").spec(None), cron="@daily")).outcome == "updated"


async def test_the_broker_says_that_it_has_schedulers(broker: BrokerProcess) -> None:
    async with admin_of(broker) as admin:
        info = await admin.get_server_info(system_service_pb2.GetServerInfoRequest())
        assert "schedulers" in info.features


@rule("6.2")
async def test_definitions_and_what_they_have_done_outlive_a_kill_of_the_broker(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        async with Anvil(broker.url) as app:
            await app.schedule("far", app.ref("q", "n").spec(1), cron="0 0 1 1 *", description="kept")
            run = await app.trigger("far", run_key="once")
            before = await app.schedules()
        broker.kill_all()
        broker.start()
        async with Anvil(broker.url) as app:
            assert await app.schedules() == before
            again = await app.trigger("far", run_key="once")
            assert (again.id, again.existing) == (run.id, True)
