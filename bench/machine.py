"""The machine a figure was taken on: cores, versions, the file system below the data, the cost of a flush."""

from __future__ import annotations

import os
import platform
import statistics
import time
from importlib import metadata
from pathlib import Path

_PACKAGES = ("anvilmq", "grpcio", "protobuf", "msgspec", "libsql")


def describe(folder: Path) -> dict[str, str]:
    """Facts that a reader needs to judge a figure; folder: where the database will lie."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _PACKAGES},
        "file system": _file_system(folder),
        "date": time.strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    """Type of the mount that holds the folder: the longest mount point that is a parent of it."""
    place = folder.resolve()
    best, kind = Path("/"), "unknown"
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, point, fs_type, *_ = line.split()
        mount = Path(point)
        if place.is_relative_to(mount) and len(mount.parts) >= len(best.parts):
            best, kind = mount, fs_type
    return kind


def flush_us(folder: Path, times: int = 200) -> float:
    """Median time in µs to append 16 KiB to a file in the folder and fdatasync it: the floor of a commit."""
    path = folder / "flush-probe"
    block = b"\0" * 16_384
    taken = []
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(times):
            begun = time.perf_counter_ns()
            os.write(file, block)
            os.fdatasync(file)
            taken.append(time.perf_counter_ns() - begun)
    finally:
        os.close(file)
        path.unlink()
    return statistics.median(taken) / 1_000
