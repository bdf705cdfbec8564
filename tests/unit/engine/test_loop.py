"""The bounds of a turn, and what a turn that came late gives back."""

from __future__ import annotations

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import State
from anvilmq_broker.engine import link
from anvilmq_broker.engine.link_server import InprocHub, InprocPeer
from anvilmq_broker.engine.loop import MAX_APPLY_MS, Engine
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.store.memory import MemoryStore
from tests.support import bundles
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock
from tests.support.rules import rule


class RushingClock(FakeClock):
    """A clock on which each look costs `rush_ms`, as on a machine that is slow."""

    rush_ms = 0.0

    def monotonic_ms(self) -> float:
        """Later with each look."""
        self._monotonic_ms += self.rush_ms
        return self._monotonic_ms


class SleepyHub(InprocHub):
    """A hub whose waiting takes `overslept_ms` longer than it was asked to."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(b"", lambda: None)
        self._clock = clock
        self.overslept_ms = 0

    def poll(self, wait_ms: float | None) -> None:
        """Sleep too long."""
        self._clock.advance(self.overslept_ms)


class Bench:
    """An engine that is stepped by hand, and one peer."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.hub = SleepyHub(self.clock)
        self.store = MemoryStore(chance=SeededChance())
        self.engine = Engine(self.store, self.hub, self.clock, Telemetry())
        self.engine.start(self.store.start())
        self._splitter = link.Splitter()
        self.heard: list[tuple[int, link.Reply]] = []
        self.peer: InprocPeer = self.hub.connect(self._hear)

    def say(self, message: link.Message, call: int = 0) -> None:
        """A frame arrives."""
        self.hub.feed(self.peer, link.encode(call, message))

    def worker(self, credit: int) -> None:
        """A worker connects, with credit."""
        self.say(commands.OpenSession(1, bundles.identity(), [commands.Pool(1, [bundles.QUEUE])]))
        self.say(commands.AddCredit(1, [(1, credit)]))

    @property
    def deliveries(self) -> int:
        """Jobs delivered so far."""
        return sum(len(reply.deliveries) for _, reply in self.heard if isinstance(reply, commands.Deliveries))

    def _hear(self, data: bytes) -> None:
        self.heard += [link.decode_reply(payload) for payload in self._splitter.feed(data)]


def test_all_that_has_arrived_is_one_batch() -> None:
    bench = Bench()
    for call in range(1, 6):
        bench.say(commands.AddJobs([bundles.new_job() for _ in range(10)]), call)
    bench.engine.step()
    created = {reply.created_ms for _, reply in bench.heard if isinstance(reply, commands.AddedJobs)}
    assert len(bench.heard) == 5
    assert len(created) == 1
    assert len(bench.store.export()["events"]) >= 50


def test_a_batch_ends_at_a_thousand_jobs_and_the_rest_comes_with_the_next() -> None:
    bench = Bench()
    for call in range(1, 8):
        bench.say(commands.AddJobs([bundles.new_job() for _ in range(300)]), call)
    bench.engine.step()
    assert len(bench.heard) == 4
    assert bench.engine.wait_ms() == 0
    bench.engine.step()
    assert len(bench.heard) == 7


def test_a_batch_ends_when_its_time_is_over() -> None:
    clock = RushingClock()
    bench = Bench(clock)
    for call in range(1, 4):
        bench.say(commands.AddJobs([bundles.new_job() for _ in range(256)]), call)
    clock.rush_ms = MAX_APPLY_MS
    bench.engine.step()
    assert len(bench.heard) == 0
    clock.rush_ms = MAX_APPLY_MS - 1
    bench.engine.step()
    assert len(bench.heard) == 1


def test_adds_without_end_do_not_keep_workers_idle() -> None:
    clock = RushingClock()
    bench = Bench(clock)
    bench.say(commands.AddJobs([bundles.new_job() for _ in range(256)]), 1)
    bench.engine.step()
    bench.worker(100)
    for call in range(2, 10):
        bench.say(commands.AddJobs([bundles.new_job() for _ in range(256)]), call)
    clock.rush_ms = MAX_APPLY_MS - 1
    bench.engine.step()
    assert bench.deliveries > 0


@rule("1.5")
def test_time_that_the_engine_lost_is_given_back_to_the_leases() -> None:
    bench = Bench()
    bench.worker(1)
    bench.say(commands.AddJobs([bundles.new_job()]), 1)
    bench.engine.step()
    # As if the process had been stopped for a minute: the worker could not renew.
    bench.hub.overslept_ms = 60_000
    bench.engine.step()
    bench.hub.overslept_ms = 0
    assert bench.store.counts() == {(bundles.QUEUE, State.ACTIVE): 1}
    bench.clock.advance(31_000)
    bench.engine.step()
    assert bench.store.counts() == {(bundles.QUEUE, State.WAITING): 1}


def test_a_peer_that_sends_what_is_no_message_is_dropped_and_the_others_are_served() -> None:
    bench = Bench()
    bad = bench.hub.connect(lambda data: None)
    bench.hub.feed(bad, link.LENGTH.pack(1) + b"\xc1")
    bench.say(commands.AddJobs([bundles.new_job()]), 1)
    bench.engine.step()
    assert bad.closed
    assert [call for call, _ in bench.heard] == [1]


def test_settlements_of_a_turn_free_slots_for_its_adds() -> None:
    bench = Bench()
    bench.worker(1)
    bench.say(commands.AddJobs([bundles.new_job(key="k", singleton=True)]), 1)
    bench.engine.step()
    (started,) = [reply for _, reply in bench.heard if isinstance(reply, commands.Deliveries)]
    bench.say(commands.AddJobs([bundles.new_job(key="k", singleton=True)]), 2)
    bench.say(commands.Settle([bundles.complete(started.deliveries[0])]), 3)
    bench.engine.step()
    answer = dict(bench.heard)[2]
    assert isinstance(answer, commands.AddedJobs)
    assert answer.earlier == []


def test_the_pruner_waits_for_quiet_but_not_for_ever() -> None:
    bench = Bench()
    bench.clock.advance(15_000)
    bench.say(commands.GetInfo(), 1)
    bench.engine.step()
    assert not bench.engine.memory.is_due
    pruned_at = bench.engine._pruner.next_ms()
    assert pruned_at < bench.clock.monotonic_ms()
    bench.clock.advance(60_000)
    bench.say(commands.GetInfo(), 2)
    bench.engine.step()
    assert bench.engine._pruner.next_ms() > bench.clock.monotonic_ms()
