"""Bounds that an operator sets and that the store looks at in the transaction (api section 6)."""

from __future__ import annotations

from typing import Final

import msgspec

from anvilmq_broker.domain.errors import Refused

_TRY_AGAIN_MS: Final = 1_000


class Limits(msgspec.Struct, frozen=True):
    """max_queue_jobs: jobs of one queue that are not terminal, 0 = no bound; an add beyond it is QUEUE_FULL."""

    max_queue_jobs: int = 0


NONE: Final = Limits()
"""No bounds."""


def queue_full(queue: str, limit: int) -> Refused:
    """The queue has as many jobs that are not terminal as it may."""
    return Refused(
        "QUEUE_FULL",
        f"queue {queue!r} has {limit} jobs that have not ended; wait for its workers, or raise ANVILMQ_MAX_QUEUE_JOBS",
        metadata={"queue": queue, "limit": str(limit)},
        retry_after_ms=_TRY_AGAIN_MS,
    )
