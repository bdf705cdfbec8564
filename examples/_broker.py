"""Starts the broker that an example talks to, runs the example until Ctrl-C, and leaves nothing behind.

Nothing here is needed in a program of yours: it would find a broker that runs already.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

_START_S = 30.0
_STOP_S = 20.0


def run_beside(main: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run main with a broker beside it. Ctrl-C, SIGTERM and a closed terminal end both; the exit code is then 0."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # each line at once, into a pipe or a file too
    try:
        with _broker():
            asyncio.run(_until_told(main))
    except KeyboardInterrupt:
        pass
    print("stopped; nothing is left behind")


async def _until_told(main: Callable[[], Coroutine[object, object, None]]) -> None:
    task = asyncio.ensure_future(main())
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(sig, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextmanager
def _broker() -> Iterator[None]:
    """An `anvilmq-broker` on the loopback, its embedded store in a temporary folder; ANVILMQ_URL then names it."""
    grpc, http = f"127.0.0.1:{_free_port(50051)}", f"127.0.0.1:{_free_port(9090)}"
    with tempfile.TemporaryDirectory(prefix="anvilmq-") as folder:
        log = Path(folder) / "broker.log"
        command = [
            *(str(Path(sys.executable).with_name("anvilmq-broker")), "--data-dir", f"{folder}/data"),
            *("--grpc-address", grpc, "--http-address", http, "--auth", "none"),
        ]
        with log.open("wb") as output:
            # A session of its own, so that Ctrl-C reaches this program alone, which then stops the broker in order.
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - no thread runs yet
            )
        try:
            _wait_ready(process, f"http://{http}/readyz", log)
            print(f"broker at {grpc}, store in {folder}/data, metrics at http://{http}/metrics; Ctrl-C stops all\n")
            os.environ["ANVILMQ_URL"] = grpc  # noqa: TID251 - what a shell or a manifest does elsewhere
            yield
        finally:
            _stop(process)


def _free_port(wanted: int) -> int:
    """The wanted port of the loopback if nobody has it, else any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end_with_parent() -> None:
    """In the child: have the kernel stop the broker when this program is killed and cannot do so itself."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=1).close()  # noqa: S310 - our own address
            return
        time.sleep(0.05)
    raise SystemExit(f"the broker did not start; it said:\n{log.read_text(errors='replace')}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
