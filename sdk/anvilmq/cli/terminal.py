"""The three streams of the command line: data on stdout, everything else on stderr, questions on both."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from anvilmq.cli.exits import UsageProblem

if TYPE_CHECKING:
    from typing import BinaryIO


class Terminal:
    """Streams, and whether people sit before them. `quiet` silences notes and progress, never errors."""

    def __init__(
        self,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.quiet = quiet

    @property
    def out_is_tty(self) -> bool:
        """Whether a person reads the data."""
        return self.stdout.isatty()

    @property
    def err_is_tty(self) -> bool:
        """Whether a person reads the rest."""
        return self.stderr.isatty()

    def out(self, line: str) -> None:
        """One line of data."""
        self.stdout.write(f"{line}\n")

    def flush(self) -> None:
        """Hand on the data that was written. BrokenPipeError when nobody reads it any more."""
        self.stdout.flush()

    def out_bytes(self, data: bytes) -> None:
        """Data as it is, such as a result; text ends with a line end."""
        text = _text(data)
        if text is not None:
            self.out((visible(text) if self.out_is_tty else text).removesuffix("\n"))
        elif self.out_is_tty:
            self.out(f"({len(data)} bytes that are no text; redirect the output to keep them)")
        else:
            self.stdout.flush()
            self.stdout.buffer.write(data)

    def note(self, line: str) -> None:
        """One line beside the data."""
        if not self.quiet:
            self.error(line)

    def error(self, line: str) -> None:
        """One line that is always shown."""
        self.stderr.write(f"{visible(line)}\n")
        self.stderr.flush()

    def read_bytes(self) -> bytes:
        """All of stdin."""
        return self.binary_stdin().read()

    def binary_stdin(self) -> BinaryIO:
        """stdin as bytes."""
        return self.stdin.buffer

    def confirm(self, question: str) -> bool:
        """Ask on stderr, read a line from stdin. UsageProblem when nobody sits there who could answer."""
        if not self.stdin.isatty():
            raise UsageProblem("", f"{question} Nobody can answer here; say --yes to go on without a question")
        self.stderr.write(f"{question} [y/N] ")
        self.stderr.flush()
        with _ending_at_once():
            return self.stdin.readline().strip().lower() in {"y", "yes"}


@contextlib.contextmanager
def _ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end a question. A running event loop would keep it for its next turn, which a read does not give."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def visible(text: str) -> str:
    """Text whose control characters cannot move the cursor or colour the screen; tabs and line ends stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
