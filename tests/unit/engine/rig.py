"""An engine on a held clock, with gateways and workers that a test plays itself."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.domain.state import State
from anvilmq_broker.engine import metrics
from anvilmq_broker.engine.inproc import InprocBroker, InprocEngine
from anvilmq_broker.store import protocol
from anvilmq_broker.store.memory import MemoryStore
from tests.support import bundles
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock
from tests.support.store_driver import refs


class Worker:
    """A worker's stream as its gateway sees it; what the engine says gathers in `notices`."""

    def __init__(self, broker: InprocBroker, session: int, worker_id: str, pools: list[commands.Pool]) -> None:
        self.broker = broker
        self.session = session
        self.identity = commands.WorkerIdentity(worker_id)
        self.pools = pools
        self.notices: list[commands.Notice] = []

    def open(self, *resume: commands.LeaseRef) -> Self:
        """Begin the stream."""
        message = commands.OpenSession(self.session, self.identity, self.pools, list(resume))
        self.broker.attach(message, self.notices.append)
        return self

    def credit(self, jobs: int, pool: int = 1) -> Self:
        """Ask for more jobs."""
        self.broker.attach(commands.AddCredit(self.session, [(pool, jobs)]))
        return self

    def drain(self, *pools: int) -> None:
        """Take the credit back."""
        self.broker.attach(commands.DrainSession(self.session, list(pools)))

    def close(self) -> None:
        """The stream is gone."""
        self.broker.attach(commands.CloseSession(self.session))

    @property
    def deliveries(self) -> list[commands.Delivery]:
        """All that was ever delivered to it."""
        return [one for notice in self.of(commands.Deliveries) for one in notice.deliveries]

    @property
    def interrupts(self) -> list[commands.Interrupt]:
        """All interrupts after the opening."""
        return [one for notice in self.of(commands.Interrupts) for one in notice.interrupts]

    def of(self, kind: type[Any]) -> list[Any]:
        """The notices of this kind."""
        return [notice for notice in self.notices if isinstance(notice, kind)]


class Rig:
    """As a context manager: a started engine and one gateway's connection."""

    def __init__(self, store: protocol.Store | None = None) -> None:
        self.clock = FakeClock()
        self.store = store or MemoryStore(chance=SeededChance())
        self.engine = InprocEngine(self.store, self.clock, held=True)
        self._sessions = 0

    async def __aenter__(self) -> Self:
        await self.engine.start()
        self.broker = await self.engine.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.broker.close()
        await self.engine.stop()

    def worker(self, worker_id: str = bundles.WORKER, *queues: str, broker: InprocBroker | None = None) -> Worker:
        """A worker with one pool, not yet connected. broker: another gateway's connection."""
        self._sessions += 1
        pools = [commands.Pool(1, list(queues or (bundles.QUEUE,)), 10)]
        return Worker(broker or self.broker, self._sessions, worker_id, pools)

    async def working(self, credit: int = 10, worker_id: str = bundles.WORKER, *queues: str) -> Worker:
        """A connected worker with credit."""
        worker = self.worker(worker_id, *queues).open()
        if credit:
            worker.credit(credit)
        await self.engine.settle()
        return worker

    async def add(self, *jobs: commands.NewJob) -> list[commands.JobRef]:
        """Add the jobs, all or nothing."""
        added = await self.broker.submit(commands.AddJobs(list(jobs)))
        assert isinstance(added, commands.AddedJobs), added
        await self.engine.settle()
        return refs(added, len(jobs))

    async def add_one(self, **fields: Any) -> commands.JobRef:
        """Add one job made by bundles.new_job."""
        return (await self.add(bundles.new_job(**fields)))[0]

    async def settle(self, *items: commands.Settlement) -> commands.Settled:
        """Settle attempts."""
        settled = await self.broker.submit(commands.Settle(list(items)))
        assert isinstance(settled, commands.Settled), settled
        await self.engine.settle()
        return settled

    async def renew(self, *deliveries: commands.Delivery, worker_id: str = "") -> list[commands.Interrupt]:
        """Renew the leases; what the holder is told instead."""
        renewed = await self.broker.submit(commands.Renew([bundles.lease(one) for one in deliveries], worker_id))
        assert isinstance(renewed, commands.Renewed), renewed
        return renewed.interrupts

    async def job(self, ref: commands.JobRef) -> commands.JobRecord:
        """The job, with its wait reason."""
        found = await self.broker.query(commands.GetJob(ref, wait=True))
        assert isinstance(found, commands.JobFound), found
        return found.job

    async def state(self, ref: commands.JobRef) -> State:
        """The job's stored state."""
        return State((await self.job(ref)).state)

    async def workers(self, **fields: Any) -> list[commands.WorkerRecord]:
        """ListWorkers."""
        page = await self.broker.query(commands.ListWorkers(**fields))
        assert isinstance(page, commands.WorkerPage), page
        return page.workers

    def metric(self, name: str, *labels: str) -> float:
        """Value of a sample; 0 when there is none. Of a histogram: how many observations."""
        for family in self.engine.snapshot():
            if family.name == name:
                return sum(_value(sample) for sample in family.samples if tuple(sample.labels) == labels)
        raise AssertionError(f"no metric {name}")


def _value(sample: metrics.Sample) -> float:
    return float(sum(sample.buckets)) if sample.buckets else sample.value


def refused(outcome: object) -> errors.Refused:
    """The outcome, which must be a refusal."""
    assert isinstance(outcome, errors.Refused), outcome
    return outcome
