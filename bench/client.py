"""One producer or worker of a benchmark, in a process of its own: `python -m bench.client ROLE CONFIG`.

It is led by lines on its standard input (`go`, `stop`) and answers with one line each: `ready`, then one JSON object.
Times are CLOCK_MONOTONIC in ns, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import mmap
import resource
import sys
import time
from array import array
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from anvilmq import Anvil, Job
from bench.parts import QUEUE, WARM_UP, Produced, ProducerConfig, Worked, WorkerConfig


class Item(msgspec.Struct):
    """The payload of a job. due_ns: when it was to be added; the pad makes it as long as asked."""

    producer: int
    n: int
    due_ns: int
    pad: str


app = Anvil()


class _Handled:
    """What this worker's handler saw; the handler is a function of the module, so this is its one piece of state."""

    def __init__(self) -> None:
        self.keys = array("q")
        self.wait_us = array("q")
        self.last_ns = 0
        self.count = 0
        self.tally: mmap.mmap | None = None
        self.place = 0

    def add(self, item: Item) -> None:
        now = time.monotonic_ns()
        if item.n < WARM_UP:
            self.keys.append(item.producer << 32 | item.n)
            self.wait_us.append((now - item.due_ns) // 1_000)
            self.last_ns = now
        self.count += 1
        if self.tally is not None:
            self.tally[self.place : self.place + 8] = self.count.to_bytes(8, sys.byteorder)


handled = _Handled()


@app.job(queue=QUEUE, name="item")
async def item(_job: Job, args: Item) -> None:
    """No work: what is measured is everything around it."""
    handled.add(args)


# --------------------------------------------------------------------------------------------------- producers


async def produce(config: ProducerConfig) -> None:
    """Warm up, wait for `go`, add, report."""
    producer = _Producer(config)
    async with app:
        for n in range(8):
            await item.add(producer.item(WARM_UP + n, time.monotonic_ns()))
        _say("ready")
        await _line()
        cpu, began = _cpu_s(), time.monotonic_ns()
        await producer.run()
        _say(Produced(len(producer.ack_us), began, time.monotonic_ns(), _cpu_s() - cpu, producer.ack_us.tolist()))


class _Producer:
    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        bare = len(msgspec.json.encode(Item(config.index, 10_000, time.monotonic_ns(), "")))
        self._pad = "x" * max(0, config.payload - bare)
        self.ack_us = array("q")

    def item(self, n: int, due_ns: int) -> Item:
        return Item(self._config.index, n, due_ns, self._pad)

    async def run(self) -> None:
        await {"add": self._run_add, "bulk": self._run_bulk, "rate": self._run_rate}[self._config.mode]()

    async def _run_add(self) -> None:
        numbers = iter(range(self._config.jobs))
        async with asyncio.TaskGroup() as group:
            for _ in range(self._config.inflight):
                group.create_task(self._add_each(numbers))

    async def _add_each(self, numbers: Iterator[int]) -> None:
        for n in numbers:
            await self._add(n, time.monotonic_ns())

    async def _add(self, n: int, due_ns: int) -> None:
        await item.add(self.item(n, due_ns))
        self.ack_us.append((time.monotonic_ns() - due_ns) // 1_000)

    async def _run_bulk(self) -> None:
        for first in range(0, self._config.jobs, self._config.batch):
            due_ns = time.monotonic_ns()
            numbers = range(first, min(first + self._config.batch, self._config.jobs))
            await app.add_bulk(item.spec(self.item(n, due_ns)) for n in numbers)
            taken = (time.monotonic_ns() - due_ns) // 1_000
            self.ack_us.extend([taken] * len(numbers))

    async def _run_rate(self) -> None:
        every_ns = 1_000_000_000 / self._config.rate
        start = time.monotonic_ns() + 10_000_000 + self._config.phase * every_ns
        async with asyncio.TaskGroup() as group:
            for n in range(self._config.jobs):
                due_ns = int(start + n * every_ns)
                if (early := due_ns - time.monotonic_ns()) > 0:
                    await asyncio.sleep(early / 1e9)
                group.create_task(self._add(n, due_ns))


# ----------------------------------------------------------------------------------------------------- workers


async def work(config: WorkerConfig) -> None:
    """Work until told to `stop`, leave cleanly, report."""
    with _tally(config):
        async with app, _working(config):
            _say("ready")
            await _line()
            cpu = _cpu_s()
            await _line()
            cpu = _cpu_s() - cpu
        _say(Worked(handled.keys.tolist(), handled.wait_us.tolist(), handled.last_ns, cpu))


@asynccontextmanager
async def _working(config: WorkerConfig) -> AsyncIterator[None]:
    async with app.worker(queues=[QUEUE], concurrency=config.concurrency):
        yield


@contextmanager
def _tally(config: WorkerConfig) -> Iterator[None]:
    with Path(config.tally).open("r+b") as file, mmap.mmap(file.fileno(), 0) as counters:
        handled.tally, handled.place = counters, config.index * 8
        yield
        handled.tally = None


# --------------------------------------------------------------------------------------------------- the leader


async def _line() -> str:
    """The next word of the leader; the end of the stream ends this process."""
    line: str = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise SystemExit("the leader is gone")
    return line.strip()


def _say(what: str | msgspec.Struct) -> None:
    text = what if isinstance(what, str) else msgspec.json.encode(what).decode()
    print(text, flush=True)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Be what the command line says."""
    role, config = sys.argv[1:3]
    if role == "producer":
        asyncio.run(produce(msgspec.json.decode(config, type=ProducerConfig)))
    else:
        asyncio.run(work(msgspec.json.decode(config, type=WorkerConfig)))


if __name__ == "__main__":
    main()
