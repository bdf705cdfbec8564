"""How far a long command is, on stderr: a bar for a person, a line each 5 s elsewhere, nothing when quiet."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from anvilmq.cli import times

if TYPE_CHECKING:
    import rich.progress

    from anvilmq._clock import Clock
    from anvilmq.cli.terminal import Terminal

EVERY_S: Final = 5.0


class Progress:
    """Counts what is done. total: None when nobody knows. Use it as a context, so that the bar is taken away."""

    def __init__(self, terminal: Terminal, clock: Clock, what: str, *, unit: str, total: int | None) -> None:
        self._terminal = terminal
        self._clock = clock
        self._what = what
        self._unit = unit
        self._total = total
        self._done = 0
        self._began_at = clock.monotonic()
        self._told_at = self._began_at
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> Self:
        if self._terminal.err_is_tty and not self._terminal.quiet:
            self._bar = self._open_bar()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def add(self, count: int) -> None:
        """That many more are done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
        elif self._clock.monotonic() - self._told_at >= EVERY_S:
            self._told_at = self._clock.monotonic()
            self._terminal.note(self.line())

    def line(self) -> str:
        """Where it stands: "load: 1200 of 5000 lines (24%), 400/s, 9s left"."""
        took_s = self._clock.monotonic() - self._began_at
        rate = self._done / took_s if took_s > 0 else 0.0
        parts = [self._count(), f"{rate:.0f}/s"]
        if self._total is not None and rate > 0:
            parts.append(f"{times.short(round(max(self._total - self._done, 0) / rate * 1_000))} left")
        return f"{self._what}: {', '.join(parts)}"

    def _count(self) -> str:
        if self._total is None:
            return f"{self._done} {self._unit}"
        share = 100 * self._done // self._total if self._total else 100
        return f"{self._done} of {self._total} {self._unit} ({share}%)"

    def _open_bar(self) -> rich.progress.Progress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            ProgressColumn,
            Task,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar
        from rich.text import Text

        class Rate(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(f"{task.speed or 0:.0f}/s")

        bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            Rate(),
            TimeRemainingColumn(),
            console=Console(file=self._terminal.stderr),
            transient=True,
        )
        bar.add_task(self._what, total=self._total)
        bar.start()
        return bar
