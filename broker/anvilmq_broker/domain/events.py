"""The durable log's record of transitions (semantics 1.13), written in the transaction that makes them."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Kind(IntEnum):
    """What happened; the numbers are those of the wire."""

    ADDED = 1
    DUPLICATE = 2
    STARTED = 3
    PROGRESS = 4
    COMPLETED = 5
    RETRYING = 6
    FAILED = 7
    CANCELLED = 8
    STALLED = 9
    RELEASED = 10
    AWAITS_CHILDREN = 11
    CHILDREN_DONE = 12
    PROMOTED = 13
    UPDATED = 14
    RETRIED = 15
    CANCEL_REQUESTED = 16
    REMOVED = 17


class Run(msgspec.Struct, array_like=True):
    """Neighbouring events that differ only in their jobs.

    jobs: (number, created_ms, attempt) of each, flat. at_ms is the commit's. due_at_ms, matched_by, finish_reason: 0
    when they do not apply. error: (type, message) of RETRYING and FAILED.
    """

    kind: int
    queue: str
    name: str
    state: int
    previous_state: int
    jobs: list[int]
    worker_id: str = ""
    finish_reason: int = 0
    due_at_ms: int = 0
    matched_by: int = 0
    error: tuple[str, str] | None = None

    def same_but_jobs(self, other: Run) -> bool:
        """Whether `other` may be joined to this run."""
        return (
            self.kind == other.kind
            and self.name == other.name
            and self.queue == other.queue
            and self.state == other.state
            and self.previous_state == other.previous_state
            and self.worker_id == other.worker_id
            and self.finish_reason == other.finish_reason
            and self.due_at_ms == other.due_at_ms
            and self.matched_by == other.matched_by
            and self.error == other.error
        )


class Log:
    """The events of one transaction, in order, joined into runs."""

    __slots__ = ("count", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.count = 0

    def append(self, run: Run) -> None:
        """Add the events of `run` after those that are there."""
        self.count += len(run.jobs) // 3
        if self.runs and self.runs[-1].same_but_jobs(run):
            self.runs[-1].jobs.extend(run.jobs)
        else:
            self.runs.append(run)

    def mark(self) -> tuple[int, int, int]:
        """A place to come back to with `reset`."""
        return len(self.runs), len(self.runs[-1].jobs) if self.runs else 0, self.count

    def reset(self, mark: tuple[int, int, int]) -> None:
        """Forget the events appended since `mark`."""
        runs, jobs, self.count = mark
        del self.runs[runs:]
        if self.runs:
            del self.runs[-1].jobs[jobs:]
