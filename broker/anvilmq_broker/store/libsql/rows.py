"""Rows to values and back: the only place that knows the order of a statement's columns."""

from __future__ import annotations

from typing import Final

import msgspec

from anvilmq_broker.domain import backoff, commands, job, receipt
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql.driver import Row, Scalar

HAS_KEY: Final = 1
SINGLETON: Final = 2
OWN_RETENTION: Final = 4
"""Bits of `jobs.traits`: what follows from a job's end beside its own row. 4 and more: it is not completed in sets."""

_pack = msgspec.msgpack.Encoder().encode
_unpack_texts = msgspec.msgpack.Decoder(dict[str, str]).decode
_unpack_backoff = msgspec.msgpack.Decoder(backoff.Backoff).decode
unpack_policy_patch = msgspec.msgpack.Decoder(commands.PolicyPatch).decode


def packed(texts: dict[str, str] | None) -> bytes | None:
    """Headers or labels as stored; None when there are none."""
    return _pack(texts) if texts else None


def texts(blob: bytes | None) -> dict[str, str] | None:
    """The inverse of `packed`."""
    return _unpack_texts(blob) if blob else None


def traits(value: job.Job) -> int:
    """The job's bits."""
    bits = 0
    if value.key:
        bits = HAS_KEY | (SINGLETON if value.singleton else 0)
    if value.policy.retain_completed_ms is not None or value.policy.retain_failed_ms is not None:
        bits |= OWN_RETENTION
    return bits


def own_slot(state: int) -> int:
    """Place in `counts`, beside the states, of the ended jobs of that state with a retention of their own."""
    return state + 8


def is_plain(value: job.Job) -> bool:
    """Whether the row needs nothing beyond the columns of the two narrow inserts."""
    return value.policy is job.DEFAULT_POLICY and not value.expires_at_ms and not value.key and value.origin is None


def to_job(row: Row, queue: str) -> job.Job:
    """A job from a row of `get_job`."""
    own_backoff = _unpack_backoff(row[35]) if row[35] else backoff.DEFAULT
    policy = commands.Policy(row[25], own_backoff, row[26], row[27], row[28], row[29], row[30], row[31], row[32])
    return job.Job(
        number=row[0],
        created_ms=row[1],
        queue=queue,
        name=row[3],
        state=State(row[4]),
        priority=row[5],
        run_at_ms=row[6],
        ready_at_ms=row[7],
        ready_seq=row[8],
        policy=policy,
        expires_at_ms=row[9] or 0,
        attempt=row[10],
        starts=row[11],
        stalled=row[12],
        token=row[13],
        worker_id=row[14] or "",
        claim_id=row[15] or "",
        started_at_ms=row[16] or 0,
        timeout_at_ms=row[17] or 0,
        finished_at_ms=row[18] or 0,
        finish_reason=row[19] or 0,
        finish_message=row[20] or "",
        cancel_requested=bool(row[21]),
        last_token=row[22] or "",
        last_outcome=row[23] or 0,
        last_state=row[24] or 0,
        key=row[36] or "",
        singleton=bool(row[33] & SINGLETON),
        revision=row[34],
        origin=None if row[37] is None else job.Origin(row[37], row[38], row[39]),
        caused_by=None if row[40] is None else commands.JobRef(row[40], row[41]),
    )


def full_row(value: job.Job, queue_id: int) -> tuple[Scalar, ...]:
    """A row of `insert_jobs`."""
    policy = value.policy
    return (
        value.number,
        queue_id,
        value.name,
        int(value.state),
        value.priority,
        value.run_at_ms,
        value.ready_at_ms,
        value.ready_seq,
        traits(value),
        value.attempt,
        value.starts,
        value.token,
        value.worker_id or None,
        value.claim_id or None,
        value.started_at_ms or None,
        value.timeout_at_ms or None,
        policy.max_attempts,
        policy.lease_ms,
        policy.attempt_timeout_ms,
        policy.max_stalled,
        policy.max_starts,
        policy.backoff.jitter_permille,
        policy.retain_completed_ms,
        policy.retain_failed_ms,
        policy.receipt_ttl_ms,
        value.expires_at_ms or None,
        *((value.origin.number, value.origin.scheduler, value.origin.tick_ms) if value.origin else (None, None, None)),
    )


def full_body(value: job.Job, new: commands.NewJob) -> tuple[Scalar, ...]:
    """A row of `insert_full_bodies`."""
    own = value.policy.backoff
    return (
        value.number,
        new.content_type or None,
        packed(new.headers),
        packed(new.labels),
        None if own == backoff.DEFAULT else _pack(own),
        new.key or None,
        new.data,
    )


def changed_row(before: job.Job, after: job.Job) -> tuple[Scalar, ...]:
    """Arguments of `save_job`."""
    return (
        after.number,
        int(before.state),
        before.token,
        int(after.state),
        after.run_at_ms,
        after.ready_at_ms,
        after.ready_seq,
        after.attempt,
        after.starts,
        after.stalled,
        after.token,
        after.worker_id or None,
        after.claim_id or None,
        after.started_at_ms or None,
        after.timeout_at_ms or None,
        after.finished_at_ms or None,
        int(after.finish_reason) or None,
        after.finish_message or None,
        int(after.cancel_requested),
        after.last_token or None,
        int(after.last_outcome) or None,
        int(after.last_state) or None,
        job.prune_at_ms(after) if after.terminal else None,
    )


def attempt_row(number: int, end: job.AttemptEnd) -> tuple[Scalar, ...]:
    """Arguments of `insert_attempt`."""
    record, error = end.record, end.record.error or commands.ErrorInfo()
    return (
        number,
        record.start,
        record.number,
        record.worker_id,
        record.started_at_ms,
        record.ended_at_ms,
        int(record.outcome),
        end.token,
        int(end.settle_outcome),
        int(end.answer_state),
        error.type or None,
        error.message or None,
        error.stack or None,
        error.details_json or None,
    )


def to_attempt(row: Row) -> commands.AttemptRecord:
    """An attempt from a row of `list_attempts`."""
    texts_of_error = [text or "" for text in row[6:10]]
    error = commands.ErrorInfo(*texts_of_error) if any(texts_of_error) else None
    return commands.AttemptRecord(row[0], row[1], row[2], row[3], row[4], row[5], error)


def to_receipt(row: Row, queue: str, name: str, key: str) -> receipt.Receipt:
    """A receipt from a row of `get_receipt`."""
    return receipt.Receipt(queue, name, key, bool(row[0]), row[1], row[2], row[3], row[4], row[5] or 0)
