"""What every call is given: the engine of now, limits, time. No gRPC in it, so that a program can make one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from importlib import metadata
from typing import Any, Final, Protocol, TypeVar

import msgspec

from anvilmq_broker.clock import Clock
from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.engine.link import Broker, EngineLost
from anvilmq_broker.gateway.auth import Caller
from anvilmq_broker.gateway.limits import Limits
from anvilmq_broker.gateway.mapping import Shapes
from anvilmq_broker.gateway.paging import Pages
from anvilmq_broker.gateway.refusals import Rejected, draining, not_ready, page_token_invalid

T = TypeVar("T")

ANSWER_MS: Final = 250
"""What a long poll leaves of its call's deadline for the answer."""


class Handle(Protocol):
    """A call that is planned."""

    def cancel(self) -> None:
        """Do not make it."""


class Timers(Protocol):
    """Calls later. The gateway's waits go through it, so that a test can hold them."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Handle:
        """Plan a call on the loop in so many seconds."""


class LoopTimers:
    """The timers of the running loop."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Handle:
        """Plan a call on the running loop."""
        return asyncio.get_running_loop().call_later(delay_s, callback)


class Identity(msgspec.Struct, frozen=True):
    """What GetServerInfo tells of this broker's build and settings."""

    version: str
    namespace: str = ""

    @classmethod
    def of_this_build(cls, namespace: str = "") -> Identity:
        """The identity of what is installed here."""
        try:
            return cls(metadata.version("anvilmq"), namespace)
        except metadata.PackageNotFoundError:
            return cls("0", namespace)


class Context:
    """Shared by the calls of one gateway; the engine is put in by `connected` and taken out by `lost`."""

    def __init__(
        self,
        *,
        clock: Clock,
        timers: Timers,
        identity: Identity,
        limits: Limits,
        ping_every_ms: int = 10_000,
    ) -> None:
        self.clock = clock
        self.timers = timers
        self.identity = identity
        self.limits = limits
        self.ping_every_ms = ping_every_ms
        self.shapes: Shapes = {}
        """Shapes of jobs that were checked."""
        self._broker: Broker | None = None
        self._pages: Pages | None = None
        self._sessions = 0
        self._polls: set[asyncio.Future[Any]] = set()

    def connected(self, broker: Broker) -> None:
        """An engine is there."""
        self._broker = broker
        self._pages = Pages(broker.hello.page_token_key)

    def lost(self) -> None:
        """The engine is gone."""
        self._broker = None

    @property
    def ready(self) -> bool:
        """Whether there is an engine."""
        return self._broker is not None

    @property
    def broker(self) -> Broker:
        """The engine of now. Raises Rejected NOT_READY."""
        if self._broker is None:
            raise not_ready()
        return self._broker

    @property
    def pages(self) -> Pages:
        """The page tokens of this broker."""
        if self._pages is None:
            raise page_token_invalid()
        return self._pages

    def next_session(self) -> int:
        """A number for a worker's session, unique in this gateway."""
        self._sessions += 1
        return self._sessions

    async def submit(self, command: commands.Command | commands.DrainWorker, kind: type[T]) -> T:
        """The outcome of a command, which is a `kind`.

        Raises Rejected for a refused command, and NOT_READY when the engine is lost: the outcome is then unknown.
        """
        try:
            outcome = await self.broker.submit(command)
        except EngineLost:
            raise not_ready() from None
        return expected(outcome, kind)

    async def long_poll(self, answer: Coroutine[Any, Any, T]) -> T:
        """What may take long; when the broker leaves meanwhile, it is given up. Raises Rejected DRAINING then."""
        task = asyncio.ensure_future(answer)
        self._polls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if task in self._polls:
                raise
            raise draining() from None
        finally:
            self._polls.discard(task)

    def leave(self) -> None:
        """Give up the long polls: the broker is shutting down."""
        polls, self._polls = self._polls, set()
        for poll in polls:
            poll.cancel()

    async def query(self, query: commands.Query, kind: type[T]) -> T:
        """The answer to a query, which is a `kind`. Raises Rejected like `submit`."""
        try:
            answer = await self.broker.query(query)
        except EngineLost:
            raise not_ready() from None
        return expected(answer, kind)


def expected(outcome: object, kind: type[T]) -> T:
    """The outcome, which is a `kind`. Raises Rejected for a refusal."""
    if isinstance(outcome, kind):
        return outcome
    assert isinstance(outcome, Refused), outcome
    raise Rejected(outcome)


class Call:
    """One RPC under way. caller changes when the tokens file does. deadline_ms: monotonic, None = none."""

    __slots__ = ("caller", "deadline_ms", "scopes")

    def __init__(self, caller: Caller, scopes: tuple[str, ...] = (), deadline_ms: float | None = None) -> None:
        self.caller = caller
        self.scopes = scopes
        self.deadline_ms = deadline_ms

    def wait_ms(self, wanted: int, now_ms: float) -> int:
        """How long a long poll may wait: not past the deadline, with time left to send the answer."""
        if self.deadline_ms is None:
            return wanted
        return max(0, min(wanted, int(self.deadline_ms - now_ms) - ANSWER_MS))
