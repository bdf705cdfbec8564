"""What a store refuses, worded once: the same reason, message and metadata from every store (api section 5)."""

from __future__ import annotations

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.job import Job


def job_not_found(ref: commands.JobRef) -> Refused:
    """No job has this id, or it was removed."""
    job_id = ids.encode(ref.created_ms, ref.number)
    return Refused(
        "JOB_NOT_FOUND", f"there is no job {job_id}: it was removed, or never added", "job_id", {"job_id": job_id}
    )


def lease_lost(lease: commands.LeaseRef | commands.Settlement, holder: Job | None, index: int = 0) -> Refused:
    """The token is not that of a running attempt. holder: the job as it is, None when it is gone."""
    job_id = ids.encode(lease.created_ms, lease.number)
    return Refused(
        "LEASE_LOST",
        f"the lease of job {job_id} is no longer held: it ran out, or the job was settled, cancelled or removed",
        "lease_token",
        {
            "job_id": job_id,
            "state": holder.state.name if holder else "",
            "worker_id": holder.worker_id if holder and holder.token else "",
        },
        index,
    )


def sequence_stale(producer_id: str, seq: int, last: int) -> Refused:
    """A frame older than the producer's last answered one."""
    return Refused(
        "SEQUENCE_STALE",
        f"producer {producer_id!r} was already answered up to seq {last}, so {seq} comes too late; send rising numbers",
        "seq",
        {"producer_id": producer_id, "seq": str(last)},
    )


def receipt_not_found(queue: str, name: str, key: str) -> Refused:
    """No live receipt has this key."""
    return Refused(
        "RECEIPT_NOT_FOUND",
        f"queue {queue!r}, job name {name!r} has no receipt for the key {key!r}",
        metadata={"queue": queue, "name": name, "key": key},
    )


def scheduler_not_found(name: str) -> Refused:
    """No definition has this name."""
    return Refused("SCHEDULER_NOT_FOUND", f"there is no scheduler {name!r}", "name", {"name": name})


def owned_by_crd(name: str, owner: commands.Owner, verb: str) -> Refused:
    """A custom resource owns the definition, and the call does not come from it. verb: edit, delete, suspend or resume."""
    resource = f"{owner.kind.lower()} {owner.name}"
    prefix = f"kubectl -n {owner.namespace}"
    if verb in ("suspend", "resume"):
        patch = '{"spec":{"suspend":%s}}' % ("true" if verb == "suspend" else "false")
        command = f"{prefix} patch {resource} --type merge -p '{patch}'"
    else:
        command = f"{prefix} {verb} {resource}"
    return Refused(
        "OWNED_BY_CRD",
        f"scheduler {name!r} belongs to {owner.kind} {owner.namespace}/{owner.name}: change that, with: {command}",
        metadata={"kind": owner.kind, "namespace": owner.namespace, "name": owner.name},
    )


def name_conflict(name: str, holder: commands.Owner | None, field: str = "scheduler.name") -> Refused:
    """An owner wants a definition that is not its own. holder: whose it is; None: it has no owner."""
    if holder is None:
        return Refused(
            "NAME_CONFLICT",
            f"scheduler {name!r} exists and was not made by this resource: delete it, take another name, or set adopt",
            field,
            {"kind": "", "namespace": "", "name": ""},
        )
    return Refused(
        "NAME_CONFLICT",
        f"scheduler {name!r} belongs to {holder.kind} {holder.namespace}/{holder.name}: take another name",
        field,
        {"kind": holder.kind, "namespace": holder.namespace, "name": holder.name},
    )


def no_target(name: str) -> Refused:
    """The definition says of no job that could be made."""
    return Refused(
        "TEMPLATE_NOT_FOUND",
        f"scheduler {name!r} has no job that this broker could make: send it again with `job`",
        "name",
    )


def by_schema(name: str) -> Refused:
    """A row that the schema of the store does not take. name: of the constraint."""
    return Refused("INVALID_FIELD", f"the store refuses it: {name}; correct the value and send it again")
