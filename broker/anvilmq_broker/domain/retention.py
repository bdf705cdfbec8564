"""How long what has ended is kept (semantics 1.12). A row goes when it is older than its age."""

from __future__ import annotations

from typing import Final

import msgspec

from anvilmq_broker.domain.state import State

_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE

PRODUCER_IDLE_MS: Final = 10 * _MINUTE
"""Since a producer's last answered frame."""
EVENTS_MAX_AGE_MS: Final = _DAY
EVENTS_MAX: Final = 1_000_000
"""Transitions that the log keeps, the newest; a commit's row goes when its first transition is too old a number."""
TICKS_MS: Final = 8 * _DAY
"""Since a tick and since its firing, so that a clock set back does not fire it again [6.2]."""
TRIGGERS_MS: Final = _DAY
"""How long a run_key stands for its run."""
ATTEMPTS_KEPT: Final = 10
"""Ended attempts that a job keeps, the newest."""
LOG_LINES_KEPT: Final = 1_000
"""Log lines that a job keeps, the newest."""


class QueueRules(msgspec.Struct, frozen=True):
    """What a queue keeps of jobs without a retention of their own.

    max_*: the newest so many of each terminal state, 0 = no bound. *_ms: age since the end. failed: cancelled too.
    """

    max_completed: int = 10_000
    max_failed: int = 0
    completed_ms: int = _DAY
    failed_ms: int = 7 * _DAY

    def age_ms(self, state: int) -> int:
        """How long a job that ended in `state` is kept."""
        return self.completed_ms if state == State.COMPLETED else self.failed_ms

    def most(self, state: int) -> int:
        """How many jobs that ended in `state` are kept; 0 = no bound."""
        return self.max_completed if state == State.COMPLETED else self.max_failed


DEFAULT: Final = QueueRules()
