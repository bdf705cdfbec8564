"""What the engine's and a gateway's process have in common: the line to the supervisor, logging, last words."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

import structlog

from anvilmq_broker.app import logs
from anvilmq_broker.app.children import EXIT_START_REFUSED, Line, Start
from anvilmq_broker.domain.errors import StartRefused

_PR_SET_PDEATHSIG: Final = 1


def run_child(argv: list[str], run: Callable[[Start, Line], int]) -> int:
    """The body of a child process; its exit code. argv: the number of the inherited descriptor."""
    _die_with_parent()
    # Ctrl-C reaches the whole group of processes; the supervisor says what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)
    line = Line.inherited(int(argv[1]))
    try:
        start = line.receive_start()
    except EOFError:
        return 1
    logs.configure(start.settings, start.process)
    log = structlog.get_logger("anvilmq.app")
    try:
        return run(start, line)
    except StartRefused as refused:
        line.fatal(refused.reason, refused.message)
        return EXIT_START_REFUSED
    except Exception as error:
        log.exception("child_failed")
        line.fatal("internal", f"{type(error).__name__}: {error}")
        return 1
    finally:
        line.close()


def _die_with_parent() -> None:
    """A child must not outlive a supervisor that was killed, not even while it cannot read its line."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
