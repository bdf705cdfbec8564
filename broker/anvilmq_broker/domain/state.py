"""States of a job and the legal transitions between them (semantics 1.1); the numbers are those of the wire."""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """Where a job is in its life."""

    WAITING = 1
    DELAYED = 2
    ACTIVE = 3
    WAITING_CHILDREN = 4
    COMPLETED = 5
    FAILED = 6
    CANCELLED = 7


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
"""States that end a job. The store's CHECKs spell the same thing as `state >= 5`."""

TRANSITIONS: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.ACTIVE, State.DELAYED, State.WAITING_CHILDREN, State.FAILED, State.CANCELLED}),
    State.DELAYED: frozenset({State.ACTIVE, State.WAITING, State.WAITING_CHILDREN, State.FAILED, State.CANCELLED}),
    State.ACTIVE: frozenset(State),
    State.WAITING_CHILDREN: frozenset({State.WAITING, State.DELAYED, State.FAILED, State.CANCELLED}),
    State.COMPLETED: frozenset({State.WAITING, State.WAITING_CHILDREN}),
    State.FAILED: frozenset({State.WAITING, State.WAITING_CHILDREN}),
    State.CANCELLED: frozenset({State.WAITING, State.WAITING_CHILDREN}),
}
"""From each state, the states that may follow. From a terminal one only a manual retry leads on."""


class WaitReason(IntEnum):
    """Why a job that is neither terminal nor active does not run now."""

    QUEUE_PAUSED = 1
    GROUP_BUSY = 2
    GROUP_BACKOFF = 3
    GROUP_PAUSED = 4
    RATE_LIMITED = 5
    CONCURRENCY = 6
    DELAY = 7
    CHILDREN = 8
    NO_WORKER = 9
    NEXT = 10
    DEDUPLICATION = 11


class FinishReason(IntEnum):
    """Why a job is terminal."""

    COMPLETED = 1
    ATTEMPTS_EXHAUSTED = 2
    NON_RETRYABLE = 3
    STALLED = 4
    ATTEMPT_TIMEOUT = 5
    MAX_STARTS = 6
    CHILD_FAILED = 7
    CANCEL_REQUESTED = 8
    EXPIRED = 9
    REPLACED = 10


class SettleOutcome(IntEnum):
    """What a worker says of an attempt."""

    COMPLETE = 1
    FAIL = 2
    RELEASE = 3
    AWAIT_CHILDREN = 4


class AttemptOutcome(IntEnum):
    """How an attempt ended; 0 on the wire stands for one that still runs."""

    COMPLETED = 1
    FAILED = 2
    TIMED_OUT = 3
    STALLED = 4
    RELEASED = 5
    AWAITS_CHILDREN = 6
    CANCELLED = 7


class InterruptCause(IntEnum):
    """Why a worker is told to stop an attempt. Only after CANCEL_REQUESTED is the lease still good."""

    CANCEL_REQUESTED = 1
    LEASE_LOST = 2
    ATTEMPT_TIMEOUT = 3
    CHILD_FAILED = 4
    REMOVED = 5


class CatchUp(IntEnum):
    """What becomes of ticks that fell due while the broker did not serve."""

    LATEST = 1
    NONE = 2
    ALL = 3


class Concurrency(IntEnum):
    """What a tick does when the run before it goes on."""

    ALLOW = 1
    FORBID = 2
    REPLACE = 3
