"""What the gateway counts, and what it logs of calls: the RPC metrics of one process."""

from __future__ import annotations

from typing import Final

from anvilmq_broker.engine.metrics import Counter, Gauge, Histogram, Snapshot
from anvilmq_broker.gateway.status import NAMES


class Telemetry:
    """Counts the calls of one gateway. process: its number, the value of the label `process`."""

    def __init__(self, process: str) -> None:
        self._process: Final = process
        self._requests = Counter(
            "anvilmq_rpc_requests_total", "Calls that have ended, by their gRPC code.", "method", "code", "process"
        )
        self._seconds = Histogram("anvilmq_rpc_seconds", "Time of unary calls.", "method", "process")
        self._streams = Gauge("anvilmq_rpc_streams", "Streams that are open.", "method", "process")
        self._dropped = Counter(
            "anvilmq_reports_dropped_total", "Progress and logs on streams that were not valid.", "process"
        )
        self._lag = Histogram("anvilmq_loop_lag_seconds", "Lateness of a timer on the loop.", "process")

    def ended(self, method: str, code: int, seconds: float | None) -> None:
        """A call has ended. seconds: None for a stream."""
        self._requests.add((method, NAMES.get(code, str(code)), self._process))
        if seconds is not None:
            self._seconds.observe(seconds, (method, self._process))

    def stream_opened(self, method: str) -> None:
        """A stream has begun."""
        self._streams.add((method, self._process))

    def stream_closed(self, method: str) -> None:
        """A stream has ended."""
        self._streams.add((method, self._process), -1.0)

    def report_dropped(self) -> None:
        """A progress or log part of a stream was not valid."""
        self._dropped.add((self._process,))

    def lagged(self, seconds: float) -> None:
        """A timer of the loop came so late."""
        self._lag.observe(seconds, (self._process,))

    def snapshot(self) -> Snapshot:
        """What was counted so far."""
        counted = (self._requests, self._seconds, self._streams, self._dropped, self._lag)
        return [metric.family() for metric in counted]
