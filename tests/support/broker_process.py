"""A real broker in processes of its own, for tests: started as a user starts it, killed as a machine kills it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

_START_S = 30.0
_STOP_S = 40.0
_LOOK_EVERY_S = 0.01


class BrokerProcess:
    """`anvilmq-broker` on free loopback ports over libSQL in `folder`; `settings` are further ANVILMQ_ variables.

    As a context manager: entering waits until it is ready, leaving stops it and fails when it does not exit with 0
    (unless it was killed by the test). Its output goes to `log`.
    """

    def __init__(self, folder: Path, *, gateways: int = 1, settings: dict[str, str] | None = None) -> None:
        grpc_port, self._http_port = free_ports(2)
        self.url = f"127.0.0.1:{grpc_port}"
        self.log = folder / "broker.log"
        self.folder = folder
        self.settings = {
            "ANVILMQ_STORE": "libsql",
            "ANVILMQ_DATA_DIR": str(folder / "data"),
            "ANVILMQ_GRPC_ADDRESS": self.url,
            "ANVILMQ_HTTP_ADDRESS": f"127.0.0.1:{self._http_port}",
            "ANVILMQ_AUTH": "none",
            "ANVILMQ_GATEWAYS": str(gateways),
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = self.stop()
        if kind is None:
            assert code in (0, None), f"the broker exited with {code}:\n{self.tail()}"

    def start(self, wait: bool = True) -> None:
        """Start it; wait: until it is ready."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "anvilmq_broker.app"],
                env=inherited | self.settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if not wait:
            return
        try:
            self.wait_ready()
        except BaseException:
            # Nobody else would end it: a context that was not entered is not left.
            if self._process.poll() is None:
                self.kill_all()
            raise

    def wait_ready(self, within_s: float = _START_S) -> float:
        """Seconds until /readyz said yes. AssertionError with the log when it does not, or the process ends."""
        began = time.monotonic()
        while time.monotonic() - began < within_s:
            assert self.process.poll() is None, f"the broker exited with {self.process.poll()}:\n{self.tail()}"
            if self.ready():
                return time.monotonic() - began
            time.sleep(_LOOK_EVERY_S)
        raise AssertionError(f"not ready within {within_s} s:\n{self.tail()}")

    def wait_gone_and_back(self, parts: tuple[str, ...]) -> float:
        """After a kill of these children: seconds until new ones stand in their place and it is ready."""
        began = time.monotonic()
        while not set(parts) <= set(self.children().values()) or not self.ready():
            assert time.monotonic() - began < _START_S, f"not back within {_START_S} s:\n{self.tail()}"
            time.sleep(_LOOK_EVERY_S)
        return time.monotonic() - began

    def ready(self) -> bool:
        """What /readyz says now."""
        try:
            self.get("/readyz")
        except (OSError, urllib.error.URLError):
            return False
        return True

    def get(self, path: str) -> str:
        """Body of an HTTP path. URLError, HTTPError."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._http_port}{path}", timeout=5) as response:
            return str(response.read().decode())

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The supervisor."""
        assert self._process is not None, "not started"
        return self._process

    def stop(self) -> int | None:
        """SIGTERM, then the exit code; None when it was not running. Killed, and an error, if it does not leave."""
        if self._process is None or self._process.poll() is not None:
            code = self._process.poll() if self._process else None
            self._process = None
            return code if code != -signal.SIGKILL else None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise AssertionError(f"the broker did not leave within {_STOP_S} s:\n{self.tail()}") from None
        finally:
            self._process = None

    def kill_all(self) -> None:
        """SIGKILL to every process of it at once, as a node that loses power would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill(self, part: str) -> None:
        """SIGKILL to one child: part is "engine" or "gateway"."""
        pid = next(pid for pid, name in self.children().items() if name == part)
        os.kill(pid, signal.SIGKILL)
        # Gone from the table, or a zombie that the supervisor has not reaped yet: either way it does nothing more.
        while self.children().get(pid):
            time.sleep(_LOOK_EVERY_S)

    def children(self) -> dict[int, str]:
        """Each child of the supervisor with its part."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError, IndexError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z" and int(parent) == self.process.pid:
                    command = (entry / "cmdline").read_bytes()
                    found[int(entry.name)] = "engine" if b".engine" in command else "gateway"
        return found

    def tail(self) -> str:
        """The end of its output."""
        return self.log.read_text(errors="replace")[-4_000:] if self.log.exists() else ""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
