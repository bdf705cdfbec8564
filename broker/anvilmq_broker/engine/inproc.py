"""An engine on the event loop of the process it is used in: `anvilmq dev`, the testing environment, tests.

The same loop, the same frames, encoded and decoded; only the socket is missing. With the machine's clock it steps by
itself; with a clock that a test holds, `advance` moves it and fires what falls due, in order.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final, Protocol

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import errors
from anvilmq_broker.engine import link
from anvilmq_broker.engine.link_client import FramedBroker
from anvilmq_broker.engine.link_server import InprocHub, InprocPeer
from anvilmq_broker.engine.loop import Engine
from anvilmq_broker.engine.metrics import Snapshot
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.store import protocol

_QUIET_TURNS: Final = 20
"""Turns of the event loop without a frame after which nothing more is expected to happen by itself."""


class HeldClock(Clock, Protocol):
    """A clock that moves only when told to."""

    def advance(self, by_ms: int) -> None:
        """Let time pass."""


class InprocBroker(FramedBroker):
    """A `link.Broker` of the same process; made by `InprocEngine.connect`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hub: InprocHub) -> None:
        super().__init__(loop)
        self._hub = hub
        self._peer: InprocPeer = hub.connect(self._arrived)

    async def close(self) -> None:
        """End the connection, as a gateway that stops; safe twice."""
        self._drop()

    def _arrived(self, data: bytes) -> None:
        # Never inside the engine's step: what a receiver does at once must not meet a turn that is under way.
        self._loop.call_soon(self._received if data else self._gone, data)

    def _gone(self, data: bytes) -> None:
        self._lose()

    def _send(self, data: bytes) -> None:
        self._hub.feed(self._peer, data)

    def _drop(self) -> None:
        self._hub.drop(self._peer)
        self._lose()


class InprocEngine:
    """Engine and store of one broker. store: not started; it is stopped by `stop`.

    clock: the machine's, or one that a test holds (then only `advance` lets time pass). durability: 1 full, 2 relaxed.
    """

    def __init__(
        self, store: protocol.Store, clock: Clock | HeldClock, *, held: bool = False, durability: int = 1
    ) -> None:
        self._store = store
        self._clock = clock
        self._held = held
        self._durability = durability
        self._hub: InprocHub | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled = False
        self._stopped = False
        self.failure: errors.StoreError | None = None
        """Why the engine stopped by itself; None while it has not."""

    async def start(self) -> None:
        """Open the store and serve. Raises errors.StartRefused."""
        self._loop = asyncio.get_running_loop()
        opening = self._store.start()
        hello = link.Hello(
            link.schema_hash(),
            os.urandom(8).hex(),
            self._clock.wall_ms(),
            self._store.schema_version,
            self._durability,
            os.urandom(32),
        )
        self._hub = InprocHub(link.encode(0, hello), self._wake)
        self._engine = Engine(self._store, self._hub, self._clock, Telemetry(), self._durability)
        self._engine.start(opening)
        self._wake()

    async def connect(self) -> InprocBroker:
        """A new connection, as a gateway has one."""
        assert self._hub is not None, "start() comes first"
        broker = InprocBroker(self._loop, self._hub)
        await broker.greeting()
        return broker

    async def stop(self) -> None:
        """End all connections and stop the store; safe unstarted and twice."""
        self._end()
        self._store.stop()

    async def advance(self, by_ms: int) -> None:
        """Let time pass on a held clock, stopping at each moment at which something falls due.

        After each, whoever runs on this event loop has its turn before time goes on.
        """
        clock = self._clock
        assert self._held, "this clock moves by itself"
        until = clock.monotonic_ms() + by_ms
        await self.settle()
        while not self._stopped and clock.monotonic_ms() < until:
            left = until - clock.monotonic_ms()
            # Whole ms, at least one: a moment in between is reached by the ms after it.
            clock.advance(max(1, -int(-min(self._engine.wait_ms(), left) // 1)))  # type: ignore[union-attr]
            self._step()
            await self.settle()

    async def settle(self) -> None:
        """Wait until nothing happens by itself any more: no frame on its way, no task of this loop that sends one."""
        hub, quiet = self._hub, 0
        while hub is not None and quiet < _QUIET_TURNS and not self._stopped:
            quiet = 0 if self._scheduled or hub.pending() else quiet + 1
            await asyncio.sleep(0)

    def snapshot(self) -> Snapshot:
        """The engine's metrics."""
        return self._engine.snapshot()

    def _wake(self) -> None:
        if not self._scheduled and not self._stopped:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._stopped:
            self._step()
        if self._stopped:
            return
        wait_ms = self._engine.wait_ms()
        if wait_ms == 0:
            self._wake()
        elif not self._held:
            self._timer = self._loop.call_later(wait_ms / 1000, self._run)

    def _step(self) -> None:
        try:
            self._engine.step()
        except errors.StoreError as error:
            # Nothing was answered: to the callers the engine is gone.
            self.failure = error
            self._store.abandon()
            self._end()

    def _end(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._hub is not None:
            self._hub.close()
