"""protobuf ↔ domain, the only place where the two meet. Runs for every job: terse on purpose.

Inwards each value is checked on its way (validate.py); a wrong one raises Rejected with a path relative to its item.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from anvilmq_broker.domain import backoff, commands, ids
from anvilmq_broker.domain.state import State
from anvilmq_broker.gateway import features, limits, validate
from anvilmq_broker.gateway.refusals import invalid, lease_lost, not_built, payload_too_large, required
from anvilmq_proto.v1 import job_service_pb2, receipt_service_pb2, types_pb2, worker_service_pb2

JSON: Final = "application/json"
TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate", "baggage"})
_SINGLETON: Final = types_pb2.IDEMPOTENCY_MODE_RELEASE_ON_FINISH
_RETAIN: Final = types_pb2.IDEMPOTENCY_MODE_RETAIN
_COMPLETE: Final = int(worker_service_pb2.SETTLE_OUTCOME_COMPLETE)
_FIXED: Final = types_pb2.BACKOFF_KIND_FIXED
_DELAYED: Final = State.DELAYED
_WAITING: Final = State.WAITING
_DEFAULT_MAX_ATTEMPTS: Final = commands.Policy().max_attempts
_MOST_SHAPES: Final = 1_024
_MAX_SHAPE_BYTES: Final = 1_024
_RAISE_PAYLOAD_LIMIT: Final = "store it elsewhere and send a reference, or raise ANVILMQ_MAX_PAYLOAD_BYTES"

# ------------------------------------------------------------------------------------------------ inwards


Shapes = dict[bytes, tuple[str, str, tuple[Any, ...]]]
"""Of jobs that differ in their data alone, by their encoded rest: queue, name and what follows the data in a NewJob."""


def new_job(spec: types_pb2.JobSpec, bounds: limits.Limits, shapes: Shapes | None = None) -> commands.NewJob:
    """A JobSpec, checked alone. shapes: remembers what was checked; the spec is then of no further use."""
    data = spec.data
    if len(data) > bounds.max_payload_bytes:
        raise payload_too_large("data", len(data), bounds.max_payload_bytes, _RAISE_PAYLOAD_LIMIT)
    if shapes is None:
        return _new_job(spec, data)
    # To read each field costs more than to encode them all.
    spec.ClearField("data")
    shape = spec.SerializeToString()
    if (kept := shapes.get(shape)) is not None:
        return commands.NewJob(kept[0], kept[1], data, *kept[2])
    spec.data = data
    new = _new_job(spec, data)
    if not new.key and new.headers is None and len(shape) <= _MAX_SHAPE_BYTES:
        if len(shapes) >= _MOST_SHAPES:
            shapes.clear()
        shapes[shape] = (new.queue, new.name, msgspec.structs.astuple(new)[3:])
    return new


def _new_job(spec: types_pb2.JobSpec, data: bytes) -> commands.NewJob:
    if spec.group_id or spec.HasField("order_key") or spec.HasField("deduplication"):
        features.refuse_unbuilt(spec)
    content_type, priority, key = spec.content_type, spec.priority, spec.idempotency_key
    delay_ms, run_at_ms = spec.delay_ms, spec.run_at_ms
    expires_at_ms, expires_after_ms = spec.expires_at_ms, spec.expires_after_ms
    if content_type:
        validate.plain_text(content_type, "content_type", limits.MAX_CONTENT_TYPE_BYTES)
    if priority:
        validate.number(priority, "priority", 0, limits.MAX_PRIORITY)
    if delay_ms or run_at_ms or expires_at_ms or expires_after_ms:
        _times(spec)
    singleton, digest = False, b""
    if key:
        validate.key(key)
        singleton = spec.idempotency_mode == _SINGLETON
        if not singleton:
            digest = request_digest(spec)
    return commands.NewJob(
        validate.queue(spec.queue),
        validate.name(spec.name),
        data,
        "" if content_type == JSON else content_type,
        priority,
        delay_ms,
        run_at_ms,
        expires_at_ms,
        expires_after_ms,
        spec.lifo,
        key,
        singleton,
        digest,
        validate.headers(spec.headers) if len(spec.headers) else None,
        validate.labels(spec.labels) if len(spec.labels) else None,
        _policy(spec.policy.SerializeToString(deterministic=True)) if spec.HasField("policy") else None,
    )


def request_digest(spec: Message) -> bytes:
    """SHA-256 by which "same request" is decided [2.1]: the JobSpec as sent [api 9.6].

    Own encoding, not protobuf's, whose bytes another version of the library may order in another way.
    """
    return hashlib.sha256(msgspec.msgpack.encode(_canonical(spec))).digest()


def lease(item: Any) -> commands.LeaseRef:
    """The lease that a message with job_id and lease_token names. Raises Rejected LEASE_LOST for what cannot be one."""
    job_id, token = item.job_id, item.lease_token
    if not job_id:
        raise required("job_id")
    if not token:
        raise required("lease_token")
    place = ids.decode(job_id)
    if place is None or len(token) > limits.MAX_LEASE_TOKEN_BYTES or not token.isascii():
        raise lease_lost(job_id[: ids.LENGTH])
    return commands.LeaseRef(place[1], place[0], token)


def settlement(item: worker_service_pb2.Settlement) -> commands.Settlement:
    """The end of one attempt. Fields of other outcomes are left aside."""
    outcome, place, token = item.outcome, ids.decode(item.job_id), item.lease_token
    if place is None or not token or len(token) > limits.MAX_LEASE_TOKEN_BYTES or not token.isascii():
        # For its refusals.
        lease(item)
        raise AssertionError("a lease that is none")
    created_ms, number = place
    if outcome == _COMPLETE:
        result, content_type = item.result, item.result_content_type
        if content_type or len(result) > limits.MAX_RESULT_BYTES:
            content_type = _check_result(result, content_type)
        return commands.Settlement(number, created_ms, token, _COMPLETE, result, content_type)
    return _other_settlement(item, outcome, commands.LeaseRef(number, created_ms, token))


def _other_settlement(item: worker_service_pb2.Settlement, outcome: int, ref: commands.LeaseRef) -> commands.Settlement:
    if outcome == worker_service_pb2.SETTLE_OUTCOME_FAIL:
        retry_after = None
        if item.HasField("retry_after_ms"):
            retry_after = validate.duration(item.retry_after_ms, "retry_after_ms", limits.MAX_BACKOFF_MS)
        error = _error(item.error) if item.HasField("error") else None
        return commands.Settlement(
            ref.number, ref.created_ms, ref.token, outcome, b"", "", error, item.non_retryable, retry_after
        )
    if outcome == worker_service_pb2.SETTLE_OUTCOME_RELEASE:
        delay = validate.duration(item.delay_ms, "delay_ms")
        reason = validate.text(item.reason, "reason", limits.MAX_REASON_BYTES)
        return commands.Settlement(ref.number, ref.created_ms, ref.token, outcome, delay_ms=delay, reason=reason)
    if outcome in features.OUTCOMES_NOT_BUILT:
        raise not_built("outcome")
    raise invalid("outcome", "must be COMPLETE, FAIL or RELEASE")


def worker_identity(worker: worker_service_pb2.WorkerIdentity, field: str = "worker") -> commands.WorkerIdentity:
    """Who works."""
    worker_id = validate.name(worker.worker_id, f"{field}.worker_id")
    told = (worker.name, worker.pod, worker.node, worker.sdk, worker.sdk_version)
    for name, value in zip(("name", "pod", "node", "sdk", "sdk_version"), told, strict=True):
        validate.text(value, f"{field}.{name}", limits.MAX_KEY_BYTES)
    return commands.WorkerIdentity(worker_id, *told)


def pool(message: worker_service_pb2.Pool, field: str) -> commands.Pool:
    """Slots that serve 1–64 queues."""
    validate.number(message.id, f"{field}.id", 1, 0xFFFF_FFFF)
    validate.batch(len(message.queues), f"{field}.queues", limits.MAX_POOL_QUEUES)
    validate.number(message.concurrency, f"{field}.concurrency", 0, 0x7FFF_FFFF)
    queues = [validate.queue(queue, f"{field}.queues[{index}]") for index, queue in enumerate(message.queues)]
    return commands.Pool(message.id, queues, message.concurrency)


def progress(message: worker_service_pb2.ReportProgressRequest) -> commands.Report:
    """Progress of a running attempt."""
    text = validate.json_text(message.progress_json, "progress_json", limits.MAX_PROGRESS_BYTES)
    return commands.Report(lease(message), text)


def log_lines(message: worker_service_pb2.AppendJobLogsRequest) -> commands.Report:
    """Log lines of a running attempt; long ones are cut."""
    validate.batch(len(message.lines), "lines", limits.MAX_LOG_LINES)
    return commands.Report(lease(message), None, [_log_line(line, i) for i, line in enumerate(message.lines)])


def job_filter(message: job_service_pb2.JobFilter, allowed: list[str] | None) -> commands.JobFilter:
    """A filter of ListJobs. allowed: queue patterns of the token, None = all."""
    features.refuse_unbuilt(message, "filter.")
    if message.queue:
        validate.queue(message.queue, "filter.queue")
    if message.name:
        validate.name(message.name, "filter.name")
    for index, state in enumerate(message.states):
        if int(state) not in _STATES:
            raise invalid(f"filter.states[{index}]", "must be a state of jobs")
    for field in ("created_after_at_ms", "created_before_at_ms", "finished_before_at_ms"):
        validate.instant(getattr(message, field), f"filter.{field}")
    return commands.JobFilter(
        queue=message.queue,
        states=list(message.states),
        name=message.name,
        labels=validate.labels(message.labels, "filter.labels"),
        created_after_ms=message.created_after_at_ms,
        created_before_ms=message.created_before_at_ms,
        finished_before_ms=message.finished_before_at_ms,
        finish_reason=known(types_pb2.FinishReason, message.finish_reason),
        search=validate.text(message.search, "filter.search", limits.MAX_KEY_BYTES),
        allowed=allowed,
        scheduler=validate.queue(message.scheduler, "filter.scheduler") if message.scheduler else "",
    )


_STATES: Final = frozenset(map(int, State))


def _times(spec: types_pb2.JobSpec) -> None:
    validate.duration(spec.delay_ms, "delay_ms")
    validate.instant(spec.run_at_ms, "run_at_ms")
    validate.instant(spec.expires_at_ms, "expires_at_ms")
    validate.duration(spec.expires_after_ms, "expires_after_ms")
    if spec.delay_ms and spec.run_at_ms:
        raise invalid("run_at_ms", "excludes delay_ms; set one of them")
    if spec.expires_at_ms and spec.expires_after_ms:
        raise invalid("expires_after_ms", "excludes expires_at_ms; set one of them")
    if spec.lifo and (spec.delay_ms or spec.run_at_ms):
        raise invalid("lifo", "excludes delay_ms and run_at_ms")


@lru_cache(maxsize=1_024)
def _policy(encoded: bytes) -> commands.PolicyPatch:
    # Jobs of one kind carry the same options: they are checked once.
    policy = types_pb2.JobPolicy.FromString(encoded)
    found = {
        name: validate.number(getattr(policy, name), f"policy.{name}", low, high)
        for name, (low, high) in _POLICY_RANGES.items()
        if policy.HasField(name)
    }
    at_least = found.get("max_attempts", _DEFAULT_MAX_ATTEMPTS)
    if found.get("max_starts", at_least) < at_least:
        raise invalid("policy.max_starts", f"must not be below max_attempts, which is {at_least}")
    return commands.PolicyPatch(backoff=_backoff(policy.backoff) if policy.HasField("backoff") else None, **found)


_POLICY_RANGES: Final = {
    "max_attempts": (1, limits.MAX_ATTEMPTS),
    "lease_ms": (limits.MIN_LEASE_MS, limits.MAX_LEASE_MS),
    "attempt_timeout_ms": (0, limits.MAX_DURATION_MS),
    "max_stalled": (0, limits.MAX_STALLED),
    "max_starts": (1, limits.MAX_STARTS),
    "retain_completed_ms": (0, limits.MAX_DURATION_MS),
    "retain_failed_ms": (0, limits.MAX_DURATION_MS),
    "receipt_ttl_ms": (0, limits.MAX_DURATION_MS),
}


def _backoff(message: types_pb2.Backoff) -> backoff.Backoff:
    default = backoff.DEFAULT
    delay, longest, jitter = default.delay_ms, default.max_delay_ms, default.jitter_permille
    if message.HasField("delay_ms"):
        delay = validate.duration(message.delay_ms, "policy.backoff.delay_ms", limits.MAX_BACKOFF_MS)
    if message.HasField("max_delay_ms"):
        longest = validate.duration(message.max_delay_ms, "policy.backoff.max_delay_ms", limits.MAX_BACKOFF_MS)
    if message.HasField("jitter"):
        if not 0 <= message.jitter <= 1:
            raise invalid("policy.backoff.jitter", "is not in 0..1")
        jitter = round(message.jitter * 1_000)
    kind = backoff.Kind.FIXED if message.kind == _FIXED else backoff.Kind.EXPONENTIAL
    return backoff.Backoff(kind, delay, longest, jitter)


def _canonical(message: Message) -> list[Any]:
    """Numbers and values of the set fields, by number; without what does not count for "same request" [api 9.6]."""
    found: list[Any] = []
    for field, value in message.ListFields():
        if field.name == "idempotency_mode" or (field.name == "content_type" and value == JSON):
            continue
        canonical = _canonical_value(field, value)
        # Headers of a trace alone count as none.
        if canonical != []:
            found += (field.number, canonical)
    return found


def _canonical_value(field: FieldDescriptor, value: Any) -> Any:
    if not field.is_repeated:
        # A set message without fields counts, so it must not look like no headers.
        return (_canonical(value),) if field.type == FieldDescriptor.TYPE_MESSAGE else value
    if field.name == "headers":
        return sorted((key, text) for key, text in value.items() if key not in TRACE_HEADERS)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return sorted(value.items())
    return [_canonical(each) if field.type == FieldDescriptor.TYPE_MESSAGE else each for each in value]


def _check_result(result: bytes, content_type: str) -> str:
    """The content type as the domain has it."""
    if len(result) > limits.MAX_RESULT_BYTES:
        raise payload_too_large(
            "result",
            len(result),
            limits.MAX_RESULT_BYTES,
            "store it elsewhere and return a reference; the lease is good",
        )
    if content_type:
        validate.plain_text(content_type, "result_content_type", limits.MAX_CONTENT_TYPE_BYTES)
    return "" if content_type == JSON else content_type


def _error(message: types_pb2.JobError) -> commands.ErrorInfo:
    if message.details_json:
        validate.json_text(message.details_json, "error.details_json", limits.MAX_ERROR_DETAILS_BYTES)
    return commands.ErrorInfo(
        validate.cut(validate.without_nul(message.type, "error.type"), limits.MAX_ERROR_TYPE_BYTES),
        validate.cut(validate.without_nul(message.message, "error.message"), limits.MAX_ERROR_MESSAGE_BYTES),
        validate.cut_front(validate.without_nul(message.stack, "error.stack"), limits.MAX_ERROR_STACK_BYTES),
        message.details_json,
    )


def _log_line(message: types_pb2.JobLogLine, index: int) -> commands.LogLine:
    line = validate.without_nul(message.line, f"lines[{index}].line")
    return commands.LogLine(
        validate.instant(message.at_ms, f"lines[{index}].at_ms"),
        validate.plain_text(message.level, f"lines[{index}].level", limits.MAX_LOG_LEVEL_BYTES),
        validate.cut(line, limits.MAX_LOG_LINE_BYTES),
    )


def known(enum: Any, value: int) -> int:
    """The value of an enum; an unknown one reads as the default, 0 [api 8]."""
    return value if value in enum.values() else 0


# ------------------------------------------------------------------------------------------------ outwards


def enum(number: Any) -> Any:
    """Numbers of the domain are those of the wire, but the generated types ask for classes that do not exist."""
    return number


def job_id(ref: commands.JobRef | None) -> str:
    """The public id; "" for None."""
    return "" if ref is None else ids.encode(ref.created_ms, ref.number)


def put_deliveries(target: Any, deliveries: Sequence[commands.Delivery]) -> None:
    """Append the deliveries to a repeated Delivery field."""
    add, encode = target.add, ids.encode
    for one in deliveries:
        message = add(
            job_id=encode(one.created_ms, one.number),
            lease_token=one.token,
            queue=one.queue,
            name=one.name,
            data=one.data,
            content_type=one.content_type or JSON,
            attempt=one.attempt,
            max_attempts=one.max_attempts,
            lease_ms=one.lease_ms,
            created_at_ms=one.created_ms,
            pool=one.pool,
            starts=one.starts,
        )
        if one.attempt_timeout_ms:
            message.attempt_timeout_ms = one.attempt_timeout_ms
        if one.headers:
            message.headers.update(one.headers)
        if one.labels:
            message.labels.update(one.labels)
        if one.priority:
            message.priority = one.priority
        if one.key:
            message.idempotency_key = one.key
        if one.stalled:
            message.stalled_count = one.stalled
        if one.progress_json:
            message.progress_json = one.progress_json
        if one.group_id:
            message.group_id = one.group_id
            message.order_key = one.order_key
        if one.scheduler:
            message.scheduler = one.scheduler
            message.tick_at_ms = one.tick_at_ms


def put_interrupts(target: Any, interrupts: Iterable[commands.Interrupt]) -> None:
    """Append the interrupts to a repeated Interrupt field."""
    for one in interrupts:
        target.add(
            job_id=ids.encode(one.created_ms, one.number), lease_token=one.token, cause=one.cause, reason=one.reason
        )


def job(record: commands.JobRecord, now_ms: int, *, full: bool) -> types_pb2.Job:
    """A job as readers see it: stored `delayed` is told as waiting once it is due [api 9.22]. full: JOB_VIEW_FULL."""
    due = record.state == _DELAYED and record.due_at_ms <= now_ms
    message = types_pb2.Job(
        job_id=ids.encode(record.created_ms, record.number),
        queue=record.queue,
        name=record.name,
        state=enum(_WAITING if due else record.state),
        labels=record.labels or {},
        priority=record.priority,
        group_id=record.group_id,
        order_key=record.order_key if record.group_id else 0,
        attempt=record.attempt,
        starts=record.starts,
        stalled_count=record.stalled,
        created_at_ms=record.created_ms,
        due_at_ms=record.due_at_ms,
        started_at_ms=record.started_at_ms,
        finished_at_ms=record.finished_at_ms,
        expires_at_ms=record.expires_at_ms,
        lease_expires_at_ms=record.lease_expires_at_ms,
        worker_id=record.worker_id,
        finish_reason=enum(record.finish_reason),
        finish_message=record.finish_message,
        idempotency_key=record.key,
        idempotency_mode=_mode(record.singleton) if record.key else None,
        cancel_requested=record.cancel_requested,
        revision=record.revision,
        scheduler=record.scheduler,
        tick_at_ms=record.tick_at_ms,
        caused_by_job_id=job_id(record.caused_by),
    )
    if full:
        _put_full(message, record)
    if record.wait is not None:
        message.wait.CopyFrom(_wait(record.wait))
    return message


def job_spec(new: commands.NewJob) -> types_pb2.JobSpec:
    """The job of a stored definition, as it was sent with defaults of its own filled in."""
    message = types_pb2.JobSpec(
        queue=new.queue,
        name=new.name,
        data=new.data,
        content_type=new.content_type or JSON,
        headers=new.headers or {},
        labels=new.labels or {},
        priority=new.priority,
        delay_ms=new.delay_ms,
        lifo=new.lifo,
        expires_after_ms=new.expires_after_ms,
        group_id=new.group_id,
    )
    if new.policy is not None:
        message.policy.CopyFrom(_policy_message(new.policy))
    return message


def receipt(record: commands.ReceiptRecord) -> receipt_service_pb2.Receipt:
    """A receipt."""
    return receipt_service_pb2.Receipt(
        queue=record.queue,
        name=record.name,
        idempotency_key=record.key,
        mode=_mode(record.singleton),
        job_id=job_id(record.ref),
        job_state=enum(record.job_state),
        digest="" if record.singleton else record.digest.hex(),
        created_at_ms=record.created_at_ms,
        expires_at_ms=record.expires_at_ms,
    )


def worker(record: commands.WorkerRecord) -> worker_service_pb2.Worker:
    """A worker as ListWorkers shows it."""
    who = record.identity
    return worker_service_pb2.Worker(
        identity=worker_service_pb2.WorkerIdentity(
            worker_id=who.worker_id,
            name=who.name,
            pod=who.pod,
            node=who.node,
            sdk=who.sdk,
            sdk_version=who.sdk_version,
        ),
        pools=[
            worker_service_pb2.Pool(id=each.id, queues=each.queues, concurrency=each.concurrency)
            for each in record.pools
        ],
        running=record.running,
        open_credit=record.open_credit,
        connected_at_ms=record.connected_at_ms,
        last_seen_at_ms=record.last_seen_at_ms,
        draining=record.draining,
        session=record.session,
    )


def log_line(line: commands.LogLine) -> types_pb2.JobLogLine:
    """A line of a job's log."""
    return types_pb2.JobLogLine(at_ms=line.at_ms, level=line.level, line=line.line, attempt=line.attempt)


