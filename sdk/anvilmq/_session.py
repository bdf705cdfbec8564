"""The worker's one stream to the broker: opened, kept alive, opened again; what is said and heard on it.

Lives on the I/O loop; only `end`, `report_progress` and `append_log` may be called from any thread. Hot: its parts
run once a turn of the loop or a frame, `hold` and `end` once a job. DESIGN.md has the state diagram.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol, cast

import msgspec

from anvilmq import errors
from anvilmq._attempts import Attempt, Cause, Ending
from anvilmq._clock import Timer
from anvilmq._iothread import Io
from anvilmq._leases import Lease, LeaseTable
from anvilmq._outbox import Outbox, Said
from anvilmq._pools import Slots
from anvilmq._reconnect import Reconnect
from anvilmq._transport import Transport, method
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire

_log = logging.getLogger("anvilmq.session")

WORK: Final = method("WorkerService", "Work", wire.WorkRequest, wire.WorkResponse)

OPEN_WITHIN_S: Final = 10.0
"""How long `opened` may take."""
PING_EVERY_S: Final = 10.0
"""Until `opened` says otherwise."""
MISSED_PINGS: Final = 3
MAX_FRAME_BYTES: Final = 4 << 20
_ROUND_TRIP_WEIGHT: Final = 1 / 8

_CAUSES: Final = {
    wire.INTERRUPT_CAUSE_CANCEL_REQUESTED: Cause.CANCEL_REQUESTED,
    wire.INTERRUPT_CAUSE_ATTEMPT_TIMEOUT: Cause.ATTEMPT_TIMEOUT,
    wire.INTERRUPT_CAUSE_CHILD_FAILED: Cause.CHILD_FAILED,
    wire.INTERRUPT_CAUSE_REMOVED: Cause.REMOVED,
}


class Listener(Protocol):
    """Who works on what the session brings. Called on the I/O loop; must not wait."""

    def received(self, deliveries: Sequence[wire.Delivery], now: float) -> None:
        """New attempts; each is to be put into `Session.leases` at once."""

    def interrupted(self, attempt: Attempt, cause: Cause, text: str) -> None:
        """Stop the attempt. Unless the cause says that the lease is dead, it is still to be settled."""

    def refused(self, said: Said, error: types.ItemError) -> tuple[wire.Settlement, int] | None:
        """The broker refused a settlement for good; what to settle instead, with its size, if the lease is good."""

    def drain_asked(self, reason: str) -> None:
        """The broker wants this worker to finish what it runs and leave."""

    def failed(self, error: Exception) -> None:
        """There will be no session any more: trying again cannot help."""


class _Link(msgspec.Struct, eq=False):
    """One stream of the session. All times are monotonic seconds."""

    wake: asyncio.Event
    last_heard: float
    ping_at: float
    ping_every_s: float = PING_EVERY_S
    opened: bool = False
    ended: bool = False
    moved: bool = False
    reader: asyncio.Task[None] | None = None
    broken: str = ""
    """Why this end gave the stream up."""


class Session:
    """See the module. connect: gives the transport of a new stream, awaited on the I/O loop.

    chance: in [0, 1), for the backoff.
    """

    def __init__(
        self,
        *,
        io: Io,
        connect: Callable[[], Awaitable[Transport]],
        identity: wire.WorkerIdentity,
        pools: Sequence[Slots],
        listener: Listener,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.reconnect = Reconnect(chance)
        self.leases_lost = 0
        self.leases: LeaseTable[Attempt] = LeaseTable()
        """Kept until they are settled or lost."""
        self.round_trip_s = 0.0
        """Mean time from a settlement to its answer; 0 until known."""
        self._io = io
        self._clock = io.clock
        self._connect = connect
        self._identity = identity
        self._pools = {slots.pool_id: slots for slots in pools}
        self._listener = listener
        self._outbox = Outbox()
        self._link: _Link | None = None
        self._said: deque[Callable[[], None] | tuple[Attempt, Ending]] = deque()
        self._summoned = False
        self._to_renew: list[Lease[Attempt]] = []
        self._postponed: set[Timer] = set()
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._all_settled = asyncio.Event()

    # ------------------------------------------------------------------------------------------- from any thread

    def end(self, attempt: Attempt, ending: Ending) -> None:
        """The attempt is over, its slot free: what is to be settled is sent after the next `summon`, which is to follow.

        When the lease is no longer held, nothing is sent.
        """
        self._said.append((attempt, ending))

    def summon(self) -> None:
        """Have the I/O loop take what was said, and send it."""
        if not self._summoned:
            self._summoned = True
            self._io.call_soon(self._listen_to_handlers)

    def report_progress(self, attempt: Attempt, progress_json: str) -> None:
        """Replace the progress of a running attempt."""
        self._say(lambda: self._put_progress(attempt, progress_json))

    def append_log(self, attempt: Attempt, level: str, line: str) -> None:
        """Add a line to the log of a running attempt."""
        entry = types.JobLogLine(at_ms=self._clock.now_ms(), level=level, line=line)
        self._say(lambda: self._put_log(attempt, entry))

    def _say(self, item: Callable[[], None]) -> None:
        self._said.append(item)
        self.summon()

    # --------------------------------------------------------------------------------------------- on the I/O loop

    @property
    def ready(self) -> bool:
        """The session is open and takes jobs."""
        return self._link is not None and self._link.opened and not self._outbox.draining

    @property
    def unsettled(self) -> int:
        """Settlements the broker has not answered."""
        return self._outbox.unsettled + len(self._postponed) + len(self._said)

    def wake(self) -> None:
        """Something may have become sayable, such as credit."""
        if self._link is not None and self._link.opened:
            self._link.wake.set()

    def drain(self) -> None:
        """Take no more jobs. Leases are renewed and settlements sent as before."""
        if not self._outbox.draining:
            self._outbox.drain()
            self.wake()

    async def wait_drained(self) -> None:
        """Until no delivery can follow; at once without a session, for it would ask for none."""
        if self._link is not None and self._link.opened:
            await self._drained.wait()

    async def wait_settled(self) -> None:
        """Until every settlement is answered."""
        while self.unsettled:
            self._all_settled.clear()
            await self._all_settled.wait()

    def start(self) -> None:
        """Open a session and hold it until `close`, however often the broker goes away meanwhile."""
        self._task = asyncio.create_task(self._hold(), name="anvilmq-session")

    async def close(self) -> None:
        """End it. Leases still held are left to the broker. May be called unstarted, and twice."""
        if (link := self._link) is not None:
            link.ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hold(self) -> None:
        try:
            while True:
                await self._clock.sleep(await self._one_session())
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker must learn that its session is gone
            self._listener.failed(error)
        finally:
            self._stop_timers()

    # ------------------------------------------------------------------------------------------------- one session

    async def _one_session(self) -> float:
        """Open a stream and serve it to its end; returns after how many seconds to open the next."""
        now = self._clock.monotonic()
        link = self._link = _Link(wake=asyncio.Event(), last_heard=now, ping_at=now + OPEN_WITHIN_S)
        link.reader = asyncio.create_task(self._read(link))
        try:
            await asyncio.wait([link.reader])
        finally:
            link.reader.cancel()
            ended = await asyncio.gather(link.reader, return_exceptions=True)
            self._disconnected(link)
        return self.reconnect.moved_s() if link.moved else self.reconnect.delay_s(_failure(link, ended[0]))

    async def _read(self, link: _Link) -> None:
        transport = await self._connect()
        self._arm()
        async with aclosing(transport.stream(WORK, self._write(link))) as answers:
            async for response in answers:
                self._heard(link, response)
                if link.moved:
                    return

    async def _write(self, link: _Link) -> AsyncIterator[wire.WorkRequest]:
        yield self._opening()
        while True:
            await link.wake.wait()
            link.wake.clear()
            self._take_said()
            now = self._clock.monotonic()
            self._sweep(link, now)
            renew, self._to_renew = self._to_renew, []
            for frame, (seq, leases) in self._outbox.frames(now, self._credits(), renew):
                if link.ended:
                    return
                if leases:
                    self.leases.renewing(seq, list(leases), now)
                yield frame
            if link.ended:
                return
            self._arm()

    def _opening(self) -> wire.WorkRequest:
        self._take_said()
        frame = wire.WorkRequest()
        frame.open.worker.CopyFrom(self._identity)
        frame.open.max_frame_bytes = MAX_FRAME_BYTES
        for slots in self._pools.values():
            slots.open_credit = 0
            frame.open.pools.add(id=slots.pool_id, queues=slots.queues, concurrency=slots.slots)
        for lease in self.leases.held():
            frame.open.resume.add(job_id=lease.job_id, lease_token=lease.token)
        return frame

    def _credits(self) -> list[wire.Credit]:
        if self._outbox.draining:
            return []
        given = []
        for slots in self._pools.values():
            if missing := slots.missing_credit(self.round_trip_s):
                slots.open_credit += missing
                given.append(wire.Credit(pool=slots.pool_id, jobs=missing))
        return given

    # ------------------------------------------------------------------------------------------- what is heard

    def _heard(self, link: _Link, response: wire.WorkResponse) -> None:
        """One frame; its parts in the order of their fields."""
        now = link.last_heard = self._clock.monotonic()
        if not link.opened:
            self._on_opened(link, response.opened, now)
        for answer in response.settled:
            self._on_settled(answer, now)
        if response.deliveries:
            self._on_deliveries(response.deliveries, now)
        if response.HasField("renewed"):
            lost = {it.lease_token for it in response.renewed.interrupts if _cause(it).lease_is_dead}
            self.leases.renewed(response.renewed.seq, lost)
            self._on_interrupts(response.renewed.interrupts)
        if response.interrupts:
            self._on_interrupts(response.interrupts)
        if response.HasField("drained") and self._outbox.draining:
            self._drained.set()
        if response.HasField("go_away"):
            self._on_go_away(link, response.go_away)

    def _on_opened(self, link: _Link, opened: wire.WorkResponse.Opened, now: float) -> None:
        link.opened = True
        link.ping_every_s = opened.ping_every_ms / 1000 or PING_EVERY_S
        link.ping_at = now + link.ping_every_s
        self._outbox.frame_bytes = opened.max_frame_bytes or MAX_FRAME_BYTES
        self.leases.connected(now)
        self._on_interrupts(opened.interrupts)
        self.reconnect.opened()
        self._arm()
        link.wake.set()

    def _on_deliveries(self, deliveries: Sequence[wire.Delivery], now: float) -> None:
        pools = self._pools
        if len(pools) == 1:
            (slots,) = pools.values()
            slots.open_credit = max(0, slots.open_credit - len(deliveries))
        else:
            for delivery in deliveries:
                if (found := pools.get(delivery.pool)) is not None and found.open_credit:
                    found.open_credit -= 1
        self._listener.received(deliveries, now)
        self._arm()

    def _on_settled(self, answer: wire.SettleJobsResponse, now: float) -> None:
        entry = self._outbox.answered(answer.seq)
        if entry is None:
            return
        sent_at, settled = entry
        trip_s = now - sent_at
        self.round_trip_s += (trip_s - self.round_trip_s) * (_ROUND_TRIP_WEIGHT if self.round_trip_s else 1)
        refusals = {error.index: error for error in answer.errors} if answer.errors else {}
        drop = self.leases.drop
        for index, said in enumerate(settled):
            if index in refusals:
                self._on_refused(said, refusals[index])
            else:
                drop(said.lease.token)
        if not self.unsettled:
            self._all_settled.set()

    def _on_refused(self, said: Said, error: types.ItemError) -> None:
        if error.retry_after_ms:
            self._settle_later(said, error.retry_after_ms / 1000)
            return
        if error.reason == errors.LeaseLost.reason:
            self.leases_lost += 1
            _log.warning("settlement_came_too_late: job %s", said.lease.job_id, extra={"job_id": said.lease.job_id})
        elif replacement := self._listener.refused(said, error):
            self._outbox.settle(Said(said.lease, *replacement))
            self.wake()
            return
        self.leases.drop(said.lease.token)

    def _settle_later(self, said: Said, delay_s: float) -> None:
        def settle() -> None:
            self._postponed.discard(timer)
            self._outbox.settle(said)
            self.wake()

        timer = self._clock.call_later(delay_s, settle)
        self._postponed.add(timer)

    def _on_interrupts(self, interrupts: Sequence[wire.Interrupt]) -> None:
        for interrupt in interrupts:
            lease = self.leases.find(interrupt.lease_token)
            # What is being settled has its answer to come, which says more: it may have been settled before a break.
            if lease is not None and not lease.settling:
                self._interrupt(lease, _cause(interrupt), interrupt.reason)

    def _interrupt(self, lease: Lease[Attempt], cause: Cause, text: str) -> None:
        if cause.lease_is_dead:
            self.leases.drop(lease.token)
            self._outbox.forget(lease.token)
            self.leases_lost += cause is Cause.LEASE_LOST
        self._listener.interrupted(lease.owner, cause, text)

    def _on_go_away(self, link: _Link, go_away: wire.WorkResponse.GoAway) -> None:
        if go_away.drain:
            self._listener.drain_asked(go_away.reason)
        else:
            link.moved = True

    # ------------------------------------------------------------------------------------------ what handlers say

    def _listen_to_handlers(self) -> None:
        # Clear the flag before taking: what is said in between summons once for nothing; the other order loses it.
        self._summoned = False
        self._take_said()
        self.wake()

    def _take_said(self) -> None:
        said, begin, settle = self._said, self.leases.settle, self._outbox.settle
        while said:
            item = said.popleft()
            if not isinstance(item, tuple):
                item()
                continue
            attempt, ending = item
            settlement = ending.settlement
            if settlement is not None and (lease := begin(attempt.token)) is not None:
                settle(Said(lease, settlement, ending.size))

    def _put_progress(self, attempt: Attempt, progress_json: str) -> None:
        if self._runs(attempt):
            self._outbox.report_progress(attempt.job_id, attempt.token, progress_json)

    def _put_log(self, attempt: Attempt, line: types.JobLogLine) -> None:
        if self._runs(attempt):
            self._outbox.append_log(attempt.job_id, attempt.token, line)

    def _runs(self, attempt: Attempt) -> bool:
        lease = self.leases.find(attempt.token)
        return lease is not None and not lease.settling

    # ------------------------------------------------------------------------------------------------------- time

    def _arm(self) -> None:
        """See to it that `_tick` runs when the next thing falls due; one timer for all of them."""
        at = self.leases.next_at
        if (link := self._link) is not None:
            if link.ping_at < at:
                at = link.ping_at
            if link.opened and (report_at := self._outbox.next_report_at()) is not None and report_at < at:
                at = report_at
        if self._timer is not None and self._timer_at <= at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at == math.inf:
            return
        self._timer_at = at
        self._timer = self._clock.call_later(max(0.0, at - self._clock.monotonic()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._take_said()
        now = self._clock.monotonic()
        link = self._link
        self._sweep(link, now)
        if link is not None and now >= link.ping_at:
            self._ping(link, now)
        self.wake()
        if link is None or not link.opened:
            self._arm()

    def _sweep(self, link: _Link | None, now: float) -> None:
        """Give up the leases that ran out; collect those to be renewed."""
        if now < self.leases.next_at:
            return
        due = self.leases.due(now, connected=link is not None and link.opened)
        self._to_renew += due.renew
        for lease in due.expired:
            self._interrupt(lease, Cause.LEASE_LOST, "the lease ran out before the broker could be asked to renew it")
        for lease in due.timed_out:
            self._interrupt(lease, Cause.ATTEMPT_TIMEOUT, "the attempt took longer than its attempt_timeout")

    def _ping(self, link: _Link, now: float) -> None:
        if not link.opened:
            self._give_up(f"the broker did not answer within {OPEN_WITHIN_S:g} s")
        elif now - link.last_heard > link.ping_every_s * MISSED_PINGS:
            self._give_up(f"nothing heard from the broker for {now - link.last_heard:.0f} s")
        else:
            self._outbox.ping(self._clock.now_ms())
        link.ping_at = now + link.ping_every_s

    # ------------------------------------------------------------------------------------------------ ends, retries

    def _give_up(self, why: str) -> None:
        if (link := self._link) is not None and link.reader is not None:
            link.broken = link.broken or why
            link.reader.cancel()

    def _disconnected(self, link: _Link) -> None:
        link.ended = True
        link.wake.set()
        self._link = None
        self._to_renew.clear()
        self._outbox.disconnected()
        self.leases.disconnected()
        self._drained.set()
        self._arm()

    def _stop_timers(self) -> None:
        for timer in (self._timer, *self._postponed):
            if timer is not None:
                timer.cancel()
        self._timer = None
        self._postponed.clear()


def _failure(link: _Link, ended: object) -> errors.CallError:
    """Why the stream ended: `ended` is what its reader returned or raised. What is no such error is a bug, and raised."""
    if link.broken or ended is None:
        return errors.Unavailable(link.broken or "the broker ended the session")
    if isinstance(ended, BaseException) and not isinstance(ended, errors.CallError):
        raise ended
    return cast("errors.CallError", ended)


def _cause(interrupt: wire.Interrupt) -> Cause:
    # What a newer broker may name is a lost lease to this one: stop, settle nothing.
    return _CAUSES.get(interrupt.cause, Cause.LEASE_LOST)
