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
    SCHEDULER_TICKED = 24
    SCHEDULER_SKIPPED = 25
    SCHEDULER_CHANGED = 26


class Run(msgspec.Struct, array_like=True):
    """Neighbouring events that differ only in their jobs.

    jobs: (number, created_ms, attempt) of each, flat. at_ms is the commit's. due_at_ms, matched_by, finish_reason: 0
    when they do not apply. error: (type, message) of RETRYING and FAILED. scheduler, tick_ms: of SCHEDULER_*, which have
    the job of the tick, or none (zeros).
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
    scheduler: str = ""
    tick_ms: int = 0


class Log:
    """The events of one transaction, in order, neighbours that differ only in their jobs joined into runs."""

    __slots__ = ("_last", "count", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.count = 0
        self._last: tuple[object, ...] = ()

    def add(
        self,
        kind: Kind,
        queue: str,
        name: str,
        state: int,
        previous_state: int,
        number: int,
        created_ms: int,
        attempt: int,
        worker_id: str = "",
        finish_reason: int = 0,
        due_at_ms: int = 0,
        matched_by: int = 0,
        error: tuple[str, str] | None = None,
    ) -> None:
        """Append one event; see Run for the fields."""
        self.add_run(
            kind, queue, name, state, previous_state, [number, created_ms, attempt], worker_id, finish_reason, due_at_ms,
            matched_by, error,
        )  # fmt: skip

    def add_run(
        self,
        kind: Kind,
        queue: str,
        name: str,
        state: int,
        previous_state: int,
        jobs: list[int],
        worker_id: str = "",
        finish_reason: int = 0,
        due_at_ms: int = 0,
        matched_by: int = 0,
        error: tuple[str, str] | None = None,
    ) -> None:
        """Append the same event of several jobs; `jobs` as in Run, and the log's own from now on."""
        same = (kind, queue, name, state, previous_state, worker_id, finish_reason, due_at_ms, matched_by, error)
        self.count += len(jobs) // 3
        if same == self._last:
            self.runs[-1].jobs += jobs
            return
        self._last = same
        self.runs.append(
            Run(kind, queue, name, state, previous_state, jobs, worker_id, finish_reason, due_at_ms, matched_by, error)
        )

    def add_tick(
        self,
        kind: Kind,
        scheduler: str,
        tick_ms: int = 0,
        queue: str = "",
        name: str = "",
        job: tuple[int, int] = (0, 0),
    ) -> None:
        """Append an event of a definition; job: (number, created_ms) of the run."""
        self.count += 1
        self._last = ()
        self.runs.append(Run(kind, queue, name, 0, 0, [*job, 0], scheduler=scheduler, tick_ms=tick_ms))

    def mark(self) -> tuple[int, int, int]:
        """A place to come back to with `reset`."""
        return len(self.runs), len(self.runs[-1].jobs) if self.runs else 0, self.count

    def reset(self, mark: tuple[int, int, int]) -> None:
        """Forget the events added since `mark`."""
        runs, jobs, self.count = mark
        del self.runs[runs:]
        if self.runs:
            del self.runs[-1].jobs[jobs:]
        self._last = ()
