"""The refusals of the gateway, worded once: reason, field path, a message that says what to do (api section 5)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from anvilmq_broker.domain.errors import Refused


class Rejected(Exception):
    """A request, or one item of it, that is refused. Carries the refusal as the value that the engine uses too."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def under(refused: Refused, prefix: str) -> Refused:
    """The refusal with its field path put below `prefix`, such as "job."."""
    return replace(refused, field=prefix + refused.field) if refused.field else refused


def at(refused: Refused, index: int) -> Refused:
    """The refusal as that of item `index` of a batch."""
    return replace(refused, index=index)


def invalid(field: str, message: str) -> Rejected:
    """INVALID_FIELD. message: what is wrong and what would be right, without the path."""
    return Rejected(Refused("INVALID_FIELD", f"{field}: {message}", field))


def required(field: str) -> Rejected:
    """INVALID_FIELD of a field that is empty and must not be."""
    return invalid(field, "is required")


def payload_too_large(field: str, size: int, limit: int, remedy: str = "send less") -> Rejected:
    """PAYLOAD_TOO_LARGE; size and limit in bytes."""
    message = f"{field}: {size} bytes are more than the limit of {limit}; {remedy}"
    return Rejected(Refused("PAYLOAD_TOO_LARGE", message, field, {"size": str(size), "limit": str(limit)}))


def batch_too_large(field: str, size: int, limit: int, unit: str = "items") -> Rejected:
    """BATCH_TOO_LARGE; unit: items or bytes."""
    message = f"{field}: {size} {unit} are more than the limit of {limit} {unit}; send several smaller batches"
    metadata = {"size": str(size), "limit": str(limit), "unit": unit}
    return Rejected(Refused("BATCH_TOO_LARGE", message, field, metadata))


def not_built(field: str) -> Rejected:
    """FEATURE_NOT_BUILT of a set field, or of a whole call when `field` names one."""
    return Rejected(
        Refused("FEATURE_NOT_BUILT", f"{field}: this broker does not have the feature yet; leave it out", field)
    )


def call_not_built(method: str) -> Rejected:
    """FEATURE_NOT_BUILT of a whole call."""
    return Rejected(Refused("FEATURE_NOT_BUILT", f"this broker does not have {method} yet"))


def malformed(method: str) -> Rejected:
    """MALFORMED_MESSAGE: the bytes are not a message of the call."""
    return Rejected(
        Refused(
            "MALFORMED_MESSAGE", f"the bytes are not a request of {method}; client and broker disagree on the contract"
        )
    )


def session_protocol(message: str) -> Rejected:
    """SESSION_PROTOCOL: a part of a worker's session came at the wrong time."""
    return Rejected(Refused("SESSION_PROTOCOL", message))


def job_not_found(job_id: str) -> Rejected:
    """JOB_NOT_FOUND, of an id that no job can have."""
    return Rejected(
        Refused(
            "JOB_NOT_FOUND",
            f"there is no job {job_id!r}; take the id as the broker gave it",
            metadata={"job_id": job_id},
        )
    )


def lease_lost(job_id: str) -> Rejected:
    """LEASE_LOST, of a job id or token that the broker cannot have given."""
    return Rejected(
        Refused(
            "LEASE_LOST",
            f"the lease on job {job_id!r} is not one of this broker; stop the attempt, and do not settle it",
            metadata={"job_id": job_id, "state": "", "worker_id": ""},
        )
    )


def schedule_invalid(field: str, message: str) -> Rejected:
    """SCHEDULE_INVALID; as `invalid`."""
    return Rejected(Refused("SCHEDULE_INVALID", f"{field}: {message}", field))


def parameter_invalid(field: str, message: str) -> Rejected:
    """PARAMETER_INVALID of the parameters as a whole; as `invalid`."""
    return Rejected(Refused("PARAMETER_INVALID", f"{field}: {message}", field))


def template_not_found(name: str, field: str) -> Rejected:
    """TEMPLATE_NOT_FOUND: no flow template has this name."""
    message = f"{field}: there is no flow template {name!r}; make it first, or give the schedule a job"
    return Rejected(Refused("TEMPLATE_NOT_FOUND", message, field, {"name": name}))


def scope_missing(who: str, scopes: Iterable[str], queue: str) -> Rejected:
    """SCOPE_MISSING. scopes: any of these would do; queue "" = any queue."""
    names = " or ".join(scopes)
    where = f" for queue {queue!r}" if queue else ""
    message = f"token {who!r} does not have the scope {names}{where}; add it to the token's entry in the tokens file"
    return Rejected(Refused("SCOPE_MISSING", message, metadata={"scope": names, "queue": queue}))


def token_missing() -> Rejected:
    """TOKEN_MISSING: no bearer token came with the call."""
    return Rejected(
        Refused("TOKEN_MISSING", "the call has no token; send the metadata 'authorization: Bearer <token>'")
    )


def token_invalid() -> Rejected:
    """TOKEN_INVALID: the broker does not know the token."""
    return Rejected(Refused("TOKEN_INVALID", "the broker does not know this token; compare it with the tokens file"))


def page_token_invalid() -> Rejected:
    """PAGE_TOKEN_INVALID: not a token of this broker, or of another filter."""
    message = "page_token: not a token of this list and filter; start again without one"
    return Rejected(Refused("PAGE_TOKEN_INVALID", message, "page_token"))


def not_ready() -> Rejected:
    """NOT_READY: there is no engine now. The outcome of a write that was under way is unknown."""
    return Rejected(Refused("NOT_READY", "the broker's engine is not there; try again", retry_after_ms=500))


def draining() -> Rejected:
    """DRAINING: the broker is shutting down."""
    return Rejected(Refused("DRAINING", "the broker is shutting down; connect again", retry_after_ms=1_000))
