"""What a started worker consists of, put together: session, runner, handlers, dispatcher, probes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anvilmq._dispatcher import Dispatcher, Registry
from anvilmq._handlers import Handlers
from anvilmq._http import HttpServer
from anvilmq._logs import AttemptLog
from anvilmq._metrics import Metrics
from anvilmq._pools import Slots
from anvilmq._runner import Observer, Runner
from anvilmq._session import Session
from anvilmq_proto.v1 import worker_service_pb2 as wire

if TYPE_CHECKING:
    from anvilmq._client import Client
    from anvilmq._codec import Codec


class Crew:
    """Made on the loop that async handlers are to run on. grace_s: for leaving, unless `leave` says otherwise."""

    def __init__(
        self,
        *,
        client: Client,
        registry: Registry,
        codec: Codec | None,
        identity: wire.WorkerIdentity,
        pools: Sequence[Slots],
        grace_s: float,
        http: str | None,
        observers: Sequence[Observer],
    ) -> None:
        self._io = client.io
        self._grace_s = grace_s
        self.dispatcher = Dispatcher(io=client.io, registry=registry, pools=pools)
        self.session = Session(
            io=client.io,
            connect=client.connect,
            identity=identity,
            pools=pools,
            listener=self.dispatcher,
            chance=client.chance,
        )
        self.metrics = Metrics(
            loop_stalls=lambda: self.dispatcher.watchdog.stalls,
            reconnects=lambda: self.session.reconnect.reconnects,
            leases_lost=lambda: self.session.leases_lost,
            adds_pending=lambda: client.adds.pending,
        )
        self._runner = Runner(
            codec=codec,
            settle=self.session.end,
            observers=(AttemptLog(), *((self.metrics,) if http else ()), *observers),
            monotonic=client.clock.monotonic,
        )
        self._handlers = Handlers(self._runner, self.dispatcher.ended)
        self.http = HttpServer(http, ready=self._is_ready, metrics=self.metrics.text) if http else None

    async def start(self) -> None:
        """Serve the probes, open the session."""
        self._io.check()
        await self._io.run(self._start)

    async def leave(self, grace_s: float | None) -> None:
        """Until the worker has left. Joins a leave that is under way."""
        await self._io.run(lambda: self._leave(self._grace_s if grace_s is None else grace_s))

    def drain(self) -> None:
        """Begin to leave; hurry, if that was begun before. Any thread, and signal handlers."""
        self._io.call_soon(self._drain)

    async def _start(self) -> None:
        if self.http is not None:
            await self.http.start()
        self.dispatcher.start(self.session, self._runner, self._handlers, self._grace_s)

    async def _leave(self, grace_s: float) -> None:
        try:
            # Who stops waiting does not stop the worker from leaving.
            await asyncio.shield(self.dispatcher.leave(grace_s))
        finally:
            if self.http is not None:
                await self.http.stop()

    def _drain(self) -> None:
        if self.dispatcher.is_leaving:
            self.dispatcher.hurry()
        else:
            self.dispatcher.leave(self._grace_s)

    def _is_ready(self) -> bool:
        return self.session.ready and not self.dispatcher.is_leaving
