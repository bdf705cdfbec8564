"""Which scopes each RPC asks for, and where the queue stands that they must reach: one table (api section 8).

An RPC without an entry does not exist: a test compares the table with the descriptors.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec
from google.protobuf.message import Message

from anvilmq_broker.gateway.auth import Caller


class Where(Enum):
    """Where the queue of a call is found."""

    TOKEN = "any token will do"
    ANYWHERE = "one queue is enough: the call concerns none, or is proven by a lease token"
    ITEMS = "each job or pool in the request, looked at while it is mapped"
    STORED = "the queue of the stored job, receipt or worker, once it is found"
    QUEUE = "the request's queue"
    LIST = "the request's queue, if it names one; else the answer is narrowed to the token's patterns"


class Rule(msgspec.Struct, frozen=True):
    """One RPC's rule. scopes: any of them. field: path of the queue. instead: other scopes when that field is set."""

    scopes: tuple[str, ...]
    where: Where
    field: str = "queue"
    instead: tuple[str, tuple[str, ...]] | None = None


ADD: Final = ("produce",)
WORK: Final = ("work",)
READ: Final = ("read",)
ADMIN: Final = ("admin",)
OPERATE: Final = ("operate",)
FIND: Final = ("produce", "read")

_OWNED: Final = ("owner", OPERATE)
_OWN_SCHEDULER: Final = ("scheduler.owner", OPERATE)
_OWN_TEMPLATE: Final = ("template.owner", OPERATE)

