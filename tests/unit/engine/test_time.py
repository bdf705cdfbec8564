"""The broker's time, and a restart with all its leases and timers."""

from anvilmq_broker.clock import BrokerTime
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.memory import MemoryStore
from tests.support import bundles
from tests.support.chance import SeededChance
from tests.support.clock import START_MS, FakeClock
from tests.support.rules import rule
from tests.unit.engine.rig import Rig


def test_time_follows_the_wall_clock_forwards() -> None:
    clock = FakeClock()
    time = BrokerTime(clock)
    assert time.now_ms() == START_MS
    clock.advance(5)
    assert time.now_ms() == START_MS + 5


def test_time_stands_still_while_the_wall_clock_is_up_to_a_minute_behind() -> None:
    clock = FakeClock()
    time = BrokerTime(clock)
    time.now_ms()
    clock.set_wall(START_MS - 60_000)
    assert time.now_ms() == START_MS
    assert not time.stepped_back()
    assert time.until_ms(START_MS + 10) == 60_010


def test_after_a_longer_step_back_time_takes_the_wall_clock_and_says_so_once() -> None:
    clock = FakeClock()
    time = BrokerTime(clock)
    time.now_ms()
    clock.set_wall(START_MS - 60_001)
    assert time.now_ms() == START_MS - 60_001
    assert time.stepped_back()
    assert not time.stepped_back()


def test_time_does_not_start_below_the_last_commit() -> None:
    clock = FakeClock()
    assert BrokerTime(clock, START_MS + 1_000).now_ms() == START_MS + 1_000


async def test_a_job_that_waits_is_claimable_after_the_clock_was_set_back_by_hours() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        rig.clock.set_wall(START_MS - 7_200_000)
        worker = await rig.working()
        assert [one.number for one in worker.deliveries] == [ref.number]


async def test_leases_do_not_care_about_the_wall_clock() -> None:
    async with Rig() as rig:
        await rig.working(credit=1)
        ref = await rig.add_one()
        rig.clock.set_wall(START_MS + 7_200_000)
        await rig.engine.advance(29_000)
        assert await rig.state(ref) is State.ACTIVE


async def test_a_wall_clock_set_forward_is_noticed_by_an_idle_engine() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        await rig.add_one(delay_ms=3_600_000)
        rig.clock.set_wall(START_MS + 3_600_000)
        await rig.engine.advance(10_000)
        assert len(worker.deliveries) == 1


@rule("1.5")
async def test_after_a_restart_every_active_job_has_a_full_new_lease_and_then_stalls() -> None:
    store = MemoryStore(chance=SeededChance())
    async with Rig(store) as rig:
        await rig.working(credit=1)
        ref = await rig.add_one()
        await rig.engine.advance(29_000)
        at = rig.clock.wall_ms()
    async with Rig(store) as rig:
        rig.clock.set_wall(at)
        await rig.engine.advance(29_000)
        assert await rig.state(ref) is State.ACTIVE
        await rig.engine.advance(2_000)
        assert (await rig.job(ref)).stalled == 1


@rule("1.5")
async def test_after_a_restart_a_worker_resumes_what_it_holds() -> None:
    store = MemoryStore(chance=SeededChance())
    async with Rig(store) as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one()
    async with Rig(store) as rig:
        again = rig.worker().open(bundles.lease(worker.deliveries[0]))
        await rig.engine.settle()
        assert again.interrupts == []
        assert (await rig.settle(bundles.complete(worker.deliveries[0]))).refused == []
        assert await rig.state(ref) is State.COMPLETED


async def test_after_a_restart_timers_go_on() -> None:
    store = MemoryStore(chance=SeededChance())
    async with Rig(store) as rig:
        worker = await rig.working(credit=2)
        timed = await rig.add_one(policy=bundles.policy(attempt_timeout_ms=20_000, max_attempts=1))
        parked = await rig.add_one()
        await rig.settle(bundles.release(worker.deliveries[1], delay_ms=15_000))
        expiring = await rig.add_one(expires_after_ms=15_000)
        due = await rig.add_one(queue="other", delay_ms=15_000)
    async with Rig(store) as rig:
        other = await rig.working(5, "w2", "other")
        await rig.engine.advance(14_999)
        assert await rig.state(parked) is State.DELAYED
        await rig.engine.advance(1)
        assert await rig.state(parked) is State.WAITING
        assert await rig.state(expiring) is State.CANCELLED
        assert [one.number for one in other.deliveries] == [due.number]
        await rig.engine.advance(5_000)
        assert await rig.state(timed) is State.FAILED


async def test_after_a_restart_the_backlog_is_found() -> None:
    store = MemoryStore(chance=SeededChance())
    async with Rig(store) as rig:
        await rig.add(*(bundles.new_job() for _ in range(3)))
    async with Rig(store) as rig:
        worker = await rig.working(credit=5)
        assert len(worker.deliveries) == 3
