"""The engine's process: `python -m anvilmq_broker.app.engine DESCRIPTOR`, started by the supervisor."""

from __future__ import annotations

import sys
from pathlib import Path

import structlog

from anvilmq_broker.app.child_start import run_child
from anvilmq_broker.app.children import Line, Start
from anvilmq_broker.engine.main import Config, run_engine


def _run(start: Start, line: Line) -> int:
    settings = start.settings
    log = structlog.get_logger("anvilmq.store")
    config = Config(
        store=settings.store,
        data_dir=Path(settings.data_dir),
        durability=settings.durability,
        socket=Path(start.engine_socket),
        lock_wait_ms=settings.lock_wait,
        max_queue_jobs=settings.max_queue_jobs,
        allow_filesystem=settings.allow_filesystem,
        startup_check=settings.startup_check,
    )
    return run_engine(config, line, lambda message: log.warning("store_warning", text=message))


if __name__ == "__main__":
    sys.exit(run_child(sys.argv, _run))
