"""What an app has once it is used: the I/O, the connection, the adds on their way. One an app, until it is closed."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
from collections.abc import Callable
from typing import Final

from anvilmq import _retry, errors
from anvilmq._adds import Adds
from anvilmq._bulks import Lanes
from anvilmq._iothread import SHARED, Io, Reply
from anvilmq._settings import Settings
from anvilmq._transport import Method, Req, Resp, Transport

CALL_S: Final = 5.0
EXIT_S: Final = 5.0
"""How long the end of a program may take to send what is on its way."""


class Client:
    """See the module. connect: makes the transport, called on the I/O loop. release: gives the I/O back.

    For tests: `Client(settings, InlineIo(clock), lambda: Loopback(...))`, handed to `Anvil.use_client`.
    """

    def __init__(
        self,
        settings: Settings,
        io: Io,
        connect: Callable[[], Transport],
        *,
        release: Callable[[Io], None] = lambda io: io.stop(),
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self.io = io
        self.clock = io.clock
        self.adds = Adds(io, self.transport, chance=chance)
        self.lanes = Lanes(io.clock, self.transport, chance=chance)
        self._make_transport = connect
        self._release = release
        self.chance = chance
        self._transport: Transport | None = None
        self._pid = os.getpid()
        self._closed = False
        self._given_back = False

    @classmethod
    def over_grpc(cls, settings: Settings) -> Client:
        """The client of a program: I/O in the thread of this process, gRPC to the broker of the settings."""

        def connect() -> Transport:
            from anvilmq._channel import Channel

            return Channel(settings)

        client = cls(settings, SHARED.acquire(), connect, release=SHARED.release)
        atexit.register(client.exit)
        return client

    def transport(self) -> Transport:
        """The connection, made at first use. Only on the I/O loop. SettingInvalid, Closed."""
        if self._closed:
            raise errors.Closed
        if self._transport is None:
            self._transport = self._make_transport()
        return self._transport

    async def connect(self) -> Transport:
        """The same, for those who await it."""
        return self.transport()

    def call(self, method: Method[Req, Resp], request: Req, *, timeout_s: float = CALL_S) -> Reply[Resp]:
        """Make a unary call that is safe to repeat, again until it is answered or the time is over."""

        async def made() -> Resp:
            deadline = self.clock.monotonic() + timeout_s
            return await _retry.call_until(
                deadline, self.transport, self.clock, self.chance, method, request, try_s=timeout_s
            )

        return self.io.run(made)

    async def close(self) -> None:
        """Wait for the answers of all adds, then end. Each add ends at its own timeout at the latest."""
        if self._may_close():
            await self.io.run(self._close)
            self._give_back()

    def close_sync(self) -> None:
        """The same in a thread without a loop."""
        if self._may_close():
            self.io.run(self._close).result()
            self._give_back()

    def exit(self) -> None:
        """The program ends: send what is on its way, but for no longer than EXIT_S."""
        if self._closed or os.getpid() != self._pid:
            return
        with contextlib.suppress(errors.AnvilError, RuntimeError):
            self.io.run(self._exit).result()
            self._give_back()

    def _may_close(self) -> bool:
        self.io.check()
        atexit.unregister(self.exit)
        return not self._closed

    def _give_back(self) -> None:
        # Once: others in this process may use the same I/O.
        if not self._given_back:
            self._given_back = True
            self._release(self.io)

    async def _exit(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_S):
                await self.adds.flush()
        await self._end()

    async def _close(self) -> None:
        await self.adds.flush()
        await self._end()

    async def _end(self) -> None:
        self._closed = True
        await self.adds.close()
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()
