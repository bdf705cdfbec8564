"""P1, end to end and saturated: producers add one job at a time with several adds in flight, workers complete them.

The clock runs from the first add to the last completion that is on disk. Every process of it shares the machine.
"""

from __future__ import annotations

import argparse

from bench import harness, report

NAME = "p1"
ABOUT = "end to end, single adds: 4 producers × 16 and × 64 in flight, 4 workers"

COLUMNS = [
    report.Column("rate", "jobs/s"),
    report.Column("engine_us", "engine CPU µs/job", 1),
    report.Column("gateway_us", "gateways", 1),
    report.Column("producers_us", "producers", 1),
    report.Column("workers_us", "workers", 1),
    report.Column("ack_p50_ms", "ack p50 ms", 1),
    report.Column("ack_p99_ms", "p99", 1),
    report.Column("flush_us", "flush µs"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--inflight", type=int, nargs="+", default=[16, 64], help="adds in flight of each producer")
    population(parser)


def population(parser: argparse.ArgumentParser) -> None:
    """Options of all saturated benchmarks."""
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs a run (default 20000)")
    parser.add_argument("--producers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=16, help="slots of each worker (default 16)")
    parser.add_argument("--gateways", type=int, default=1, help="gateway processes (default 1)")


def run(options: argparse.Namespace) -> report.Result:
    """Measure each number of adds in flight, `--runs` times."""
    cases = [
        report.Case(f"{options.producers} × {inflight} in flight", repeat(options, mode="add", inflight=inflight))
        for inflight in options.inflight
    ]
    return report.Result(NAME, "P1: end to end, single adds, saturated", COLUMNS, cases)


def repeat(options: argparse.Namespace, *, mode: str, inflight: int = 1, batch: int = 100) -> list[dict[str, float]]:
    """The figures of `--runs` runs."""
    load = harness.Load(
        mode=mode,
        jobs=options.jobs,
        payload=options.payload,
        producers=options.producers,
        workers=options.workers,
        inflight=inflight,
        batch=batch,
        concurrency=options.concurrency,
        gateways=options.gateways,
    )
    return [figures(harness.measure(load, options.folder)) for _ in range(options.runs)]


def figures(outcome: harness.Outcome) -> dict[str, float]:
    """The columns above from one run."""
    return {
        "rate": outcome.rate,
        "engine_us": outcome.cpu_us("engine"),
        "gateway_us": outcome.cpu_us("gateway"),
        "producers_us": outcome.cpu_us("producers"),
        "workers_us": outcome.cpu_us("workers"),
        "ack_p50_ms": report.percentile(outcome.ack_us, 0.5) / 1e3,
        "ack_p99_ms": report.percentile(outcome.ack_us, 0.99) / 1e3,
        "flush_us": outcome.flush_us,
    }
