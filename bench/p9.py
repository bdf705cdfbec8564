"""P9, idle: workers are connected, definitions wait for a day that is far, and nothing is due.

CPU is what all processes of the broker spend, heartbeats included. A commit stands for every statement: the engine has
none outside of a transaction but for queries. Retention begins one a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

from anvilmq import Anvil
from bench import harness, report, schedules
from bench.broker import Broker

NAME = "p9"
ABOUT = "100 workers and 10 000 definitions with nothing to do: CPU and commits"

_COLUMNS = [
    report.Column("core", "broker, % of a core", 2),
    report.Column("engine", "engine, %", 2),
    report.Column("gateway", "gateway, %", 2),
    report.Column("commits", "commits a minute", 1),
    report.Column("rss_mib", "engine RSS MiB", 0),
]
_QUIET_S = 5.0
"""Until what the start has left to do is done."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--definitions", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60, help="length of a run (default 60)")
    parser.set_defaults(runs=1, payload=300)


def run(options: argparse.Namespace) -> report.Result:
    """Watch an idle broker, `--runs` times."""
    name = f"{options.workers} workers, {options.definitions} definitions"
    cases = [report.Case(name, [_one(options, options.folder) for _ in range(options.runs)])]
    return report.Result(NAME, "P9: idle", _COLUMNS, cases)


def _one(options: argparse.Namespace, under: Path | None) -> dict[str, float]:
    with harness.folder(under) as place, Broker(place) as broker:
        asyncio.run(schedules.define(broker.url, options.definitions, "0 0 29 2 *", options.payload))
        return asyncio.run(_watch(options, broker))


async def _watch(options: argparse.Namespace, broker: Broker) -> dict[str, float]:
    app = Anvil(broker.url)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app)
        for n in range(options.workers):
            await stack.enter_async_context(app.worker(queues=[f"idle-{n % 10}"], concurrency=4))
        await asyncio.sleep(_QUIET_S)
        cpu, commits, began = broker.cpu_s(), broker.commits(), time.monotonic()
        await asyncio.sleep(options.seconds)
        passed = time.monotonic() - began
        spent = {part: (now - cpu[part]) / passed * 100 for part, now in broker.cpu_s().items()}
        return {
            "core": sum(spent.values()),
            "engine": spent["engine"],
            "gateway": spent["gateway"],
            "commits": (broker.commits() - commits) / passed * 60,
            "rss_mib": broker.rss_mib()["engine"],
        }
