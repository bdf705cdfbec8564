"""P3, open loop: jobs arrive at a fixed rate whatever the broker does, and each is timed from when it was due.

A late add is therefore late in the figures too: a broker that stalls cannot slow down its own measurement. End to end
is from the due time to the handler's start; the handler does nothing. The backlog's slope is that of a straight line
through (time, due − handled): 0 when completion keeps up with arrival.
"""

from __future__ import annotations

import argparse
import statistics

from bench import harness, report

NAME = "p3"
ABOUT = "open loop: fixed arrival rates, end-to-end latency, slope of the backlog"

_COLUMNS = [
    report.Column("rate", "completed jobs/s"),
    report.Column("slope", "backlog slope jobs/s", 2),
    report.Column("p50_ms", "end to end p50 ms", 1),
    report.Column("p99_ms", "p99", 1),
    report.Column("worst_ms", "worst", 1),
    report.Column("ack_p50_ms", "ack p50 ms", 1),
    report.Column("ack_p99_ms", "p99", 1),
    report.Column("engine_us", "engine CPU µs/job", 1),
    report.Column("flush_us", "flush µs"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--rates", type=float, nargs="+", default=[250, 400, 1000, 2000], help="arrivals a second")
    parser.add_argument("--seconds", type=float, default=60, help="length of a run (default 60)")
    parser.add_argument("--producers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=16, help="slots of each worker (default 16)")
    parser.set_defaults(runs=3)


def run(options: argparse.Namespace) -> report.Result:
    """Measure each rate, `--runs` times, each on a fresh database."""
    cases = [
        report.Case(f"{rate:g} jobs/s", [_one(options, rate) for _ in range(options.runs)]) for rate in options.rates
    ]
    return report.Result(NAME, f"P3: open loop, {options.seconds:g} s a run", _COLUMNS, cases)


def _one(options: argparse.Namespace, rate: float) -> dict[str, float]:
    load = harness.Load(
        mode="rate",
        jobs=int(rate * options.seconds),
        payload=options.payload,
        producers=options.producers,
        workers=options.workers,
        rate=rate,
        concurrency=options.concurrency,
    )
    outcome = harness.measure(load, options.folder)
    return {
        "rate": outcome.rate,
        "slope": _slope(outcome.backlog, options.seconds),
        "p50_ms": report.percentile(outcome.wait_us, 0.5) / 1e3,
        "p99_ms": report.percentile(outcome.wait_us, 0.99) / 1e3,
        "worst_ms": max(outcome.wait_us) / 1e3,
        "ack_p50_ms": report.percentile(outcome.ack_us, 0.5) / 1e3,
        "ack_p99_ms": report.percentile(outcome.ack_us, 0.99) / 1e3,
        "engine_us": outcome.cpu_us("engine"),
        "flush_us": outcome.flush_us,
    }


def _slope(backlog: list[tuple[float, float, int]], seconds: float) -> float:
    """Jobs a second by which the backlog grew while jobs arrived; the first second is left out."""
    points = [(at, due - handled) for at, due, handled in backlog if 1 <= at <= seconds]
    if len(points) < 2:
        return float("nan")
    return statistics.linear_regression(*zip(*points, strict=True)).slope
