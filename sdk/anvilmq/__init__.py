"""The client library of AnvilMQ: add jobs, and work on them.

    from anvilmq import Anvil, Job

    app = Anvil()

    @app.job(queue="images", max_attempts=5)
    async def resize(job: Job, args: Resize) -> Thumb: ...

    handle = await resize.add(Resize(url))
    thumb = await handle.result(timeout="60s")

Names are loaded when they are first used, so importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anvilmq.app import Anvil as Anvil
    from anvilmq.bulk import BulkResult as BulkResult
    from anvilmq.context import Job as Job
    from anvilmq.context import current_job as current_job
    from anvilmq.errors import AnvilError as AnvilError
    from anvilmq.errors import BulkStopped as BulkStopped
    from anvilmq.errors import IdempotencyKeyReused as IdempotencyKeyReused
    from anvilmq.errors import JobCancelled as JobCancelled
    from anvilmq.errors import JobFailed as JobFailed
    from anvilmq.errors import JobNotFound as JobNotFound
    from anvilmq.errors import Overloaded as Overloaded
    from anvilmq.errors import OwnedByCrd as OwnedByCrd
    from anvilmq.errors import PayloadInvalid as PayloadInvalid
    from anvilmq.errors import PayloadTooLarge as PayloadTooLarge
    from anvilmq.errors import QueueFull as QueueFull
    from anvilmq.errors import ScheduleInvalid as ScheduleInvalid
    from anvilmq.errors import Unavailable as Unavailable
    from anvilmq.errors import WaitTimeout as WaitTimeout
    from anvilmq.handles import Handle as Handle
    from anvilmq.jobs import JobDef as JobDef
    from anvilmq.jobs import JobRef as JobRef
    from anvilmq.jobs import Spec as Spec
    from anvilmq.options import exponential as exponential
    from anvilmq.options import fixed as fixed
    from anvilmq.outcomes import AwaitChildren as AwaitChildren
    from anvilmq.outcomes import Fail as Fail
    from anvilmq.outcomes import Release as Release
    from anvilmq.outcomes import Retry as Retry
    from anvilmq.schedules import SchedulePreview as SchedulePreview
    from anvilmq.schedules import Scheduler as Scheduler
    from anvilmq.worker import Pool as Pool
    from anvilmq.worker import Worker as Worker

_MODULES = {
    "app": ("Anvil",),
    "bulk": ("BulkResult",),
    "context": ("Job", "current_job"),
    "errors": (
        "AnvilError",
        "BulkStopped",
        "IdempotencyKeyReused",
        "JobCancelled",
        "JobFailed",
        "JobNotFound",
        "Overloaded",
        "OwnedByCrd",
        "PayloadInvalid",
        "PayloadTooLarge",
        "QueueFull",
        "ScheduleInvalid",
        "Unavailable",
        "WaitTimeout",
    ),
    "handles": ("Handle",),
    "jobs": ("JobDef", "JobRef", "Spec"),
    "options": ("exponential", "fixed"),
    "outcomes": ("AwaitChildren", "Fail", "Release", "Retry"),
    "schedules": ("SchedulePreview", "Scheduler"),
    "worker": ("Pool", "Worker"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605 - one list of names


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
