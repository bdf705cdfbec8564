"""The two directions of one streaming call, whatever carries it: gRPC or a channel in this process."""

from __future__ import annotations

from typing import Protocol


class Broken(Exception):
    """The client is gone: nothing can be written to it any more."""


class Wire(Protocol):
    """The broker's end of a streaming call. One reader and one writer at a time."""

    async def read(self) -> bytes | None:
        """The client's next message; None when it sends no more."""

    async def write(self, message: bytes) -> None:
        """Hand over a message, waiting while the client is slow. Raises Broken."""
