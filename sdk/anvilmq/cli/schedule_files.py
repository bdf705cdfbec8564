"""Recurring definitions in files: read, checked as far as that goes without a broker, and made into requests.

A document is one of three: a JobScheduler manifest; the same without the envelope, `name` and `description` beside what
a manifest has in `spec`; or a definition in proto JSON, as `schedule get -o yaml` prints it. YAML or JSON, several
documents a file, lists of them, or `items`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from anvilmq.cli.exits import UsageProblem
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2

if TYPE_CHECKING:
    from anvilmq.cli.terminal import Terminal

API: Final = "anvilmq.io/v1alpha1"
KIND: Final = "JobScheduler"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS_100_S: Final = 3_153_600_000
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")


class Problem(Exception):
    """A document, or a part of it, is no definition. The message says what would be right."""


def _camel(name: str) -> str:
    """A key as manifests spell it."""
    head, *rest = name.split("_")
    return head + "".join("JSON" if word == "json" else word.capitalize() for word in rest)


class _Part(msgspec.Struct, rename=_camel, forbid_unknown_fields=True):
    """Base of what stands in a manifest: a key that is not known is refused."""


Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[int, Meta(ge=0, le=_YEARS_100_S)]
SomeSeconds = Annotated[int, Meta(ge=1, le=_YEARS_100_S)]
DelaySeconds = Annotated[int, Meta(ge=0, le=604_800)]
Instant = Annotated[datetime, Meta(tz=True)]


class Backoff(_Part):
    """How long a run waits before it is tried again."""

    type: Literal["Fixed", "Exponential"] = "Exponential"
    delay_seconds: DelaySeconds | None = None
    max_delay_seconds: DelaySeconds | None = None
    jitter_percent: Annotated[int, Meta(ge=0, le=100)] | None = None


class JobTemplate(_Part):
    """The job that a tick makes. data: any JSON; data_json: the same as a text."""

    queue: str
    name: str
    data: Any = UNSET
    data_json: str | UnsetType = UNSET
    headers: dict[str, str] = {}
    labels: dict[str, str] = {}
    priority: Annotated[int, Meta(ge=0, le=2_097_151)] = 0
    delay_seconds: Seconds = 0
    max_attempts: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    backoff: Backoff | None = None
    lease_seconds: Annotated[int, Meta(ge=1, le=3_600)] | None = None
    attempt_timeout_seconds: Seconds | None = None
    expires_after_seconds: Seconds = 0
    max_stalled: Annotated[int, Meta(ge=0, le=100)] | None = None
    group_id: str = ""
    ttl_seconds_after_finished: Seconds | None = None


class TemplateRef(_Part):
    """A flow template by name."""

    name: str


class Flow(_Part):
    """The flow that a tick makes."""

    template_ref: TemplateRef
    params: dict[str, Any] = {}


class Content(_Part):
    """What stands in the `spec` of a manifest. deletion_policy concerns the operator alone."""

    schedule: str | None = None
    every_seconds: SomeSeconds | None = None
    offset_seconds: Seconds = 0
    time_zone: str = ""
    start_time: Instant | None = None
    end_time: Instant | None = None
    limit: Count | None = None
    jitter_seconds: Seconds = 0
    suspend: bool | None = None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    starting_deadline_seconds: Seconds = 0
    catch_up_policy: Literal["Latest", "None", "All"] = "Latest"
    max_catch_up_runs: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    job_template: JobTemplate | None = None
    flow: Flow | None = None
    deletion_policy: Literal["Delete", "Retain"] = "Delete"


class Plain(Content, kw_only=True):
    """A definition without an envelope."""

    name: str
    description: str = ""


class Entry(msgspec.Struct, frozen=True):
    """One document. where: file, place and name, for messages. found: the definition, or what is wrong with it."""

    where: str
    found: pb.Scheduler | Problem


def read(path: str, terminal: Terminal) -> Iterator[Entry]:
    """The definitions of a file, of stdin for "-". UsageProblem when it cannot be read at all."""
    named = "stdin" if path == "-" else path
    documents = [part for document in _documents(_bytes(path, terminal), named) for part in _parts(document)]
    if not documents:
        raise UsageProblem("FILE", f"{named} has no definition in it")
    for place, document in enumerate(documents, start=1):
        name = _name_of(document)
        where = f"{named}{f' ({place})' if len(documents) > 1 else ''}{f': {name}' if name else ''}"
        try:
            yield Entry(where, definition(document))
        except Problem as problem:
            yield Entry(where, problem)


def definition(document: Any) -> pb.Scheduler:
    """The definition that a document is. Raises Problem."""
    if not isinstance(document, dict):
        raise Problem("is no mapping; write name, schedule and jobTemplate, or a JobScheduler manifest")
    if "kind" in document or "apiVersion" in document:
        name, content = _manifest(document)
        return _scheduler(name, "", content)
    if "spec" in document:
        return _proto_json(document)
    plain = _converted(document, Plain)
    return _scheduler(plain.name, plain.description, plain)


def _scheduler(name: str, description: str, content: Content) -> pb.Scheduler:
    if _NAME.fullmatch(name) is None:
        raise Problem(f"name: {name!r} is not 1-128 of A-Z a-z 0-9 _ . : -")
    spec = pb.SchedulerSpec(
        schedule=_schedule(content),
        concurrency_policy=f"CONCURRENCY_POLICY_{content.concurrency_policy.upper()}",
        catch_up=f"CATCH_UP_POLICY_{content.catch_up_policy.upper()}",
        max_catch_up_runs=content.max_catch_up_runs,
        starting_deadline_ms=content.starting_deadline_seconds * 1_000,
        description=description,
    )
    if content.suspend is not None:
        spec.suspended = content.suspend
    if (content.job_template is None) == (content.flow is None):
        raise Problem("needs one of jobTemplate and flow")
    if content.job_template is not None:
        spec.job.CopyFrom(_job(content.job_template))
    elif content.flow is not None:
        spec.flow.template = content.flow.template_ref.name
        spec.flow.parameters_json = msgspec.json.encode(content.flow.params).decode()
    return pb.Scheduler(name=name, spec=spec)


def _schedule(content: Content) -> pb.Schedule:
    message = pb.Schedule(limit=content.limit or 0, jitter_ms=content.jitter_seconds * 1_000)
    if (content.schedule is None) == (content.every_seconds is None):
        raise Problem('needs one of schedule, such as "0 2 * * *", and everySeconds')
    if content.schedule is not None:
        check_cron(content.schedule)
        if content.offset_seconds:
            raise Problem("offsetSeconds: is for everySeconds; leave it out with schedule")
        message.cron, message.time_zone = content.schedule, content.time_zone
    elif content.every_seconds is not None:
        if content.time_zone not in {"", "Etc/UTC"}:
            raise Problem("timeZone: everySeconds is counted in UTC; leave timeZone out, or write a schedule")
        if content.offset_seconds >= content.every_seconds:
            raise Problem(f"offsetSeconds: must be below everySeconds, which is {content.every_seconds}")
        message.every_ms, message.offset_ms = content.every_seconds * 1_000, content.offset_seconds * 1_000
    if content.start_time and content.end_time and content.end_time < content.start_time:
        raise Problem("endTime: must not lie before startTime")
    message.start_at_ms, message.end_at_ms = _ms(content.start_time), _ms(content.end_time)
    return message


def check_cron(text: str) -> None:
    """The shape of an expression; what it means, the broker knows. Raises Problem."""
    fields = text.split()
    if "TZ=" in text.upper():
        raise Problem("schedule: write the zone as timeZone, not into the expression")
    if text.startswith("@"):
        if len(fields) != 1 or fields[0] in {"@every", "@reboot"}:
            raise Problem(f"schedule: {text!r} is not known; write @daily and the like, or everySeconds")
    elif len(fields) not in {5, 6}:
        found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise Problem(f"schedule: {text!r} has {found}; write minute hour day month weekday, or six with seconds first")


def _job(template: JobTemplate) -> types_pb2.JobSpec:
    if template.data is not UNSET and template.data_json is not UNSET:
        raise Problem("jobTemplate.dataJSON: excludes data; leave one of them out")
    message = types_pb2.JobSpec(
        queue=template.queue,
        name=template.name,
        data=_data(template),
        headers=template.headers,
        labels=template.labels,
        priority=template.priority,
        delay_ms=template.delay_seconds * 1_000,
        expires_after_ms=template.expires_after_seconds * 1_000,
        group_id=template.group_id,
    )
    policy = types_pb2.JobPolicy(
        max_attempts=template.max_attempts,
        lease_ms=_thousandfold(template.lease_seconds),
        attempt_timeout_ms=_thousandfold(template.attempt_timeout_seconds),
        max_stalled=template.max_stalled,
        retain_completed_ms=_thousandfold(template.ttl_seconds_after_finished),
        retain_failed_ms=_thousandfold(template.ttl_seconds_after_finished),
    )
    if template.backoff is not None:
        policy.backoff.CopyFrom(_backoff(template.backoff))
    if policy.ListFields():
        message.policy.CopyFrom(policy)
    return message


def _data(template: JobTemplate) -> bytes:
    if template.data_json is not UNSET:
        try:
            msgspec.json.decode(template.data_json)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise Problem(f"jobTemplate.dataJSON: is no JSON: {problem}") from problem
        return template.data_json.encode()
    return b"" if template.data is UNSET else msgspec.json.encode(template.data)


def _backoff(it: Backoff) -> types_pb2.Backoff:
    return types_pb2.Backoff(
        kind=f"BACKOFF_KIND_{it.type.upper()}",
        delay_ms=_thousandfold(it.delay_seconds),
        max_delay_ms=_thousandfold(it.max_delay_seconds),
        jitter=None if it.jitter_percent is None else it.jitter_percent / 100,
    )


def _thousandfold(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1_000


def _ms(moment: datetime | None) -> int:
    return 0 if moment is None else round((moment - _EPOCH).total_seconds() * 1_000)


# -------------------------------------------------------------------------------------------------- documents


def _manifest(document: dict[str, Any]) -> tuple[str, Content]:
    version, kind = document.get("apiVersion"), document.get("kind")
    if kind != KIND or version != API:
        raise Problem(f"is a {kind} of {version}; only {KIND} of {API} is read here, the rest is for kubectl")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise Problem("metadata.name: is missing, or no text")
    return name, _converted(document.get("spec"), Content, "spec")


def _proto_json(document: dict[str, Any]) -> pb.Scheduler:
    from google.protobuf import json_format

    told: dict[str, Any] = {key: document[key] for key in ("name", "spec") if key in document}
    message = pb.Scheduler()
    try:
        json_format.ParseDict(told, message)
    except (json_format.ParseError, RecursionError) as problem:
        raise Problem(str(problem).partition("\n")[0]) from problem
    if _NAME.fullmatch(message.name) is None:
        raise Problem(f"name: {message.name!r} is not 1-128 of A-Z a-z 0-9 _ . : -")
    return message


def _converted(value: Any, kind: type[msgspec.Struct], prefix: str = "") -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        what, _, path = str(problem).partition(" - at `$")
        place = f"{prefix}{path.rstrip('`')}".strip(".")
        raise Problem(f"{place}: {what}" if place else what) from problem


def _name_of(document: Any) -> str:
    if not isinstance(document, dict):
        return ""
    metadata = document.get("metadata")
    found = document.get("name") or (metadata.get("name") if isinstance(metadata, dict) else "")
    return found if isinstance(found, str) else ""


def _parts(document: Any) -> Iterator[Any]:
    if isinstance(document, list):
        for part in document:
            yield from _parts(part)
    elif isinstance(document, dict) and isinstance(document.get("items"), list):
        yield from document["items"]
    elif document is not None:
        yield document


def _bytes(path: str, terminal: Terminal) -> bytes:
    if path == "-":
        return terminal.read_bytes()
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise UsageProblem("FILE", f"{path} cannot be read: {problem.strerror}") from problem


def _documents(data: bytes, named: str) -> list[Any]:
    try:
        return [msgspec.json.decode(data)]
    except (ValueError, RecursionError) as no_json:
        return _yaml_documents(data, named, no_json)


def _yaml_documents(data: bytes, named: str, no_json: Exception) -> list[Any]:
    try:
        import yaml
    except ImportError:
        remedy = "install the package pyyaml to have YAML read, or write JSON"
        raise UsageProblem("FILE", f"{named} is no JSON ({no_json}); {remedy}") from no_json

    class Loader(yaml.SafeLoader):
        """Times stay texts, as they do in JSON."""

    Loader.yaml_implicit_resolvers = {
        first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return list(yaml.load_all(data, Loader))
    except (yaml.YAMLError, RecursionError) as problem:
        raise UsageProblem("FILE", f"{named} is no YAML: {' '.join(str(problem).split())}") from problem