_TABLE: Final[Mapping[str, Mapping[str, Rule]]] = {
    "JobService": {
        "AddJob": Rule(ADD, Where.ITEMS),
        "AddJobBulk": Rule(ADD, Where.ITEMS),
        "AddJobStream": Rule(ADD, Where.ITEMS),
        "GetJob": Rule(FIND, Where.STORED),
        "WaitJob": Rule(FIND, Where.STORED),
        "ListJobs": Rule(READ, Where.LIST, "filter.queue"),
        "ListJobLogs": Rule(READ, Where.STORED),
        "CancelJob": Rule(ADD, Where.STORED),
        "UpdateJob": Rule(ADMIN, Where.STORED, instead=("lease_token", WORK)),
        "RetryJob": Rule(ADMIN, Where.STORED),
        "PromoteJob": Rule(ADMIN, Where.STORED),
        "DeleteJob": Rule(ADMIN, Where.STORED),
        "RetryJobs": Rule(ADMIN, Where.QUEUE, "filter.queue"),
        "PromoteJobs": Rule(ADMIN, Where.QUEUE, "filter.queue"),
        "CancelJobs": Rule(ADMIN, Where.QUEUE, "filter.queue"),
        "DeleteJobs": Rule(ADMIN, Where.QUEUE, "filter.queue"),
    },
    "WorkerService": {
        "Work": Rule(WORK, Where.ITEMS),
        "ClaimJobs": Rule(WORK, Where.ITEMS),
        "SettleJobs": Rule(WORK, Where.ANYWHERE),
        "RenewLeases": Rule(WORK, Where.ANYWHERE),
        "ReportProgress": Rule(WORK, Where.ANYWHERE),
        "AppendJobLogs": Rule(WORK, Where.ANYWHERE),
        "ListWorkers": Rule(("read", "work"), Where.LIST),
        "DrainWorker": Rule(("work", "admin"), Where.STORED),
    },
    "ReceiptService": {
        "GetReceipt": Rule(FIND, Where.QUEUE),
        "ListReceipts": Rule(READ, Where.QUEUE),
        "ReleaseReceipt": Rule(ADD, Where.QUEUE),
        "DeleteReceipt": Rule(ADMIN, Where.QUEUE),
    },
    "SystemService": {
        "GetServerInfo": Rule((), Where.TOKEN),
        "GetStorageInfo": Rule(("read", "admin"), Where.ANYWHERE),
        "CreateBackup": Rule(ADMIN, Where.ANYWHERE),
        "CompactStorage": Rule(ADMIN, Where.ANYWHERE),
        "SetMaintenance": Rule(ADMIN, Where.ANYWHERE),
        "ListDefinitions": Rule(OPERATE, Where.ANYWHERE),
        "ReleaseDefinition": Rule(OPERATE, Where.ANYWHERE),
    },
    "QueueService": {
        "ListQueues": Rule(READ, Where.LIST, ""),
        "GetQueue": Rule(READ, Where.QUEUE),
        "UpdateQueue": Rule(ADMIN, Where.QUEUE),
        "PauseQueue": Rule(ADMIN, Where.QUEUE),
        "ResumeQueue": Rule(ADMIN, Where.QUEUE),
        "RateLimitFor": Rule(("work", "admin"), Where.QUEUE),
        "DrainQueue": Rule(ADMIN, Where.QUEUE),
        "CleanQueue": Rule(ADMIN, Where.QUEUE),
        "ObliterateQueue": Rule(ADMIN, Where.QUEUE),
        "GetQueueMetrics": Rule(READ, Where.QUEUE),
        "GetDeduplication": Rule(READ, Where.QUEUE),
        "ReleaseDeduplication": Rule(ADMIN, Where.QUEUE),
        "ListGroups": Rule(READ, Where.QUEUE),
        "GetGroup": Rule(READ, Where.QUEUE),
        "UpdateGroup": Rule(ADMIN, Where.QUEUE),
        "PauseGroup": Rule(ADMIN, Where.QUEUE),
        "ResumeGroup": Rule(ADMIN, Where.QUEUE),
    },
    "FlowService": {
        "AddFlow": Rule(ADD, Where.ITEMS),
        "AddFlowBulk": Rule(ADD, Where.ITEMS),
        "AddFlowMerge": Rule(ADD, Where.ITEMS, instead=("lease", ("produce", "work"))),
        "GetFlow": Rule(READ, Where.STORED),
        "BatchGetFlows": Rule(READ, Where.STORED),
        "GetChildrenValues": Rule(("work", "read"), Where.STORED),
        "ListFlows": Rule(READ, Where.LIST),
        "RetryFlow": Rule(ADMIN, Where.STORED),
        "CancelFlow": Rule(ADMIN, Where.STORED),
    },
    "FlowTemplateService": {
        "UpsertFlowTemplate": Rule(ADD, Where.ITEMS, instead=_OWN_TEMPLATE),
        "GetFlowTemplate": Rule(READ, Where.STORED),
        "ListFlowTemplates": Rule(READ, Where.LIST, ""),
        "DeleteFlowTemplate": Rule(ADMIN, Where.STORED, instead=_OWNED),
        "RunFlowTemplate": Rule(ADD, Where.STORED),
    },
    "SchedulerService": {
        "UpsertScheduler": Rule(ADD, Where.ITEMS, instead=_OWN_SCHEDULER),
        "GetScheduler": Rule(READ, Where.STORED),
        "ListSchedulers": Rule(READ, Where.LIST),
        "DeleteScheduler": Rule(ADMIN, Where.STORED, instead=_OWNED),
        "SetSchedulerSuspended": Rule(ADMIN, Where.STORED),
        "TriggerScheduler": Rule(ADD, Where.STORED),
        "PreviewSchedule": Rule(READ, Where.ANYWHERE),
    },
    "EventService": {
        "WatchEvents": Rule(READ, Where.LIST, "queues"),
    },
}

RULES: Final[Mapping[str, Rule]] = {
    f"/anvilmq.v1.{service}/{method}": rule for service, methods in _TABLE.items() for method, rule in methods.items()
}
"""The rules by path of the RPC."""


def check(rule: Rule, caller: Caller, request: Message | None) -> None:
    """What can be decided before the call runs. request: None for a stream. Raises Rejected SCOPE_MISSING."""
    if rule.where is Where.TOKEN:
        return
    scopes = scopes_of(rule, request)
    caller.require_any(scopes)
    if request is None or rule.where not in (Where.QUEUE, Where.LIST) or not rule.field:
        return
    named: Any = _value(request, rule.field)
    for queue in [named] if isinstance(named, str) else named:
        if queue:
            caller.require(scopes, queue)


def scopes_of(rule: Rule, request: Message | None) -> tuple[str, ...]:
    """The scopes that this request asks for."""
    if request is not None and rule.instead is not None and _value(request, rule.instead[0], presence=True):
        return rule.instead[1]
    return rule.scopes


def _value(request: Message, path: str, *, presence: bool = False) -> Any:
    found: Any = request
    for name in path.split("."):
        field = found.DESCRIPTOR.fields_by_name[name]
        if presence and field.message_type is not None and not found.HasField(name):
            return None
        found = getattr(found, name)
    return found
