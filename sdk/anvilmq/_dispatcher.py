"""Between the session and the handlers: takes deliveries in, passes interrupts on, leaves in order.

On the I/O loop, but for `ended`, which is called where handlers end. Hot: `received` and `ended`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Final, Protocol, cast

from anvilmq import _runner, errors
from anvilmq._attempts import Attempt, Cause, Ending
from anvilmq._clock import Timer
from anvilmq._handlers import Handlers
from anvilmq._iothread import Io
from anvilmq._outbox import Said
from anvilmq._pools import Slots
from anvilmq._runner import Runner
from anvilmq._session import Session
from anvilmq._watchdog import Watchdog
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire

if TYPE_CHECKING:
    from anvilmq._attempts import AnyJobDef

_log = logging.getLogger("anvilmq.worker")

CHECK_EVERY_S: Final = 1.0
UNKNOWN_DELAY_MS: Final = 5_000
"""A job this program does not know waits so long: in a rollout another worker may know it."""
PREFETCHED_AT_MOST_S: Final = 1.0
"""A prefetched job that waits longer goes back: its slots are busy, another worker's may be free."""
CLEANUP_S: Final = 5.0
"""The last part of the grace: handlers are cancelled, and may clean up."""
LEAVING: Final = "its worker is leaving"
ANSWERS_WITHIN_S: Final = 4.0
"""After the grace, for the last settlements to be answered."""


class Registry(Protocol):
    """The handlers this program has."""

    def find(self, queue: str, name: str) -> AnyJobDef | None:
        """None for a job that is not known."""


