"""`make run`, as a newcomer sees it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.docs.snippets import ROOT

_COMMAND = [sys.executable, "-m", "examples.hello"]


@pytest.fixture
def hello(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The sample program, with a temporary folder of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
    for name in ("PYTHONSAFEPATH", "PYTHONUNBUFFERED"):
        inherited.pop(name, None)
    environment = inherited | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        _COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """What it says, up to and with the line that matches."""
    said = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"it ended without saying {pattern!r}:\n{said}")


def test_make_run_starts_the_sample_program() -> None:
    assert "-m examples.hello" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_the_sample_program_shows_jobs_being_done_and_leaves_nothing_behind(
    hello: subprocess.Popen[str], sig: signal.Signals, tmp_path: Path
) -> None:
    first = _read_until(hello, r"order 3: packed")
    assert re.search(r"metrics at http://127\.0\.0\.1:\d+/metrics", first)
    children = _children(hello.pid)
    hello.send_signal(sig)
    assert hello.stdout is not None
    rest = hello.stdout.read()
    assert hello.wait(30) == 0, rest
    assert "Traceback" not in first + rest
    assert children
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []


def _children(pid: int) -> list[int]:
    """Its child processes, and theirs."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += [int(entry.name), *_children(int(entry.name))]
    return found
