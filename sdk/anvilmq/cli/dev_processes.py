"""The processes of `anvilmq dev`: a broker, and a worker if there is an app. Both are the programs of production."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final

from anvilmq import errors
from anvilmq.cli import exits
from anvilmq.cli.command import Connection
from anvilmq.cli.connections import open_admin
from anvilmq_proto.v1.system_service_pb2 import GetServerInfoRequest

if TYPE_CHECKING:
    from anvilmq.cli.command import Cli

HOST: Final = "127.0.0.1"
READY_WITHIN_S: Final = 60.0
LEAVE_WITHIN_S: Final = 35.0
"""How long a process may take to leave before it is killed: more than its own grace."""
_LOOK_EVERY_S: Final = 0.1
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DevBroker:
    """Starts the processes, waits until one ends or a signal comes, then stops them: the worker first.

    data: folder of the database, None = a temporary one. app: "module:name" of the app whose handlers run, or None.
    port, http_port: 0 = any that is free.
    """

    def __init__(self, cli: Cli, *, data: str | None, app: str | None, port: int, http_port: int) -> None:
        self._cli = cli
        self._data = data
        self._app = app
        self._port = _free_port("--port", port)
        self._http_port = _free_port("--http-port", http_port)
        self._signalled = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> int:
        """Until it is over; the exit code: 0 after a signal, else that of the process that ended by itself."""
        with self._listening(), self._folder() as folder:
            broker = await self._start_broker(folder)
            try:
                if not await self._first(self._until_ready(), broker):
                    return self._ended("the broker", broker)
                self._print(folder)
                return await self._serve(broker)
            finally:
                await self._stop(broker)

    async def _serve(self, broker: Process) -> int:
        worker = await self._start_worker() if self._app is not None else None
        try:
            await self._first(self._signalled.wait(), *filter(None, (broker, worker)))
            if worker is not None and worker.returncode is not None:
                return self._ended("the worker", worker)
            return self._ended("the broker", broker)
        finally:
            if worker is not None:
                await self._stop(worker)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self._signalled.is_set():
            self._hurry.set()
        else:
            self._cli.terminal.note("stopping; once more to stop at once")
            self._signalled.set()

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        if self._data is not None:
            yield self._data
            return
        with tempfile.TemporaryDirectory(prefix="anvilmq-dev-") as folder:
            yield folder

    async def _start_broker(self, folder: str) -> Process:
        flags = {
            "--store": "libsql",
            "--data-dir": folder,
            "--grpc-address": f"{HOST}:{self._port}",
            "--http-address": f"{HOST}:{self._http_port}",
            "--auth": "none",
            "--gateways": "1",
            "--log-level": "error",
        }
        return await _start("anvilmq_broker.app", *(part for flag in flags.items() for part in flag))

    async def _start_worker(self) -> Process:
        return await _start("anvilmq.cli", "worker", "run", str(self._app), "--url", self._address)

    @property
    def _address(self) -> str:
        return f"{HOST}:{self._port}"

    async def _until_ready(self) -> None:
        """Return when the broker answers. Raises the last failure when it does not in time."""
        ends_at = self._cli.clock.monotonic() + READY_WITHIN_S
        async with open_admin(Connection(url=self._address)) as admin:
            while True:
                try:
                    await admin.get_server_info(GetServerInfoRequest(), timeout_s=1.0)
                    return
                except errors.CallError:
                    if self._cli.clock.monotonic() > ends_at:
                        raise
                await self._cli.clock.sleep(_LOOK_EVERY_S)

    async def _first(self, awaited: Coroutine[Any, Any, object], *processes: Process) -> bool:
        """Wait for the coroutine, a process or a signal, whatever comes first; whether it was the coroutine."""
        wanted = asyncio.ensure_future(awaited)
        others = [asyncio.ensure_future(process.wait()) for process in processes]
        others.append(asyncio.ensure_future(self._signalled.wait()))
        try:
            await asyncio.wait([wanted, *others], return_when=asyncio.FIRST_COMPLETED)
            return wanted.done() and (wanted.result() is not False)
        finally:
            for future in (wanted, *others):
                future.cancel()

    def _print(self, folder: str) -> None:
        kept = "kept there" if self._data is not None else "gone at the end"
        self._cli.terminal.out(f"broker    {self._address}")
        self._cli.terminal.out(f"metrics   http://{HOST}:{self._http_port}/metrics")
        self._cli.terminal.out(f"data      {folder} ({kept})")
        self._cli.terminal.flush()
        self._cli.terminal.note(f"Ctrl-C stops it; in another shell: anvilmq --url {self._address} add demo hello")

    def _ended(self, what: str, process: Process) -> int:
        """The exit code, when a process has ended by itself or a signal has come."""
        if self._signalled.is_set() or process.returncode is None:
            return exits.DONE
        self._cli.terminal.error(f"error: {what} has ended by itself, with code {process.returncode}")
        # A worker that was called wrongly has said so: the flag was ours.
        return exits.USAGE if process.returncode == exits.USAGE else exits.FAILED

    async def _stop(self, process: Process) -> None:
        """Ask it to leave, a second time when there is a hurry, and kill it when it does not."""
        left = asyncio.ensure_future(process.wait())
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            _signal(process, signal.SIGTERM)
            await asyncio.wait([left, hurry], timeout=LEAVE_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            if not left.done() and hurry.done():
                _signal(process, signal.SIGTERM)
                await asyncio.wait([left], timeout=LEAVE_WITHIN_S)
        finally:
            hurry.cancel()
            if not left.done():
                _signal(process, signal.SIGKILL)
            await left


async def _start(module: str, *arguments: str) -> Process:
    # A session of its own: Ctrl-C reaches us alone, and we say who stops when.
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdin=DEVNULL, start_new_session=True
    )


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _free_port(flag: str, port: int) -> int:
    """The port, or any for 0. UsageProblem when somebody listens there: it would answer in place of our broker."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as problem:
            raise exits.UsageProblem(
                flag, f"{port} is taken ({problem.strerror}); 0 takes any that is free"
            ) from problem
        return int(probe.getsockname()[1])
