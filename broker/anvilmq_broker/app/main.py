"""`anvilmq-broker`: reads the settings, runs the supervisor, turns how it ended into an exit code and last words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Final

from anvilmq_broker.app import settings as app_settings
from anvilmq_broker.app.children import EXIT_START_REFUSED

TERMINATION_LOG: Final = Path("/dev/termination-log")
"""Where Kubernetes looks for why a container ended, when it has mounted it."""


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run())


def run() -> int:
    """Run the broker; its exit code."""
    try:
        settings = app_settings.read()
    except app_settings.SettingsInvalid as invalid:
        return _refuse("settings_invalid", "; ".join(invalid.faults))
    os.umask(0o077)
    import structlog

    from anvilmq_broker.app import logs
    from anvilmq_broker.app.supervisor import AddressTaken, Supervisor

    logs.configure(settings, "supervisor")
    for text in app_settings.warnings(settings):
        structlog.get_logger("anvilmq.app").warning("settings_warning", text=text)
    supervisor = Supervisor(settings, app_settings.runtime_dirs())
    try:
        code = asyncio.run(supervisor.run())
    except AddressTaken as taken:
        return _refuse("address_taken", str(taken))
    if supervisor.fatal is not None:
        _last_words(supervisor.fatal.reason, supervisor.fatal.message)
    return code


def _refuse(reason: str, message: str) -> int:
    _last_words(reason, message)
    return EXIT_START_REFUSED


def _last_words(reason: str, message: str) -> None:
    """One JSON line, on stderr and where Kubernetes looks: reason in CamelCase, as it wants it."""
    line = json.dumps({"reason": "".join(word.capitalize() for word in reason.split("_")), "message": message})
    sys.stderr.write(line + "\n")
    with contextlib.suppress(OSError):
        if TERMINATION_LOG.exists():
            TERMINATION_LOG.write_text(line)
