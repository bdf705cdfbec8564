"""Worker sessions: opening, resuming, replacing, draining, losing the stream or the whole gateway (api 3, 9.11)."""

import asyncio

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import InterruptCause, State
from tests.support import bundles
from tests.support.rules import rule
from tests.unit.engine.rig import Rig, refused


async def test_the_opening_comes_before_everything_else() -> None:
    async with Rig() as rig:
        await rig.add_one()
        worker = await rig.working()
        assert [type(notice) for notice in worker.notices] == [commands.Opened, commands.Deliveries]


async def test_a_closed_stream_takes_its_credit_with_it_and_leaves_its_leases() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        first = await rig.add_one()
        worker.close()
        second = await rig.add_one()
        assert await rig.state(first) is State.ACTIVE
        assert await rig.state(second) is State.WAITING
        assert await rig.renew(worker.deliveries[0]) == []


@rule("1.4")
async def test_a_resumed_lease_stays_and_one_that_was_not_received_goes_back_uncounted() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        kept, lost = await rig.add(bundles.new_job(), bundles.new_job())
        worker.close()
        again = rig.worker()
        again.open(bundles.lease(worker.deliveries[0]))
        await rig.engine.settle()
        assert again.of(commands.Opened)[0].interrupts == []
        assert (await rig.job(kept)).state == State.ACTIVE
        back = await rig.job(lost)
        assert (back.state, back.attempt, back.starts) == (State.WAITING, 0, 0)
        assert (await rig.settle(bundles.complete(worker.deliveries[0]))).refused == []


async def test_resuming_a_dead_lease_is_answered_with_an_interrupt() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        await rig.add_one()
        (delivery,) = worker.deliveries
        await rig.settle(bundles.complete(delivery))
        again = rig.worker()
        again.open(bundles.lease(delivery))
        await rig.engine.settle()
        (interrupt,) = again.of(commands.Opened)[0].interrupts
        assert (interrupt.token, interrupt.cause) == (delivery.token, InterruptCause.LEASE_LOST)


@rule("1.9")
async def test_resuming_a_lease_whose_job_was_cancelled_meanwhile_tells_so() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        worker.close()
        await rig.broker.submit(commands.CancelJob(ref, "enough"))
        again = rig.worker()
        again.open(bundles.lease(worker.deliveries[0]))
        await rig.engine.settle()
        (interrupt,) = again.of(commands.Opened)[0].interrupts
        assert (interrupt.cause, interrupt.reason) == (InterruptCause.CANCEL_REQUESTED, "enough")


async def test_a_resumed_lease_is_as_good_as_new() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        worker.close()
        await rig.engine.advance(29_000)
        rig.worker().open(bundles.lease(worker.deliveries[0]))
        await rig.engine.advance(29_000)
        assert await rig.state(ref) is State.ACTIVE


async def test_leases_of_a_claim_are_not_taken_for_ones_that_the_stream_never_received() -> None:
    async with Rig() as rig:
        ref = await rig.add_one()
        claimed = await rig.broker.submit(commands.Claim(bundles.identity(), [bundles.QUEUE], 1))
        assert isinstance(claimed, commands.Claimed)
        rig.worker().open()
        await rig.engine.settle()
        assert await rig.state(ref) is State.ACTIVE


async def test_a_second_session_of_a_worker_replaces_the_first() -> None:
    async with Rig() as rig:
        first = await rig.working()
        second = await rig.working()
        assert first.of(commands.SessionEnded) == [commands.SessionEnded(first.session, "SESSION_REPLACED")]
        await rig.add_one()
        assert first.deliveries == []
        assert len(second.deliveries) == 1
        assert len(await rig.workers()) == 1


async def test_closing_a_replaced_session_leaves_its_successor_alone() -> None:
    async with Rig() as rig:
        first = await rig.working()
        second = await rig.working()
        first.close()
        await rig.add_one()
        assert len(second.deliveries) == 1


async def test_after_drained_nothing_is_delivered() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        worker.drain()
        await rig.add_one()
        assert worker.of(commands.Drained) == [commands.Drained(worker.session, [1])]
        assert worker.deliveries == []
        assert [record.draining for record in await rig.workers()] == [True]


