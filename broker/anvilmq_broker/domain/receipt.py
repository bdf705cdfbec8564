"""Idempotency receipts: what an add with a key meets, and how long the key lives (semantics 2.1, 2.2)."""

from __future__ import annotations

import msgspec

from anvilmq_broker.domain import commands, ids, job
from anvilmq_broker.domain.errors import Refused


class Receipt(msgspec.Struct, frozen=True):
    """The remembered answer to an add. expires_at_ms: 0 while its job is not terminal."""

    queue: str
    name: str
    key: str
    singleton: bool
    number: int
    job_created_ms: int
    digest: bytes
    created_ms: int
    expires_at_ms: int = 0

    def live(self, now_ms: int) -> bool:
        """Whether the key is still held."""
        return self.expires_at_ms == 0 or self.expires_at_ms > now_ms


def meet(receipt: Receipt, new: commands.NewJob) -> commands.JobRef | Refused:
    """What an add with a live key gets: the first job, or a refusal when it asks for something else.

    The stored mode decides: a singleton matches whatever the request [2.1, 9.6].
    """
    if receipt.singleton or receipt.digest == new.digest:
        return commands.JobRef(receipt.number, receipt.job_created_ms)
    job_id = ids.encode(receipt.job_created_ms, receipt.number)
    return Refused(
        "IDEMPOTENCY_KEY_REUSED",
        f"the idempotency key {new.key!r} was used for another request, job {job_id}; use another key, or repeat "
        "the request unchanged",
        "idempotency_key",
        {
            "queue": new.queue,
            "name": new.name,
            "key": new.key,
            "job_id": job_id,
            "flow_id": "",
            "same_request": "false",
        },
    )


def expires_at_ms(ended: job.Job, now_ms: int) -> int | None:
    """When the RETAIN receipt of a job that has just ended or been removed expires; None: a singleton's, free at once."""
    return None if ended.singleton else now_ms + ended.policy.receipt_ttl_ms
