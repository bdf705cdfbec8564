"""One Work stream: settlements, credit, renewals, reports in; deliveries and answers out (api section 3).

A reader takes frames and hands their parts on in field order without waiting for answers; a writer sends what is ready,
everything of one moment in one frame. The session ends with the stream, by the engine, or after three silent intervals.
Runs for every frame of a worker: terse on purpose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from google.protobuf.message import DecodeError

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.engine.link import Broker, EngineLost
from anvilmq_broker.gateway import features, limits, mapping, validate
from anvilmq_broker.gateway.context import Call, Context, Handle, expected
from anvilmq_broker.gateway.frames import Outbox, lease_of
from anvilmq_broker.gateway.refusals import (
    Rejected,
    batch_too_large,
    invalid,
    malformed,
    not_ready,
    required,
    session_protocol,
)
from anvilmq_broker.gateway.reports import Reports
from anvilmq_broker.gateway.services import workers
from anvilmq_broker.gateway.telemetry import Telemetry
from anvilmq_broker.gateway.wire import Wire
from anvilmq_proto.v1 import types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb

METHOD: Final = "WorkerService/Work"
SILENT_INTERVALS: Final = 3
AHEAD: Final = 64
"""Settle and renew parts that may be without an answer; then the next frame waits."""
MAX_RESUME: Final = limits.MAX_POOLS * limits.MAX_CREDIT
"""Leases that an opening may name: as many as a worker can be sent."""


class Session:
    """Serves one worker's stream."""

    def __init__(self, context: Context, call: Call, wire: Wire, telemetry: Telemetry) -> None:
        self._context = context
        self._call = call
        self._wire = wire
        self._telemetry = telemetry
        self._number = context.next_session()
        self._worker = commands.WorkerIdentity("")
        self._pools: dict[int, commands.Pool] = {}
        self._outbox = Outbox(limits.MAX_FRAME_BYTES)
        self._something = asyncio.Event()
        self._asking: set[asyncio.Future[commands.Outcome]] = set()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reports = Reports(context, self._lost)
        self._broker: Broker | None = None
        self._dead: list[types_pb2.Lease] = []
        self._heard_ms = self._seen_ms = context.clock.monotonic_ms()
        self._silence: Handle | None = None
        self._leaving = False

    @property
    def worker_id(self) -> str:
        """Whose session it is; "" before the first frame."""
        return self._worker.worker_id

    async def run(self) -> None:
        """Serve until the worker closes the stream. Raises Rejected when the broker ends it, Broken when it breaks."""
        self._watch_silence()
        reading = asyncio.create_task(self._read())
        writing = asyncio.create_task(self._write())
        try:
            await self._first_of(reading, writing)
            # The worker sends no more. What it asked is answered; what it was to be sent goes back.
            self._leaving = True
            self._give_back()
            self._something.set()
            await self._first_of(writing)
        finally:
            await self._close(reading, writing)

    def leave(self, within_ms: int) -> None:
        """Ask the worker to connect again: this broker is shutting down."""
        self._outbox.go_away(pb.WorkResponse.GoAway(within_ms=within_ms, reason="the broker is shutting down"))
        self._something.set()

    def rights_changed(self) -> None:
        """The tokens file has changed: end the session if it serves a queue that its token does not reach any more."""
        try:
            self._check_queues()
        except Rejected as error:
            self.end(error)

    def end(self, error: Exception) -> None:
        """End the stream with this error, unless it ends already."""
        if not self._ended.done():
            self._ended.set_exception(error)

    async def _first_of(self, *tasks: asyncio.Task[None]) -> None:
        """Wait for one of the tasks; raise what it raised, or what ended the session."""
        await asyncio.wait({*tasks, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        for future in (self._ended, *tasks):
            if future.done():
                future.result()

    async def _close(self, *tasks: asyncio.Task[None]) -> None:
        if self._silence is not None:
            self._silence.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._reports.close()
        asking = list(self._asking)
        for asked in asking:
            asked.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        self._give_back()
        if self._broker is not None:
            self._attach(commands.CloseSession(self._number))
        if self._ended.done():
            # Looked at, so that it is not reported as forgotten.
            self._ended.exception()

    # ------------------------------------------------------------------------------------------------ reading

    async def _read(self) -> None:
        if (message := await self._wire.read()) is None:
            return
        self._heard()
        self._open(_parse(message))
        while (message := await self._wire.read()) is not None:
            self._heard()
            await self._take(_parse(message))

    def _open(self, frame: pb.WorkRequest) -> None:
        if not frame.HasField("open") or len(frame.ListFields()) != 1:
            raise session_protocol("the first frame of a session must have `open` and nothing else")
        opening = frame.open
        if not opening.HasField("worker"):
            raise required("open.worker")
        self._worker = mapping.worker_identity(opening.worker, "open.worker")
        self._pools = _pools(opening)
        self._check_queues()
        validate.number(opening.max_frame_bytes, "open.max_frame_bytes", 0, limits.MAX_INTEGER)
        wanted = min(opening.max_frame_bytes or limits.MAX_FRAME_BYTES, limits.MAX_MESSAGE_BYTES)
        self._outbox.max_bytes = max(wanted, self._context.limits.least_frame_bytes)
        if len(opening.resume) > MAX_RESUME:
            raise batch_too_large("open.resume", len(opening.resume), MAX_RESUME)
        good, self._dead = workers.leases(opening.resume, "open.resume")
        self._broker = self._context.broker
        self._broker.attach(
            commands.OpenSession(self._number, self._worker, list(self._pools.values()), good), self._noticed
        )

    async def _take(self, frame: pb.WorkRequest) -> None:
        """The parts of a frame, in field order."""
        if frame.HasField("settle"):
            await self._settle(frame.settle)
        if frame.credits:
            self._credit(frame.credits)
        if frame.HasField("renew"):
            await self._renew(frame.renew)
        if frame.progress or frame.logs:
            self._report(frame)
        if frame.HasField("drain"):
            self._drain(frame.drain)
        if frame.HasField("ping"):
            self._outbox.pong(validate.number(frame.ping.at_ms, "ping.at_ms", 0, limits.MAX_INTEGER))
            self._something.set()
        if frame.HasField("open"):
            raise session_protocol("`open` comes once, in the first frame")

    async def _settle(self, request: pb.SettleJobsRequest) -> None:
        batch = workers.settle_batch(request, "settle.")
        if batch.command is None:
            self._outbox.settled(batch.answer(commands.Settled(b"")))
            self._something.set()
            return
        self._reports.settling(batch.command.items)
        await self._ask(batch.command, partial(self._settled, batch))

    def _settled(self, batch: workers.SettleBatch, outcome: commands.Outcome) -> None:
        self._outbox.settled(batch.answer(expected(outcome, commands.Settled)))

    async def _renew(self, request: pb.RenewLeasesRequest) -> None:
        batch = workers.renew_batch(request, self.worker_id, "renew.")
        await self._ask(batch.command, partial(self._renewed, batch))

    def _renewed(self, batch: workers.RenewBatch, outcome: commands.Outcome) -> None:
        self._outbox.renewed(batch.answer(expected(outcome, commands.Renewed)))

    async def _ask(self, command: commands.Command, answered: Callable[[commands.Outcome], None]) -> None:
        """Put a question to the engine without waiting for its answer, unless very many are open."""
        if len(self._asking) >= AHEAD:
            await self._has_room()
        asked = self._context.broker.ask(command)
        self._asking.add(asked)
        asked.add_done_callback(partial(self._answered, answered))

    async def _has_room(self) -> None:
        while len(self._asking) >= AHEAD:
            await asyncio.wait(self._asking, return_when=asyncio.FIRST_COMPLETED)
            # The answer is seen to by a callback of its own.
            await asyncio.sleep(0)

    def _answered(self, answered: Callable[[commands.Outcome], None], asked: asyncio.Future[commands.Outcome]) -> None:
        self._asking.discard(asked)
        self._something.set()
        if asked.cancelled():
            return
        try:
            answered(asked.result())
        except EngineLost:
            self.end(not_ready())
        except Exception as error:  # noqa: BLE001  # whoever ends the session tells what is no refusal
            self.end(error)

    def _credit(self, credits: Iterable[pb.Credit]) -> None:
        given: list[tuple[int, int]] = []
        for index, credit in enumerate(credits):
            if credit.pool not in self._pools:
                raise invalid(f"credits[{index}].pool", f"the session has no pool {credit.pool}")
            given.append((credit.pool, validate.number(credit.jobs, f"credits[{index}].jobs", 0, limits.MAX_CREDIT)))
        self._attach(commands.AddCredit(self._number, given))

    def _report(self, frame: pb.WorkRequest) -> None:
        for message in frame.progress:
            self._put_report(mapping.progress, message)
        for lines in frame.logs:
            self._put_report(mapping.log_lines, lines)

    def _put_report(self, map_report: Callable[[Any], commands.Report], message: Any) -> None:
        try:
            self._reports.put(map_report(message))
        except Rejected:
            self._telemetry.report_dropped()

    def _drain(self, request: pb.WorkRequest.Drain) -> None:
        for index, pool in enumerate(request.pools):
            if pool not in self._pools:
                raise invalid(f"drain.pools[{index}]", f"the session has no pool {pool}")
        self._attach(commands.DrainSession(self._number, list(request.pools)))

    def _check_queues(self) -> None:
        for pool in self._pools.values():
            for queue in pool.queues:
                self._call.caller.require(self._call.scopes, queue)

    # ------------------------------------------------------------------------------------------------ writing

    async def _write(self) -> None:
        while True:
            await self._something.wait()
            # One more turn of the loop, so that answers and deliveries which arrived together share a frame: a frame
            # costs far more than a turn.
            await asyncio.sleep(0)
            self._something.clear()
            while self._outbox:
                frame, sent = self._outbox.next_frame()
                try:
                    await self._wire.write(frame)
                except BaseException:
                    # Also when cancelled: nobody knows whether it left, and the dead tokens keep it harmless if it did.
                    self._give_back(sent)
                    raise
            if self._leaving and not self._asking:
                return

    def _noticed(self, notice: commands.Notice) -> None:
        """What the engine says of its own accord."""
        outbox = self._outbox
        match notice:
            case commands.Deliveries():
                outbox.deliveries(notice.deliveries)
                if self._leaving:
                    self._give_back()
            case commands.Interrupts():
                outbox.interrupts(notice.interrupts)
            case commands.Drained():
                outbox.drained(notice.pools or self._pools)
            case commands.Opened():
                outbox.opened(self._opened(notice))
            case commands.GoAway():
                outbox.go_away(pb.WorkResponse.GoAway(reason=notice.reason, drain=notice.drain))
            case commands.SessionEnded():
                self._broker = None
                self.end(_ended_by_engine(notice.reason, self.worker_id))
        self._something.set()

    def _opened(self, notice: commands.Opened) -> pb.WorkResponse.Opened:
        message = pb.WorkResponse.Opened(
            ping_every_ms=self._context.ping_every_ms,
            max_frame_bytes=max(limits.MAX_FRAME_BYTES, self._context.limits.least_frame_bytes),
            broker_version=self._context.identity.version,
            features=features.BUILT,
        )
        mapping.put_interrupts(message.interrupts, notice.interrupts)
        workers.put_lost(message.interrupts, self._dead)
        return message

    def _lost(self, interrupt: commands.Interrupt) -> None:
        self._outbox.interrupts([interrupt])
        self._something.set()

    def _give_back(self, sent: Iterable[commands.Delivery] = ()) -> None:
        """What could not be written goes back uncounted."""
        leases = [*map(lease_of, sent), *self._outbox.undelivered()]
        if leases and self._broker is not None:
            self._attach(commands.Undeliver(self._number, leases))

    def _attach(self, message: commands.SessionMessage) -> None:
        if self._broker is not None:
            self._broker.attach(message)

    # ------------------------------------------------------------------------------------------------ silence

    def _heard(self) -> None:
        now = self._heard_ms = self._context.clock.monotonic_ms()
        if now - self._seen_ms >= self._context.ping_every_ms and self._broker is not None:
            self._seen_ms = now
            self._attach(commands.SessionSeen(self._number))

    def _watch_silence(self) -> None:
        longest = self._context.ping_every_ms * SILENT_INTERVALS
        left = self._heard_ms + longest - self._context.clock.monotonic_ms()
        if left <= 0:
            self.end(_silent(self.worker_id, longest))
        else:
            self._silence = self._context.timers.call_later(left / 1_000, self._watch_silence)


def _parse(message: bytes) -> pb.WorkRequest:
    try:
        return pb.WorkRequest.FromString(message)
    except DecodeError:
        raise malformed(METHOD) from None


def _pools(opening: pb.WorkRequest.Open) -> dict[int, commands.Pool]:
    validate.batch(len(opening.pools), "open.pools", limits.MAX_POOLS)
    pools: dict[int, commands.Pool] = {}
    served: set[str] = set()
    for index, message in enumerate(opening.pools):
        path = f"open.pools[{index}]"
        pool = mapping.pool(message, path)
        if pool.id in pools:
            raise invalid(f"{path}.id", f"there are two pools {pool.id}")
        for place, queue in enumerate(pool.queues):
            if queue in served:
                raise invalid(f"{path}.queues[{place}]", f"queue {queue!r} stands twice; one pool serves it")
            served.add(queue)
        pools[pool.id] = pool
    return pools


def _ended_by_engine(reason: str, worker_id: str) -> Rejected:
    if reason == "SESSION_REPLACED":
        message = f"worker {worker_id!r} has opened another session; only the newest of a worker_id is served"
        return Rejected(Refused(reason, message, metadata={"worker_id": worker_id}))
    return not_ready()


def _silent(worker_id: str, longest_ms: int) -> Rejected:
    message = f"nothing was heard of worker {worker_id!r} for {longest_ms // 1_000} s; connect again with `resume`"
    return Rejected(Refused("SESSION_TIMEOUT", message, metadata={"worker_id": worker_id}))
