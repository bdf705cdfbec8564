"""One AddJobStream: batches are handed on as they come, answers leave in order. Runs for every frame of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from google.protobuf.message import DecodeError

from anvilmq_broker.gateway import status
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_broker.gateway.refusals import draining, malformed
from anvilmq_broker.gateway.services import jobs
from anvilmq_broker.gateway.wire import Wire
from anvilmq_proto.v1 import job_service_pb2 as pb

AHEAD: Final = 64
"""Requests that are read without having been answered."""


class AddStream:
    """Serves one stream until the client has sent its last request and has every answer.

    The engine keeps the order of what it is handed, so a batch does not wait for the answer to the one before.
    """

    def __init__(self, context: Context, call: Call, wire: Wire) -> None:
        self._context = context
        self._call = call
        self._wire = wire
        self._open: asyncio.Queue[asyncio.Task[pb.AddJobStreamResponse] | None] = asyncio.Queue()
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
                self._open.put_nowait(asyncio.create_task(self._answer(message)))
        finally:
            self._open.put_nowait(None)

    async def _write(self) -> None:
        while (task := await self._open.get()) is not None:
            response = await task
            await self._wire.write(response.SerializeToString())
            self._room.release()

    async def _answer(self, message: bytes) -> pb.AddJobStreamResponse:
        response = pb.AddJobStreamResponse()
        try:
            request = pb.AddJobStreamRequest.FromString(message)
        except DecodeError:
            raise malformed("JobService/AddJobStream") from None
        try:
            batch = jobs.prepare(self._context, self._call, request, len(message))
            jobs.fill(response, batch, await jobs.send(self._context, batch))
        except jobs.BatchRefused as error:
            response.refused.CopyFrom(status.item_error(error.refused, error.index or 0))
        return response

    async def _abandon(self, *tasks: asyncio.Task[None]) -> None:
        """Nobody waits for the answers any more; what was handed on may still be carried out."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        left = [answer for answer in self._taken() if answer is not None]
        for answer in left:
            answer.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _taken(self) -> Iterator[asyncio.Task[pb.AddJobStreamResponse] | None]:
        while not self._open.empty():
            yield self._open.get_nowait()
