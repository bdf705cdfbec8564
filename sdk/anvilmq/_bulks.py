"""Bulks on their way: batches by unary calls, in lanes. A lane is a producer for the broker: one batch at a time.

A batch whose answer got lost goes again under the same `seq`, and the broker answers what it answered before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Final

from anvilmq import _retry, errors
from anvilmq._clock import Clock
from anvilmq._transport import Transport, method
from anvilmq_proto.v1 import job_service_pb2, types_pb2

ADD_BULK: Final = method(
    "JobService", "AddJobBulk", job_service_pb2.AddJobBulkRequest, job_service_pb2.AddJobBulkResponse
)
BATCH_JOBS: Final = 1_000
BATCH_BYTES: Final = 8 << 20
"""Half of what the broker takes, since sizes are estimates and one job can be large."""
TRY_S: Final = 30.0


class Lane:
    """One producer. seq: of the last batch that was sent."""

    __slots__ = ("producer_id", "seq")

    def __init__(self) -> None:
        self.producer_id = secrets.token_hex(8)
        self.seq = 0


class Lanes:
    """The lanes of an app: as many as bulks ran at one time. Each bulk has one for itself, so its batches keep order."""

    def __init__(self, clock: Clock, transport: Callable[[], Transport], *, chance: Callable[[], float]) -> None:
        self._clock = clock
        self._transport = transport
        self._chance = chance
        self._free: list[Lane] = []

    def take(self) -> Lane:
        """A lane that nobody uses. From any thread."""
        try:
            return self._free.pop()
        except IndexError:
            return Lane()

    def give_back(self, lane: Lane) -> None:
        """Give back a lane without a batch on its way. From any thread."""
        self._free.append(lane)

    async def send(
        self, lane: Lane, specs: Sequence[types_pb2.JobSpec], timeout_s: float, *, atomic: bool
    ) -> job_service_pb2.AddJobBulkResponse:
        """Send a batch until it is answered. On the I/O loop. Unavailable when the time is over; else as refused.

        atomic: one refused job refuses the batch, and the error's `index` names it.
        """
        lane.seq += 1
        request = job_service_pb2.AddJobBulkRequest(
            jobs=specs,
            atomic=job_service_pb2.ATOMICITY_ALL_OR_NOTHING if atomic else job_service_pb2.ATOMICITY_PER_ITEM,
            producer_id=lane.producer_id,
            seq=lane.seq,
        )
        deadline = self._clock.monotonic() + timeout_s
        try:
            return await _retry.call_until(
                deadline, self._transport, self._clock, self._chance, ADD_BULK, request, try_s=TRY_S
            )
        except (errors.DeadlineExceeded, errors.Cancelled) as error:
            raise errors.Unavailable(error.message) from error
