"""Adds that wait for their frame: bounded, in call order, filled from any thread. Hot: one lock, held for a few lines.

At most MAX_JOBS jobs and MAX_BYTES are held. Who comes when it is full waits for room before it encodes its payload,
with a ticket, and goes on in turn. The bytes of those let in are not known yet, so they are guessed from what left;
the bound can be passed by about a frame.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from anvilmq import errors
from anvilmq._entries import Entry

MAX_JOBS: Final = 10_000
MAX_BYTES: Final = 64 << 20
FRAME_JOBS: Final = 256
FRAME_BYTES: Final = 1 << 20


class Backlog:
    """See the module. "Held" are the entries put in and not yet `finished`, those in a frame included."""

    def __init__(self) -> None:
        self.next_deadline = math.inf
        """No entry and no ticket runs out before that."""
        self._lock = threading.Lock()
        self._waiting: deque[Entry] = deque()
        self._tickets: deque[Entry] = deque()
        self._jobs = 0
        self._bytes = 0
        self._typical = 0
        self._serial = 0
        self._told = False
        self._closed = False

    # ------------------------------------------------------------------------------------------- from any thread

    @property
    def full(self) -> bool:
        """Whether to ask for a ticket. Those who hold one go first."""
        return self._jobs >= MAX_JOBS or self._bytes >= MAX_BYTES or bool(self._tickets)

    @property
    def jobs(self) -> int:
        """How many are held."""
        return self._jobs

    def put(self, entry: Entry) -> bool:
        """Add to the end. True: the I/O loop has to be told, which then goes with `tell`. Closed."""
        with self._lock:
            if self._closed:
                raise errors.Closed
            self._serial += 1
            entry.serial = self._serial
            self._waiting.append(entry)
            self._jobs += 1
            self._bytes += entry.size
            return self._note(entry)

    def queue(self, ticket: Entry) -> bool:
        """Wait for room. `ticket.future` is resolved when there is some. True: as in `put`. Closed."""
        with self._lock:
            if self._closed:
                raise errors.Closed
            self._tickets.append(ticket)
            return self._note(ticket)

    def tell(self) -> None:
        """The I/O loop is about to be told. It finds all that is here now, and what comes while it has a frame out."""
        self._told = True

    def _note(self, entry: Entry) -> bool:
        if entry.deadline < self.next_deadline:
            self.next_deadline = entry.deadline
            return True
        return not self._told

    # ------------------------------------------------------------------------------------------- on the I/O loop

    def take(self) -> list[Entry]:
        """The entries of the next frame, without those whose callers went away. None: the next `put` tells."""
        taken: list[Entry] = []
        size = 0
        with self._lock:
            while self._waiting and len(taken) < FRAME_JOBS:
                entry = self._waiting[0]
                if entry.future.cancelled():
                    self._let_go((entry,))
                elif taken and size + entry.size > FRAME_BYTES:
                    break
                else:
                    taken.append(entry)
                    size += entry.size
                self._waiting.popleft()
            self._told = bool(taken)
        return taken

    def finished(self, entries: Sequence[Entry]) -> None:
        """These were answered, in one way or another: they are held no longer."""
        with self._lock:
            self._let_go(entries)

    def admit(self) -> list[Entry]:
        """The tickets that there is room for now, in turn. Ask whenever something left."""
        if not self._tickets:
            return []
        with self._lock:
            room = min(MAX_JOBS - self._jobs, math.ceil((MAX_BYTES - self._bytes) / max(self._typical, 1)))
            admitted: list[Entry] = []
            while self._tickets and len(admitted) < room:
                ticket = self._tickets.popleft()
                if not ticket.gone:
                    admitted.append(ticket)
            return admitted

    def expire(self, now: float, framed: Iterable[Entry] = ()) -> tuple[list[Entry], list[Entry]]:
        """Take out what ran out by `now`: entries, tickets. Sets `next_deadline`, with that of the `framed` ones."""
        with self._lock:
            entries = _sift(self._waiting, now)
            tickets = _sift(self._tickets, now)
            self._let_go(entries)
            rest = (*self._waiting, *self._tickets, *(entry for entry in framed if not entry.over))
            self.next_deadline = min((entry.deadline for entry in rest), default=math.inf)
        return entries, tickets

    def oldest(self) -> int | None:
        """The serial of the first that waits; None without any."""
        with self._lock:
            return self._waiting[0].serial if self._waiting else None

    def newest(self) -> int:
        """The serial of the last that was put in, 0 before the first."""
        return self._serial

    def close(self) -> list[Entry]:
        """Refuse what comes from now on. The tickets, whose holders are to be told."""
        with self._lock:
            self._closed = True
            tickets = list(self._tickets)
            self._tickets.clear()
            return tickets

    def _let_go(self, entries: Sequence[Entry]) -> None:
        if entries:
            size = sum([entry.size for entry in entries])
            self._jobs -= len(entries)
            self._bytes -= size
            self._typical = size // len(entries)


def _sift(entries: deque[Entry], now: float) -> list[Entry]:
    """Take out those whose deadline has come, in place."""
    if all(entry.deadline > now for entry in entries):
        return []
    expired = [entry for entry in entries if entry.deadline <= now]
    kept = [entry for entry in entries if entry.deadline > now]
    entries.clear()
    entries.extend(kept)
    return expired
