"""How a child process (the engine, a gateway) reports to its supervisor; carried out by app/children.py."""

from __future__ import annotations

from typing import Protocol

from anvilmq_broker.engine.metrics import Snapshot


class Handler(Protocol):
    """What a child does when the supervisor speaks."""

    def snapshot(self) -> Snapshot:
        """What was counted so far."""

    def stop(self, grace_ms: int) -> None:
        """Begin to stop; returns at once. grace_ms 0: the supervisor is gone, leave now."""


class Reporter(Protocol):
    """The child's end of the line to its supervisor. Nothing here blocks.

    Put `fileno()` into the selector or event loop of the process, call `readable()` when it can be read, and `flush()`
    when it can be written while `unsent` is true.
    """

    @property
    def unsent(self) -> bool:
        """Whether something waits for room in the socket."""

    def fileno(self) -> int:
        """For a selector."""

    def serve(self, handler: Handler) -> None:
        """From now on `readable` answers with the help of this handler."""

    def readable(self) -> None:
        """Read and answer what the supervisor said."""

    def flush(self) -> None:
        """Send as much as there is room for."""

    def ready(self, *, serving: bool = True, facts: dict[str, str] | None = None) -> None:
        """Serving. A gateway says so again whenever that changes: it has lost its engine, or has found it again.

        facts: what the supervisor prints at start.
        """

    def stopping(self) -> None:
        """On the way out in good order."""
