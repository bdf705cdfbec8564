"""When a worker tries again after its session broke, and when that is of no use. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from anvilmq import errors

_log = logging.getLogger("anvilmq.session")

FIRST_S: Final = 0.2
MOST_S: Final = 20.0


class Reconnect:
    """The tries since the session was last open. chance: in [0, 1)."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self.reconnects = 0
        """Sessions that broke or could not be opened, ever."""
        self._chance = chance
        self._failures = 0
        self._refused_tokens = 0
        self._opened_once = False

    def opened(self) -> None:
        """A session is open. Told in one line when one was broken."""
        if self._failures:
            _log.info("session_back: after %d tries", self._failures)
        self._failures, self._refused_tokens, self._opened_once = 0, 0, True

    def moved_s(self) -> float:
        """Seconds to wait after `go_away`: many workers are told at once, and should not all come at once."""
        return self._chance() * FIRST_S

    def delay_s(self, error: errors.CallError) -> float:
        """Seconds to wait after this failure: full jitter, 0.2 to 20 s. Raises it when trying again cannot help."""
        if self._is_final(error):
            raise error
        if not self._failures:
            _log.warning("session_broken: %s", error, extra={"reason": error.reason})
        self._failures += 1
        self.reconnects += 1
        if isinstance(error, errors.Unauthenticated):
            self._refused_tokens += 1
        most_s = min(MOST_S, FIRST_S * 2.0 ** min(self._failures - 1, 10))
        asked_s = error.retry_after.total_seconds() if error.retry_after else 0.0
        return max(self._chance() * most_s, asked_s)

    def _is_final(self, error: errors.CallError) -> bool:
        """A token or right that was good once may be so again; one that never was is to be told, not tried for ever.

        The transport has read the token file again when it says Unauthenticated, so the second time counts.
        """
        if isinstance(error, errors.Unauthenticated):
            return not self._opened_once and self._refused_tokens > 0
        if isinstance(error, errors.PermissionDenied):
            return not self._opened_once
        return isinstance(error, (errors.Unimplemented, errors.InvalidArgument))
