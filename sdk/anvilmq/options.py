"""The options of a job, as keywords: each is a field of the contract's JobSpec or JobPolicy, named without its unit.

Durations are texts such as "1h30m", or a timedelta. None, and an option that is not given, mean the queue's value; for
what a queue does not set, that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast

import msgspec

from anvilmq import durations
from anvilmq.durations import Duration

if TYPE_CHECKING:
    from anvilmq_proto.v1 import types_pb2

IdempotencyMode = Literal["retain", "release_on_finish"]


class Backoff(msgspec.Struct, frozen=True):
    """How long a job waits before it is tried again. Made by `fixed` and `exponential`."""

    exponential: bool
    delay_ms: int
    max_delay_ms: int | None = None
    jitter: float | None = None


def fixed(delay: Duration, *, jitter: float | None = None) -> Backoff:
    """The same delay before each try, 0 to 7 days.

    jitter: 0 to 1, by default 0.25: the delay is drawn from [delay x (1 - jitter), delay].
    """
    return Backoff(exponential=False, delay_ms=durations.parse_ms(delay), jitter=_fraction(jitter))


def exponential(delay: Duration, *, max: Duration | None = None, jitter: float | None = None) -> Backoff:
    """`delay` before the second try, twice that before the third, and so on, up to `max`, by default 5 minutes.

    jitter: 0 to 1, by default 0.25: the delay is drawn from [d x (1 - jitter), d].
    """
    return Backoff(
        exponential=True,
        delay_ms=durations.parse_ms(delay),
        max_delay_ms=None if max is None else durations.parse_ms(max),
        jitter=_fraction(jitter),
    )


class JobOptions(TypedDict, total=False):
    """What a definition can set for all its jobs, and an add for one.

    priority: 0 (first, the default) to 2 097 151. headers: keys in lower case. labels: to find jobs by.
    idempotency_mode: "retain" (default): a key stays taken after its job ended; "release_on_finish": until it ends.
    max_attempts: all tries, 1 to 1 000. backoff: made by `fixed` or `exponential`. lease: 1 s to 1 h, renewed while
    the handler runs. attempt_timeout: longest time of one attempt, "0" = no limit. max_stalled: lost workers the job
    survives, 0 to 100. max_starts: starts of any cause, up to 10 000. retain_completed, retain_failed: age at which
    the ended job is removed, "0" = at once. receipt_ttl: how long a key outlives its job.
    expires_after: cancelled if not started that long after the add.
    """

    priority: int | None
    headers: Mapping[str, str] | None
    labels: Mapping[str, str] | None
    idempotency_mode: IdempotencyMode | None
    expires_after: Duration | None
    max_attempts: int | None
    backoff: Backoff | None
    lease: Duration | None
    attempt_timeout: Duration | None
    max_stalled: int | None
    max_starts: int | None
    retain_completed: Duration | None
    retain_failed: Duration | None
    receipt_ttl: Duration | None


class SpecOptions(JobOptions, total=False):
    """What one job can have beyond its definition.

    delay: from now; run_at: an instant with a time zone; not both. lifo: in front of its priority.
    idempotency_key: another add of this definition with the same key gives the job of the first.
    group_id: jobs of one group run one after the other; order_key: its place there, Unix milliseconds or an instant.
    expires_at: cancelled if not started by then; excludes expires_after.
    """

    delay: Duration | None
    run_at: datetime | None
    lifo: bool | None
    idempotency_key: str | None
    group_id: str | None
    order_key: int | datetime | None
    expires_at: datetime | None


class AddOptions(SpecOptions, total=False):
    """What a call of `add` takes.

    timeout: for all of it, by default 30 s; then Unavailable tells in `outcome` whether the job may have been added.
    """

    timeout: Duration


def apply(spec: types_pb2.JobSpec, options: Mapping[str, Any]) -> None:
    """Write options into a spec; None clears what a definition had set. TypeError, ValueError name the option."""
    for name, value in options.items():
        field = _SPEC_FIELDS.get(name)
        target = spec
        if field is None:
            field = _POLICY_FIELDS.get(name)
            target = cast("types_pb2.JobSpec", spec.policy)
        if field is None:
            raise TypeError(f"a job has no option {name!r}")
        try:
            _write(target, *field, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error


def _write(target: Any, name: str, convert: Callable[[Any], Any] | None, value: object) -> None:
    if value is None:
        target.ClearField(name)
    elif convert is None:
        setattr(target, name, value)
    else:
        converted = convert(value)
        if isinstance(converted, dict):
            target.ClearField(name)
            field = getattr(target, name)
            field.update(converted) if hasattr(field, "update") else _fill(field, converted)
        else:
            setattr(target, name, converted)


def _fill(message: Any, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        setattr(message, name, value)


def _backoff(backoff: object) -> dict[str, object]:
    if not isinstance(backoff, Backoff):
        raise TypeError('is made by fixed("5s") or exponential("1s", max="5m")')
    fields = {"kind": 2 if backoff.exponential else 1, "delay_ms": backoff.delay_ms}
    rest = {"max_delay_ms": backoff.max_delay_ms, "jitter": backoff.jitter}
    return fields | {name: value for name, value in rest.items() if value is not None}


def _mode(mode: object) -> int:
    modes: dict[object, int] = {"retain": 1, "release_on_finish": 2}
    if mode not in modes:
        raise ValueError(f'is "retain" or "release_on_finish", not {mode!r}')
    return modes[mode]


def instant_ms(instant: object) -> int:
    """Unix milliseconds of a datetime with a time zone. TypeError, ValueError."""
    if not isinstance(instant, datetime):
        raise TypeError(f"is a datetime, not {instant!r}")
    if instant.tzinfo is None:
        raise ValueError("needs a time zone, such as datetime.now(UTC)")
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _order_key(key: object) -> int:
    return key if isinstance(key, int) else instant_ms(key)


def _fraction(jitter: float | None) -> float | None:
    if jitter is not None and not 0 <= jitter <= 1:
        raise ValueError(f"jitter is at least 0 and at most 1, not {jitter!r}")
    return jitter


_Field = tuple[str, Callable[[Any], Any] | None]

_SPEC_FIELDS: Final[dict[str, _Field]] = {
    "priority": ("priority", None),
    "headers": ("headers", dict),
    "labels": ("labels", dict),
    "idempotency_key": ("idempotency_key", None),
    "idempotency_mode": ("idempotency_mode", _mode),
    "delay": ("delay_ms", durations.parse_ms),
    "run_at": ("run_at_ms", instant_ms),
    "lifo": ("lifo", None),
    "group_id": ("group_id", None),
    "order_key": ("order_key", _order_key),
    "expires_at": ("expires_at_ms", instant_ms),
    "expires_after": ("expires_after_ms", durations.parse_ms),
}
_POLICY_FIELDS: Final[dict[str, _Field]] = {
    "max_attempts": ("max_attempts", None),
    "backoff": ("backoff", _backoff),
    "lease": ("lease_ms", durations.parse_ms),
    "attempt_timeout": ("attempt_timeout_ms", durations.parse_ms),
    "max_stalled": ("max_stalled", None),
    "max_starts": ("max_starts", None),
    "retain_completed": ("retain_completed_ms", durations.parse_ms),
    "retain_failed": ("retain_failed_ms", durations.parse_ms),
    "receipt_ttl": ("receipt_ttl_ms", durations.parse_ms),
}
