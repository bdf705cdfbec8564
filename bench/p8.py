"""P8, one moment: many definitions of every minute fall due at :00, while other queues go on as usual.

A definition's lag is from :00 to the creation of its job, as the broker's clock has it; each must have made exactly one.
The other queues are an open loop around :00 (see p3), timed end to end from when each job was due.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter

from bench import harness, report, schedules
from bench.broker import Broker

NAME = "p8"
ABOUT = "10 000 definitions of every minute at :00: until all have fired, and what others notice"

_COLUMNS = [
    report.Column("all_ms", "all fired after ms"),
    report.Column("p50_ms", "half fired after ms"),
    report.Column("other_p50_ms", "others end to end p50 ms", 1),
    report.Column("other_p99_ms", "p99", 1),
    report.Column("other_worst_ms", "worst", 1),
    report.Column("define_s", "defined in s", 1),
    report.Column("flush_us", "flush µs"),
]
_BEFORE_S = 1.0
_LEAST_AHEAD_S = 3.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--definitions", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=200, help="arrivals a second in the other queue (default 200)")
    parser.add_argument("--seconds", type=float, default=4, help="length of the open loop around :00 (default 4)")
    parser.set_defaults(runs=3, payload=300)


def run(options: argparse.Namespace) -> report.Result:
    """Measure one :00, `--runs` times, each on a fresh database; and the same without definitions."""
    cases = [
        report.Case(name, [_one(options, count) for _ in range(options.runs)])
        for name, count in (("nothing due", 0), (f"{options.definitions} due", options.definitions))
    ]
    return report.Result(NAME, "P8: definitions of every minute at :00", _COLUMNS, cases)


def _one(options: argparse.Namespace, count: int) -> dict[str, float]:
    load = harness.Load(
        mode="rate",
        jobs=int(options.rate * options.seconds),
        payload=options.payload,
        producers=1,
        workers=1,
        rate=options.rate,
    )
    minute = _Minute(count, options.payload)
    outcome = harness.measure(load, options.folder, before=minute.prepare, after=minute.look)
    lags = sorted(minute.lags_ms)
    figures = {
        "other_p50_ms": report.percentile(outcome.wait_us, 0.5) / 1e3,
        "other_p99_ms": report.percentile(outcome.wait_us, 0.99) / 1e3,
        "other_worst_ms": max(outcome.wait_us) / 1e3,
        "define_s": minute.define_s,
        "flush_us": outcome.flush_us,
    }
    return figures | ({"all_ms": lags[-1], "p50_ms": report.percentile(lags, 0.5)} if lags else {})


class _Minute:
    """The :00 that is looked at."""

    def __init__(self, count: int, payload: int) -> None:
        self._count = count
        self._payload = payload
        self._at_ms = 0
        self.lags_ms: list[float] = []
        self.define_s = 0.0

    def prepare(self, broker: Broker) -> None:
        """Make the definitions, and return a second before the next :00."""
        began = time.monotonic()
        if self._count:
            asyncio.run(schedules.define(broker.url, self._count, "* * * * *", self._payload))
        self.define_s = time.monotonic() - began
        now = time.time()
        self._at_ms = int((now + _LEAST_AHEAD_S) // 60 + 1) * 60_000
        time.sleep(self._at_ms / 1000 - _BEFORE_S - now)

    def look(self, broker: Broker) -> None:
        """Find what was fired at :00. Raises AssertionError when a tick is missing or there twice."""
        if not self._count:
            return
        end = time.monotonic() + 30
        while len(fired := self._fired(broker)) < self._count and time.monotonic() < end:
            time.sleep(0.2)
        times = Counter(name for name, _ in fired)
        assert len(times) == self._count, f"{self._count - len(times)} definitions did not fire"
        assert len(fired) == self._count, f"{len(fired) - self._count} ticks fired twice"
        self.lags_ms = [made - self._at_ms for _, made in fired]

    def _fired(self, broker: Broker) -> list[tuple[str, int]]:
        found = asyncio.run(schedules.runs(broker.url))
        return [(name, made) for name, tick, made in found if tick == self._at_ms]