def _mode(singleton: bool) -> types_pb2.IdempotencyMode:
    return _SINGLETON if singleton else _RETAIN


def _put_full(message: types_pb2.Job, record: commands.JobRecord) -> None:
    message.data = record.data
    message.content_type = record.content_type or JSON
    message.headers.update(record.headers or {})
    message.result = record.result
    message.progress_json = record.progress_json
    if record.state == State.COMPLETED:
        message.result_content_type = record.result_content_type or JSON
    if record.policy is not None:
        message.policy.CopyFrom(_policy_message(record.policy))
    message.attempts.extend(_attempt(each) for each in record.attempts)


def _policy_message(policy: commands.Policy | commands.PolicyPatch) -> types_pb2.JobPolicy:
    # A field that is None stays unset.
    return types_pb2.JobPolicy(
        max_attempts=policy.max_attempts,
        backoff=None if policy.backoff is None else _backoff_message(policy.backoff),
        lease_ms=policy.lease_ms,
        attempt_timeout_ms=policy.attempt_timeout_ms,
        max_stalled=policy.max_stalled,
        max_starts=policy.max_starts,
        retain_completed_ms=policy.retain_completed_ms,
        retain_failed_ms=policy.retain_failed_ms,
        receipt_ttl_ms=policy.receipt_ttl_ms,
    )


def _backoff_message(it: backoff.Backoff) -> types_pb2.Backoff:
    return types_pb2.Backoff(
        kind=enum(it.kind), delay_ms=it.delay_ms, max_delay_ms=it.max_delay_ms, jitter=it.jitter_permille / 1_000
    )


def _attempt(record: commands.AttemptRecord) -> types_pb2.Attempt:
    message = types_pb2.Attempt(
        number=record.number,
        worker_id=record.worker_id,
        started_at_ms=record.started_at_ms,
        ended_at_ms=record.ended_at_ms,
        outcome=enum(record.outcome),
    )
    if (error := record.error) is not None:
        message.error.type, message.error.message = error.type, error.message
        message.error.stack, message.error.details_json = error.stack, error.details_json
    return message


def _wait(record: commands.Wait) -> types_pb2.WaitInfo:
    return types_pb2.WaitInfo(
        reason=enum(record.reason),
        holder_job_id=job_id(record.holder),
        holder_worker_id=record.holder_worker_id,
        since_at_ms=record.since_at_ms,
        until_at_ms=record.until_at_ms,
        jobs_ahead=record.jobs_ahead,
        pending_children=record.pending_children,
        by_group=record.by_group,
    )
