"""P4, one at a time: one producer awaits each add before the next, one worker; nothing can be batched."""

from __future__ import annotations

import argparse

from bench import harness, report

NAME = "p4"
ABOUT = "one at a time: latency of an add, and from the add to the handler"

_COLUMNS = [
    report.Column("rate", "jobs/s"),
    report.Column("ack_p50_ms", "ack p50 ms", 2),
    report.Column("ack_p99_ms", "p99", 2),
    report.Column("pickup_p50_ms", "pickup p50 ms", 2),
    report.Column("pickup_p99_ms", "p99", 2),
    report.Column("flush_us", "flush µs"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--jobs", type=int, default=2_000, help="jobs a run (default 2000)")


def run(options: argparse.Namespace) -> report.Result:
    """Measure `--runs` times."""
    runs = [_one(options) for _ in range(options.runs)]
    return report.Result(NAME, "P4: one at a time", _COLUMNS, [report.Case("1 producer, 1 worker", runs)])


def _one(options: argparse.Namespace) -> dict[str, float]:
    load = harness.Load(
        mode="add", jobs=options.jobs, payload=options.payload, producers=1, workers=1, inflight=1, concurrency=16
    )
    outcome = harness.measure(load, options.folder)
    return {
        "rate": outcome.rate,
        "ack_p50_ms": report.percentile(outcome.ack_us, 0.5) / 1e3,
        "ack_p99_ms": report.percentile(outcome.ack_us, 0.99) / 1e3,
        "pickup_p50_ms": report.percentile(outcome.wait_us, 0.5) / 1e3,
        "pickup_p99_ms": report.percentile(outcome.wait_us, 0.99) / 1e3,
        "flush_us": outcome.flush_us,
    }
