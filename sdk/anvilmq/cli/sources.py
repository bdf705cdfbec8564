"""The lines that `load` sends, read twice: once for their number and hash, once to be sent."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from anvilmq.cli.exits import UsageProblem

if TYPE_CHECKING:
    from anvilmq.cli.terminal import Terminal

LONGEST_LINE: Final = 15 << 20
"""Bytes; what a broker takes in one request is a little more."""
_BOM: Final = b"\xef\xbb\xbf"
_HELD_IN_MEMORY: Final = 8 << 20


class Line(NamedTuple):
    """A line that is not empty. number: from 1, empty ones counted. text: without its end."""

    number: int
    text: bytes


class Source:
    """A file, or what came on stdin. count: lines that are not empty. digest: hexadecimal, of all bytes."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self.name = name
        self.count = 0
        digest = hashlib.sha256()
        for line in file:
            digest.update(line)
            self.count += not line.isspace()
        self.digest = digest.hexdigest()

    def lines(self) -> Iterator[Line]:
        """Every line that is not empty."""
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            text = (line.removeprefix(_BOM) if number == 1 else line).strip()
            if text:
                yield Line(number, text)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def open_source(where: str, terminal: Terminal) -> Source:
    """The lines of a file, or of stdin for "-". UsageProblem when it cannot be read."""
    if where == "-":
        held: IO[bytes] = tempfile.SpooledTemporaryFile(_HELD_IN_MEMORY)  # noqa: SIM115 - the Source closes it
        shutil.copyfileobj(terminal.binary_stdin(), held)
        held.seek(0)
        return Source(held, "stdin")
    with contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(Path(where).open("rb"))
            source = Source(file, where)
        except OSError as problem:
            raise UsageProblem("FILE", f"{where} cannot be read: {problem.strerror}") from problem
        if not file.seekable():
            raise UsageProblem("FILE", f"{where} cannot be read twice; hand it over on stdin, as -")
        opened.pop_all()
    return source
