"""What keeps the file in shape between batches: checkpoints, and a watch on the room that is left.

A checkpoint comes after the answers have left. One connection writes and nobody reads beside it, so a PASSIVE one folds
the whole WAL in and the next commit starts at its head again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from anvilmq_broker.domain.errors import StorageFull
from anvilmq_broker.store.libsql import volume
from anvilmq_broker.store.libsql.sql import Sql

PASSIVE_AT: Final = 16 << 20
TRUNCATE_AT: Final = 64 << 20
IDLE_BEFORE_TRUNCATE_S: Final = 1.0
SPACE_EVERY_S: Final = 1.0
SPACE_EVERY_BYTES: Final = 16 << 20
_BYTES_PER_COMMIT: Final = 8 * 4096


class Upkeep:
    """Knows how much was written since the last checkpoint and the last look at the volume."""

    def __init__(
        self,
        folder: Path,
        *,
        ballast: volume.Ballast,
        monotonic: Callable[[], float],
        free_space: Callable[[Path], tuple[int, int]],
        warn: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._ballast = ballast
        self._monotonic = monotonic
        self._free_space = free_space
        self._warn = warn
        self._dirty = True
        self._since_checkpoint = 0
        self._since_look = SPACE_EVERY_BYTES
        self._last_write = monotonic()
        self._last_look = self._last_write
        self._has_space = True

    def wrote(self, estimate: int) -> None:
        """A batch was committed. estimate: bytes that its rows added to the WAL."""
        self._dirty = True
        self._since_checkpoint += estimate + _BYTES_PER_COMMIT
        self._since_look += estimate + _BYTES_PER_COMMIT
        self._last_write = self._monotonic()

    def housekeep(self, sql: Sql, idle: bool) -> None:
        """Checkpoint when the WAL has grown, or when nothing happens; never inside a batch."""
        if not self._dirty:
            return
        if self._since_checkpoint >= PASSIVE_AT:
            # An estimate: a WAL that was folded in whole starts again at its head and keeps its size, which is what
            # makes its flushes cheap, so the file's size says nothing until it is far too large.
            large = (self._folder / f"{volume.DATABASE}-wal").stat().st_size > TRUNCATE_AT
            self._checkpoint(sql, "TRUNCATE" if large else "PASSIVE")
        elif idle and self._monotonic() - self._last_write >= IDLE_BEFORE_TRUNCATE_S:
            self._checkpoint(sql, "TRUNCATE")
            self._dirty = False

    def accepts_adds(self, sql: Sql) -> bool:
        """False while there is less room than the floor; looked at once a second and each 16 MiB written."""
        now = self._monotonic()
        if now - self._last_look >= SPACE_EVERY_S or self._since_look >= SPACE_EVERY_BYTES:
            self._last_look, self._since_look = now, 0
            free, total = self._free_space(self._folder)
            floor = volume.floor_bytes(total)
            # What pruning freed inside the file never goes back to the volume, and is as good.
            self._has_space = free + _free_pages(sql) >= floor
            if free >= floor + volume.ROOM_FOR_BALLAST:
                self._ballast.make()
        return self._has_space

    def make_room(self, sql: Sql) -> None:
        """The volume is full: give up the ballast, so that what frees room can be written."""
        self._no_room()
        if self._ballast.drop():
            self._warn("the volume is full: the ballast was given up; free space, or grow the volume")
        # The ballast is as large as the log may become: there is room to fold it in, and then that of the log itself.
        self._checkpoint(sql, "TRUNCATE")

    def _no_room(self) -> None:
        self._has_space = False
        self._last_look, self._since_look = self._monotonic(), 0

    def _checkpoint(self, sql: Sql, how: str) -> None:
        self._since_checkpoint = 0
        try:
            sql.connection.execute(f"PRAGMA wal_checkpoint({how})")
        except StorageFull:
            # The WAL goes on growing instead. What was committed is safe in it.
            sql.connection.was_full = False
            self._no_room()
            self._warn("the volume is full: the write-ahead log could not be folded in; free space, or grow the volume")


def _free_pages(sql: Sql) -> int:
    """Bytes of the file that hold nothing."""
    pages = sql.connection.execute("PRAGMA freelist_count")[0][0]
    return int(pages * sql.connection.execute("PRAGMA page_size")[0][0])
