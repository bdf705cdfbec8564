"""The broker at its seam: workers' sessions, leases and their ends, on each store and through the socket."""

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import FinishReason, InterruptCause, State
from tests.support import bundles
from tests.support.bundles import complete, fail, lease, new_job, policy, release
from tests.support.rules import rule
from tests.unit.conformance.lab import Lab

SECOND = 1_000


@rule("1.2")
async def test_what_was_added_is_what_is_delivered(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=2)
        payload, labels = bytes(range(256)) * 4_096, {"täg": "☃"}
        ref = await rig.add_one(data=payload, labels=labels, headers={"a": "b"}, key="k", content_type="x/y")
        (delivery,) = worker.deliveries
        assert bundles.ref(delivery) == ref
        assert (delivery.data, delivery.labels, delivery.headers) == (payload, labels, {"a": "b"})
        assert (delivery.key, delivery.content_type, delivery.pool) == ("k", "x/y", 1)


@rule("1.3")
async def test_idle_workers_get_the_most_urgent_and_the_oldest_first(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.add(*(new_job(name=f"p{priority}", priority=priority) for priority in (5, 0, 2_097_151, 0, 1)))
        worker = await rig.working(credit=1)
        for _ in range(4):
            worker.credit(1)
            await rig.engine.settle()
        assert [one.name for one in worker.deliveries] == ["p0", "p0", "p1", "p5", "p2097151"]


@rule("1.3")
async def test_a_due_job_starts_within_five_ms_when_a_worker_is_idle(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        await rig.add(new_job(name="later", delay_ms=60 * SECOND), new_job(name="soon", delay_ms=10 * SECOND))
        await rig.engine.advance(10 * SECOND - 1)
        assert worker.deliveries == []
        await rig.engine.advance(5)
        assert [one.name for one in worker.deliveries] == ["soon"]


@rule("1.3")
async def test_an_earlier_due_time_added_later_wakes_a_sleeping_worker(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        await rig.add_one(name="later", delay_ms=60 * SECOND)
        await rig.engine.advance(SECOND)
        await rig.add_one(name="earlier", delay_ms=2 * SECOND)
        await rig.add_one(name="now")
        assert [one.name for one in worker.deliveries] == ["now"]
        await rig.engine.advance(2 * SECOND)
        assert [one.name for one in worker.deliveries] == ["now", "earlier"]


@rule("1.3")
async def test_a_failed_job_starts_again_when_its_backoff_is_over(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        await rig.add_one()
        await rig.settle(fail(worker.deliveries[0], retry_after_ms=3 * SECOND))
        await rig.engine.advance(3 * SECOND - 1)
        assert len(worker.deliveries) == 1
        await rig.engine.advance(5)
        assert [one.attempt for one in worker.deliveries] == [1, 2]


@rule("1.4")
async def test_a_bulk_wakes_as_many_idle_workers_as_it_has_jobs_for(lab: Lab) -> None:
    async with lab.open() as rig:
        workers = [await rig.working(1, f"w{n}") for n in range(5)]
        await rig.add(*(new_job() for _ in range(3)))
        assert sorted(len(worker.deliveries) for worker in workers) == [0, 0, 1, 1, 1]
        await rig.add(*(new_job() for _ in range(3)))
        assert [len(worker.deliveries) for worker in workers] == [1] * 5


@rule("1.4")
async def test_nothing_is_delivered_beyond_the_credit_or_for_another_queue(lab: Lab) -> None:
    async with lab.open() as rig:
        worker, other = await rig.working(credit=2), await rig.working(5, "w2", "other")
        await rig.add(*(new_job() for _ in range(5)))
        assert (len(worker.deliveries), other.deliveries) == (2, [])
        worker.credit(2)
        await rig.engine.settle()
        assert len(worker.deliveries) == 4


@rule("1.4")
async def test_renewal_protects_a_long_job(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        for _ in range(10):
            await rig.engine.advance(20 * SECOND)
            assert await rig.renew(*worker.deliveries) == []
        assert (await rig.settle(complete(worker.deliveries[0]))).refused == []
        assert (await rig.job(ref)).stalled == 0


@rule("1.4")
async def test_an_attempt_timeout_ends_a_job_that_is_renewed_all_the_same(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        ref = await rig.add_one(policy=policy(attempt_timeout_ms=50 * SECOND, max_attempts=1))
        (running,) = worker.deliveries
        for _ in range(2):
            await rig.engine.advance(20 * SECOND)
            await rig.renew(running)
        await rig.engine.advance(11 * SECOND)
        job = await rig.job(ref)
        assert (job.state, job.finish_reason) == (State.FAILED, FinishReason.ATTEMPT_TIMEOUT)
        assert [(one.token, one.cause) for one in worker.interrupts] == [
            (running.token, InterruptCause.ATTEMPT_TIMEOUT)
        ]
        assert [one.reason for one in (await rig.settle(complete(running))).refused] == ["LEASE_LOST"]


@rule("1.4")
async def test_a_zombie_s_settlement_is_refused_and_the_holder_is_undisturbed(lab: Lab) -> None:
    async with lab.open() as rig:
        zombie = await rig.working(1, "zombie")
        ref = await rig.add_one()
        (old,) = zombie.deliveries
        await rig.engine.advance(31 * SECOND)
        holder = await rig.working(1, "holder")
        assert [(one.token, one.cause) for one in zombie.interrupts] == [(old.token, InterruptCause.LEASE_LOST)]
        settled = await rig.settle(complete(old, b"late"), complete(holder.deliveries[0], b"right"))
        assert [(one.reason, one.index) for one in settled.refused] == [("LEASE_LOST", 0)]
        assert settled.states == bytes([0, State.COMPLETED])
        assert (await rig.job(ref)).result == b"right"


@rule("1.4")
async def test_a_repeated_settlement_gets_the_first_answer(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        await rig.add_one()
        item = complete(worker.deliveries[0])
        assert await rig.settle(item) == await rig.settle(item) == commands.Settled(bytes([State.COMPLETED]))


@rule("1.4")
async def test_a_claim_without_a_session_takes_what_is_there_and_the_same_when_asked_again(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.add(*(new_job() for _ in range(3)))
        claim = commands.Claim(bundles.identity("caller"), ["mail"], 2, 0, "c1")
        first = await rig.broker.submit(claim)
        assert isinstance(first, commands.Claimed)
        assert len(first.deliveries) == 2
        assert await rig.broker.submit(claim) == first
        await rig.settle(*(complete(one) for one in first.deliveries))
        last = await rig.broker.submit(claim)
        assert isinstance(last, commands.Claimed)
        assert len(last.deliveries) == 1


@rule("1.5")
async def test_a_killed_worker_s_job_runs_again_first_within_a_second_of_its_lease_s_end(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.add(new_job(name="first"), new_job(name="second"))
        await rig.working(1, "killed")
        await rig.engine.advance(30 * SECOND - 1)
        other = await rig.working(0, "w2")
        assert (await rig.job(commands.JobRef(1, lab.clock.wall_ms() - 30 * SECOND + 1))).state == State.ACTIVE
        await rig.engine.advance(SECOND)
        other.credit(1)
        await rig.engine.settle()
        (again,) = other.deliveries
        assert (again.name, again.attempt, again.stalled, again.starts) == ("first", 1, 1, 2)


@rule("1.5")
async def test_a_job_that_kills_its_workers_stops(lab: Lab) -> None:
    async with lab.open() as rig:
        ref = await rig.add_one()
        workers = [await rig.working(credit=1, worker_id=f"worker-{number}") for number in range(6)]
        for _ in range(5):
            await rig.engine.advance(31 * SECOND)
        job = await rig.job(ref)
        assert (job.state, job.finish_reason, job.stalled) == (State.FAILED, FinishReason.STALLED, 4)
        assert sum(len(worker.deliveries) for worker in workers) == 4


@rule("1.5")
async def test_a_broker_that_restarts_grants_every_active_job_a_full_new_lease(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        await rig.engine.advance(29 * SECOND)
    async with lab.open() as rig:
        await rig.engine.advance(29 * SECOND)
        assert await rig.state(ref) is State.ACTIVE
        assert (await rig.settle(complete(worker.deliveries[0]))).refused == []


@rule("1.5")
async def test_a_lease_that_nobody_renews_after_a_restart_runs_out(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.working()
        ref = await rig.add_one()
    async with lab.open() as rig:
        await rig.engine.advance(31 * SECOND)
        job = await rig.job(ref)
        assert (job.state, job.stalled) == (State.WAITING, 1)


@rule("1.5")
async def test_what_could_not_be_written_goes_back_without_attempt_or_stall(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=1)
        ref = await rig.add_one()
        rig.broker.attach(commands.Undeliver(worker.session, [lease(worker.deliveries[0])]))
        await rig.engine.settle()
        job = await rig.job(ref)
        assert (job.state, job.attempt, job.starts, job.stalled) == (State.WAITING, 0, 0, 0)


@rule("1.4")
async def test_a_worker_that_comes_back_keeps_what_it_lists_and_gives_back_the_rest(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=2)
        kept, lost = await rig.add(new_job(), new_job())
        worker.close()
        again = rig.worker().open(lease(worker.deliveries[0]))
        await rig.engine.settle()
        assert [notice.interrupts for notice in again.of(commands.Opened)] == [[]]
        assert [await rig.state(ref) for ref in (kept, lost)] == [State.ACTIVE, State.WAITING]
        assert (await rig.settle(complete(worker.deliveries[0]))).refused == []


@rule("1.4")
async def test_a_resumed_lease_that_is_lost_is_told_at_the_opening(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=1)
        await rig.add_one()
        worker.close()
        await rig.engine.advance(31 * SECOND)
        again = rig.worker().open(lease(worker.deliveries[0]))
        await rig.engine.settle()
        (opened,) = again.of(commands.Opened)
        assert [one.cause for one in opened.interrupts] == [InterruptCause.LEASE_LOST]


@rule("1.7")
async def test_a_drained_worker_gets_nothing_new_and_keeps_what_it_runs(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=2)
        await rig.add_one()
        worker.drain()
        await rig.engine.settle()
        assert [notice.pools for notice in worker.of(commands.Drained)] == [[1]]
        await rig.add_one()
        await rig.engine.advance(20 * SECOND)
        assert await rig.renew(*worker.deliveries) == []
        await rig.engine.advance(20 * SECOND)
        assert len(worker.deliveries) == 1
        assert (await rig.settle(release(worker.deliveries[0]))).states == bytes([State.WAITING])


@rule("1.7")
async def test_a_job_released_with_a_delay_goes_first_when_the_delay_is_over(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=1)
        await rig.add(new_job(name="first"), new_job(name="second"), new_job(name="third"))
        await rig.settle(release(worker.deliveries[0], delay_ms=5 * SECOND))
        worker.credit(1)
        await rig.engine.advance(5 * SECOND + 5)
        worker.credit(2)
        await rig.engine.settle()
        assert [one.name for one in worker.deliveries] == ["first", "second", "first", "third"]
        assert worker.deliveries[2].attempt == 1


@rule("1.9")
async def test_cancelling_an_active_job_tells_its_worker_whose_lease_stays_good(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        (running,) = worker.deliveries
        assert await rig.broker.submit(commands.CancelJob(ref, "stop")) == commands.CancelledJob(State.ACTIVE, True)
        await rig.engine.settle()
        told = commands.Interrupt(*_fields(ref), running.token, InterruptCause.CANCEL_REQUESTED, "stop")
        assert worker.interrupts == [told]
        await rig.engine.advance(20 * SECOND)
        # Told again, and renewed all the same.
        assert await rig.renew(running) == [told]
        await rig.engine.advance(20 * SECOND)
        assert (await rig.settle(complete(running))).states == bytes([State.CANCELLED])


@rule("1.9")
async def test_a_cancelled_job_ends_with_its_lease_when_its_worker_is_silent(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.working()
        ref = await rig.add_one()
        await rig.broker.submit(commands.CancelJob(ref))
        await rig.engine.advance(31 * SECOND)
        assert await rig.state(ref) is State.CANCELLED


@rule("1.9")
async def test_a_job_expires_on_time_when_nobody_starts_it(lab: Lab) -> None:
    async with lab.open() as rig:
        waiting, delayed = await rig.add(
            new_job(expires_after_ms=5 * SECOND), new_job(delay_ms=60 * SECOND, expires_after_ms=5 * SECOND)
        )
        await rig.engine.advance(5 * SECOND - 1)
        assert await rig.state(waiting) is State.WAITING
        await rig.engine.advance(2)
        assert [await rig.state(ref) for ref in (waiting, delayed)] == [State.CANCELLED] * 2
        worker = await rig.working()
        assert worker.deliveries == []


def _fields(ref: commands.JobRef) -> tuple[int, int]:
    return ref.number, ref.created_ms
