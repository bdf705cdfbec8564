"""Jobs to be added, made from flags and from the lines of a file."""

from __future__ import annotations

import base64
import binascii
import enum
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, TypeVar

import msgspec
import typer

from anvilmq.cli import times, values
from anvilmq.cli.exits import UsageProblem

if TYPE_CHECKING:
    from anvilmq.options import Backoff
    from anvilmq_proto.v1.types_pb2 import JobSpec

T = TypeVar("T")
_POLICY: Final = "Policy options (else what the queue says)"


class IdempotencyMode(enum.StrEnum):
    """How long an idempotency key stays taken."""

    RETAIN = "retain"
    RELEASE_ON_FINISH = "release-on-finish"


def _option(flag: str, metavar: str, text: str, panel: str | None = None) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, rich_help_panel=panel, show_default=False)


def _policy(flag: str, metavar: str, text: str) -> Any:
    return _option(flag, metavar, text, _POLICY)


class JobFlags(TypedDict):
    """The options of a job, named as in the contract without units. None: not given."""

    priority: Annotated[int | None, _option("--priority", "N", "0, first and the default, to 2097151.")]
    delay: Annotated[str | None, _option("--delay", "DURATION", "Start no sooner than that from now, such as 5m.")]
    run_at: Annotated[
        str | None, _option("--run-at", "TIME", "Start no sooner than that: 2030-01-31T09:30:00Z. Excludes --delay.")
    ]
    lifo: Annotated[bool, typer.Option("--lifo", help="In front of the jobs of its priority.")]
    idempotency_key: Annotated[
        str | None,
        _option("--idempotency-key", "KEY", "Another add of this name with the same key gives the job of the first."),
    ]
    idempotency_mode: Annotated[
        IdempotencyMode | None,
        typer.Option(
            "--idempotency-mode",
            metavar="retain|release-on-finish",
            help="How long the key stays taken: for a time after the job ended (retain, the default), or until it ends.",
            show_default=False,
        ),
    ]
    group_id: Annotated[
        str | None, _option("--group-id", "ID", "Jobs of one group run one after the other, in the order of adding.")
    ]
    label: Annotated[list[str] | None, _option("--label", "KEY=VALUE", "To find the job by. May be repeated.")]
    header: Annotated[
        list[str] | None, _option("--header", "KEY=VALUE", "For the handler; the key in lower case. May be repeated.")
    ]
    expires_after: Annotated[
        str | None, _option("--expires-after", "DURATION", "Cancelled if it has not started by then.")
    ]
    expires_at: Annotated[str | None, _option("--expires-at", "TIME", "The same, as a time. Excludes --expires-after.")]
    max_attempts: Annotated[int | None, _policy("--max-attempts", "N", "All tries, the first included: 1 to 1000.")]
    backoff: Annotated[
        str | None,
        _policy(
            "--backoff",
            "KIND:DELAY",
            "Before the next try: fixed:5s, or exponential:1s,max=5m; both take ,jitter=0.25 as well.",
        ),
    ]
    lease: Annotated[str | None, _policy("--lease", "DURATION", "How long a silent worker keeps the job: 1s to 1h.")]
    attempt_timeout: Annotated[
        str | None, _policy("--attempt-timeout", "DURATION", "Longest time of one attempt; 0 is no limit.")
    ]
    max_stalled: Annotated[int | None, _policy("--max-stalled", "N", "Lost workers that the job survives: 0 to 100.")]
    max_starts: Annotated[int | None, _policy("--max-starts", "N", "Starts of any cause: up to 10000.")]
    retain_completed: Annotated[
        str | None,
        _policy("--retain-completed", "DURATION", "Age at which the completed job is removed; 0 is at once."),
    ]
    retain_failed: Annotated[
        str | None, _policy("--retain-failed", "DURATION", "The same for one that failed or was cancelled.")
    ]
    receipt_ttl: Annotated[
        str | None, _policy("--receipt-ttl", "DURATION", "How long the idempotency key outlives the job.")
    ]


