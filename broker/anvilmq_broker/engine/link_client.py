"""The gateway's end of the link: `Broker` over a Unix socket or in the same process.

Calls are multiplexed over one connection; what one turn of the event loop submits leaves in one send. Hot file: terse
on purpose.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.engine import link

OVERLOADED_RETRY_AFTER_MS: Final = 200
MAX_UNANSWERED_ADD_BYTES: Final = link.MAX_UNANSWERED_BYTES * 3 // 4
"""Adds are refused first: what runs must be able to end."""
_NEVER_REFUSED: Final = frozenset({commands.Settle, commands.Renew, commands.Report, commands.Reap})
_OVERLOADED: Final = errors.Refused(
    "OVERLOADED",
    "too much is unanswered; try again after the given time",
    retry_after_ms=OVERLOADED_RETRY_AFTER_MS,
)
_HELLO_TIMEOUT_S: Final = 10.0

OnNotice = Callable[[commands.Notice], None]


class _Call:
    __slots__ = ("future", "is_add", "size")

    def __init__(self, future: asyncio.Future[link.Reply], size: int, is_add: bool) -> None:
        self.future, self.size, self.is_add = future, size, is_add


class FramedBroker:
    """A `link.Broker` over something that carries bytes; see there for the meaning of the calls."""

    hello: link.Hello

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._splitter = link.Splitter()
        self._calls: dict[int, _Call] = {}
        self._receivers: dict[int, OnNotice] = {}
        self._next_call = 1
        self._out: list[bytes] = []
        self._unanswered = [0, 0]  # bytes of others, of adds
        self.lost: asyncio.Future[None] = loop.create_future()
        """Done when the engine is gone; connecting again is the caller's part."""
        self._greeted: asyncio.Future[link.Hello] = loop.create_future()

    async def submit(self, command: commands.Command | commands.DrainWorker) -> commands.Outcome:
        """The outcome, after the commit."""
        return cast("commands.Outcome", await self._answer_of(self._ask(command)))

    def ask(self, command: commands.Command) -> asyncio.Future[commands.Outcome]:
        """A future of the outcome."""
        return cast("asyncio.Future[commands.Outcome]", self._ask(command)[1])

    async def query(self, query: commands.Query) -> commands.Answer:
        """Committed state only."""
        return cast("commands.Answer", await self._answer_of(self._ask(query)))

    def attach(self, message: commands.SessionMessage, on_notice: OnNotice | None = None) -> None:
        """Send a session's message; OpenSession brings the receiver of its notices."""
        session = message.session
        if isinstance(message, commands.OpenSession):
            assert on_notice is not None, "OpenSession needs a receiver of notices"
            self._receivers[session] = on_notice
            if self.lost.done():
                self._loop.call_soon(self._end_sessions)
        elif isinstance(message, commands.CloseSession):
            self._receivers.pop(session, None)
        self._write(link.encode(0, message))

    async def greeting(self) -> None:
        """Wait until the engine has said who it is. Raises EngineLost, OtherBuild."""
        try:
            async with asyncio.timeout(_HELLO_TIMEOUT_S):
                await self._greeted
        except TimeoutError:
            self._drop()
            raise link.EngineLost("the engine does not answer") from None
        except BaseException:
            self._drop()
            raise

    def _ask(self, message: link.Message) -> tuple[int, asyncio.Future[link.Reply]]:
        """The number of the call, and the future of its answer."""
        number, self._next_call = self._next_call, self._next_call + 1
        future: asyncio.Future[link.Reply] = self._loop.create_future()
        if self.lost.done():
            future.set_exception(link.EngineLost("the engine is gone"))
            return number, future
        try:
            frame = link.encode(number, message)
        except link.FrameTooLarge as error:
            told = f"{error}; send less at once"
            future.set_result(errors.Refused("BATCH_TOO_LARGE", told, metadata={"unit": "bytes"}))
            return number, future
        kind, size = type(message), len(frame)
        is_add = kind is commands.AddJobs
        if kind not in _NEVER_REFUSED and self._overloaded(size, is_add):
            future.set_result(_OVERLOADED)
            return number, future
        self._calls[number] = _Call(future, size, is_add)
        self._unanswered[is_add] += size
        self._write(frame)
        return number, future

    async def _answer_of(self, asked: tuple[int, asyncio.Future[link.Reply]]) -> link.Reply:
        number, future = asked
        try:
            return await future
        except asyncio.CancelledError:
            if number in self._calls:
                self._write(link.encode(0, link.Forget(number)))
            raise

    def _overloaded(self, size: int, is_add: bool) -> bool:
        """Whether a request must wait. One is always admitted when nothing of its kind is unanswered."""
        others, adds = self._unanswered
        limit = MAX_UNANSWERED_ADD_BYTES if is_add else link.MAX_UNANSWERED_BYTES
        return others + adds + size > limit and self._unanswered[is_add] > 0

    def _write(self, frame: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frame)

    def _flush(self) -> None:
        data, self._out = b"".join(self._out), []
        if not self.lost.done():
            self._send(data)

    def _send(self, data: bytes) -> None:
        raise NotImplementedError

    def _drop(self) -> None:
        """End the connection."""
        raise NotImplementedError

    def _received(self, data: bytes) -> None:
        try:
            for payload in self._splitter.feed(data):
                self._take(*link.decode_reply(payload))
        except link.Breach as breach:
            self._fail_greeting(link.OtherBuild(f"the engine sent what is no frame of this build: {breach}"))
            self._drop()

    def _take(self, number: int, reply: link.Reply) -> None:
        if number:
            self._answer(number, reply)
        elif isinstance(reply, link.Hello):
            self._greet(reply)
        else:
            notice = cast("commands.Notice", reply)
            session = notice.session
            receiver = self._receivers.get(session)
            if isinstance(notice, commands.SessionEnded):
                self._receivers.pop(session, None)
            if receiver is not None:
                receiver(notice)
            elif isinstance(notice, commands.Deliveries):
                # The stream closed while they were under way.
                self._give_back(session, notice.deliveries)

    def _answer(self, number: int, reply: link.Reply) -> None:
        call = self._calls.pop(number, None)
        if call is None:
            return
        self._unanswered[call.is_add] -= call.size
        if not call.future.done():
            call.future.set_result(reply)
        elif isinstance(reply, commands.Claimed) and reply.deliveries:
            # Whoever asked has left: nobody will work on these.
            self._give_back(0, reply.deliveries)

    def _give_back(self, session: int, deliveries: list[commands.Delivery]) -> None:
        leases = [commands.LeaseRef(d.number, d.created_ms, d.token) for d in deliveries]
        self._write(link.encode(0, commands.Undeliver(session, leases)))

    def _greet(self, hello: link.Hello) -> None:
        if hello.schema_hash != link.schema_hash():
            self._fail_greeting(link.OtherBuild("the engine is of another build; restart the whole broker"))
            self._drop()
        elif not self._greeted.done():
            self.hello = hello
            self._greeted.set_result(hello)

    def _fail_greeting(self, error: link.EngineLost) -> None:
        if not self._greeted.done():
            self._greeted.set_exception(error)

    def _lose(self) -> None:
        """The connection is gone: nothing that is open will be answered."""
        if self.lost.done():
            return
        self.lost.set_result(None)
        self._fail_greeting(link.EngineLost("the engine closed the connection"))
        # The greeting's failure is told to whoever connects; nobody else need look.
        if not self._greeted.cancelled():
            self._greeted.exception()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(link.EngineLost("the engine is gone; the outcome is unknown"))
        self._end_sessions()

    def _end_sessions(self) -> None:
        receivers, self._receivers = self._receivers, {}
        for session, receiver in receivers.items():
            receiver(commands.SessionEnded(session, "NOT_READY"))


class SocketBroker(FramedBroker, asyncio.Protocol):
    """The engine behind a Unix socket. Made by `connect`."""

    _transport: asyncio.Transport

    @classmethod
    async def connect(cls, path: str | Path) -> SocketBroker:
        """Connect and wait for the greeting. Raises OSError, EngineLost, or OtherBuild (another installation)."""
        loop = asyncio.get_running_loop()
        _, broker = await loop.create_unix_connection(lambda: cls(loop), os.fspath(path))
        await broker.greeting()
        return broker

    async def close(self) -> None:
        """Close the connection and wait until it is closed; safe twice."""
        self._drop()
        await self.lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's: the socket is connected."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """asyncio's: bytes have arrived."""
        self._received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's: the socket is closed."""
        self._lose()

    def _send(self, data: bytes) -> None:
        self._transport.write(data)

    def _drop(self) -> None:
        self._transport.abort()
