"""Checks what was seen from outside against what the broker promises; knows nothing of the broker's inside.

A test records invocations and their answers, starts and ends of handlers, and the list of jobs at the end; `violations`
names every broken rule. Linear in the history, but for sorting.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Add:
    """One call of add with a payload nobody else used. job_id: None when the answer is unknown."""

    payload: str
    job_id: str | None


@dataclasses.dataclass(frozen=True)
class Start:
    """A handler began: one attempt, told apart by (job_id, starts)."""

    payload: str
    job_id: str
    starts: int
    attempt: int
    at_s: float


@dataclasses.dataclass(frozen=True)
class Final:
    """A job as listed at the end."""

    job_id: str
    state: str
    attempt: int
    max_attempts: int


@dataclasses.dataclass
class History:
    """What was recorded, in no order."""

    adds: list[Add] = dataclasses.field(default_factory=list)
    starts: list[Start] = dataclasses.field(default_factory=list)
    finals: list[Final] = dataclasses.field(default_factory=list)

    def violations(self) -> list[str]:
        """Every broken rule, one line each; empty when the history is legal."""
        return [
            *self._lost(),
            *self._unexpected(),
            *self._duplicated(),
            *self._started_twice(),
            *self._not_finished(),
            *self._attempts(),
        ]

    def _lost(self) -> Iterable[str]:
        kept = {final.job_id for final in self.finals}
        return (
            f"lost: {add.job_id} ({add.payload}) was acknowledged and is gone"
            for add in self.adds
            if add.job_id is not None and add.job_id not in kept
        )

    def _unexpected(self) -> Iterable[str]:
        added = {add.payload for add in self.adds}
        return (
            f"unexpected: {start.payload} ran and nobody added it"
            for start in self.starts
            if start.payload not in added
        )

    def _duplicated(self) -> Iterable[str]:
        jobs: dict[str, set[str]] = defaultdict(set)
        for add in self.adds:
            if add.job_id is not None:
                jobs[add.payload].add(add.job_id)
        for start in self.starts:
            jobs[start.payload].add(start.job_id)
        many = {payload: ids for payload, ids in jobs.items() if len(ids) > 1}
        yield from (f"duplicated: {payload} is {len(ids)} jobs: {sorted(ids)}" for payload, ids in many.items())
        if len(self.finals) > len(self.adds):
            yield f"duplicated: {len(self.finals)} jobs from {len(self.adds)} adds"

    def _started_twice(self) -> Iterable[str]:
        counted = Counter((start.job_id, start.starts) for start in self.starts)
        return (
            f"token: start {starts} of {job_id} reached {times} handlers"
            for (job_id, starts), times in counted.items()
            if times > 1
        )

    def _not_finished(self) -> Iterable[str]:
        return (
            f"end: {final.job_id} is {final.state} after the drain"
            for final in self.finals
            if final.state != "completed"
        )

    def _attempts(self) -> Iterable[str]:
        return (
            f"attempts: {final.job_id} counts {final.attempt} of {final.max_attempts}"
            for final in self.finals
            if final.attempt > final.max_attempts
        )
