"""The transport to a broker in this process: no gRPC, no socket. For `anvilmq.testing` and `anvilmq dev`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Protocol, cast

from google.protobuf.message import Message

from anvilmq import errors
from anvilmq._transport import Method, Req, Resp


class InprocBroker(Protocol):
    """What `anvilmq_broker.app.inproc.Inproc` offers. A failure is an exception with a google.rpc.Status, `status`."""

    async def unary(
        self,
        method: str,
        request: Message,
        *,
        metadata: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        """One call."""

    def stream(
        self, method: str, requests: AsyncIterator[Message], *, metadata: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Message, None]:
        """The answers of a streaming call."""


class Loopback:
    """See Transport. `lose_answer` makes it fail as a network does: the broker has acted, and nobody hears of it."""

    def __init__(self, broker: InprocBroker) -> None:
        self._broker = broker
        self._metadata = {"anvilmq-client": f"python/{importlib.metadata.version('anvilmq')}"}
        self._to_lose: list[str] = []

    def lose_answer(self, method: str) -> None:
        """The next answer of that method, named as in "AddJob", is lost, and its call breaks."""
        self._to_lose.append(method)

    async def unary(self, method: Method[Req, Resp], request: Req, *, timeout_s: float) -> Resp:
        """See Transport."""
        try:
            answer = await self._broker.unary(method.path, request, metadata=self._metadata, timeout_s=timeout_s)
        except Exception as error:
            raise _translated(error) from error
        self._lose(method)
        return cast("Resp", answer)

    async def stream(self, method: Method[Req, Resp], requests: AsyncIterator[Req]) -> AsyncGenerator[Resp, None]:
        """See Transport."""
        answers = self._broker.stream(method.path, requests, metadata=self._metadata)
        async with aclosing(answers):
            try:
                async for answer in answers:
                    self._lose(method)
                    yield cast("Resp", answer)
            except errors.AnvilError:
                raise
            except Exception as error:
                raise _translated(error) from error

    async def close(self) -> None:
        """See Transport. The broker is not this one's to stop."""

    def _lose(self, method: Method[Any, Any]) -> None:
        name = method.path.rpartition("/")[2]
        if name in self._to_lose:
            self._to_lose.remove(name)
            raise errors.Unavailable(f"the answer of {name} was lost, as the test asked")


def _translated(error: Exception) -> Exception:
    """The SDK's error for what the broker raised; what is no refusal of its is a bug, and stays as it is."""
    status = getattr(error, "status", None)
    return error if status is None else errors.from_status(status)
