"""The worker's metrics: counted here without the library, which is loaded when somebody asks for them.

Hot: `ended` once a job. An observation of prometheus-client costs ten times as much.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anvilmq._attempts import Attempt, Ending

BUCKETS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
)  # fmt: skip

Samples = Callable[[], float]


class _Runs:
    """Histogram of one queue."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0


class Metrics:
    """An observer of attempts, and the counters of a worker. Each counter is a function that reads it."""

    def __init__(
        self, *, loop_stalls: Samples, reconnects: Samples, leases_lost: Samples, adds_pending: Samples
    ) -> None:
        self._counters = {
            "worker_loop_stalls": ("Times the handler loop was silent for 5 s.", loop_stalls),
            "worker_reconnects": ("Sessions that broke or could not be opened.", reconnects),
            "worker_leases_lost": ("Leases lost before their attempt was settled.", leases_lost),
        }
        self._adds_pending = adds_pending
        self._lock = threading.Lock()
        self._runs: dict[str, _Runs] = {}

    def ended(self, attempt: Attempt, ending: Ending, run_s: float | None) -> None:
        """See Observer."""
        if run_s is None:
            return
        queue = attempt.delivery.queue
        place = bisect_left(BUCKETS_S, run_s)
        with self._lock:
            runs = self._runs.get(queue)
            if runs is None:
                runs = self._runs[queue] = _Runs()
            runs.counts[place] += 1
            runs.sum_s += run_s

    def text(self) -> bytes:
        """All of it in the text format of Prometheus."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Any]:
        """The samples, as prometheus-client asks a collector for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        runs = HistogramMetricFamily("anvilmq_worker_run_seconds", "Time a handler ran.", labels=["queue"])
        with self._lock:
            for queue, found in self._runs.items():
                runs.add_metric([queue], _cumulated(found.counts), found.sum_s)
        yield runs
        for name, (about, read) in self._counters.items():
            yield CounterMetricFamily(f"anvilmq_{name}", about, value=read())
        yield GaugeMetricFamily("anvilmq_worker_adds_pending", "Jobs added and not yet answered.", self._adds_pending())


def _cumulated(counts: list[int]) -> list[tuple[str, float]]:
    below = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), counts, strict=True):
        below += count
        buckets.append((bound, below))
    return buckets