def from_flags(spec: JobSpec, flags: JobFlags) -> None:
    """Write the flags that are given into a spec. UsageProblem names the flag."""
    from anvilmq import options

    for name, value in flags.items():
        # Not by equality: 0 is a value, and equals False.
        if value is None or value is False or value == []:
            continue
        flag = f"--{name.replace('_', '-')}"
        option, converted = _converted(name, flag, value)
        try:
            options.apply(spec, {option: converted})
        except (TypeError, ValueError) as problem:
            raise UsageProblem(flag, str(problem).removeprefix(f"{option}: ")) from problem


def _converted(name: str, flag: str, value: Any) -> tuple[str, Any]:
    """The keyword of the SDK for a flag, and its value there."""
    match name:
        case "label" | "header":
            return f"{name}s", values.pairs(flag, value)
        case "run_at" | "expires_at":
            return name, datetime.fromtimestamp(times.instant_ms(flag, value) / 1_000, UTC)
        case "idempotency_mode":
            return name, value.value.replace("-", "_")
        case "backoff":
            return name, _backoff(flag, value)
        case _:
            return name, value


def _backoff(flag: str, text: str) -> Backoff:
    from anvilmq import options

    kind, _, rest = text.partition(":")
    delay, *more = rest.split(",")
    settings = values.pairs(flag, more)
    longest, jitter = settings.pop("max", None), settings.pop("jitter", None)
    if kind not in {"fixed", "exponential"} or not delay or settings or (kind == "fixed" and longest):
        raise UsageProblem(flag, f"{text!r} is not understood; write fixed:5s, or exponential:1s,max=5m,jitter=0.25")
    try:
        spread = float(jitter) if jitter is not None else None
        if kind == "fixed":
            return options.fixed(delay, jitter=spread)
        return options.exponential(delay, max=longest, jitter=spread)
    except ValueError as problem:
        raise UsageProblem(flag, str(problem)) from problem


class LineProblem(Exception):
    """A line of a file is no job. field: where in the line, "" for all of it."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def from_line(line: bytes, queue: str, name: str | None) -> JobSpec:
    """The job that a line of JSON describes.

    With a name given the line is the payload. Without, it is an object: `name`, `data` (any JSON) or `dataBase64` with
    `contentType`, and the other fields of the contract's JobSpec in proto JSON, such as `priority`, `delayMs`,
    `labels`, `policy`. LineProblem says what is wrong.
    """
    if name is not None:
        _decode(line, msgspec.Raw)
        return _spec(queue, {"name": name}, line)
    try:
        # Raw, so that data keeps its bytes: digits of large numbers, order of keys.
        fields = _decode(line, dict[str, msgspec.Raw])
    except msgspec.ValidationError as problem:
        raise LineProblem("is no JSON object; if each line is a payload, say --name") from problem
    data = fields.pop("data", None)
    if data is not None and "dataBase64" in fields:
        raise LineProblem("excludes data", "dataBase64")
    rest = {key: msgspec.json.decode(raw) for key, raw in fields.items()}
    return _spec(queue, rest, _from_base64(rest) if data is None else bytes(data))


def _decode(line: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=type_)
    except msgspec.ValidationError:
        raise
    except (ValueError, RecursionError) as problem:
        raise LineProblem(f"is no JSON: {problem}") from problem


def _from_base64(fields: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(fields.pop("dataBase64", ""), validate=True)
    except (binascii.Error, TypeError, ValueError) as problem:
        raise LineProblem(f"is no base64: {problem}", "dataBase64") from problem


def _spec(queue: str, fields: dict[str, Any], data: bytes) -> JobSpec:
    from google.protobuf import json_format

    from anvilmq_proto.v1.types_pb2 import JobSpec

    if fields.setdefault("queue", queue) != queue:
        raise LineProblem(f"is {fields['queue']!r}, but the command says {queue!r}; leave it out", "queue")
    if not isinstance(fields.get("name"), str):
        raise LineProblem("is missing, or no text", "name")
    spec = JobSpec()
    try:
        json_format.ParseDict(fields, spec)
    except (json_format.ParseError, RecursionError) as problem:
        raise LineProblem(str(problem).partition("\n")[0]) from problem
    spec.data = data
    return spec
