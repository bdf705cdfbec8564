"""One broker in processes of its own, as a user starts it, with an eye on what it spends."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.broker_process import BrokerProcess

_TICKS = os.sysconf("SC_CLK_TCK")


class Broker(BrokerProcess):
    """A broker process with libSQL in `folder` and no tokens, measured from outside."""

    def __init__(self, folder: Path, *, gateways: int = 1, durability: str = "full") -> None:
        super().__init__(folder, gateways=gateways, settings={"ANVILMQ_DURABILITY": durability})

    def completed(self, queue: str) -> int:
        """Jobs of the queue that the broker says are completed, from its metrics."""
        wanted = ("anvilmq_jobs_finished_total{", f'queue="{queue}"', 'state="completed"')
        lines = self.get("/metrics").splitlines()
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines if all(part in line for part in wanted))

    def commits(self) -> int:
        """Batches committed so far, from its metrics."""
        lines = self.get("/metrics").splitlines()
        return sum(
            int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("anvilmq_store_commit_seconds_count")
        )

    def pids(self) -> dict[int, str]:
        """Each process of the broker with its part: supervisor, engine, gateway."""
        return {self.process.pid: "supervisor"} | self.children()

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds spent so far, user and system, by part."""
        spent = {"supervisor": 0.0, "engine": 0.0, "gateway": 0.0}
        for pid, part in self.pids().items():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent[part] += (int(fields[11]) + int(fields[12])) / _TICKS
        return spent

    def rss_mib(self) -> dict[str, float]:
        """Resident memory now, by part."""
        held = {"supervisor": 0.0, "engine": 0.0, "gateway": 0.0}
        for pid, part in self.pids().items():
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            held[part] += pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        return held
