"""Tables of the memory store: dicts whose writes can be undone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

import msgspec

from anvilmq_broker.domain import commands, view
from anvilmq_broker.domain.job import AttemptEnd, Job
from anvilmq_broker.domain.scheduler import Scheduler

K = TypeVar("K")
V = TypeVar("V")
Journal = list[Callable[[], None]]
"""How to undo each write since the last commit."""
Place = tuple[int, int, int, int]
"""In a queue's line: priority, ready_at_ms, ready_seq, number."""


class Table(dict[K, V], Generic[K, V]):
    """A dict whose writes are noted in the store's journal, so that they can be undone."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def put(self, key: K, value: V | None) -> None:
        """Write the value; None removes the key."""
        self._journal.append(partial(self.assign, key, self.get(key)))
        self.assign(key, value)

    def assign(self, key: K, value: V | None) -> None:
        """Write without a note in the journal."""
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value


class Entry(msgspec.Struct, frozen=True):
    """A job with all that hangs on it. log: (line number, line), oldest first."""

    job: Job
    body: view.Body
    attempts: tuple[AttemptEnd, ...] = ()
    log: tuple[tuple[int, commands.LogLine], ...] = ()

    @property
    def ended(self) -> list[commands.AttemptRecord]:
        """The kept attempts, oldest first."""
        return [end.record for end in self.attempts]


class Definition(msgspec.Struct, frozen=True):
    """A recurring definition. number: never used again."""

    number: int
    it: Scheduler


class Jobs(Table[int, Entry]):
    """The jobs by number; lines, counts and open runs of definitions follow every write and its undoing."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self.lines: dict[str, list[Place]] = {}
        self.counts: dict[tuple[str, int], int] = {}
        self.runs: dict[int, set[int]] = {}
        """By number of the definition: those of its jobs that have not ended."""

    def assign(self, key: int, value: Entry | None) -> None:
        """Write, and keep lines and counts true."""
        if (old := self.get(key)) is not None:
            self._count(old.job, -1)
            if (place := place_of(old.job)) is not None:
                line = self.lines[old.job.queue]
                del line[bisect_left(line, place)]
            if old.job.origin is not None:
                self.runs.setdefault(old.job.origin.number, set()).discard(key)
        super().assign(key, value)
        if value is not None:
            self._count(value.job, 1)
            if (place := place_of(value.job)) is not None:
                insort(self.lines.setdefault(value.job.queue, []), place)
            if value.job.origin is not None and not value.job.terminal:
                self.runs.setdefault(value.job.origin.number, set()).add(key)

    def find(self, ref: commands.JobRef | commands.LeaseRef | commands.Settlement) -> Entry | None:
        """The job whose number and creation time both match."""
        entry = self.get(ref.number)
        return entry if entry is not None and entry.job.created_ms == ref.created_ms else None

    def claimable(self, queue: str, now_ms: int) -> Iterator[int]:
        """Numbers of the jobs that may start now, in the order of the line [1.3]."""
        return (number for _, ready_at, _, number in self.lines.get(queue, ()) if ready_at <= now_ms)

    def next_ready_at(self, queue: str, now_ms: int) -> int | None:
        """See protocol.Batch."""
        earliest = min((ready_at for _, ready_at, _, _ in self.lines.get(queue, ())), default=None)
        return 0 if earliest is not None and earliest <= now_ms else earliest

    def _count(self, of: Job, change: int) -> None:
        key = (of.queue, int(of.state))
        self.counts[key] = self.counts.get(key, 0) + change
        if not self.counts[key]:
            del self.counts[key]


def place_of(of: Job) -> Place | None:
    """Where the job stands in its queue's line, None when it is out of it."""
    if of.ready_at_ms is None or of.ready_seq is None:
        return None
    return of.priority, of.ready_at_ms, of.ready_seq, of.number
