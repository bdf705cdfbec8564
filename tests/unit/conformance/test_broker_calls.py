"""The broker at its seam: adds and their repetition, receipts, questions, retention and restarts."""

import asyncio

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State, WaitReason
from tests.support.bundles import NAME, QUEUE, complete, new_job, policy
from tests.support.rules import rule
from tests.unit.conformance.lab import Lab, LabRig

SECOND = 1_000
DAY = 86_400_000


async def count(rig: LabRig, **wanted: object) -> int:
    """How many jobs a filter lets through."""
    page = await rig.broker.query(commands.ListJobs(commands.JobFilter(**wanted)))  # type: ignore[arg-type]  # its fields
    assert isinstance(page, commands.JobPage)
    return page.total


# --------------------------------------------------------------------------------------------------- adding


@rule("1.10")
async def test_a_bulk_is_whole_or_not_at_all(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.add_one(key="taken")
        bad = [new_job(), new_job(key="taken", data=b"other"), new_job()]
        refused = await rig.broker.submit(commands.AddJobs(bad))
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.index) == ("IDEMPOTENCY_KEY_REUSED", 1)
        assert await count(rig) == 1
        answer = await rig.broker.submit(commands.AddJobs(bad, atomic=False))
        assert isinstance(answer, commands.AddedJobs)
        assert [one.index for one in answer.refused] == [1]
        assert await count(rig) == 3


