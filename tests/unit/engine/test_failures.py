"""When the store cannot do its work: nothing uncommitted shows, nothing is answered that is not durable."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.domain.state import State
from anvilmq_broker.engine.link import EngineLost
from anvilmq_broker.store import protocol
from anvilmq_broker.store.memory import MemoryStore
from tests.support import bundles
from tests.support.chance import SeededChance
from tests.support.rules import rule
from tests.unit.engine.rig import Rig, refused


class FailingStore(MemoryStore):
    """A memory store whose batches fail as the test says. fail: called with begin, apply, claim or commit."""

    def __init__(self) -> None:
        super().__init__(chance=SeededChance())
        self.fail: Callable[[str, Any], None] = lambda what, detail: None
        self.accepting = True
        self.abandoned = False
        self.greedy = False
        """Take a slot for each command, and do nothing with it."""
        self.began = 0
        self.kept_house: list[bool] = []

    def begin(self, now_ms: int) -> Any:
        """A batch that may fail."""
        self.began += 1
        self.fail("begin", None)
        return FailingBatch(self, super().begin(now_ms))

    def accepts_adds(self) -> bool:
        """As the test says."""
        return self.accepting

    def housekeep(self, idle: bool) -> None:
        """Remember that it was asked."""
        self.kept_house.append(idle)

    def abandon(self) -> None:
        """Remember that it was asked."""
        self.abandoned = True


class FailingBatch:
    """A batch that may fail."""

    def __init__(self, store: FailingStore, batch: protocol.Batch) -> None:
        self._store = store
        self._batch = batch

    def apply(self, batch: Sequence[commands.Command], take_slot: protocol.TakeSlot) -> list[protocol.Applied]:
        """Carried out, and then perhaps failed: a store fails late as well as early."""
        if self._store.greedy:
            assert take_slot(bundles.QUEUE) is not None
        applied = self._batch.apply(batch, take_slot)
        self._store.fail("apply", batch)
        return applied

    def claim(self, queue: str, slots: Sequence[protocol.Slot]) -> list[protocol.Started]:
        """Claimed, and then perhaps failed."""
        started = self._batch.claim(queue, slots)
        self._store.fail("claim", queue)
        return started

    def next_ready_at(self, queue: str) -> int | None:
        """As it is."""
        return self._batch.next_ready_at(queue)

    def commit(self) -> None:
        """Perhaps failed instead."""
        self._store.fail("commit", None)
        self._batch.commit()

    def rollback(self) -> None:
        """As it is."""
        self._batch.rollback()


def _once(where: str, error: errors.StoreError, when: Callable[[Any], bool] = lambda detail: True) -> Any:
    left = [error]

    def fail(what: str, detail: Any) -> None:
        if what == where and left and when(detail):
            raise left.pop()

    return fail


def _has_adds(batch: Any) -> bool:
    return any(isinstance(command, commands.AddJobs) for command in batch)


@rule("8")
@pytest.mark.parametrize("where", ["begin", "apply", "commit"])
async def test_after_an_error_of_the_store_nothing_is_answered_and_the_engine_stops(where: str) -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        store.fail = _once(where, errors.StorageIO("I/O error"))
        with pytest.raises(EngineLost):
            await rig.broker.submit(commands.AddJobs([bundles.new_job()]))
        assert isinstance(rig.engine.failure, errors.StorageIO)
        assert store.abandoned
        with pytest.raises(EngineLost):
            await rig.broker.submit(commands.AddJobs([bundles.new_job()]))


@rule("8")
async def test_a_failed_commit_delivers_nothing() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        worker = await rig.working()
        store.fail = _once("commit", errors.StorageIO("I/O error"))
        with pytest.raises(EngineLost):
            await rig.broker.submit(commands.AddJobs([bundles.new_job()]))
        assert worker.deliveries == []
        assert worker.notices[-1] == commands.SessionEnded(worker.session, "NOT_READY")


@pytest.mark.parametrize("where", ["apply", "commit"])
async def test_without_room_the_adds_of_a_batch_are_refused_and_its_settlements_go_on(where: str) -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        worker = await rig.working(credit=2)
        ref = await rig.add_one()
        when = _has_adds if where == "apply" else lambda detail: True
        store.fail = _once(where, errors.StorageFull("disk full"), when)
        settling = asyncio.ensure_future(rig.broker.submit(commands.Settle([bundles.complete(worker.deliveries[0])])))
        adding = asyncio.ensure_future(rig.broker.submit(commands.AddJobs([bundles.new_job()])))
        outcome = refused(await adding)
        assert outcome.reason == "STORAGE_FULL"
        assert outcome.retry_after_ms > 0
        assert await settling == commands.Settled(bytes([State.COMPLETED]))
        assert await rig.state(ref) is State.COMPLETED
        assert store.counts().get((bundles.QUEUE, State.WAITING), 0) == 0


async def test_the_slot_of_a_refused_add_is_free_for_the_next_one() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        worker = await rig.working(credit=1)
        store.fail = _once("apply", errors.StorageFull("disk full"))
        refused(await rig.broker.submit(commands.AddJobs([bundles.new_job()])))
        assert worker.deliveries == []
        await rig.add_one()
        assert len(worker.deliveries) == 1


@pytest.mark.parametrize("where", ["claim", "commit"])
async def test_a_job_whose_claim_was_undone_is_claimed_again(where: str) -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        await rig.add_one()
        store.fail = _once(where, errors.StorageFull("disk full"))
        worker = await rig.working(credit=2)
        assert len(worker.deliveries) == 1
        assert worker.deliveries[0].starts == 1


async def test_a_slot_that_the_store_took_for_nothing_is_free_again() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        worker = await rig.working(credit=1)
        store.greedy = True
        await rig.broker.submit(commands.CancelJob(commands.JobRef(1, 1)))
        store.greedy = False
        await rig.add_one()
        assert len(worker.deliveries) == 1


async def test_a_claim_that_waits_through_an_undone_batch_still_gets_its_job() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        store.fail = _once("commit", errors.StorageFull("disk full"))
        claim = asyncio.ensure_future(rig.broker.submit(commands.Claim(bundles.identity(), [bundles.QUEUE], 1, 10_000)))
        await rig.engine.settle()
        await rig.add_one()
        claimed = await claim
        assert isinstance(claimed, commands.Claimed)
        assert len(claimed.deliveries) == 1


async def test_no_room_twice_stops_the_engine() -> None:
    store = FailingStore()
    async with Rig(store) as rig:

        def fail(what: str, detail: Any) -> None:
            if what == "commit":
                raise errors.StorageFull("disk full")

        store.fail = fail
        with pytest.raises(EngineLost):
            await rig.broker.submit(commands.CancelJob(commands.JobRef(1, 1)))
        assert isinstance(rig.engine.failure, errors.StorageFull)


async def test_below_the_floor_adds_are_refused_without_a_statement() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        store.accepting = False
        outcome = refused(await rig.broker.submit(commands.AddJobs([bundles.new_job()])))
        assert outcome.reason == "STORAGE_FULL"
        assert store.began == 0
        answer = await rig.broker.submit(commands.CancelJob(commands.JobRef(1, 1)))
        assert refused(answer).reason == "JOB_NOT_FOUND"


async def test_an_idle_engine_executes_no_statement() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        for number in range(5):
            await rig.working(10, f"w{number}")
        await rig.add_one(delay_ms=3_600_000)
        began = store.began
        await rig.engine.advance(9_000)
        for number in range(5):
            rig.broker.attach(commands.SessionSeen(number + 1))
        await rig.engine.settle()
        assert store.began == began


async def test_upkeep_follows_each_batch_and_once_a_second_of_quiet() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        await rig.add_one()
        assert store.kept_house == [False]
        await rig.engine.advance(9_000)
        assert store.kept_house == [False, True]


@rule("1.12")
async def test_retention_acts_on_an_idle_queue() -> None:
    async with Rig() as rig:
        worker = await rig.working()
        ref = await rig.add_one()
        await rig.settle(bundles.complete(worker.deliveries[0]))
        await rig.engine.advance(24 * 3_600_000 + 60_000)
        answer = await rig.broker.query(commands.GetJob(ref))
        assert refused(answer).reason == "JOB_NOT_FOUND"
