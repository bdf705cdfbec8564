"""How a handler ends an attempt other than by returning: raise one of these.

Durations are texts such as `"1h30m"`, or a `timedelta`.
"""

from __future__ import annotations

from anvilmq import durations, errors
from anvilmq.durations import Duration


class Outcome(Exception):
    """Base of all: no error of the handler, but its decision. `reason` is kept with the attempt."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(Outcome):
    """The attempt failed; the next one, if one is left, starts after this delay in place of the computed backoff.

    after: 0 to 7 days. TypeError for a bare number, ValueError for a text that is no duration.
    """

    def __init__(self, reason: str = "", *, after: Duration) -> None:
        super().__init__(reason)
        self.after_ms = durations.parse_ms(after)


class Fail(Outcome):
    """The job failed for good, whatever attempts are left."""


class Release(Outcome):
    """Hand the job back: no attempt is consumed, and it is claimable again after `delay`, at the head of its class.

    Releases are bounded by the job's `max_starts`.
    """

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason)
        self.delay_ms = 0 if delay is None else durations.parse_ms(delay)


class AwaitChildren(Outcome):
    """Park the job until all children that it added are terminal. Needs flows, which this version does not have."""

    def __init__(self) -> None:
        super().__init__()
        raise errors.not_built("AwaitChildren")
