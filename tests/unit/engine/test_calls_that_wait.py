"""ClaimJobs that wait for a job, WaitJob that waits for an end."""

import asyncio

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import State, WaitReason
from tests.support import bundles
from tests.support.rules import rule
from tests.unit.engine.rig import Rig, refused


def _claim(jobs: int = 1, wait_ms: int = 10_000, claim_id: str = "", worker_id: str = "caller") -> commands.Claim:
    return commands.Claim(bundles.identity(worker_id), [bundles.QUEUE], jobs, wait_ms, claim_id)


def _ask(rig: Rig, command: commands.Command) -> asyncio.Future[commands.Outcome]:
    return asyncio.ensure_future(rig.broker.submit(command))


def _deliveries(outcome: object) -> list[commands.Delivery]:
    assert isinstance(outcome, commands.Claimed), outcome
    return outcome.deliveries


async def test_a_claim_takes_what_is_there_at_once() -> None:
    async with Rig() as rig:
        await rig.add(*(bundles.new_job() for _ in range(3)))
        assert len(_deliveries(await rig.broker.submit(_claim(2)))) == 2


async def test_a_claim_waits_for_its_first_job_and_is_answered_with_all_that_came_with_it() -> None:
    async with Rig() as rig:
        claim = _ask(rig, _claim(5))
        await rig.engine.settle()
        assert not claim.done()
        await rig.add(bundles.new_job(), bundles.new_job())
        assert len(_deliveries(await claim)) == 2
        later = await rig.add_one()
        assert await rig.state(later) is State.WAITING


async def test_a_claim_that_waited_in_vain_is_answered_with_nothing() -> None:
    async with Rig() as rig:
        claim = _ask(rig, _claim())
        await rig.engine.advance(9_999)
        assert not claim.done()
        await rig.engine.advance(1)
        assert _deliveries(await claim) == []
        ref = await rig.add_one()
        assert await rig.state(ref) is State.WAITING


async def test_a_claim_without_waiting_is_answered_at_once() -> None:
    async with Rig() as rig:
        assert _deliveries(await rig.broker.submit(_claim(wait_ms=0))) == []


@rule("1.4")
async def test_the_same_claim_id_gets_the_same_jobs_while_a_lease_of_them_lives() -> None:
    async with Rig() as rig:
        await rig.add(*(bundles.new_job() for _ in range(3)))
        first = _deliveries(await rig.broker.submit(_claim(2, claim_id="c1")))
        again = _deliveries(await rig.broker.submit(_claim(2, claim_id="c1")))
        assert [(one.number, one.token) for one in again] == [(one.number, one.token) for one in first]
        assert len(_deliveries(await rig.broker.submit(_claim(2, claim_id="c2")))) == 1


async def test_a_repeated_claim_takes_the_place_of_the_one_that_still_waits() -> None:
    async with Rig() as rig:
        first = _ask(rig, _claim(claim_id="c1"))
        await rig.engine.settle()
        second = _ask(rig, _claim(claim_id="c1"))
        await rig.engine.settle()
        assert _deliveries(await first) == []
        await rig.add_one()
        assert len(_deliveries(await second)) == 1


async def test_a_claim_whose_caller_has_left_takes_no_job() -> None:
    async with Rig() as rig:
        claim = _ask(rig, _claim())
        await rig.engine.settle()
        claim.cancel()
        await rig.engine.settle()
        ref = await rig.add_one()
        assert await rig.state(ref) is State.WAITING


async def test_jobs_on_their_way_to_a_caller_that_has_left_go_back_uncounted() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        claim = _ask(rig, _claim())
        await asyncio.sleep(0)
        # The engine answers in its next step; the caller leaves before the answer is read.
        rig.broker._flush()
        rig.engine._engine.step()
        claim.cancel()
        await rig.engine.settle()
        job = await rig.job(ref)
        assert (job.state, job.attempt, job.starts) == (State.WAITING, 0, 0)


async def test_a_lost_gateway_takes_its_waiting_claims_with_it() -> None:
    async with Rig() as rig:
        gateway = await rig.engine.connect()
        claim = asyncio.ensure_future(gateway.submit(_claim()))
        await rig.engine.settle()
        await gateway.close()
        await asyncio.wait({claim})
        assert claim.exception() is not None
        ref = await rig.add_one()
        assert await rig.state(ref) is State.WAITING


