"""The supervisor's end of one child: start it, talk to it, end it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from anvilmq_broker.app import children
from anvilmq_broker.engine.metrics import Snapshot

_LINE_BYTES: Final = 64 << 20


class Child:
    """One process. Made by `spawn`; `ended` must be awaited by its owner.

    ready: it has said so once. serving: what it said last. fatal: its last words, if it had any.
    """

    def __init__(
        self,
        start: children.Start,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        changed: Callable[[], None],
    ) -> None:
        self.name = start.process
        self.ready = False
        self.serving = False
        self.fatal: children.Fatal | None = None
        self.heard_at = time.monotonic()
        self._process = process
        self._reader = reader
        self._writer = writer
        self._changed = changed
        self._asks: dict[int, asyncio.Future[children.Told]] = {}
        self._numbers = count(1)
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(children.FromChild)
        self._say(start)

    @classmethod
    async def spawn(cls, start: children.Start, changed: Callable[[], None]) -> Child:
        """Start the process by exec, never by fork. changed: called when it has said how it is."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                f"anvilmq_broker.app.{start.role}",
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=_LINE_BYTES)
        return cls(start, process, reader, writer, changed)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ended(self) -> int:
        """Listen to it until it has ended; its exit code, negative for a signal."""
        try:
            with contextlib.suppress(ConnectionError):
                while line := await self._reader.readline():
                    self._take(self._decoder.decode(line))
            return await self._process.wait()
        finally:
            self.ready = self.serving = False
            for ask in self._asks.values():
                ask.cancel()
            self._asks.clear()
            self._writer.close()

    async def exited(self) -> None:
        """Wait until the process has ended; `ended` goes on for itself."""
        await self._process.wait()

    async def ask(self, within_s: float, *, metrics: bool = False) -> Snapshot | None:
        """What it has counted (metrics) or [] as a sign of life; None when no answer came in time."""
        number = next(self._numbers)
        told: asyncio.Future[children.Told] = asyncio.get_running_loop().create_future()
        self._asks[number] = told
        self._say(children.Ask(number, metrics))
        done, _ = await asyncio.wait({told}, timeout=within_s)
        self._asks.pop(number, None)
        return told.result().metrics if done and not told.cancelled() else None

    def stop(self, grace_ms: int) -> None:
        """Ask it to leave in good order."""
        self._say(children.Stop(max(1, grace_ms)))

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _say(self, message: children.ToChild) -> None:
        if not self._writer.is_closing():
            self._writer.write(self._encoder.encode(message) + b"\n")

    def _take(self, message: children.FromChild) -> None:
        self.heard_at = time.monotonic()
        match message:
            case children.Ready():
                self.ready, self.serving = True, message.serving
                self._changed()
            case children.Told():
                ask = self._asks.get(message.number)
                if ask is not None and not ask.done():
                    ask.set_result(message)
            case children.Stopping():
                self.serving = False
            case children.Fatal():
                self.fatal = message
