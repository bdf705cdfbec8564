"""One AddJobStream: batches are handed on as they come, answers leave in order. Runs for every frame of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.engine.link import EngineLost
from anvilmq_broker.gateway import status
from anvilmq_broker.gateway.context import Call, Context, expected
from anvilmq_broker.gateway.refusals import Rejected, draining, malformed, not_ready
from anvilmq_broker.gateway.services import jobs
from anvilmq_broker.gateway.wire import Wire
from anvilmq_proto.v1 import job_service_pb2 as pb

AHEAD: Final = 64
"""Requests that are read without having been answered."""


class _Asked(msgspec.Struct):
    """A request on its way. refused: it is answered without the engine; outcome: else."""

    batch: jobs.Batch | None = None
    outcome: asyncio.Future[commands.Outcome] | None = None
    refused: jobs.BatchRefused | None = None
    error: Rejected | None = None


class AddStream:
    """Serves one stream until the client has sent its last request and has every answer.

    The engine keeps the order of what it is handed, so a batch does not wait for the answer to the one before.
    """

    def __init__(self, context: Context, call: Call, wire: Wire) -> None:
        self._context = context
        self._call = call
        self._wire = wire
        self._open: asyncio.Queue[_Asked | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(AHEAD)
        self._reading: asyncio.Task[None] | None = None
        self._leaving = False

    async def run(self) -> None:
        """Raises Rejected when the stream as a whole fails: no engine, bytes that are no request."""
        writing = asyncio.create_task(self._write())
        reading = self._reading = asyncio.create_task(self._read())
        try:
            # A failed writer ends the call at once; a reader that is done leaves answers to be written.
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_EXCEPTION)
            if writing.done():
                writing.result()
            if self._leaving:
                await writing
                raise draining()
            reading.result()
        finally:
            await self._abandon(reading, writing)

    def leave(self) -> None:
        """Read no more, and end when what was read is answered: the broker is shutting down."""
        self._leaving = True
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        try:
            while (message := await self._wire.read()) is not None:
                await self._room.acquire()
                self._open.put_nowait(self._ask(message))
        finally:
            self._open.put_nowait(None)

    async def _write(self) -> None:
        while (asked := await self._open.get()) is not None:
            response = await self._answer(asked)
            await self._wire.write(response.SerializeToString())
            self._room.release()

    def _ask(self, message: bytes) -> _Asked:
        """Hand a request to the engine. What it cannot be asked is told when its turn comes."""
        try:
            batch = jobs.prepare(self._context, self._call, pb.AddJobStreamRequest.FromString(message), len(message))
            outcome = None if batch.command is None else self._context.broker.ask(batch.command)
            return _Asked(batch, outcome)
        except jobs.BatchRefused as refused:
            return _Asked(refused=refused)
        except DecodeError:
            return _Asked(error=malformed("JobService/AddJobStream"))
        except Rejected as error:
            return _Asked(error=error)

    async def _answer(self, asked: _Asked) -> pb.AddJobStreamResponse:
        response, batch, refused = pb.AddJobStreamResponse(), asked.batch, asked.refused
        if asked.error is not None:
            raise asked.error
        if batch is not None:
            try:
                outcome = commands.AddedJobs(0, 0) if asked.outcome is None else await asked.outcome
            except EngineLost:
                raise not_ready() from None
            if isinstance(outcome, Refused):
                refused = jobs.refusal(batch, outcome)
            else:
                jobs.fill(response, batch, expected(outcome, commands.AddedJobs))
        if refused is not None:
            response.refused.CopyFrom(status.item_error(refused.refused, refused.index or 0))
        return response

    async def _abandon(self, *tasks: asyncio.Task[None]) -> None:
        """Nobody waits for the answers any more; what was handed on may still be carried out."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        left = [asked.outcome for asked in self._taken() if asked is not None and asked.outcome is not None]
        for outcome in left:
            outcome.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _taken(self) -> Iterator[_Asked | None]:
        while not self._open.empty():
            yield self._open.get_nowait()
