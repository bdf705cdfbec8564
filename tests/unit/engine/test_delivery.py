"""Who gets which job, and when: direct starts, credit, turns."""

import asyncio

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import State
from tests.support import bundles
from tests.support.rules import rule
from tests.unit.engine.rig import Rig


@rule("1.4")
async def test_a_job_that_finds_an_idle_worker_is_active_in_its_own_answer() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        added = await rig.broker.submit(commands.AddJobs([bundles.new_job(data=b"x")]))
        assert isinstance(added, commands.AddedJobs)
        assert added.states == bytes([State.ACTIVE])
        await rig.engine.settle()
        (delivery,) = worker.deliveries
        assert (delivery.number, delivery.data, delivery.pool) == (added.first_number, b"x", 1)


async def test_jobs_that_wait_are_started_as_credit_comes() -> None:
    async with Rig() as rig:
        jobs = await rig.add(*(bundles.new_job() for _ in range(5)))
        worker = await rig.working(credit=2)
        assert [one.number for one in worker.deliveries] == [ref.number for ref in jobs[:2]]
        worker.credit(3)
        await rig.engine.settle()
        assert [one.number for one in worker.deliveries] == [ref.number for ref in jobs]


async def test_no_job_is_started_beyond_the_credit() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=3)
        jobs = await rig.add(*(bundles.new_job() for _ in range(5)))
        assert len(worker.deliveries) == 3
        assert [await rig.state(ref) for ref in jobs] == [State.ACTIVE] * 3 + [State.WAITING] * 2


async def test_credit_that_a_refused_add_had_taken_is_free_again() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        key = {"key": "k"}
        await rig.add_one(**key)
        await rig.settle(bundles.complete(worker.deliveries[0]))
        worker.credit(1)
        # The first item is good and may take the slot; the second one refuses the whole batch.
        bad = [bundles.new_job(), bundles.new_job(data=b"other", **key)]
        refused = await rig.broker.submit(commands.AddJobs(bad))
        assert getattr(refused, "reason", "") == "IDEMPOTENCY_KEY_REUSED"
        await rig.add_one()
        assert len(worker.deliveries) == 2


async def test_idle_workers_take_turns() -> None:
    async with Rig() as rig:
        workers = [await rig.working(10, f"w{number}") for number in range(3)]
        await rig.add(*(bundles.new_job() for _ in range(9)))
        assert [len(worker.deliveries) for worker in workers] == [3, 3, 3]
        for _ in range(3):
            await rig.add_one()
        assert [len(worker.deliveries) for worker in workers] == [4, 4, 4]


async def test_a_backlog_is_shared_among_workers_by_turns() -> None:
    async with Rig() as rig:
        await rig.add(*(bundles.new_job() for _ in range(20)))
        workers = [rig.worker(f"w{number}").open().credit(5) for number in range(2)]
        await rig.engine.settle()
        assert [len(worker.deliveries) for worker in workers] == [5, 5]


async def test_the_queues_of_a_pool_take_turns() -> None:
    async with Rig() as rig:
        await rig.add(*(bundles.new_job("a") for _ in range(10)), *(bundles.new_job("b") for _ in range(10)))
        worker = await rig.working(10, "w", "a", "b")
        assert sorted(one.queue for one in worker.deliveries) == ["a"] * 5 + ["b"] * 5


async def test_a_pool_whose_other_queue_is_empty_gives_all_its_credit_to_the_one_that_is_not() -> None:
    async with Rig() as rig:
        await rig.add(bundles.new_job("a"), *(bundles.new_job("b") for _ in range(9)))
        worker = await rig.working(10, "w", "a", "b")
        assert len(worker.deliveries) == 10


async def test_a_large_backlog_is_delivered_whole_to_large_credit() -> None:
    async with Rig() as rig:
        for _ in range(3):
            await rig.add(*(bundles.new_job() for _ in range(500)))
        workers = [rig.worker(f"w{number}").open().credit(1000) for number in range(2)]
        await rig.engine.settle()
        numbers = [one.number for worker in workers for one in worker.deliveries]
        assert sorted(numbers) == list(range(1, 1501))


@rule("1.3")
async def test_a_delayed_job_starts_the_moment_it_falls_due_when_a_worker_is_idle() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        await rig.add_one(delay_ms=60_000)
        await rig.engine.advance(59_999)
        assert worker.deliveries == []
        await rig.engine.advance(1)
        assert len(worker.deliveries) == 1


@rule("1.3")
async def test_an_earlier_due_time_added_later_wakes_the_idle_worker_first() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        late, early = await rig.add(bundles.new_job(delay_ms=40_000), bundles.new_job(delay_ms=20_000))
        await rig.engine.advance(20_000)
        assert [one.number for one in worker.deliveries] == [early.number]
        await rig.engine.advance(20_000)
        assert [one.number for one in worker.deliveries] == [early.number, late.number]


async def test_deliveries_of_many_large_jobs_come_in_frames_that_the_link_can_carry() -> None:
    async with Rig() as rig:
        for _ in range(12):
            await rig.add(bundles.new_job(data=bytes(1_500_000)))
        worker = await rig.working(credit=20)
        frames = [len(notice.deliveries) for notice in worker.of(commands.Deliveries)]
        assert sum(frames) == 12
        assert max(frames) == 2


async def test_a_job_of_a_queue_nobody_serves_starts_nowhere() -> None:
    async with Rig() as rig:
        worker = await rig.working(10, "w", "other")
        ref = await rig.add_one()
        assert worker.deliveries == []
        assert await rig.state(ref) is State.WAITING


@rule("1.8")
async def test_the_last_words_of_an_attempt_count_though_its_settlement_arrives_in_the_same_moment() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        (delivery,) = worker.deliveries
        lease = commands.LeaseRef(delivery.number, delivery.created_ms, delivery.token)
        told = asyncio.create_task(rig.broker.submit(commands.Report(lease, "99")))
        settled = asyncio.create_task(rig.settle(bundles.complete(delivery)))
        await settled
        assert await told == commands.Done()
        assert (await rig.job(ref)).progress_json == "99"
