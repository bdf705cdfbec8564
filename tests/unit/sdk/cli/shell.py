"""What the tests of the command line run on: streams in memory, a clock that jumps, a broker that is made up."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from google.protobuf.message import Message

from anvilmq._clock import Timer
from anvilmq._transport import Method, Req, Resp
from anvilmq.admin import Admin
from anvilmq.cli import main
from anvilmq.cli.command import Connection, World
from anvilmq.cli.terminal import Terminal

NOW_MS = 1_900_000_000_000
"""2030-03-17T17:46:40Z."""

Answer = Message | Exception | Callable[[Any], Any]


class Call(NamedTuple):
    """One call that the broker got."""

    name: str
    request: Any
    timeout_s: float


class FakeTransport:
    """Answers calls with what was laid ready for their names; the last answer of a name is given again and again."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.closed = False
        self._answers: dict[str, list[Answer]] = {}

    def answer(self, name: str, *answers: Answer) -> None:
        """What calls of that name get: messages, errors to raise, or functions of the request."""
        self._answers.setdefault(name, []).extend(answers)

    def requests(self, name: str) -> list[Any]:
        """The requests of that name, in the order of the calls."""
        return [call.request for call in self.calls if call.name == name]

    async def unary(self, method: Method[Req, Resp], request: Req, *, timeout_s: float) -> Resp:
        """See Transport."""
        name = method.path.rpartition("/")[2]
        kept = method.request()
        kept.CopyFrom(request)
        self.calls.append(Call(name, kept, timeout_s))
        answers = self._answers[name]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if not isinstance(answer, Message | Exception):
            answer = answer(request)
        # A real call gives the loop a turn as well, in which a cancelled command ends.
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, method.response)
        return answer

    def stream(self, method: Method[Req, Resp], requests: AsyncIterator[Req]) -> AsyncGenerator[Resp, None]:
        """See Transport."""
        raise AssertionError(f"nothing here streams, {method.path} was to")

    async def close(self) -> None:
        """See Transport."""
        self.closed = True


class JumpingClock:
    """A clock on which every sleep is over at once."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        """See Clock. The time of day stands still."""
        return NOW_MS

    def monotonic(self) -> float:
        """See Clock."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """See Clock."""
        self.slept.append(seconds)
        self.now += seconds

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """See Clock."""
        raise AssertionError("the command line sets no timers")


class Stream(io.TextIOWrapper):
    """A stream in memory, as a terminal or not."""

    def __init__(self, text: str | bytes = "", *, tty: bool = False) -> None:
        super().__init__(io.BytesIO(text.encode() if isinstance(text, str) else text), encoding="utf-8", newline="")
        self._tty = tty

    def isatty(self) -> bool:
        """Whether it plays a terminal."""
        return self._tty

    @property
    def text(self) -> str:
        """What was written."""
        return self.bytes.decode()

    @property
    def bytes(self) -> bytes:
        """The same, not decoded."""
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue()


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    out_bytes: bytes

    @property
    def json(self) -> Any:
        """stdout as JSON."""
        return json.loads(self.out)


class Shell:
    """Runs command lines."""

    def __init__(self) -> None:
        self.broker = FakeTransport()
        self.clock = JumpingClock()
        self.connections: list[Connection] = []

    def run(self, *arguments: str, stdin: str | bytes = "", tty: bool = False) -> Result:
        """Run one, with these words behind `anvilmq`. tty: all three streams are a terminal."""
        out, err = Stream(tty=tty), Stream(tty=tty)
        world = World(
            terminal=Terminal(Stream(stdin, tty=tty), out, err),
            open_admin=self._open_admin,
            make_clock=lambda: self.clock,
        )
        code = main.run(arguments, world)
        return Result(code, out.bytes.decode(errors="replace"), err.text, out.bytes)

    @asynccontextmanager
    async def _open_admin(self, connection: Connection) -> AsyncIterator[Admin]:
        self.connections.append(connection)
        yield Admin(self.broker, timeout_s=connection.timeout_s)
