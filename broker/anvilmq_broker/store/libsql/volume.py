"""The data folder: one writer by `flock`, a file system that keeps its locks and flushes, enough room.

Layout: `db/anvilmq.db` (with its WAL), `broker.lock`, `ballast`. Nothing but the driver opens a file under `db/`: a second
open of the database in this process, closed again, would drop its POSIX locks, and acknowledged commits could vanish.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from anvilmq_broker.domain.errors import StartRefused

NETWORK_FILE_SYSTEMS: Final = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "afs", "beegfs", "fuse",
)  # fmt: skip
"""Types of /proc/self/mountinfo on which a database's locks or flushes cannot be trusted, and every `fuse.…`."""

LOCK_FILE: Final = "broker.lock"
DATABASE: Final = "db/anvilmq.db"
BALLAST_FILE: Final = "ballast"
BALLAST_BYTES: Final = 64 << 20
"""Size of the ballast of a broker in earnest."""
ROOM_FOR_BALLAST: Final = 128 << 20
"""Free bytes above the floor from which on the ballast is laid down."""
ROOM_TO_START: Final = 32 << 20
"""Free bytes below which a start gives up the ballast: it must write its epoch."""
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_FLOOR_SHARE: Final = 20
_FLOOR_LEAST: Final = 128 << 20
_FLOOR_MOST: Final = 2 << 30


class Lock:
    """The exclusive right to the data folder, held until close or the end of the process."""

    def __init__(
        self,
        folder: Path,
        wait_s: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take it, waiting up to wait_s seconds. Raises StartRefused naming the holder."""
        try:
            self._file = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(folder / LOCK_FILE, error) from error
        deadline = monotonic() + wait_s
        while not self._try():
            if monotonic() >= deadline:
                holder = os.pread(self._file, 200, 0).decode("utf-8", "replace").strip() or "an unknown process"
                os.close(self._file)
                raise StartRefused(
                    "data_folder_in_use",
                    f"{folder} is in use by {holder}: stop that broker first, or wait longer for it with "
                    "ANVILMQ_LOCK_WAIT=60s",
                )
            sleep(0.1)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)

    def close(self) -> None:
        """Give it up; safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _try(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Ballast:
    """Real blocks kept back on the volume: a full disk refuses deletions and checkpoints too, until this is given up."""

    def __init__(self, folder: Path, size: int) -> None:
        """size: bytes; 0 keeps nothing back."""
        self._path = folder / BALLAST_FILE
        self._size = size

    def make(self) -> None:
        """Lay it down if it is not there; a volume that refuses has none."""
        if not self._size or self._path.exists():
            return
        try:
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._size)
        except OSError:
            self.drop()

    def drop(self) -> bool:
        """Give it up; whether there was any."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def prepare(folder: Path) -> None:
    """Make the folder and `db/` in it, 0700, and the names durable. Raises StartRefused when that fails."""
    made = folder / "db"
    try:
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (folder, folder.parent):
            _flush(path)
    except OSError as error:
        raise _unusable(folder, error) from error
    if not os.access(made, os.W_OK | os.X_OK):
        raise StartRefused(
            "data_folder_unusable",
            f"{folder} is not writable for user {os.getuid()}: change its owner or ANVILMQ_DATA_DIR",
        )


def _flush(folder: Path) -> None:
    """The database flushes its own folder; what names that one is flushed here."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        # The parent may be somebody else's, and is then no news.
        return
    try:
        os.fsync(opened)
    except OSError as error:
        # A file system that cannot flush a folder says so in this way.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(opened)


def _unusable(path: Path, error: OSError) -> StartRefused:
    return StartRefused(
        "data_folder_unusable",
        f"cannot make {path}: {error.strerror}; give ANVILMQ_DATA_DIR a folder this user may write",
    )


def check_mount(folder: Path, allowed: str, mountinfo: str | None = None) -> str | None:
    """Refuse network file systems unless `allowed` names the type; return a warning for one that forgets, or None.

    mountinfo: text of /proc/self/mountinfo, read when None; where there is none (macOS) nothing is checked.
    """
    if mountinfo is None:
        if not sys.platform.startswith("linux"):
            return None
        mountinfo = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
    kind = _file_system(folder.resolve(), mountinfo)
    if kind.split(".")[0] in NETWORK_FILE_SYSTEMS and kind != allowed:
        raise StartRefused(
            "file_system_unsafe",
            f"{folder} lies on {kind}, where locks and flushes cannot be trusted: use a block volume, or accept the risk "
            f"with ANVILMQ_ALLOW_FILESYSTEM={kind}",
        )
    return (
        f"{folder} lies on {kind}: nothing survives a restart of this machine" if kind in ("tmpfs", "ramfs") else None
    )


def floor_bytes(total: int) -> int:
    """Free space below which adds are refused: 5 % of the volume, within 128 MiB … 2 GiB."""
    return min(max(total // _FLOOR_SHARE, _FLOOR_LEAST), _FLOOR_MOST)


def space(folder: Path) -> tuple[int, int]:
    """(free bytes for this user, total bytes) of the volume under the folder."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize


def _file_system(path: Path, mountinfo: str) -> str:
    best, kind = "", "unknown"
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4])
        if (path == Path(point) or Path(point) in path.parents) and len(point) >= len(best):
            best, kind = point, right.split(" ")[0]
    return kind
