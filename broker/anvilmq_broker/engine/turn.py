"""What one turn of the loop gathers, from the frames it takes to the frames it sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from anvilmq_broker.domain import commands
from anvilmq_broker.engine import link
from anvilmq_broker.engine.link_server import Peer
from anvilmq_broker.engine.waits import WaitingClaim
from anvilmq_broker.store import protocol

MAX_FRAME_BYTES: Final = 4 << 20
"""Data of the deliveries in one frame; one larger delivery goes alone."""


class Item(NamedTuple):
    """A command to carry out; peer None: the engine's own."""

    peer: Peer | None
    call: int
    command: commands.Command


class Said:
    """Notices for after the commit: those before its deliveries, and those after them."""

    __slots__ = ("after", "before")

    def __init__(self) -> None:
        self.before: list[tuple[Peer, commands.Notice]] = []
        self.after: list[tuple[Peer, commands.Notice]] = []


class Turn:
    """Nothing of it is in memory or on its way before the commit.

    size: jobs, settlements and other messages taken. reaped: tokens that the timers found. claims: what waiting
    ClaimJobs got. wrote: a batch was committed.
    """

    __slots__ = ("answers", "bytes", "claims", "effects", "items", "reaped", "said", "size", "started_ms", "wrote")

    def __init__(self, started_ms: float) -> None:
        self.started_ms = started_ms
        self.items: list[Item] = []
        self.size = 0
        self.bytes = 0
        self.wrote = False
        self.answers: list[tuple[Peer, int, link.Reply]] = []
        self.effects: list[protocol.Effect] = []
        self.reaped: list[str] = []
        self.said = Said()
        self.claims: dict[WaitingClaim, list[commands.Delivery]] = {}


def pieces(deliveries: list[commands.Delivery]) -> Iterator[list[commands.Delivery]]:
    """The deliveries in frames of at most 4 MiB of data, at least one in each."""
    start = size = 0
    for place, delivery in enumerate(deliveries):
        size += len(delivery.data)
        if size > MAX_FRAME_BYTES and place > start:
            yield deliveries[start:place]
            start, size = place, len(delivery.data)
    if start < len(deliveries):
        yield deliveries[start:]
