"""The log of a worker process: one line each for people, JSON where nobody watches."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from anvilmq._logs import JobFields

if TYPE_CHECKING:
    from typing import TextIO

_FIELDS: Final = ("queue", "job_id", "job_name", "attempt", "worker_id", "err_type", "reason")


def write_to(stream: TextIO) -> None:
    """Write what is logged from INFO on to a stream, with the job that a handler runs. For a process of its own."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainLines() if stream.isatty() else JsonLines())
    handler.addFilter(JobFields())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class JsonLines(logging.Formatter):
    """An object a line: ts, level, logger, event, and what is known of the job."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class PlainLines(logging.Formatter):
    """A line for people: time, level, event, job."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s%(job)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        job_id = getattr(record, "job_id", "")
        record.job = f" [{job_id}]" if job_id and job_id not in record.getMessage() else ""
        return super().format(record)
