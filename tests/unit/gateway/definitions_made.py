"""Recurring definitions as tests of the gateway use them."""

from __future__ import annotations

from typing import Any

from anvilmq_broker.domain import commands
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2
from tests.support.clock import START_MS
from tests.unit.gateway.bundle import spec

OWNER = commands.Owner("JobScheduler", "shop", "nightly", "u-1", 3, "sha256:9", "anvilmq/anvilmq", True)
OWNER_MESSAGE = types_pb2.Owner(
    kind="JobScheduler",
    namespace="shop",
    name="nightly",
    uid="u-1",
    generation=3,
    spec_hash="sha256:9",
    manager="anvilmq/anvilmq",
    retain=True,
)


def upsert(schedule: dict[str, Any], **fields: Any) -> pb.UpsertSchedulerRequest:
    """An upsert of `nightly`, whose job is of queue q, with these fields of the spec."""
    whole: dict[str, Any] = {"schedule": pb.Schedule(**schedule), **fields}
    if "flow" not in whole:
        whole.setdefault("job", spec())
    return pb.UpsertSchedulerRequest(scheduler=pb.Scheduler(name="nightly", spec=pb.SchedulerSpec(**whole)))


def definition() -> commands.DefinitionRecord:
    """`nightly` as the controller of its resource lists it."""
    return commands.DefinitionRecord(1, "nightly", OWNER, 11, 10, commands.JobRef(7, START_MS))
