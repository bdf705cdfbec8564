"""Single adds, coalesced: what is added while a frame is out makes the next frame. Hot.

No timer gathers them, and one frame is unanswered at a time, so adds are applied in the order of the calls. The state
is the open frame, the one that has no answer yet:

    taken ──written──▶ out ──answered──▶ gone
      ▲                 │
      └──── refused for load (after the time asked for), or the stream broke (after a backoff) ◀──┘

After a break the open frame goes again, unchanged and under the same `seq`, so that the broker knows it and answers
what it answered before. It is given up when nobody waits for it any more; its callers were told "unknown" then.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent import futures
from contextlib import aclosing
from typing import Final

import msgspec

from anvilmq import _retry, errors
from anvilmq._backlog import Backlog
from anvilmq._clock import Timer
from anvilmq._entries import ADD_STREAM, Added, Entry, Frame, deliver, read_answers
from anvilmq._iothread import Io
from anvilmq._transport import Transport
from anvilmq_proto.v1 import job_service_pb2, types_pb2

_log = logging.getLogger("anvilmq.adds")

REMEMBERED_S: Final = 540.0
"""The broker knows an answered frame for 10 min: what went out longer ago must not go again."""


class _Link(msgspec.Struct):
    """One stream. out: the frame that was written to it and is not answered. served: it has answered something."""

    out: Frame | None = None
    served: bool = False


class Adds:
    """See the module. connect: the transport of the next stream, called on the I/O loop. chance: in [0, 1)."""

    def __init__(self, io: Io, connect: Callable[[], Transport], *, chance: Callable[[], float]) -> None:
        self._io = io
        self._clock = io.clock
        self._connect = connect
        self._chance = chance
        self._backlog = Backlog()
        self._producer_id = secrets.token_hex(8)
        self._seq = 0
        self._open: Frame | None = None
        self._link: _Link | None = None
        self._stream: asyncio.Task[errors.AnvilError] | None = None
        self._runner: asyncio.Task[None] | None = None
        self._waking: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Event()
        self._held = False
        self._failures = 0
        self._refused_tokens = 0
        self._broken = ""
        self._closed = False
        self._pause: Timer | None = None
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._flushes: list[tuple[int, asyncio.Event]] = []

    # ------------------------------------------------------------------------------------------- from any thread

    @property
    def full(self) -> bool:
        """Whether to wait for room before the payload is encoded."""
        return self._backlog.full

    @property
    def pending(self) -> int:
        """Jobs that were added and are not answered."""
        return self._backlog.jobs

    async def room(self, deadline: float) -> None:
        """Return when there is room again, in the order of the calls. Unavailable at the deadline."""
        loop = asyncio.get_running_loop()
        ticket = Entry(None, 0, deadline, loop.create_future(), loop)
        self._queue(ticket)
        await ticket.future  # type: ignore[misc]  # an asyncio future, since it has a loop

    def room_sync(self, deadline: float) -> None:
        """The same in a thread without a loop."""
        ticket = Entry(None, 0, deadline, futures.Future(), None)
        self._queue(ticket)
        ticket.future.result()

    async def add(self, spec: types_pb2.JobSpec, size: int, deadline: float) -> Added:
        """Add one job; size: about its bytes. Unavailable at the deadline, monotonic seconds; else as refused."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Added] = loop.create_future()
        self._put(Entry(spec, size, deadline, future, loop))
        return await future

    def add_sync(self, spec: types_pb2.JobSpec, size: int, deadline: float) -> Added:
        """The same in a thread without a loop."""
        future: futures.Future[Added] = futures.Future()
        self._put(Entry(spec, size, deadline, future, None))
        return future.result()

    def _put(self, entry: Entry) -> None:
        self._io.check()
        if self._backlog.put(entry):
            self._wake(entry.loop)

    def _queue(self, ticket: Entry) -> None:
        self._io.check()
        if self._backlog.queue(ticket):
            self._wake(ticket.loop)

    def _wake(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Have the I/O loop look. From a loop only at the end of its turn: what is added in one turn shares a frame."""
        if loop is None:
            self._backlog.tell()
            self._io.call_soon(self._arrived)
        elif self._waking is not loop:
            # Should that loop end before its next turn, another caller still finds the I/O loop untold.
            self._waking = loop
            loop.call_soon(self._woken)

    def _woken(self) -> None:
        self._waking = None
        self._backlog.tell()
        self._io.call_soon(self._arrived)

    # ------------------------------------------------------------------------------------------- on the I/O loop

    async def flush(self) -> None:
        """Return when all that was added before is answered, in one way or another."""
        newest = self._backlog.newest()
        self._arrived()
        if not self._reached(newest):
            done = asyncio.Event()
            self._flushes.append((newest, done))
            await done.wait()

    async def close(self) -> None:
        """Refuse new adds and end the stream. What is not answered ends as Unavailable: flush first."""
        self._closed = True
        tickets = self._backlog.close()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait([self._runner])
        rest = self._backlog.take()
        while rest:
            self._finish(rest, [_lost("not_sent", "the app was closed")] * len(rest))
            rest = self._backlog.take()
        if self._open is not None:
            frame, self._open = self._open, None
            self._finish(frame.entries, [_lost(frame.outcome, "the app was closed") for _ in frame.entries])
        self._tell(tickets, [errors.Closed() for _ in tickets])
        for timer in (self._timer, self._pause):
            if timer is not None:
                timer.cancel()

    def _arrived(self) -> None:
        if self._closed:
            return
        if self._runner is None:
            self._runner = asyncio.get_running_loop().create_task(self._run())
            self._runner.add_done_callback(self._ended)
        self._turn.set()
        self._arm()

    def _ended(self, runner: asyncio.Task[None]) -> None:
        if runner.cancelled() or (error := runner.exception()) is None:
            return
        # A mistake of ours or of the transport: told, and the next add starts afresh.
        _log.error("add_stream_failed", exc_info=error)
        self._runner = None
        self._fail_open(errors.Internal(f"{type(error).__name__}: {error}"))
        self._arrived()

    async def _run(self) -> None:
        while True:
            while not self._has_frame():
                await self._turn.wait()
                self._turn.clear()
            link = self._link = _Link()
            error = await self._use(link)
            if link.served:
                self._failures, self._refused_tokens, self._broken = 0, 0, ""
            # Without an open frame it broke with nothing to say: the next add finds out.
            if self._open is not None and (pause_s := self._after(error)):
                await self._clock.sleep(pause_s)

    def _after(self, error: errors.AnvilError) -> float:
        """What a break means for the open frame: it is given up, or goes again after so many seconds."""
        assert self._open is not None
        if isinstance(error, errors.Unauthenticated) and not self._refused_tokens:
            # The transport has read the token file again.
            self._refused_tokens += 1
            return 0.0
        if not isinstance(error, errors.CallError) or not _retry.is_transient(error):
            self._fail_open(error)
            return 0.0
        if self._open.gone:
            self._fail_open(_lost("unknown", error.message))
            return 0.0
        self._broken = str(error)
        if not self._failures:
            _log.warning("add_stream_broken: %s", error, extra={"reason": error.reason})
        self._failures += 1
        return _retry.delay_s(self._failures, self._chance(), error)

    async def _use(self, link: _Link) -> errors.AnvilError:
        """One stream, from its opening to its end. Why it ended."""
        self._stream = asyncio.get_running_loop().create_task(self._read(link))
        try:
            await asyncio.wait([self._stream])
        finally:
            self._stream.cancel()
            await asyncio.wait([self._stream])
            self._link = None
        return self._stream.result() if not self._stream.cancelled() else _lost("unknown", "no answer came")

    async def _read(self, link: _Link) -> errors.AnvilError:
        try:
            async with aclosing(self._connect().stream(ADD_STREAM, self._write(link))) as answers:
                async for answer in answers:
                    self._answered(link, answer)
        except errors.AnvilError as error:
            return error
        return _lost("unknown", "the broker ended the stream")

    async def _write(self, link: _Link) -> AsyncGenerator[job_service_pb2.AddJobStreamRequest, None]:
        while True:
            if self._held or link.out is not None or not self._has_frame():
                await self._turn.wait()
                self._turn.clear()
                continue
            frame = link.out = self._open
            assert frame is not None
            if frame.first_sent_at is None:
                frame.first_sent_at = self._clock.monotonic()
            yield frame.message

    def _has_frame(self) -> bool:
        """Whether there is something to send: then it is the open frame."""
        frame = self._open
        sent_at = None if frame is None else frame.first_sent_at
        if frame is not None and sent_at is None:
            # Nobody has it yet, and those who ran out of time were told so: it must not carry their jobs.
            self._remake(frame, [entry for entry in frame.entries if not entry.gone])
        elif sent_at is not None and self._clock.monotonic() - sent_at >= REMEMBERED_S:
            self._fail_open(_lost("unknown", "no answer came"))
        if self._open is None and (entries := self._backlog.take()):
            self._seq += 1
            self._open = Frame(entries, self._producer_id, self._seq)
        return self._open is not None

    def _answered(self, link: _Link, answer: job_service_pb2.AddJobStreamResponse) -> None:
        frame, link.out = link.out, None
        if not link.served:
            link.served = True
            if self._failures:
                _log.info("add_stream_back: after %d tries", self._failures)
        if frame is None or frame is not self._open:
            return
        self._turn.set()
        if answer.HasField("refused"):
            self._refused(frame, errors.from_item_error(answer.refused))
            return
        self._open = None
        self._finish(frame.entries, read_answers(len(frame.entries), answer))

    def _refused(self, frame: Frame, error: errors.CallError) -> None:
        """A frame that is refused as a whole wrote nothing and used up no `seq`."""
        index = error.index
        if isinstance(error, errors.Overloaded):
            frame.first_sent_at = None
        elif isinstance(error, errors.Unavailable):
            # The same frame again, for a broker that is going away may not know what became of it.
            pass
        elif index is not None and index < len(frame.entries) > 1:
            bad = frame.entries[index]
            self._tell([bad], [error])
            self._remake(frame, [entry for entry in frame.entries if entry is not bad])
            return
        else:
            self._fail_open(error)
            return
        self._held = True
        self._pause = self._clock.call_later(_retry.delay_s(1, self._chance(), error), self._go_on)

    def _go_on(self) -> None:
        self._held = False
        self._turn.set()

    def _remake(self, frame: Frame, entries: list[Entry]) -> None:
        """Leave out what is not in `entries`, of a frame that wrote nothing: the same `seq` is still free."""
        if len(entries) == len(frame.entries):
            return
        kept = set(entries)
        self._open = Frame(entries, self._producer_id, frame.seq) if entries else None
        self._backlog.finished([entry for entry in frame.entries if entry not in kept])
        self._left()

    def _fail_open(self, error: errors.AnvilError) -> None:
        frame, self._open = self._open, None
        if frame is not None:
            # One for each caller: an exception that is raised twice mixes up its tracebacks.
            self._finish(frame.entries, [copy.copy(error) for _ in frame.entries])

    def _finish(self, entries: Sequence[Entry], outcomes: Sequence[Added | Exception]) -> None:
        deliver(self._io.loop, entries, outcomes)
        self._backlog.finished(entries)
        self._left()

    def _tell(self, entries: Sequence[Entry], outcomes: Sequence[Added | Exception]) -> None:
        deliver(self._io.loop, entries, outcomes)
        self._left()

    def _left(self) -> None:
        if admitted := self._backlog.admit():
            deliver(self._io.loop, admitted, [""] * len(admitted))
        if self._flushes:
            for newest, done in self._flushes:
                if self._reached(newest):
                    done.set()
            self._flushes = [flush for flush in self._flushes if not flush[1].is_set()]

    def _reached(self, newest: int) -> bool:
        if self._open is not None and self._open.entries[0].serial <= newest:
            return False
        oldest = self._backlog.oldest()
        return oldest is None or oldest > newest

    # --------------------------------------------------------------------------------------------- deadlines

    def _arm(self) -> None:
        """One timer, for the first deadline: a timer an add would cost more than the rest of it."""
        first = self._backlog.next_deadline
        if self._timer is not None and self._timer_at <= first:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = first
        self._timer = self._clock.call_later(max(0.0, first - self._clock.monotonic()), self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        frame = self._open
        framed = frame.entries if frame is not None else ()
        now = self._clock.monotonic()
        late = [entry for entry in framed if entry.deadline <= now]
        if frame is not None and late:
            deliver(self._io.loop, late, [self._late(frame.outcome) for _ in late])
        expired, tickets = self._backlog.expire(now, framed)
        self._tell([*expired, *tickets], [self._late("not_sent") for _ in (*expired, *tickets)])
        if frame is not None and frame.gone and self._link is not None and self._link.out is frame:
            # The stream lives and says nothing: those who come next should not wait behind it.
            assert self._stream is not None
            self._stream.cancel()
        if self._backlog.next_deadline < float("inf"):
            self._arm()

    def _late(self, outcome: errors.Outcome) -> errors.Unavailable:
        what = "it could not be sent in time" if outcome == "not_sent" else "no answer came in time"
        return _lost(outcome, f"{what}; {self._broken}" if self._broken else what)


def _lost(outcome: errors.Outcome, message: str) -> errors.Unavailable:
    return errors.Unavailable(message, outcome=outcome)
