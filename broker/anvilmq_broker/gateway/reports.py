"""Progress and logs on a worker's stream: not answered, and above ten frames a second for a job only the newest kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import InterruptCause
from anvilmq_broker.gateway.context import Context, Handle
from anvilmq_broker.gateway.limits import MAX_LOG_LINES

A_SECOND: Final = 10
_WINDOW_S: Final = 1.0


class _Attempt:
    """One attempt's reports in the running second."""

    __slots__ = ("count", "held")

    def __init__(self) -> None:
        self.count = 0
        self.held: commands.Report | None = None


class Reports:
    """The reports of one session. lost: told of each lease that the engine does not know."""

    def __init__(self, context: Context, lost: Callable[[commands.Interrupt], None]) -> None:
        self._context = context
        self._lost = lost
        self._attempts: dict[str, _Attempt] = {}
        self._timer: Handle | None = None
        self._sending: set[asyncio.Future[commands.Outcome]] = set()

    def put(self, report: commands.Report) -> None:
        """Send a report, or hold it until the second is over."""
        attempt = self._attempts.setdefault(report.lease.token, _Attempt())
        attempt.count += 1
        if attempt.count <= A_SECOND:
            self._send(report)
        else:
            attempt.held = _newest(attempt.held, report)
        if self._timer is None:
            self._timer = self._context.timers.call_later(_WINDOW_S, self._next_second)

    def settling(self, items: Iterable[commands.Settlement]) -> None:
        """These attempts end now: what is held of them goes first, since it would be refused afterwards."""
        if self._attempts:
            for item in items:
                if (attempt := self._attempts.pop(item.token, None)) is not None and attempt.held is not None:
                    self._send(attempt.held)

    async def close(self) -> None:
        """Send what is held, and wait until all is answered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for attempt in self._attempts.values():
            if attempt.held is not None:
                self._send(attempt.held)
        self._attempts.clear()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _next_second(self) -> None:
        self._timer = None
        waiting = [attempt.held for attempt in self._attempts.values() if attempt.held is not None]
        self._attempts.clear()
        for report in waiting:
            self.put(report)

    def _send(self, report: commands.Report) -> None:
        if not self._context.ready:
            # The session ends for that, and says so.
            return
        sent = self._context.broker.ask(report)
        self._sending.add(sent)
        sent.add_done_callback(partial(self._sent, report.lease))

    def _sent(self, lease: commands.LeaseRef, sent: asyncio.Future[commands.Outcome]) -> None:
        self._sending.discard(sent)
        if sent.cancelled() or sent.exception() is not None:
            return
        outcome = sent.result()
        if isinstance(outcome, Refused) and outcome.reason == "LEASE_LOST":
            self._lost(commands.Interrupt(lease.number, lease.created_ms, lease.token, InterruptCause.LEASE_LOST))


def _newest(held: commands.Report | None, report: commands.Report) -> commands.Report:
    if held is None:
        return report
    progress = report.progress_json if report.progress_json is not None else held.progress_json
    return commands.Report(report.lease, progress, [*held.lines, *report.lines][-MAX_LOG_LINES:])
