"""Adds on their way: what waits for an answer, and how the answers of a frame get back to their callers.

Hot: one Entry an add, and a frame's answers leave in one callback a loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent import futures
from typing import Final, NamedTuple

from anvilmq import errors
from anvilmq._transport import method
from anvilmq_proto.v1 import job_service_pb2, types_pb2

ADD_STREAM: Final = method(
    "JobService", "AddJobStream", job_service_pb2.AddJobStreamRequest, job_service_pb2.AddJobStreamResponse
)


class Earlier(NamedTuple):
    """The answer to an add that met an earlier job, or took the place of one."""

    job_id: str
    existing: bool
    matched_by: int
    replaced_job_id: str


Added = str | Earlier
"""The answer to an add: the id of the new job, or Earlier."""


class Entry:
    """One add. The future belongs to `loop`, or to a thread when that is None. deadline: monotonic seconds.

    over: the caller has been told, or will be as soon as its loop turns. Written on the I/O loop only.
    """

    __slots__ = ("deadline", "future", "loop", "over", "serial", "size", "spec")

    def __init__(
        self,
        spec: types_pb2.JobSpec | None,
        size: int,
        deadline: float,
        future: asyncio.Future[Added] | futures.Future[Added],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.spec = spec
        self.size = size
        self.deadline = deadline
        self.future = future
        self.loop = loop
        self.serial = 0
        self.over = False

    @property
    def gone(self) -> bool:
        """Nobody waits for it any more."""
        return self.over or self.future.cancelled()


class Frame:
    """Entries that go, or went, to the broker together under one `seq`.

    first_sent_at: when it was first handed to a stream; None while it is certain that the broker has not taken it.
    """

    __slots__ = ("entries", "first_sent_at", "message", "seq", "size")

    def __init__(self, entries: list[Entry], producer_id: str, seq: int) -> None:
        self.entries = entries
        self.seq = seq
        self.size = sum(entry.size for entry in entries)
        self.first_sent_at: float | None = None
        self.message = job_service_pb2.AddJobStreamRequest(
            jobs=[entry.spec for entry in entries],  # type: ignore[misc]  # only tickets have no spec
            atomic=job_service_pb2.ATOMICITY_PER_ITEM,
            producer_id=producer_id,
            seq=seq,
        )

    @property
    def outcome(self) -> errors.Outcome:
        """What a caller is told who waits no longer."""
        return "not_sent" if self.first_sent_at is None else "unknown"

    @property
    def gone(self) -> bool:
        """Nobody waits for any of it."""
        return all(entry.gone for entry in self.entries)


def read_answers(
    count: int, answer: job_service_pb2.AddJobStreamResponse | job_service_pb2.AddJobBulkResponse
) -> list[Added | Exception]:
    """The answer to each of `count` items. Internal for all of them when the broker's do not fit."""
    outcomes: list[Added | Exception] = list(answer.job_ids)
    if len(outcomes) != count:
        return [errors.Internal(f"the broker answered {len(outcomes)} of {count} jobs") for _ in range(count)]
    for earlier in answer.earlier:
        outcomes[earlier.index] = Earlier(
            job_id=answer.job_ids[earlier.index],
            existing=earlier.existing,
            matched_by=earlier.matched_by,
            replaced_job_id=earlier.replaced_job_id,
        )
    for error in answer.errors:
        outcomes[error.index] = errors.from_item_error(error)
    return outcomes


def deliver(here: asyncio.AbstractEventLoop, entries: Sequence[Entry], outcomes: Sequence[Added | Exception]) -> None:
    """Tell the callers, each on its loop, with one call for each loop. `here` is the loop this runs on."""
    told: dict[asyncio.AbstractEventLoop | None, tuple[list[object], list[Added | Exception]]] = {}
    for entry, outcome in zip(entries, outcomes, strict=True):
        if entry.over:
            continue
        entry.over = True
        theirs = told.get(entry.loop)
        if theirs is None:
            theirs = told[entry.loop] = ([], [])
        theirs[0].append(entry.future)
        theirs[1].append(outcome)
    for loop, theirs in told.items():
        if loop is None or loop is here:
            _resolve(*theirs)
            continue
        try:
            loop.call_soon_threadsafe(_resolve, *theirs)
        except RuntimeError:
            # Its loop is closed: nobody waits there.
            continue


def _resolve(waiting: Sequence[object], outcomes: Sequence[Added | Exception]) -> None:
    future: asyncio.Future[Added] | futures.Future[Added]
    for future, outcome in zip(waiting, outcomes, strict=True):  # type: ignore[assignment]
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
