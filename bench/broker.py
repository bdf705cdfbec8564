"""One broker in processes of its own, as a user starts it, with an eye on what it spends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

_START_S = 30.0
_STOP_S = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Broker:
    """`anvilmq-broker` on free ports of the loopback, libSQL in `folder`, durability full, no tokens.

    Use it as a context manager: entering waits until it is ready, leaving stops it. Its output goes to `log`.
    Raises RuntimeError with the end of the log when it does not become ready.
    """

    def __init__(self, folder: Path, *, gateways: int = 1, durability: str = "full") -> None:
        grpc_port, self._http_port = _free_ports(2)
        self.url = f"127.0.0.1:{grpc_port}"
        self.log = folder / "broker.log"
        self._settings = {
            "ANVILMQ_STORE": "libsql",
            "ANVILMQ_DATA_DIR": str(folder / "data"),
            "ANVILMQ_GRPC_ADDRESS": self.url,
            "ANVILMQ_HTTP_ADDRESS": f"127.0.0.1:{self._http_port}",
            "ANVILMQ_AUTH": "none",
            "ANVILMQ_GATEWAYS": str(gateways),
            "ANVILMQ_DURABILITY": durability,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "anvilmq_broker.app"],
                env=inherited | self._settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_ready(self._process)
        except BaseException:
            self._stop(self._process)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._stop(self._process)

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                self._get("/readyz")
                return
            time.sleep(0.02)
        tail = self.log.read_text(errors="replace")[-2_000:]
        raise RuntimeError(f"the broker did not become ready (exit code {process.poll()}):\n{tail}")

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._http_port}{path}", timeout=5) as response:
            return str(response.read().decode())

    def completed(self, queue: str) -> int:
        """Jobs of the queue that the broker says are completed, from its metrics."""
        wanted = ("anvilmq_jobs_finished_total{", f'queue="{queue}"', 'state="completed"')
        lines = self._get("/metrics").splitlines()
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines if all(part in line for part in wanted))

    def commits(self) -> int:
        """Batches committed so far, from its metrics."""
        lines = self._get("/metrics").splitlines()
        return sum(
            int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("anvilmq_store_commit_seconds_count")
        )

    def pids(self) -> dict[int, str]:
        """Each process of the broker with its part: supervisor, engine, gateway."""
        assert self._process is not None
        found = {self._process.pid: "supervisor"}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == self._process.pid:
                    command = (entry / "cmdline").read_bytes()
                    found[int(entry.name)] = "engine" if b".engine" in command else "gateway"
        return found

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


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
