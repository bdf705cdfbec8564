"""The Broker seam: what gateways see of the engine, over a socket or in the same process.

Frames: 4-byte big-endian length + msgpack `[call, kind, body]`, at most 20 MiB. Hot file: terse on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from anvilmq_broker.domain import commands


class EngineLost(Exception):
    """The engine went away with the call open; its outcome is unknown. Callers answer UNAVAILABLE/NOT_READY."""


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """What the engine says of itself at connect. schema_hash: of the commands module; another one is refused."""

    schema_hash: str
    instance_id: str
    started_at_ms: int
    schema_version: int
    durability: int
    page_token_key: bytes


class Broker(Protocol):
    """The engine as a gateway uses it, on the gateway's asyncio loop."""

    hello: Hello

    async def submit(self, command: commands.Command | commands.DrainWorker) -> commands.Outcome:
        """The outcome, after the commit; `Refused` is a value (OVERLOADED when too much is unanswered).

        Cancelling the wait does not undo the command. Raises EngineLost.
        """

    async def query(self, query: commands.Query) -> commands.Answer:
        """Committed state only. Raises EngineLost."""

    def attach(self, message: commands.SessionMessage, on_notice: Callable[[commands.Notice], None] | None = None) -> None:
        """Send a session's message, in order with other messages. OpenSession brings the receiver of its notices,
        called on the loop until the session is closed or ended; commands.Settle and Renew of a session go by submit.
        When the engine is lost every receiver is given `SessionEnded(session, "NOT_READY")`."""
