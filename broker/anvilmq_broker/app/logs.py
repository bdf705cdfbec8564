"""How every process of the broker prints its lines: structlog, JSON in pods, colours on a terminal, to stderr."""

from __future__ import annotations

import logging
import sys

import structlog

from anvilmq_broker.app.settings import Settings, log_as_json


def configure(settings: Settings, process: str) -> None:
    """Set up logging for this process, once at its start. process: supervisor, engine, gateway-0, …"""
    level = getattr(logging, settings.log_level.upper())
    as_json = log_as_json(settings)
    renderer = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # Bound once for good: there is one context a process, and tasks inherit it.
    structlog.contextvars.bind_contextvars(process=process)
    logging.basicConfig(level=max(level, logging.WARNING), stream=sys.stderr)
