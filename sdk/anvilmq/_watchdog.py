"""Notices a handler loop that does not turn: code in an async handler blocks it, and with it every other handler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

_log = logging.getLogger("anvilmq.worker")

SILENT_AFTER_S: Final = 5.0


class Watchdog:
    """Asks the loop for a sign of life at each check. post: makes a call there. stack: where its thread is now."""

    def __init__(self, post: Callable[[Callable[[], None]], None], stack: Callable[[], str]) -> None:
        self.stalls = 0
        """How often the loop was silent for 5 s."""
        self._post = post
        self._stack = stack
        self._asked_at: float | None = None
        self._reported = False

    def check(self, now: float) -> None:
        """To be called each second or so; a silence is reported once. now: monotonic seconds."""
        if self._asked_at is None:
            self._asked_at = now
            self._post(self._answer)
        elif now - self._asked_at >= SILENT_AFTER_S and not self._reported:
            self._reported = True
            self.stalls += 1
            _log.error(
                "handler_loop_blocked: nothing async ran for %.0f s; leases are kept. It is here:\n%s",
                now - self._asked_at,
                self._stack(),
            )

    def _answer(self) -> None:
        self._asked_at, self._reported = None, False
