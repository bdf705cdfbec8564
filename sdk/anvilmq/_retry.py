"""When a call is made again, and how long before: one rule for adds, bulks and single calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from anvilmq import errors
from anvilmq._clock import Clock
from anvilmq._transport import Method, Req, Resp, Transport

FIRST_S: Final = 0.2
MOST_S: Final = 20.0


def is_transient(error: errors.CallError) -> bool:
    """Another try of something safe to repeat may help: the connection broke, or the broker cannot serve just now.

    INTERNAL and UNKNOWN without a reason are what gRPC makes of a connection that was cut in the middle of a message;
    the broker gives neither. DEADLINE_EXCEEDED is that of one try.
    """
    if isinstance(error, (errors.Unavailable, errors.DeadlineExceeded, errors.Cancelled, errors.Overloaded)):
        return True
    return isinstance(error, (errors.Internal, errors.Unknown)) and not error.reason


def delay_s(failures: int, chance: float, error: errors.CallError | None = None) -> float:
    """Seconds before the next try, after that many failed ones, from 1. Full jitter, 0.2 to 20 s; chance: in [0, 1).

    What the broker asks for in `error` is the least.
    """
    asked_s = error.retry_after.total_seconds() if error is not None and error.retry_after else 0.0
    return asked_s + chance * min(MOST_S, FIRST_S * 2.0 ** min(failures - 1, 10))


async def call_until(
    deadline: float,
    transport: Callable[[], Transport],
    clock: Clock,
    chance: Callable[[], float],
    method: Method[Req, Resp],
    request: Req,
    *,
    try_s: float,
) -> Resp:
    """Call something that is safe to repeat until it is answered or that moment has come; then the last failure.

    try_s: deadline of one try. transport: that of the next try. On the loop of the I/O.
    """
    failures = 0
    while True:
        left_s = deadline - clock.monotonic()
        try:
            return await transport().unary(method, request, timeout_s=max(0.001, min(try_s, left_s)))
        except errors.CallError as error:
            failures += 1
            pause_s = delay_s(failures, chance(), error)
            if not is_transient(error) or clock.monotonic() + pause_s >= deadline:
                raise
            await clock.sleep(pause_s)
