"""Reads the fenced blocks of a document, and types its commands into a shell.

A block's info string is its language and, for a file, its name: ```` ```python shop.py ````. In a `console` block a line
that starts with `$ ` is a command, what follows is its output, in which `…` stands for anything; `console background`
is a command that goes on running.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

ROOT: Final = Path(__file__).resolve().parents[3]
_FENCE: Final = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATIENCE_S: Final = 60


class Snippet(NamedTuple):
    """One fenced block. title: the rest of its info string."""

    language: str
    title: str
    text: str


class Command(NamedTuple):
    """One line to type, and what is to come out."""

    line: str
    output: str


def read(document: str) -> list[Snippet]:
    """The blocks of a document, in order; its path is relative to the root."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [Snippet(language, title.strip(), body) for language, title, body in _FENCE.findall(text)]


def commands(snippet: Snippet) -> list[Command]:
    """The commands of a console block."""
    parts = re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]
    split = [part.partition("\n") for part in parts]
    return [Command(line, output.strip()) for line, _, output in split]


class Shell:
    """A folder, the environment a reader has, and what was left running in it; as a context manager it ends that."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANVILMQ_")}
        inherited.pop("PYTHONSAFEPATH", None)
        path = f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}"
        self._environment = inherited | {"PATH": path, "COLUMNS": "200"} | settings
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._running):
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(_PATIENCE_S) == 0, f"{process.args!r} left with {process.returncode}"

    def write(self, snippet: Snippet) -> None:
        """Make the file that a block shows."""
        (self._folder / snippet.title).write_text(snippet.text, encoding="utf-8")

    def type(self, command: Command) -> None:
        """Run a command to its end. AssertionError when it fails or something else comes out."""
        done = subprocess.run(
            ["bash", "-c", command.line],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        said = f"$ {command.line}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, said
        pattern = ".*".join(re.escape(part) for part in command.output.split("…"))
        assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), f"{said}\nwanted: {command.output}"

    def leave_running(self, line: str) -> None:
        """Start a command that goes on until the end."""
        with (self._folder / f"running-{len(self._running)}.log").open("wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