async def test_an_answer_to_a_claim_is_cut_at_four_mebibytes_and_the_rest_stays_in_order() -> None:
    async with Rig() as rig:
        for number in range(5):
            await rig.add(bundles.new_job(data=bytes([number]) * 1_500_000))
        got = [_deliveries(await rig.broker.submit(_claim(5, claim_id=f"c{n}"))) for n in range(3)]
        assert [[one.data[0] for one in answer] for answer in got] == [[0, 1], [2, 3], [4]]
        assert all(one.starts == 1 for answer in got for one in answer)


async def test_the_same_cut_holds_for_a_claim_that_waited() -> None:
    async with Rig() as rig:
        claim = _ask(rig, _claim(5))
        await rig.engine.settle()
        jobs = await rig.add(*(bundles.new_job(data=bytes(1_500_000)) for _ in range(3)))
        assert len(_deliveries(await claim)) == 2
        job = await rig.job(jobs[2])
        assert (job.state, job.starts) == (State.WAITING, 0)
        worker = await rig.working(credit=1)
        assert [one.number for one in worker.deliveries] == [jobs[2].number]


async def test_a_claim_lease_that_runs_out_stalls_its_job() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        await rig.broker.submit(_claim())
        await rig.engine.advance(31_000)
        assert (await rig.job(ref)).stalled == 1


@rule("1.1")
async def test_a_job_nobody_asks_for_waits_for_a_worker() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()

        async def reason() -> int:
            wait = (await rig.job(ref)).wait
            assert wait is not None
            return wait.reason

        assert await reason() == WaitReason.NO_WORKER
        other = commands.Claim(bundles.identity("x"), ["other"], 1)
        await rig.broker.submit(other)
        assert await reason() == WaitReason.NO_WORKER
        worker = await rig.working(credit=0)
        assert await reason() == WaitReason.NEXT
        worker.close()
        assert await reason() == WaitReason.NO_WORKER


@rule("1.1")
async def test_who_asked_by_claim_in_the_last_minute_counts_as_a_worker() -> None:
    async with Rig() as rig:
        await rig.broker.submit(_claim(wait_ms=0))
        ref = await rig.add_one()
        wait = (await rig.job(ref)).wait
        assert wait is not None
        assert wait.reason == WaitReason.NEXT
        assert [(one.identity.worker_id, one.session) for one in await rig.workers()] == [("caller", False)]
        await rig.engine.advance(60_001)
        wait = (await rig.job(ref)).wait
        assert wait is not None
        assert wait.reason == WaitReason.NO_WORKER
        assert await rig.workers() == []


async def test_a_watch_ends_with_the_commit_that_ends_the_job() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        watch = asyncio.ensure_future(rig.broker.query(commands.WaitJob(ref, 60_000)))
        await rig.engine.settle()
        assert not watch.done()
        await rig.settle(bundles.complete(worker.deliveries[0], b"42"))
        found = await watch
        assert isinstance(found, commands.JobFound)
        assert (found.job.state, found.job.result) == (State.COMPLETED, b"42")


async def test_a_watch_shows_the_job_as_it_is_when_its_time_is_over() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        watch = asyncio.ensure_future(rig.broker.query(commands.WaitJob(ref, 5_000)))
        await rig.engine.advance(5_000)
        found = await watch
        assert isinstance(found, commands.JobFound)
        assert found.job.state == State.WAITING


async def test_a_watch_of_an_ended_job_or_of_none_is_answered_at_once() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        await rig.broker.submit(commands.CancelJob(ref))
        found = await rig.broker.query(commands.WaitJob(ref, 60_000))
        assert isinstance(found, commands.JobFound)
        missing = await rig.broker.query(commands.WaitJob(commands.JobRef(99, 1), 60_000))
        assert refused(missing).reason == "JOB_NOT_FOUND"


async def test_several_watches_of_one_job_are_all_answered_and_forgotten_ones_are_not() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        watches = [asyncio.ensure_future(rig.broker.query(commands.WaitJob(ref, 60_000))) for _ in range(3)]
        await rig.engine.settle()
        watches[0].cancel()
        await rig.engine.settle()
        assert len(rig.engine._engine.memory.watches) == 2
        await rig.broker.submit(commands.CancelJob(ref))
        await asyncio.gather(*watches[1:])
        assert len(rig.engine._engine.memory.watches) == 0
