"""Brokers of every kind over the same data, one after the other: what a restart leaves is part of what is tested."""

from __future__ import annotations

from collections.abc import Callable

from anvilmq_broker.engine.inproc import InprocEngine
from anvilmq_broker.store import protocol
from tests.support.clock import FakeClock
from tests.unit.engine.rig import Rig

OpenStore = Callable[[], protocol.Store]
MakeEngine = Callable[[protocol.Store, FakeClock], InprocEngine]


class LabRig(Rig):
    """A rig with an engine of any kind, on a clock that outlives it."""

    def __init__(self, store: protocol.Store, clock: FakeClock, engine: InprocEngine) -> None:
        self.clock = clock
        self.store = store
        self.engine = engine
        self._sessions = 0


class Lab:
    """Where brokers are opened: `async with lab.open() as rig`."""

    def __init__(self, open_store: OpenStore, make_engine: MakeEngine) -> None:
        self.clock = FakeClock()
        self._open_store = open_store
        self._make_engine = make_engine

    def open(self) -> LabRig:
        """A broker over the lab's data, not started; one at a time."""
        store = self._open_store()
        return LabRig(store, self.clock, self._make_engine(store, self.clock))
