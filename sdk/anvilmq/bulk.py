"""Many jobs at a time: cut into batches, one answer an item."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from anvilmq import errors
from anvilmq._bulks import BATCH_BYTES, BATCH_JOBS
from anvilmq._entries import Added, read_answers
from anvilmq._iothread import Reply

if TYPE_CHECKING:
    from anvilmq._client import Client
    from anvilmq.handles import Handle
    from anvilmq.jobs import Spec
    from anvilmq_proto.v1 import job_service_pb2

R = TypeVar("R")

Progress = Callable[[int, int | None], object]
"""Called after each batch: items answered so far, all items if their number is known."""


class BulkResult(Generic[R]):
    """The answers of a bulk, by the places of its items: as many as were answered."""

    def __init__(self) -> None:
        self._refs: list[Any] = []
        self._answers: list[Added | Exception] = []

    def __repr__(self) -> str:
        return f"<bulk of {len(self)} jobs, {len(self.errors)} refused>"

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, index: int) -> Handle[R]:
        """The job of an item. Raises the error of one that was refused."""
        answer = self._answers[index]
        if isinstance(answer, Exception):
            raise answer
        handle: Handle[R] = self._refs[index].answered(answer)
        return handle

    def __iter__(self) -> Iterator[Handle[R]]:
        """The jobs in order. Raises at the first item that was refused: see `errors` before."""
        return (self[index] for index in range(len(self)))

    @property
    def errors(self) -> dict[int, errors.CallError]:
        """Place → why that item was refused. Its `fields` are relative to the item."""
        found = enumerate(self._answers)
        return {index: answer for index, answer in found if isinstance(answer, errors.CallError)}

    @property
    def ids(self) -> list[str]:
        """The job of each item, "" where it was refused."""
        return ["" if isinstance(answer, Exception) else _id_of(answer) for answer in self._answers]

    @property
    def existing(self) -> int:
        """How many items met an earlier job."""
        return sum(not isinstance(answer, (str, Exception)) and answer.existing for answer in self._answers)

    def raise_for_errors(self) -> None:
        """Raise the error of the first item that was refused, if one was."""
        for answer in self._answers:
            if isinstance(answer, Exception):
                raise answer

    def take_in(self, batch: list[Spec[Any]], answers: list[Added | Exception]) -> None:
        """Add the answers of the next batch."""
        self._refs.extend(spec.ref for spec in batch)
        self._answers.extend(answers)


Batch = Reply["job_service_pb2.AddJobBulkResponse"]
Steps = Generator[Batch, "job_service_pb2.AddJobBulkResponse", BulkResult[R]]


def steps(
    client: Client, specs: Iterable[Spec[R]], *, atomic: bool, timeout_s: float, on_progress: Progress | None
) -> Steps[R]:
    """Send a bulk: yields each answer to wait for, is sent it, returns the result. To be driven by one of the two."""
    result: BulkResult[R] = BulkResult()
    total = len(specs) if isinstance(specs, Sized) else None
    lane = client.lanes.take()
    for batch in batches(specs, atomic=atomic):
        jobs = [spec.wire for spec in batch]
        try:
            answer = yield client.io.run(partial(client.lanes.send, lane, jobs, timeout_s, atomic=atomic))
        except errors.CallError as error:
            if atomic:
                raise
            raise errors.BulkStopped(error, result) from error
        result.take_in(batch, read_answers(len(batch), answer))
        if on_progress is not None:
            on_progress(len(result), total)
    # Not after an error: its last batch may be on its way still.
    client.lanes.give_back(lane)
    return result


async def drive(sending: Steps[R]) -> BulkResult[R]:
    """Send a bulk from a loop."""
    try:
        batch = next(sending)
        while True:
            try:
                answer = await batch
            except errors.CallError as error:
                batch = sending.throw(error)
            else:
                batch = sending.send(answer)
    except StopIteration as end:
        return cast("BulkResult[R]", end.value)


def drive_sync(sending: Steps[R]) -> BulkResult[R]:
    """Send a bulk from a thread without a loop."""
    try:
        batch = next(sending)
        while True:
            try:
                answer = batch.result()
            except errors.CallError as error:
                batch = sending.throw(error)
            else:
                batch = sending.send(answer)
    except StopIteration as end:
        return cast("BulkResult[R]", end.value)


def batches(specs: Iterable[Spec[R]], *, atomic: bool) -> Iterator[list[Spec[R]]]:
    """Cut into what one call carries. ValueError when an atomic bulk does not fit into one."""
    batch: list[Spec[R]] = []
    size = 0
    for spec in specs:
        if batch and (len(batch) == BATCH_JOBS or size + spec.size > BATCH_BYTES):
            if atomic:
                raise ValueError(f"an atomic bulk has at most {BATCH_JOBS} jobs and {BATCH_BYTES} bytes")
            yield batch
            batch, size = [], 0
        batch.append(spec)
        size += spec.size
    if batch:
        yield batch


def _id_of(answer: Added) -> str:
    return answer if isinstance(answer, str) else answer.job_id
