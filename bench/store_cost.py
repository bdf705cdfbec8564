"""µs a job in the libSQL store itself: add + claim + settle through store.protocol, FULL, one thread, no network.

Each transaction settles the batch before, adds a batch, and starts it: what the engine's loop does under load.
*direct*: every add meets an idle worker and is written active. *line*: the jobs stand in line and are claimed from it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from anvilmq_broker.domain import commands
from anvilmq_broker.store import protocol
from bench import harness, machine, raw_sql, report, storage

NAME = "store"
ABOUT = "the store's cost a job, and its share of the raw SQL limit"

_COLUMNS = [
    report.Column("us", "µs/job", 1),
    report.Column("cpu_us", "of it CPU", 1),
    report.Column("settle_us", "settle", 1),
    report.Column("add_us", "add", 1),
    report.Column("claim_us", "claim", 1),
    report.Column("commit_us", "commit", 1),
    report.Column("raw_us", "raw SQL µs/job", 1),
    report.Column("share", "share of the limit", 2),
    report.Column("flush_us", "flush µs", 0),
]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 50, 200], help="jobs a transaction")
    parser.add_argument("--jobs", type=int, default=0, help="jobs a run; 0: 1500, 10000, 20000 by batch")


def run(options: argparse.Namespace) -> report.Result:
    """Measure each batch size in both ways, `--runs` times, the limit beside each run."""
    cases = []
    for batch in options.batches:
        for way in ("direct", "line"):
            runs = [_one(options, batch, direct=way == "direct") for _ in range(options.runs)]
            cases.append(report.Case(f"batch {batch}, {way}", runs))
    return report.Result(NAME, "Store: add + claim + settle of a job", _COLUMNS, cases)


def _one(options: argparse.Namespace, batch: int, *, direct: bool) -> dict[str, float]:
    jobs = options.jobs or {1: 1_500}.get(batch, 10_000 if batch < 100 else 20_000)
    payload = b"x" * options.payload
    with harness.folder(options.folder) as folder:
        flush = machine.flush_us(folder)
        figures = measure(folder, jobs, batch, payload, direct=direct)
        limit = raw_sql.measure(folder, jobs, batch, payload)
    return figures | {"raw_us": limit["us"], "share": limit["us"] / figures["us"], "flush_us": flush}


def measure(folder: Path, jobs: int, batch: int, payload: bytes, *, direct: bool) -> dict[str, float]:
    """Figures of one run on a fresh store. Raises AssertionError when a job is not settled exactly once."""
    with storage.fresh_store(folder) as store:
        steady = _Steady(store, batch, payload, direct=direct)
        steady.step(add=True)  # makes the queue, fills caches
        steady.reset()
        begun, cpu = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(0, jobs, batch):
            steady.step(add=True)
        taken, cpu_taken = time.perf_counter_ns() - begun, time.thread_time_ns() - cpu
        figures = {part: spent / steady.settled / 1_000 for part, spent in steady.spent.items()}
        done = steady.settled
        steady.step(add=False)
        counts = store.counts()
    assert {state: n for (_, state), n in counts.items() if n} == {5: done + batch}, counts
    return figures | {"us": taken / done / 1_000, "cpu_us": cpu_taken / done / 1_000}


class _Steady:
    """The loop of the engine in its simplest form, with a clock at every step."""

    def __init__(self, store: protocol.Store, batch: int, payload: bytes, *, direct: bool) -> None:
        self._store = store
        self._jobs = [commands.NewJob(queue=storage.QUEUE, name="bench", data=payload) for _ in range(batch)]
        self._slots = [protocol.Slot("worker-1", handle=1)] * batch
        self._direct = direct
        self._held: list[commands.Settlement] = []
        self._now_ms = time.time_ns() // 1_000_000
        self.reset()

    def reset(self) -> None:
        """Count from now on."""
        self.spent = dict.fromkeys(("settle_us", "add_us", "claim_us", "commit_us"), 0)
        self.settled = 0

    def step(self, *, add: bool) -> None:
        """Settle what is held, add and start the next batch, commit."""
        self._now_ms += 1
        clock = time.perf_counter_ns
        at = clock()
        batch = self._store.begin(self._now_ms)
        if self._held:
            [applied] = batch.apply([commands.Settle(self._held)], storage.no_slot)
            assert isinstance(applied.outcome, commands.Settled)
            assert not applied.outcome.refused
            self.settled += len(self._held)
            self._held = []
        at = self._spend("settle_us", at)
        started: list[protocol.Started] = []
        if add:
            [applied] = batch.apply(
                [commands.AddJobs(self._jobs)], self._take_slot if self._direct else storage.no_slot
            )
            started = [effect for effect in applied.effects if isinstance(effect, protocol.Started)]
        at = self._spend("add_us", at)
        if add and not self._direct:
            started = batch.claim(storage.QUEUE, self._slots)
        at = self._spend("claim_us", at)
        batch.commit()
        self._store.housekeep(idle=False)
        self._spend("commit_us", at)
        assert len(started) == (len(self._jobs) if add else 0)
        self._held = storage.completions(started)

    def _take_slot(self, queue: str) -> protocol.Slot:
        return self._slots[0]

    def _spend(self, part: str, since: int) -> int:
        now = time.perf_counter_ns()
        self.spent[part] += now - since
        return now
