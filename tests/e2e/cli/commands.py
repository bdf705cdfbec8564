"""Runs the commands in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

LONGEST_S: Final = 60
APP: Final = """
import asyncio
from anvilmq import Anvil

app = Anvil()

@app.job(queue="demo")
async def double(job, args: dict[str, int]) -> int:
    job.log(f"doubling {args['n']}")
    return args["n"] * 2

@app.job(queue="demo", max_attempts=1)
def fail(job, args: None) -> None:
    raise ValueError("as it should")

@app.job(queue="slow")
async def slow(job, args: None) -> str:
    job.log("began")
    await asyncio.Event().wait()
    return "never"
"""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)


class Commands:
    """Commands for one broker, run in one folder, which holds the app `shop:app`."""

    def __init__(self, url: str, folder: Path) -> None:
        (folder / "shop.py").write_text(APP)
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
        self.environment = inherited | {"ANVILMQ_URL": url}

    def run(self, *words: str, stdin: str = "") -> Done:
        """Run one to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "anvilmq.cli", *words],
            cwd=self.folder, env=self.environment, input=stdin, capture_output=True, text=True, timeout=LONGEST_S,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> Running:
        """Start one that goes on until it is stopped."""
        return Running(
            subprocess.Popen(
                [sys.executable, "-m", "anvilmq.cli", *words],
                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            )
        )  # fmt: skip


class Running:
    """A command that goes on. As a context manager it is killed at the end, if it still runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def line_of(self, stream: str) -> str:
        """The next line on stdout or stderr."""
        line: str = getattr(self.process, stream).readline()
        assert line, f"it has ended: {self.process.communicate()}"
        return line.rstrip()

    def stop(self, number: signal.Signals) -> Done:
        """Send a signal, and wait for its end."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LONGEST_S)
        return Done(self.process.returncode, out, err)
