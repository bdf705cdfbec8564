"""P6, cost against the backlog: claim + settle with few and with very many jobs waiting, in the store alone.

What grows with the backlog would grow in the store: everything else never sees it.
"""

from __future__ import annotations

import argparse
import statistics
import time

from anvilmq_broker.domain import commands
from anvilmq_broker.store import protocol
from bench import harness, report, steps, storage

NAME = "p6"
ABOUT = "claim + settle with 1 000 and with 1 000 000 jobs waiting"

_COLUMNS = [
    report.Column("us", "claim + settle CPU µs/job", 1),
    report.Column("ratio", "ratio to the first", 2),
    report.Column("steps", "VM steps/job", 1),
    report.Column("fill_s", "filled in s", 1),
    report.Column("file_mib", "file MiB"),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--backlogs", type=int, nargs="+", default=[1_000, 1_000_000], help="jobs waiting")
    parser.add_argument("--batch", type=int, default=50, help="jobs a transaction (default 50)")
    parser.add_argument("--rounds", type=int, default=60, help="transactions measured (default 60)")
    parser.set_defaults(runs=1, payload=100)


def run(options: argparse.Namespace) -> report.Result:
    """Measure each backlog, `--runs` times; the ratio is to the first backlog of the same run."""
    runs: list[list[dict[str, float]]] = [[] for _ in options.backlogs]
    for _ in range(options.runs):
        measured = [_one(options, backlog) for backlog in options.backlogs]
        for place, figures in enumerate(measured):
            runs[place].append(figures | {"ratio": figures["us"] / measured[0]["us"]})
    cases = [
        report.Case(f"{backlog:,} waiting".replace(",", " "), found)
        for backlog, found in zip(options.backlogs, runs, strict=True)
    ]
    return report.Result(NAME, "P6: cost against the backlog", _COLUMNS, cases)


def _one(options: argparse.Namespace, backlog: int) -> dict[str, float]:
    """The median round of claim, settle and as many adds, so that the backlog stays what it is."""
    with harness.folder(options.folder) as place:
        with storage.fresh_store(place) as store:
            begun = time.perf_counter()
            _fill(store, backlog, b"x" * options.payload)
            filled = time.perf_counter() - begun
            us = statistics.median(_round(store, options) for _ in range(options.rounds)) / options.batch
            counted = _steps(store, options) / options.batch
        size = sum(path.stat().st_size for path in (place / "data").rglob("*.db")) / 2**20
    return {"us": us, "steps": counted, "fill_s": filled, "file_mib": size}


def _fill(store: protocol.Store, backlog: int, payload: bytes) -> None:
    job = commands.NewJob(queue=storage.QUEUE, name="bench", data=payload)
    for first in range(0, backlog, 1_000):
        batch = store.begin(_now_ms())
        batch.apply([commands.AddJobs([job] * min(1_000, backlog - first))], storage.no_slot)
        batch.commit()
        store.housekeep(idle=False)


def _round(store: protocol.Store, options: argparse.Namespace) -> float:
    """CPU µs of claim + settle, commits left out; then the backlog is filled up again."""
    batch = store.begin(_now_ms())
    at = time.thread_time_ns()
    started = _claim(batch, options)
    claimed = time.thread_time_ns() - at
    batch.commit()
    batch = store.begin(_now_ms())
    at = time.thread_time_ns()
    _settle(batch, started)
    settled = time.thread_time_ns() - at
    batch.commit()
    _fill(store, options.batch, b"x" * options.payload)
    store.housekeep(idle=True)
    return (claimed + settled) / 1_000


def _steps(store: protocol.Store, options: argparse.Namespace) -> int:
    """VM steps of claim + settle of a batch."""
    batch = store.begin(_now_ms())
    with steps.counted() as found:
        _settle(batch, _claim(batch, options))
    batch.commit()
    return found.total


def _claim(batch: protocol.Batch, options: argparse.Namespace) -> list[protocol.Started]:
    started = batch.claim(storage.QUEUE, [protocol.Slot("worker-1", handle=1)] * options.batch)
    assert len(started) == options.batch
    return started


def _settle(batch: protocol.Batch, started: list[protocol.Started]) -> None:
    [applied] = batch.apply([commands.Settle(storage.completions(started))], storage.no_slot)
    assert isinstance(applied.outcome, commands.Settled)
    assert not applied.outcome.refused


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
