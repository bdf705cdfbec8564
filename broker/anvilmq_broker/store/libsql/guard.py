"""Keeps everybody but the driver away from the open database.

POSIX locks belong to a process, not to a descriptor: whoever opens the file a second time in this process and closes it
drops the locks of the first, and commits that were acknowledged can vanish. The driver opens it by system calls of its
own, unseen by Python; whatever Python itself would open there is refused before it happens.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_PATH_AT: Final = {
    "open": (0,),
    "sqlite3.connect": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.link": (0, 1),
    "os.truncate": (0,),
}
"""Events of the interpreter that touch a file, and where the paths stand among their arguments."""


class Untouchable(BaseException):
    """Code of this process would have opened, moved or removed a file of the open database."""


def install(data_dir: Path) -> None:
    """Refuse such acts below `db/` of this folder from now on; for good, since a hook cannot be taken out again."""
    below = os.path.realpath(data_dir / "db") + os.sep

    def watch(event: str, args: tuple[object, ...]) -> None:
        places = _PATH_AT.get(event)
        if places is None:
            return
        for place in places:
            path = args[place] if place < len(args) else None
            if isinstance(path, (str, bytes, os.PathLike)) and (_real(path) + os.sep).startswith(below):
                raise Untouchable(f"{event} of {os.fsdecode(path)}: only the driver touches the open database")

    sys.addaudithook(watch)


def _real(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """The path without links; a database may be named by a URI."""
    text = os.fsdecode(path)
    return os.path.realpath(text.removeprefix("file:").partition("?")[0] if text.startswith("file:") else text)