@rule("1.10")
async def test_a_refused_call_spoils_no_call_that_came_with_it(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.add_one(key="taken")
        calls = [new_job(name="a"), new_job(key="taken", data=b"other"), new_job(name="b")]
        answers = await asyncio.gather(*(rig.broker.submit(commands.AddJobs([job])) for job in calls))
        assert [isinstance(answer, Refused) for answer in answers] == [False, True, False]
        assert await count(rig) == 3


@rule("1.10")
async def test_a_frame_sent_again_to_a_restarted_broker_adds_nothing(lab: Lab) -> None:
    frame = commands.AddJobs([new_job(), new_job()], True, "p1", 7)
    async with lab.open() as rig:
        first = await rig.broker.submit(frame)
    async with lab.open() as rig:
        again = await rig.broker.submit(frame)
        assert isinstance(first, commands.AddedJobs)
        assert isinstance(again, commands.AddedJobs)
        assert (again.first_number, again.created_ms) == (first.first_number, first.created_ms)
        assert await count(rig) == 2
        older = await rig.broker.submit(commands.AddJobs([new_job()], True, "p1", 6))
        assert isinstance(older, Refused)
        assert older.reason == "SEQUENCE_STALE"


@rule("1.10")
async def test_a_frame_sent_again_over_another_gateway_adds_nothing(lab: Lab) -> None:
    frame = commands.AddJobs([new_job()], True, "p1", 1)
    async with lab.open() as rig:
        other = await rig.engine.connect()
        first, again = await rig.broker.submit(frame), await other.submit(frame)
        assert isinstance(first, commands.AddedJobs)
        assert isinstance(again, commands.AddedJobs)
        assert again.first_number == first.first_number
        assert await count(rig) == 1
        await other.close()


@rule("2.1")
async def test_the_same_key_gets_the_first_job_over_a_restart_and_after_its_end(lab: Lab) -> None:
    async with lab.open() as rig:
        ref = await rig.add_one(key="k")
        worker = await rig.working()
    async with lab.open() as rig:
        assert await rig.add_one(key="k") == ref
        await rig.settle(complete(worker.deliveries[0]))
        assert await rig.add_one(key="k") == ref
        lab.clock.set_wall(lab.clock.wall_ms() + DAY)
        assert await rig.add_one(key="k") != ref


@rule("2.1")
async def test_racing_adds_with_one_key_make_one_job(lab: Lab) -> None:
    async with lab.open() as rig:
        job = new_job(key="k", singleton=True)
        answers = await asyncio.gather(*(rig.broker.submit(commands.AddJobs([job])) for _ in range(10)))
        made = [answer for answer in answers if isinstance(answer, commands.AddedJobs) and not answer.earlier]
        assert len(made) == 1
        assert await count(rig) == 1


@rule("2.2")
async def test_receipts_are_found_listed_and_freed(lab: Lab) -> None:
    async with lab.open() as rig:
        one, _ = await rig.add(new_job(key="a-1"), new_job(key="a-2"))
        found = await rig.broker.query(commands.GetReceipt(QUEUE, NAME, "a-1"))
        assert isinstance(found, commands.ReceiptFound)
        assert found.receipt.ref == one
        page = await rig.broker.query(commands.ListReceipts(QUEUE, key_prefix="a-"))
        assert isinstance(page, commands.ReceiptPage)
        assert [receipt.key for receipt in page.receipts] == ["a-1", "a-2"]
        freed = await rig.broker.submit(commands.ReleaseReceipt(QUEUE, NAME, "a-1", one))
        assert freed == commands.FreedReceipt(True, one)
        assert await rig.add_one(key="a-1") != one


# ------------------------------------------------------------------------------------------------ questions


@rule("1.1")
async def test_a_job_of_a_queue_that_nobody_serves_waits_for_a_worker(lab: Lab) -> None:
    async with lab.open() as rig:
        ref = await rig.add_one()
        assert (await _wait_reason(rig, ref)) is WaitReason.NO_WORKER
        # Credit does not count: a worker that is busy is one.
        await rig.working(credit=0)
        assert (await _wait_reason(rig, ref)) is WaitReason.NEXT


@rule("1.1")
async def test_an_active_job_tells_when_its_lease_ends(lab: Lab) -> None:
    async with lab.open() as rig:
        await rig.working()
        ref = await rig.add_one(policy=policy(lease_ms=7_000))
        assert (await rig.job(ref)).lease_expires_at_ms == lab.clock.wall_ms() + 7_000


@rule("1.8")
async def test_whoever_waits_for_a_job_is_answered_by_the_commit_that_ends_it(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        waiting = asyncio.ensure_future(rig.broker.query(commands.WaitJob(ref, 60 * SECOND)))
        await rig.engine.advance(5 * SECOND)
        assert not waiting.done()
        await rig.settle(complete(worker.deliveries[0], b"42"))
        found = await waiting
        assert isinstance(found, commands.JobFound)
        assert (found.job.state, found.job.result) == (State.COMPLETED, b"42")


@rule("1.8")
async def test_progress_and_logs_of_a_running_attempt_are_kept(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        (running,) = worker.deliveries
        lease = commands.LeaseRef(running.number, running.created_ms, running.token)
        report = commands.Report(lease, '{"done":1}', [commands.LogLine(5, "info", "hello")])
        assert await rig.broker.submit(report) == commands.Done()
        assert (await rig.job(ref)).progress_json == '{"done":1}'
        page = await rig.broker.query(commands.ListJobLogs(ref))
        assert page == commands.LogPage([commands.LogLine(5, "info", "hello", 1)], None)


# ------------------------------------------------------------------------------------ retention, durability


@rule("1.12")
async def test_retention_acts_on_an_idle_queue(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working()
        usual, own, kept = await rig.add(
            new_job(),
            new_job(policy=policy(retain_completed_ms=0)),
            new_job(policy=policy(retain_completed_ms=9 * DAY)),
        )
        await rig.settle(*(complete(one) for one in worker.deliveries))
        await rig.engine.advance(2 * 60 * SECOND)
        assert await _exist(rig, usual, own, kept) == [True, False, True]
        lab.clock.set_wall(lab.clock.wall_ms() + DAY)
        await rig.engine.advance(2 * 60 * SECOND)
        assert await _exist(rig, usual, kept) == [False, True]


@rule("8")
async def test_everything_that_was_answered_is_there_after_a_restart(lab: Lab) -> None:
    async with lab.open() as rig:
        worker = await rig.working(credit=2)
        refs = await rig.add(*(new_job(name=f"n{n}", delay_ms=SECOND * (n == 3)) for n in range(5)))
        await rig.settle(complete(worker.deliveries[0], b"1"))
        before = rig.store.export()
        counts = rig.store.counts()
    async with lab.open() as rig:
        assert rig.store.export() == before
        assert rig.store.counts() == counts
        states = [await rig.state(ref) for ref in refs]
        assert states == [State.COMPLETED, State.ACTIVE, State.WAITING, State.DELAYED, State.WAITING]
        again = await rig.working(credit=5, worker_id="w2")
        await rig.engine.advance(SECOND + 5)
        assert [one.name for one in again.deliveries] == ["n2", "n4", "n3"]


async def _wait_reason(rig: LabRig, ref: commands.JobRef) -> WaitReason:
    wait = (await rig.job(ref)).wait
    assert wait is not None
    return WaitReason(wait.reason)


async def _exist(rig: LabRig, *refs: commands.JobRef) -> list[bool]:
    return [isinstance(await rig.broker.query(commands.GetJob(ref)), commands.JobFound) for ref in refs]
