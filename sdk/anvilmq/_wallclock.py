"""The time of day, for what the broker stores; waits are measured with `_clock`."""

import time


def unix_ms() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
