"""Builders of commands with defaults that a test does not care about."""

import hashlib
from typing import Any, Final

import msgspec

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.backoff import Backoff, Kind
from anvilmq_broker.domain.state import SettleOutcome
from anvilmq_broker.store.protocol import Slot

QUEUE: Final = "mail"
NAME: Final = "send"
WORKER: Final = "worker-1"
NO_BACKOFF: Final = Backoff(Kind.FIXED, 0, 0, 0)
"""A failed job joins the tail of its class at once."""


def new_job(queue: str = QUEUE, name: str = NAME, **fields: Any) -> commands.NewJob:
    """A job to add. With a key in RETAIN mode and no digest of its own it gets that of its fields, as a gateway does."""
    job = commands.NewJob(queue, name, **fields)
    if job.key and not job.singleton and not job.digest:
        request = msgspec.structs.replace(job, key="")
        return msgspec.structs.replace(job, digest=hashlib.sha256(msgspec.msgpack.encode(request)).digest())
    return job


def policy(**fields: Any) -> commands.PolicyPatch:
    """Options of a job, as sent."""
    return commands.PolicyPatch(**fields)


def slots(count: int, worker_id: str = WORKER) -> list[Slot]:
    """Room for `count` jobs in one worker."""
    return [Slot(worker_id)] * count


def identity(worker_id: str = WORKER) -> commands.WorkerIdentity:
    """Who works."""
    return commands.WorkerIdentity(worker_id)


def ref(of: commands.Delivery | commands.JobRecord) -> commands.JobRef:
    """The job's name inside the broker."""
    return commands.JobRef(of.number, of.created_ms)


def lease(of: commands.Delivery) -> commands.LeaseRef:
    """The right to write for this attempt."""
    return commands.LeaseRef(of.number, of.created_ms, of.token)


def complete(of: commands.Delivery, result: bytes = b"", content_type: str = "") -> commands.Settlement:
    """The attempt succeeded."""
    return _settlement(of, SettleOutcome.COMPLETE, result=result, result_content_type=content_type)


def fail(of: commands.Delivery, error: commands.ErrorInfo | None = None, **fields: Any) -> commands.Settlement:
    """The attempt failed. fields: non_retryable, retry_after_ms."""
    return _settlement(of, SettleOutcome.FAIL, error=error, **fields)


def release(of: commands.Delivery, **fields: Any) -> commands.Settlement:
    """The job is handed back. fields: delay_ms, reason."""
    return _settlement(of, SettleOutcome.RELEASE, **fields)


def _settlement(of: commands.Delivery, outcome: SettleOutcome, **fields: Any) -> commands.Settlement:
    return commands.Settlement(of.number, of.created_ms, of.token, int(outcome), **fields)
