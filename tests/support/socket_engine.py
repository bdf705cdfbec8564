"""An engine behind its real socket, in the process and on the event loop of the test, on a clock that the test holds."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import cast

from anvilmq_broker.engine import link
from anvilmq_broker.engine.inproc import InprocBroker, InprocEngine
from anvilmq_broker.engine.link_client import SocketBroker
from anvilmq_broker.engine.link_server import InprocHub, SocketHub
from anvilmq_broker.engine.loop import Engine
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.store import protocol
from tests.support.clock import FakeClock


class SocketEngine(InprocEngine):
    """As InprocEngine, but every frame goes through a Unix socket at `path`, both ways, as in production."""

    def __init__(self, store: protocol.Store, clock: FakeClock, path: Path) -> None:
        super().__init__(store, clock, held=True)
        self._path = path
        self._brokers: list[SocketBroker] = []

    async def start(self) -> None:
        """Open the store, bind the socket and serve."""
        self._loop = asyncio.get_running_loop()
        opening = self._store.start()
        hello = link.Hello(
            link.schema_hash(), "test", self._clock.wall_ms(), self._store.schema_version, 1, os.urandom(32)
        )
        hub = SocketHub(self._path, link.encode(0, hello))
        # To the inherited steps a hub is a hub; only connecting differs.
        self._hub = cast("InprocHub", hub)
        self._engine = Engine(self._store, hub, self._clock, Telemetry())
        self._engine.start(opening)
        # The hub waits in a selector of its own, which is readable itself when one of its sockets is ready.
        self._ready = hub._selector.fileno()
        self._loop.add_reader(self._ready, self._wake)
        self._wake()

    async def connect(self) -> InprocBroker:
        """A new connection, as a gateway has one."""
        broker = await SocketBroker.connect(self._path)
        self._brokers.append(broker)
        # For its users the two are the same: what they share is the seam.
        return cast("InprocBroker", broker)

    async def stop(self) -> None:
        """End all connections, wait until they are closed, stop the store."""
        if self._hub is not None:
            self._loop.remove_reader(self._ready)
        await super().stop()
        for broker in self._brokers:
            await broker.close()