async def test_a_drained_pool_works_again_after_new_credit() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        worker.drain(1)
        worker.credit(1)
        await rig.add_one()
        assert len(worker.deliveries) == 1
        assert [record.draining for record in await rig.workers()] == [False]


async def test_what_is_delivered_in_the_same_turn_stands_before_drained() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=0)
        await rig.add_one()
        worker.credit(1)
        await rig.engine.settle()
        worker.credit(1)
        worker.drain()
        await rig.engine.settle()
        assert isinstance(worker.notices[-1], commands.Drained)


async def test_what_could_not_be_written_goes_back_uncounted_to_the_head() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        first, second = await rig.add(bundles.new_job(), bundles.new_job())
        rig.broker.attach(commands.Undeliver(worker.session, [bundles.lease(worker.deliveries[0])]))
        worker.close()
        await rig.engine.settle()
        job = await rig.job(first)
        assert (job.state, job.attempt, job.starts, job.stalled) == (State.WAITING, 0, 0, 0)
        other = await rig.working(credit=2, worker_id="w2")
        assert [one.number for one in other.deliveries] == [first.number, second.number]


async def test_a_job_for_a_session_that_closed_in_the_same_turn_goes_back_by_itself() -> None:
    async with Rig() as rig:
        worker = await rig.working(credit=1)
        # More than one piece of a batch: the first takes the slot, the stream's end is read with the second.
        adds = commands.AddJobs([bundles.new_job() for _ in range(300)])
        adding = asyncio.ensure_future(rig.broker.submit(adds))
        await asyncio.sleep(0)
        worker.close()
        added = await adding
        await rig.engine.settle()
        assert isinstance(added, commands.AddedJobs)
        assert added.states[0] == State.ACTIVE
        assert worker.deliveries == []
        job = await rig.job(commands.JobRef(added.first_number, added.created_ms))
        assert (job.state, job.starts) == (State.WAITING, 0)


async def test_a_lost_gateway_takes_its_sessions_and_leaves_their_leases() -> None:
    async with Rig() as rig:
        gateway = await rig.engine.connect()
        worker = rig.worker("w", broker=gateway).open().credit(5)
        await rig.engine.settle()
        ref = await rig.add_one()
        await gateway.close()
        await rig.engine.settle()
        assert worker.of(commands.SessionEnded)[-1].reason == "NOT_READY"
        assert await rig.workers() == []
        assert await rig.state(ref) is State.ACTIVE
        second = await rig.add_one()
        assert await rig.state(second) is State.WAITING


async def test_a_worker_can_be_asked_to_leave_through_any_gateway() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        gateway = await rig.engine.connect()
        assert await gateway.submit(commands.DrainWorker(bundles.WORKER, "rollout")) == commands.Done()
        await rig.engine.settle()
        assert worker.of(commands.GoAway) == [commands.GoAway(worker.session, "rollout", True)]
        await gateway.close()


async def test_asking_an_unknown_worker_to_leave_is_refused() -> None:
    async with Rig() as rig:
        outcome = refused(await rig.broker.submit(commands.DrainWorker("nobody")))
        assert outcome.reason == "WORKER_NOT_FOUND"
        assert outcome.metadata == {"worker_id": "nobody"}


async def test_workers_are_listed_with_what_they_hold_and_in_pages() -> None:
    async with Rig() as rig:
        for name in ("a", "b", "c"):
            await rig.working(4, name)
        await rig.add(bundles.new_job(), bundles.new_job())
        records = await rig.workers(queue=bundles.QUEUE)
        assert [(one.identity.worker_id, one.running, one.open_credit) for one in records] == [
            ("a", 1, 3),
            ("b", 1, 3),
            ("c", 0, 4),
        ]
        page = await rig.broker.query(commands.ListWorkers(limit=2))
        assert isinstance(page, commands.WorkerPage)
        assert page.next == "b"
        assert [one.identity.worker_id for one in await rig.workers(after="b")] == ["c"]
        assert await rig.workers(queue="other") == []
        assert await rig.workers(allowed=["x*"]) == []


async def test_a_worker_that_was_heard_from_says_when() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        await rig.engine.advance(5_000)
        rig.broker.attach(commands.SessionSeen(worker.session))
        await rig.engine.settle()
        (record,) = await rig.workers()
        assert record.last_seen_at_ms - record.connected_at_ms == 5_000
