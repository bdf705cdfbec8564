"""The gateway process: connects to the engine, serves, tells the supervisor; connects again when the engine is lost."""

from __future__ import annotations

import asyncio
import gc
import signal
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from anvilmq_broker.clock import Clock, SystemClock
from anvilmq_broker.engine.link import EngineLost, OtherBuild
from anvilmq_broker.engine.link_client import SocketBroker
from anvilmq_broker.engine.metrics import Snapshot
from anvilmq_broker.engine.reporting import Reporter
from anvilmq_broker.gateway.auth import Authenticator, Open, TokensFile
from anvilmq_broker.gateway.context import Context, Identity, LoopTimers
from anvilmq_broker.gateway.limits import Limits
from anvilmq_broker.gateway.rpc import Gateway
from anvilmq_broker.gateway.server import Binding, Server
from anvilmq_broker.gateway.telemetry import Telemetry

log: Final = structlog.get_logger()

LOOK_EVERY_S: Final = 1.0
"""How often the tokens file and the loop's lag are looked at."""
RECONNECT_S: Final = 0.1
GC_YOUNG: Final = 50_000
"""New objects that may gather before the youngest are looked through."""


class Config(msgspec.Struct, frozen=True):
    """What a gateway is started with. tokens_file: None = no authentication. grace_ms: for a SIGTERM of its own."""

    index: int
    engine_socket: Path
    binding: Binding
    identity: Identity
    limits: Limits = Limits()
    tokens_file: Path | None = None
    grace_ms: int = 25_000


def run(config: Config, reporter: Reporter) -> int:
    """Serve until told to stop; the exit code. Raises TokensInvalid, TlsInvalid, BindFailed when it cannot start."""
    process = Process(config, reporter, SystemClock())
    # Frames make and drop many small objects and no cycles: look for those rarely, and never through what stands now.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_YOUNG, 20, 100)
    return asyncio.run(process.run())


class Process:
    """One gateway from start to end. It is a reporting.Handler: the supervisor asks it for metrics and to stop."""

    def __init__(self, config: Config, reporter: Reporter, clock: Clock) -> None:
        self._config = config
        self._reporter = reporter
        self._clock = clock
        self._telemetry = Telemetry(f"gateway-{config.index}")
        self._context = Context(clock=clock, timers=LoopTimers(), identity=config.identity, limits=config.limits)
        self._authenticator = _authenticator(config)
        self._gateway = Gateway(self._context, self._authenticator, self._telemetry)
        self._server = Server(self._gateway, config.binding)
        self._stop_ms: asyncio.Future[int] | None = None
        self._writing = False

    def snapshot(self) -> Snapshot:
        """What was counted so far."""
        return self._telemetry.snapshot()

    def stop(self, grace_ms: int) -> None:
        """Begin to stop. 0: the supervisor is gone, leave now."""
        if self._stop_ms is not None and not self._stop_ms.done():
            self._stop_ms.set_result(grace_ms)

    async def run(self) -> int:
        """Serve until `stop`."""
        loop = asyncio.get_running_loop()
        self._stop_ms = loop.create_future()
        self._reporter.serve(self)
        loop.add_reader(self._reporter.fileno(), self._from_supervisor)
        loop.add_signal_handler(signal.SIGTERM, self.stop, self._config.grace_ms)
        # Ctrl-C reaches every process of a terminal; the supervisor decides in which order they leave.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        await self._server.start()
        duties = [asyncio.create_task(self._keep_connected()), asyncio.create_task(self._look())]
        try:
            waits: list[asyncio.Future[Any]] = [self._stop_ms, *duties]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for duty in duties:
                if duty.done():
                    duty.result()
            await self._leave(self._stop_ms.result())
        finally:
            loop.remove_reader(self._reporter.fileno())
            for duty in duties:
                duty.cancel()
            await asyncio.gather(*duties, return_exceptions=True)
        return 0

    async def _leave(self, grace_ms: int) -> None:
        self._reporter.stopping()
        await self._server.stop(grace_ms / 1_000)

    async def _keep_connected(self) -> None:
        """Connects, and does so again whenever the engine is lost. Raises OtherBuild: this process is of another one."""
        while True:
            try:
                broker = await SocketBroker.connect(self._config.engine_socket)
            except OtherBuild:
                raise
            except (OSError, EngineLost):
                await asyncio.sleep(RECONNECT_S)
                continue
            try:
                await self._serve_with(broker)
            finally:
                self._context.lost()
                await broker.close()
            log.warning("engine_lost")

    async def _serve_with(self, broker: SocketBroker) -> None:
        self._context.connected(broker)
        await self._server.serving(True)
        self._tell(serving=True)
        log.info("engine_connected", instance_id=broker.hello.instance_id)
        await asyncio.shield(broker.lost)
        self._context.lost()
        await self._server.serving(False)
        self._tell(serving=False)

    async def _look(self) -> None:
        """Looks at the tokens file, and how late the loop lets it do so."""
        while True:
            due_ms = self._clock.monotonic_ms() + LOOK_EVERY_S * 1_000
            await asyncio.sleep(LOOK_EVERY_S)
            self._telemetry.lagged(max(0.0, self._clock.monotonic_ms() - due_ms) / 1_000)
            if isinstance(self._authenticator, TokensFile):
                self._authenticator.reload_if_changed(self._gateway.rights_changed)

    def _tell(self, *, serving: bool) -> None:
        self._reporter.ready(serving=serving)
        self._watch_unsent()

    def _from_supervisor(self) -> None:
        self._reporter.readable()
        self._watch_unsent()

    def _watch_unsent(self) -> None:
        """Have the loop flush what the socket to the supervisor had no room for."""
        loop, descriptor = asyncio.get_running_loop(), self._reporter.fileno()
        if self._reporter.unsent and not self._writing:
            self._writing = True
            loop.add_writer(descriptor, self._flush)
        elif self._writing and not self._reporter.unsent:
            self._writing = False
            loop.remove_writer(descriptor)

    def _flush(self) -> None:
        self._reporter.flush()
        self._watch_unsent()


def _authenticator(config: Config) -> Authenticator:
    return Open() if config.tokens_file is None else TokensFile(config.tokens_file)