class Dispatcher:
    """See the module. `finished` is done when the worker has left, or failed with the error it holds."""

    def __init__(self, *, io: Io, registry: Registry, pools: Sequence[Slots]) -> None:
        self.finished: futures.Future[None] = futures.Future()
        self.watchdog: Watchdog
        self._io = io
        self._clock = io.clock
        self._registry = registry
        self._pools = {slots.pool_id: slots for slots in pools}
        self._unknown: set[tuple[str, str]] = set()
        self._leaving: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()
        self._hurried = False
        self._timer: Timer | None = None
        self._session: Session
        self._runner: Runner
        self._handlers: Handlers
        self._grace_s = 0.0

    def start(self, session: Session, runner: Runner, handlers: Handlers, grace_s: float) -> None:
        """Open the session. grace_s: for leaving when the broker asks for it."""
        self._session, self._runner, self._handlers, self._grace_s = session, runner, handlers, grace_s
        self.watchdog = Watchdog(handlers.post, handlers.stack)
        session.start()

    # ---------------------------------------------------------------------------------------------------- listener

    def received(self, deliveries: Sequence[wire.Delivery], now: float) -> None:
        """Start what has a slot, keep the rest for the next free one."""
        find, pools = self._registry.find, self._pools
        offered: dict[Slots, list[Attempt]] = {slots: [] for slots in pools.values()}
        for delivery in deliveries:
            slots = pools.get(delivery.pool)
            definition = find(delivery.queue, delivery.name)
            if definition is None or slots is None:
                self._turn_down(delivery, now)
            elif self._leaving is None:
                offered[slots].append(self._take_in(delivery, definition, slots, now))
            else:
                self._hand_back(self._take_in(delivery, definition, slots, now), LEAVING)
        for slots, attempts in offered.items():
            if attempts and (started := slots.offer(attempts)):
                self._handlers.start(started)
        if self._timer is None:
            self._timer = self._clock.call_later(CHECK_EVERY_S, self._check)

    def interrupted(self, attempt: Attempt, cause: Cause, text: str) -> None:
        """Stop the handler; one that has not started ends here."""
        if not attempt.interrupt(cause, text):
            return
        if attempt.slots.withdraw(attempt):
            self._end_unstarted(attempt, _runner.interrupted(attempt))
        else:
            self._handlers.interrupt(attempt)

    def refused(self, said: Said, error: types.ItemError) -> tuple[wire.Settlement, int] | None:
        """A failure in place of a refused result."""
        return _runner.refused(said, error)

    def drain_asked(self, reason: str) -> None:
        """Leave, as after SIGTERM."""
        _log.info("drain_asked: %s", reason)
        self.leave(self._grace_s)

    def failed(self, error: Exception) -> None:
        """No session any more: nothing that runs can be settled."""
        _log.error("worker_stopped: %s", error)
        try:
            for slots in self._pools.values():
                slots.withdraw_all()
                for attempt in slots.attempts():
                    self.interrupted(attempt, Cause.LEASE_LOST, "this worker has no session any more")
        finally:
            # Also when the handler loop is closed already, and cannot be told.
            self._finish(error)

    # ------------------------------------------------------------------------------------------------- from anywhere

    def ended(self) -> None:
        """Attempts ended, and the session holds what is to be said of them; their slots are free. In any thread."""
        self._session.summon()
        if self._leaving is not None:
            self._io.call_soon(self._stirred.set)

    # ------------------------------------------------------------------------------------------------------ leaving

    def leave(self, grace_s: float) -> asyncio.Task[None]:
        """Finish what runs and go: in four steps, bounded by the grace. A second call joins the first."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave(grace_s), name="anvilmq-leave")
        return self._leaving

    def hurry(self) -> None:
        """Go to the last step: hand back at once what still runs."""
        self._hurried = True
        self._stirred.set()

    @property
    def is_leaving(self) -> bool:
        """It takes no jobs any more."""
        return self._leaving is not None

    async def vanish(self) -> None:
        """End as a process that is killed: nothing is said any more, and what runs is interrupted. For tests."""
        await self._session.close()
        self.failed(errors.Cancelled("the worker was killed"))

    async def _leave(self, grace_s: float) -> None:
        if self.finished.done():
            return
        end_at = self._clock.monotonic() + grace_s
        # 1: no more jobs; those that wait for a slot go back at once.
        self._session.drain()
        for slots in self._pools.values():
            for attempt in slots.withdraw_all():
                self._hand_back(attempt, LEAVING)
        # 2: what runs goes on.
        await self._wait_quiet(end_at - CLEANUP_S)
        # 3: what still runs is cancelled, and may clean up.
        for attempt in self.running():
            self.interrupted(attempt, Cause.SHUTDOWN, LEAVING)
        await self._wait_quiet(end_at)
        # 4: the rest is handed back. What its handlers say later finds no lease and is dropped.
        for attempt in self.running():
            self._session.end(attempt, _runner.release(attempt, "its worker left before its handler ended"))
        self._session.summon()
        await self._wait_answers()
        await self._session.close()
        self._finish(None)

    def running(self) -> list[Attempt]:
        """The attempts that have a slot."""
        return [attempt for slots in self._pools.values() for attempt in slots.attempts()]

    async def _wait_quiet(self, until: float) -> None:
        """Until nothing runs, or that moment, or `hurry`."""
        timer = self._clock.call_later(until - self._clock.monotonic(), self._stirred.set)
        while self.running() and not self._hurried and self._clock.monotonic() < until:
            self._stirred.clear()
            await self._stirred.wait()
        timer.cancel()

    async def _wait_answers(self) -> None:
        """Until the broker has answered every settlement and sends no more jobs, within bounds."""

        async def answered() -> None:
            await self._session.wait_drained()
            await self._session.wait_settled()

        waiting = asyncio.create_task(answered())
        timer = self._clock.call_later(ANSWERS_WITHIN_S, waiting.cancel)
        await asyncio.wait([waiting])
        timer.cancel()

    # -------------------------------------------------------------------------------------------------------- inside

    def _take_in(self, delivery: wire.Delivery, definition: AnyJobDef, slots: Slots, now: float) -> Attempt:
        timeout_ms = delivery.attempt_timeout_ms
        deadline_ms = self._clock.now_ms() + timeout_ms if timeout_ms else 0
        session = self._session
        # By position: by name it costs twice as much.
        attempt = Attempt(delivery, definition, slots, session, delivery.job_id, delivery.lease_token, now, deadline_ms)
        session.leases.add(attempt.job_id, attempt.token, delivery.lease_ms, timeout_ms, attempt, now)
        return attempt

    def _hand_back(self, attempt: Attempt, reason: str, *, delay_ms: int = 0) -> None:
        self._end_unstarted(attempt, _runner.release(attempt, reason, delay_ms=delay_ms))

    def _end_unstarted(self, attempt: Attempt, ending: Ending) -> None:
        self._runner.end_unstarted(attempt, ending)
        self.ended()

    def _turn_down(self, delivery: wire.Delivery, now: float) -> None:
        """A job that this program does not know; told once for each name."""
        slots = next(iter(self._pools.values()))  # it takes none of them
        attempt = self._take_in(delivery, cast("AnyJobDef", None), slots, now)
        self._hand_back(attempt, "its worker does not know this job", delay_ms=UNKNOWN_DELAY_MS)
        name = (delivery.queue, delivery.name)
        if name not in self._unknown:
            self._unknown.add(name)
            _log.warning("job_not_known: %s/%s: handed back", *name)

    def _check(self) -> None:
        """Once a second while anything runs: is the handler loop alive, does a prefetched job wait too long?"""
        self._timer = None
        if not self.running():
            return
        now = self._clock.monotonic()
        # A handler that blocks its loop delays the end of the turn, but not what others have to say.
        self._session.summon()
        if self._handlers.loop is not self._io.loop:
            self.watchdog.check(now)
        for slots in self._pools.values():
            if slots.waiting:
                for attempt in slots.withdraw_older(now - PREFETCHED_AT_MOST_S):
                    self._hand_back(attempt, "it waited for a slot of its worker")
        self._timer = self._clock.call_later(CHECK_EVERY_S, self._check)

    def _finish(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._handlers.stop()
        if self.finished.done():
            return
        if error is not None:
            self.finished.set_exception(error)
        else:
            self.finished.set_result(None)
