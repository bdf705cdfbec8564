"""Leases that run out, attempts that take too long, jobs cancelled under their worker."""

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import FinishReason, InterruptCause, State
from tests.support import bundles
from tests.support.rules import rule
from tests.unit.engine.rig import Rig


@rule("1.5")
async def test_a_lease_that_is_not_renewed_is_recovered_within_a_second_of_its_end() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one()
        await rig.engine.advance(29_999)
        assert await rig.state(ref) is State.ACTIVE
        await rig.engine.advance(1_000)
        job = await rig.job(ref)
        assert (job.state, job.stalled, job.attempt) == (State.WAITING, 1, 0)
        (interrupt,) = worker.interrupts
        assert (interrupt.token, interrupt.cause) == (worker.deliveries[0].token, InterruptCause.LEASE_LOST)


@rule("1.4")
async def test_a_renewed_lease_lives_on_and_nothing_is_written_for_it() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one()
        before = rig.store.export()
        for _ in range(5):
            await rig.engine.advance(20_000)
            assert await rig.renew(worker.deliveries[0]) == []
        assert await rig.state(ref) is State.ACTIVE
        assert {table: rows for table, rows in rig.store.export().items() if table == "jobs"} == {
            "jobs": before["jobs"]
        }


@rule("1.4")
async def test_a_lost_lease_is_told_at_its_renewal() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        await rig.add_one()
        await rig.engine.advance(31_000)
        (interrupt,) = await rig.renew(worker.deliveries[0])
        assert interrupt.cause == InterruptCause.LEASE_LOST


@rule("1.5")
async def test_the_dead_token_settles_nothing_and_the_new_holder_keeps_the_job() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=2)
        ref = await rig.add_one()
        await rig.engine.advance(31_000)
        worker.credit(0)
        await rig.engine.advance(0)
        old, new = worker.deliveries
        settled = await rig.settle(bundles.complete(old))
        assert [one.reason for one in settled.refused] == ["LEASE_LOST"]
        assert (await rig.settle(bundles.complete(new))).refused == []
        assert await rig.state(ref) is State.COMPLETED


@rule("1.5")
async def test_a_worker_that_let_a_lease_run_out_unheard_gets_nothing_until_a_word_comes_from_it() -> None:
    async with Rig() as rig:
        frozen = await rig.working(credit=5)
        ref = await rig.add_one()
        await rig.engine.advance(31_000)
        await rig.engine.advance(31_000)
        job = await rig.job(ref)
        assert (job.state, job.stalled) == (State.WAITING, 1)
        healthy = await rig.working(credit=1, worker_id="healthy")
        assert [delivery.number for delivery in healthy.deliveries] == [ref.number]
        later = await rig.add_one()
        assert len(frozen.deliveries) == 1
        frozen.credit(0)
        await rig.engine.advance(0)
        assert frozen.deliveries[-1].number == later.number


@rule("1.5")
async def test_several_leases_that_end_together_give_the_oldest_job_first() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=3)
        jobs = await rig.add(*(bundles.new_job() for _ in range(3)))
        await rig.engine.advance(31_000)
        worker.credit(3)
        await rig.engine.settle()
        assert [one.number for one in worker.deliveries[3:]] == [ref.number for ref in jobs]


@rule("1.5")
async def test_more_leases_than_one_batch_takes_are_all_recovered() -> None:
    async with Rig() as rig:
        await rig.working(credit=1_000)
        await rig.add(*(bundles.new_job() for _ in range(1_000)))
        await rig.engine.advance(31_000)
        counts = rig.store.counts()
        assert counts[bundles.QUEUE, State.WAITING] == 1_000


@rule("1.4")
async def test_an_attempt_timeout_ends_the_attempt_however_often_it_is_renewed() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        policy = bundles.policy(attempt_timeout_ms=45_000, max_attempts=1)
        ref = await rig.add_one(policy=policy)
        await rig.engine.advance(20_000)
        await rig.renew(worker.deliveries[0])
        await rig.engine.advance(24_999)
        assert await rig.state(ref) is State.ACTIVE
        await rig.engine.advance(1)
        job = await rig.job(ref)
        assert (job.state, job.finish_reason) == (State.FAILED, FinishReason.ATTEMPT_TIMEOUT)
        assert [one.cause for one in worker.interrupts] == [InterruptCause.ATTEMPT_TIMEOUT]
        (late,) = await rig.renew(worker.deliveries[0])
        assert late.cause == InterruptCause.LEASE_LOST


async def test_an_attempt_that_settled_in_time_is_not_timed_out_later() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one(policy=bundles.policy(attempt_timeout_ms=45_000))
        await rig.settle(bundles.complete(worker.deliveries[0]))
        assert len(rig.engine._engine.memory._timeouts) == 0
        await rig.engine.advance(60_000)
        assert await rig.state(ref) is State.COMPLETED
        assert worker.interrupts == []


@rule("1.9")
async def test_cancelling_an_active_job_tells_its_worker_at_once_and_at_every_renewal() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one()
        answer = await rig.broker.submit(commands.CancelJob(ref, "wrong tenant"))
        assert answer == commands.CancelledJob(State.ACTIVE, True)
        await rig.engine.settle()
        expected = (InterruptCause.CANCEL_REQUESTED, "wrong tenant")
        assert [(one.cause, one.reason) for one in worker.interrupts] == [expected]
        assert [(one.cause, one.reason) for one in await rig.renew(worker.deliveries[0])] == [expected]
        await rig.settle(bundles.complete(worker.deliveries[0]))
        assert await rig.state(ref) is State.CANCELLED


@rule("1.9")
async def test_a_cancelled_job_whose_worker_is_gone_ends_cancelled_with_its_lease() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one()
        worker.close()
        await rig.broker.submit(commands.CancelJob(ref))
        await rig.engine.advance(31_000)
        assert await rig.state(ref) is State.CANCELLED


@rule("1.9")
async def test_a_job_that_has_not_started_by_its_expiry_is_cancelled() -> None:
    async with Rig() as rig:
        ref = await rig.add_one(expires_after_ms=10_000)
        await rig.engine.advance(9_999)
        assert await rig.state(ref) is State.WAITING
        await rig.engine.advance(1)
        job = await rig.job(ref)
        assert (job.state, job.finish_reason) == (State.CANCELLED, FinishReason.EXPIRED)


@rule("1.9")
async def test_a_started_job_does_not_expire() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one(expires_after_ms=10_000)
        await rig.settle(bundles.fail(worker.deliveries[0], retry_after_ms=60_000))
        await rig.engine.advance(20_000)
        assert await rig.state(ref) is State.DELAYED


@rule("1.7")
async def test_a_release_with_a_delay_comes_back_to_the_head_when_the_delay_is_over() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        first, second = await rig.add(bundles.new_job(), bundles.new_job())
        await rig.settle(bundles.release(worker.deliveries[0], delay_ms=5_000))
        await rig.engine.advance(5_000)
        worker.credit(2)
        await rig.engine.settle()
        assert [one.number for one in worker.deliveries[1:]] == [first.number, second.number]


@rule("1.9")
async def test_a_parked_job_can_be_cancelled_and_is_not_brought_back() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=2)
        ref = await rig.add_one()
        await rig.settle(bundles.release(worker.deliveries[0], delay_ms=5_000))
        await rig.broker.submit(commands.CancelJob(ref))
        await rig.engine.advance(10_000)
        assert await rig.state(ref) is State.CANCELLED
        assert len(worker.deliveries) == 1
