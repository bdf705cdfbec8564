"""Broker, producers and workers of one run: started, let go together, watched, counted, stopped."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from bench import machine, parts
from bench.broker import Broker

_ROOT = Path(__file__).resolve().parents[1]
_PATIENCE_S = 60.0
_LEAVE_S = 5.0


class Load(msgspec.Struct, frozen=True):
    """Who takes part in a run. jobs: of all producers together; concurrency: slots of each worker."""

    mode: str
    jobs: int
    payload: int
    producers: int = 4
    workers: int = 4
    inflight: int = 1
    batch: int = 100
    rate: float = 0.0
    concurrency: int = 16
    gateways: int = 1


class Outcome(msgspec.Struct):
    """What one run gave. seconds: from `go` to the last completion that the broker counted.

    cpu_s: by part (engine, gateway, supervisor, producers, workers). ack_us, wait_us: one a job.
    backlog: (seconds since go, jobs due so far, jobs handled so far), sampled with a rate.
    """

    jobs: int
    seconds: float
    cpu_s: dict[str, float]
    ack_us: list[int]
    wait_us: list[int]
    flush_us: float
    engine_rss_mib: float
    backlog: list[tuple[float, float, int]]

    @property
    def rate(self) -> float:
        """Jobs completed a second."""
        return self.jobs / self.seconds

    def cpu_us(self, part: str) -> float:
        """CPU µs a job that a part spent."""
        return self.cpu_s[part] * 1e6 / self.jobs


class Fleet:
    """The client processes of a run."""

    def __init__(self, stack: ExitStack, url: str) -> None:
        self._stack = stack
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
        inherited.pop("PYTHONSAFEPATH", None)
        self._environment = inherited | {"ANVILMQ_URL": url}

    def start(self, role: str, config: msgspec.Struct) -> subprocess.Popen[str]:
        """One more process; it leaves when its input ends, and is killed if it does not."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.client", role, msgspec.json.encode(config).decode()],
            cwd=_ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(_LEAVE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _tell(processes: Sequence[subprocess.Popen[str]], word: str) -> None:
    for process in processes:
        _stream(process.stdin).write(word + "\n")
        _stream(process.stdin).flush()


def _hear(process: subprocess.Popen[str]) -> str:
    line = _stream(process.stdout).readline()
    if not line:
        raise RuntimeError(f"a client left with exit code {process.wait()}; see its error above")
    return line.strip()


@contextmanager
def folder(under: Path | None) -> Iterator[Path]:
    """A fresh folder for one run, removed after it."""
    with tempfile.TemporaryDirectory(prefix="anvilmq-bench-", dir=under) as name:
        yield Path(name)


def measure(
    load: Load,
    under: Path | None,
    *,
    before: Callable[[Broker], Any] | None = None,
    during: Callable[[Broker], Any] | None = None,
    after: Callable[[Broker], Any] | None = None,
) -> Outcome:
    """One run on a fresh broker. before: called when all clients are ready; during: once after `go`, for profilers;
    after: at the end, while the broker still serves.

    Raises RuntimeError when a process fails or nothing moves for a minute, AssertionError when a job was lost,
    handled twice, or is not completed.
    """
    with folder(under) as place, ExitStack() as stack:
        flush = machine.flush_us(place)
        broker = stack.enter_context(Broker(place, gateways=load.gateways))
        run = _Run(load, place, broker, flush, stack)
        if before is not None:
            before(broker)
        outcome = run.measure(during)
        if after is not None:
            after(broker)
        return outcome


class _Run:
    def __init__(self, load: Load, place: Path, broker: Broker, flush: float, stack: ExitStack) -> None:
        self._load, self._broker, self._flush = load, broker, flush
        fleet = Fleet(stack, broker.url)
        self._tally = stack.enter_context(_counters(place / "tally", load.workers))
        self._workers = [
            fleet.start("worker", parts.WorkerConfig(index, str(place / "tally"), load.concurrency))
            for index in range(load.workers)
        ]
        self._await_ready(self._workers)
        self._producers = [fleet.start("producer", self._producer(index)) for index in range(load.producers)]
        self._await_ready(self._producers)

    def _producer(self, index: int) -> parts.ProducerConfig:
        load, count = self._load, self._load.producers
        return parts.ProducerConfig(
            index=index,
            mode=load.mode,
            jobs=load.jobs // count,
            payload=load.payload,
            inflight=load.inflight,
            batch=load.batch,
            rate=load.rate / count,
            phase=index / count,
        )

    def _await_ready(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        for process in processes:
            word = _hear(process)
            assert word == "ready", word

    def _handled(self) -> int:
        return sum(
            int.from_bytes(self._tally[place * 8 : place * 8 + 8], sys.byteorder) for place in range(self._load.workers)
        )

    def measure(self, during: Callable[[Broker], Any] | None) -> Outcome:
        warm = 8 * self._load.producers
        self._wait(lambda: self._handled() >= warm and self._broker.completed(parts.QUEUE) >= warm, every_s=0.05)
        cpu = self._broker.cpu_s()
        _tell(self._workers, "go")
        _tell(self._producers, "go")
        began = time.monotonic_ns()
        if during is not None:
            during(self._broker)
        jobs = self._load.jobs // self._load.producers * self._load.producers
        backlog = self._watch(began, warm, jobs)
        self._wait(lambda: self._broker.completed(parts.QUEUE) >= warm + jobs, every_s=0.002)
        seconds = (time.monotonic_ns() - began) / 1e9
        cpu = {part: spent - cpu[part] for part, spent in self._broker.cpu_s().items()}
        rss = self._broker.rss_mib()["engine"]
        _tell(self._workers, "stop")
        produced = [msgspec.json.decode(_hear(process), type=parts.Produced) for process in self._producers]
        worked = [msgspec.json.decode(_hear(process), type=parts.Worked) for process in self._workers]
        self._check(jobs, produced, worked)
        cpu |= {"producers": sum(one.cpu_s for one in produced), "workers": sum(one.cpu_s for one in worked)}
        return Outcome(
            jobs=jobs,
            seconds=seconds,
            cpu_s=cpu,
            ack_us=[us for one in produced for us in one.ack_us],
            wait_us=[us for one in worked for us in one.wait_us],
            flush_us=self._flush,
            engine_rss_mib=rss,
            backlog=backlog,
        )

    def _watch(self, began: int, warm: int, jobs: int) -> list[tuple[float, float, int]]:
        """Wait until all jobs are handled; with a rate, sample how far the handling is behind."""
        samples: list[tuple[float, float, int]] = []

        def done() -> bool:
            handled = self._handled() - warm
            if self._load.rate:
                passed = (time.monotonic_ns() - began) / 1e9
                samples.append((passed, min(float(jobs), passed * self._load.rate), handled))
            return handled >= jobs

        self._wait(done, every_s=0.1 if self._load.rate else 0.005)
        return samples

    def _wait(self, done: Callable[[], bool], every_s: float) -> None:
        """Until done; RuntimeError when the workers have stood still for a minute."""
        moved, last = time.monotonic(), -1
        while not done():
            if (now := self._handled()) != last:
                moved, last = time.monotonic(), now
            elif time.monotonic() - moved > _PATIENCE_S:
                raise RuntimeError(f"nothing moves: {now} jobs handled, {self._load.jobs} wanted")
            time.sleep(every_s)

    def _check(self, jobs: int, produced: list[parts.Produced], worked: list[parts.Worked]) -> None:
        """Nothing lost, nothing twice, all acknowledged, all completed."""
        times = Counter(key for one in worked for key in one.keys)
        twice = [key for key, count in times.items() if count > 1]
        acked = sum(one.acked for one in produced)
        completed = self._broker.completed(parts.QUEUE) - 8 * self._load.producers
        assert acked == jobs, f"{acked} of {jobs} adds were answered"
        assert len(times) == jobs, f"{jobs - len(times)} of {jobs} jobs never reached a handler"
        assert not twice, f"{len(twice)} jobs were handled twice"
        assert completed == jobs, f"{completed} of {jobs} jobs are completed"


@contextmanager
def _counters(path: Path, count: int) -> Iterator[mmap.mmap]:
    path.write_bytes(bytes(8 * count))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as counters:
        yield counters
