"""Keeps one engine and its gateways running: starts them, starts them again, tells how they are, ends them in order.

It knows neither gRPC nor the database. What it decides: a child that dies is started again after 0, 0.2, 1, 5 s; five
deaths of one child in a minute end the broker with 1; a refused start ends it with 78; SIGTERM drains the gateways,
then stops the engine, all within the grace.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import signal
import socket
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Final

import structlog

from anvilmq_broker.app.child import Child
from anvilmq_broker.app.children import EXIT_START_REFUSED, Fatal, Start
from anvilmq_broker.app.probes import Answer, Page, Probes
from anvilmq_broker.app.settings import Address, Settings
from anvilmq_broker.engine import metrics

RESTART_DELAYS_S: Final = (0.0, 0.2, 1.0, 5.0)
MAX_DEATHS: Final = 5
DEATHS_WITHIN_S: Final = 60.0
ENGINE_STOP_S: Final = 5.0
"""Of the grace, kept for the engine after the gateways."""
_ALIVE_WITHIN_S: Final = 0.9
_HEARD_WITHIN_S: Final = 15.0
_METRICS_WITHIN_S: Final = 2.0
_LONGEST_SOCKET_PATH: Final = 107


class AddressTaken(Exception):
    """Somebody listens there already: most likely another broker."""


class Supervisor:
    """The broker as its operator sees it. `run` once. runtime_dirs: where to try to make the socket's folder, in order."""

    def __init__(self, settings: Settings, runtime_dirs: list[Path]) -> None:
        self._settings = settings
        self._runtime_dirs = runtime_dirs
        self._log = structlog.get_logger("anvilmq.app")
        self._children: dict[str, Child] = {}
        self._restarts: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished = asyncio.Event()
        self._exit_code = 0
        self._stopping = False
        self._started = False
        self._expected = 1 + settings.gateways
        self.fatal: Fatal | None = None
        """Why the broker ends, when a child has said so."""

    async def run(self) -> int:
        """Serve until a signal or a failure; the exit code. Raises AddressTaken."""
        with contextlib.ExitStack() as stack:
            held = stack.enter_context(hold_address(self._settings.grpc_address))
            grpc = Address(self._settings.grpc_address.host, held.getsockname()[1])
            folder = Path(stack.enter_context(_socket_folder(self._runtime_dirs)))
            probes = Probes(self._settings.http_address, self._pages())
            try:
                http = await probes.start()
            except OSError as error:
                raise AddressTaken(f"ANVILMQ_HTTP_ADDRESS {self._settings.http_address}: {error.strerror}") from error
            self._watch_signals()
            self._log.info("broker_starting", grpc=str(grpc), http=str(http), store=self._settings.store)
            try:
                self._start_children(grpc, folder / "engine.sock")
                await self._finished.wait()
                await self._end()
            finally:
                for child in self._children.values():
                    child.kill()
                await probes.stop()
            return self._exit_code

    # ------------------------------------------------------------------------------------------- children

    def _start_children(self, grpc: Address, engine_socket: Path) -> None:
        roles = [("engine", 0), *(("gateway", index) for index in range(self._settings.gateways))]
        for role, index in roles:
            start = Start(role, index, self._settings, str(engine_socket), grpc.host, grpc.port)
            task = asyncio.create_task(self._keep(start))
            self._tasks.add(task)
            task.add_done_callback(self._kept)

    def _kept(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Not even started: no descriptors, no memory, a broken installation.
            self._finish(1, Fatal("child_not_started", f"{type(error).__name__}: {error}"))

    async def _keep(self, start: Start) -> None:
        """One child, again and again."""
        deaths: deque[float] = deque()
        while not self._stopping:
            child = self._children[start.process] = await Child.spawn(start, self._look)
            if self._stopping:
                child.kill()
            code = await child.ended()
            if self._stopping:
                return
            if code == EXIT_START_REFUSED:
                self._finish(EXIT_START_REFUSED, child.fatal)
                return
            now = time.monotonic()
            deaths.append(now)
            while deaths[0] < now - DEATHS_WITHIN_S:
                deaths.popleft()
            self._restarts[start.process] = self._restarts.get(start.process, 0) + 1
            self._log.error("child_died", child=start.process, exit_code=code, deaths=len(deaths))
            if len(deaths) >= MAX_DEATHS:
                self._finish(1, child.fatal)
                return
            await asyncio.sleep(RESTART_DELAYS_S[min(len(deaths), len(RESTART_DELAYS_S)) - 1])

    def _look(self) -> None:
        if self._ready() and not self._started:
            self._started = True
            self._log.info("broker_ready", pid_of={child.name: child.pid for child in self._children.values()})

    def _ready(self) -> bool:
        return (
            not self._stopping
            and len(self._children) == self._expected
            and all(child.serving for child in self._children.values())
        )

    # ------------------------------------------------------------------------------------------- the end

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self._finished.is_set():
            # A second signal: do not wait for the gateways any longer.
            for child in self._children.values():
                if child.name != "engine":
                    child.kill()
        self._finish(0, None)

    def _finish(self, exit_code: int, fatal: Fatal | None) -> None:
        if not self._finished.is_set():
            self._stopping = True
            self._exit_code = exit_code
            self.fatal = fatal
            self._finished.set()

    async def _end(self) -> None:
        """Drain the gateways, then stop the engine; what does not leave in time is killed."""
        self._log.info("broker_stopping", exit_code=self._exit_code)
        grace_s = self._settings.grace / 1000
        engine_s = min(ENGINE_STOP_S, grace_s / 2)
        gateways = [child for child in self._children.values() if child.name != "engine"]
        await self._leave(gateways, grace_s - engine_s)
        await self._leave([child for child in self._children.values() if child.name == "engine"], engine_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _leave(self, leaving: list[Child], within_s: float) -> None:
        for child in leaving:
            if child.ready:
                child.stop(int(within_s * 1000))
            else:
                # It does not serve yet, and may be waiting for a lock: there is nothing to drain.
                child.kill()
        tasks = [asyncio.create_task(child.exited()) for child in leaving]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=within_s)
            for child in leaving if late else ():
                child.kill()
            await asyncio.gather(*tasks)

    # --------------------------------------------------------------------------------------------- pages

    def _pages(self) -> dict[str, Page]:
        return {"/livez": self._live, "/readyz": self._readyz, "/startupz": self._startupz, "/metrics": self._metrics}

    async def _readyz(self) -> Answer:
        return (200, "ready\n") if self._ready() else (503, self._missing())

    async def _startupz(self) -> Answer:
        return (200, "started\n") if self._started else (503, self._missing())

    async def _live(self) -> Answer:
        """Processes answer; never a word about the disk."""
        asked = [child for child in self._children.values() if child.ready]
        await asyncio.gather(*(child.ask(_ALIVE_WITHIN_S) for child in asked))
        since = time.monotonic() - _HEARD_WITHIN_S
        silent = [child.name for child in asked if child.ready and child.heard_at < since]
        return (503, f"no answer from {', '.join(silent)}\n") if silent else (200, "alive\n")

    async def _metrics(self) -> Answer:
        asked = [child for child in self._children.values() if child.ready]
        told = await asyncio.gather(*(child.ask(_METRICS_WITHIN_S, metrics=True) for child in asked))
        merged = metrics.merge([self._snapshot(), *(snapshot for snapshot in told if snapshot)])
        return 200, metrics.render(merged)

    def _missing(self) -> str:
        serving = {name for name, child in self._children.items() if child.serving}
        named = ["engine", *(f"gateway-{index}" for index in range(self._settings.gateways))]
        waiting = "stopping" if self._stopping else f"waiting for {', '.join(n for n in named if n not in serving)}"
        return f"{waiting}\n"

    def _snapshot(self) -> metrics.Snapshot:
        build = metrics.Gauge("anvilmq_build_info", "Always 1; the version in its label.", "version")
        build.set(1, (importlib.metadata.version("anvilmq"),))
        restarts = metrics.Counter("anvilmq_restarts_total", "Processes started again after they died.", "process")
        for name, number in self._restarts.items():
            restarts.add((name,), number)
        return [build.family(), restarts.family()]


def hold_address(address: Address) -> socket.socket:
    """A bound, not listening socket that keeps the port for the gateways. Raises AddressTaken.

    The first bind, without SO_REUSEPORT, finds out whether anybody listens there: with it a second broker would
    silently get a share of the connections.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with contextlib.closing(_bound(address, family, shared=False)) as probe:
        port = probe.getsockname()[1]
    return _bound(Address(address.host, port), family, shared=True)


def _bound(address: Address, family: socket.AddressFamily, *, shared: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # [::] serves IPv4 too, as gRPC does.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address.host, address.port))
    except OSError as error:
        sock.close()
        raise AddressTaken(f"ANVILMQ_GRPC_ADDRESS {address}: {error.strerror}; is another broker running?") from error
    return sock


def _socket_folder(candidates: list[Path]) -> tempfile.TemporaryDirectory[str]:
    """A folder of this user alone, with a path short enough for a socket in it."""
    for candidate in candidates:
        if len(str(candidate)) < _LONGEST_SOCKET_PATH - 40:
            with contextlib.suppress(OSError):
                return tempfile.TemporaryDirectory(prefix="anvilmq-", dir=candidate)
    return tempfile.TemporaryDirectory(prefix="anvilmq-")
