"""What users write. mypy --strict finds nothing here; `assert_type` says what it has to infer."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import msgspec

from anvilmq import Anvil, BulkResult, Handle, Job, JobRef, SchedulePreview, Scheduler, Spec, exponential, fixed

app = Anvil()


class Resize(msgspec.Struct):
    """A payload."""

    url: str
    width: int = 800


@dataclass
class Thumb:
    """A result."""

    url: str


@app.job(queue="images", max_attempts=5, backoff=exponential("2s", max="5m"), attempt_timeout="10m")
async def resize(job: Job, args: Resize) -> Thumb:
    """An async handler."""
    return Thumb(args.url)


@app.job(queue="images", name="count", backoff=fixed(timedelta(seconds=1)), no_retry_on=[ValueError])
def count(job: Job, args: list[int]) -> int:
    """A plain handler."""
    return len(args)


@app.job(queue="images")
async def clean(job: Job, args: None) -> None:
    """Without payload and result."""


async def use(job: Job) -> None:
    """Add and wait."""
    handle = await resize.add(Resize("u"), delay="5m", priority=1, labels={"a": "b"}, timeout="5s")
    assert_type(handle, Handle[Thumb])
    assert_type(await handle.result(timeout=timedelta(seconds=1)), Thumb)
    assert_type(resize.add_sync(Resize("u"), run_at=datetime.now(UTC)), Handle[Thumb])
    assert_type(handle.result_sync(), Thumb)
    assert_type(await (await clean.add(None, max_attempts=None)).result(), None)
    assert_type(await (await count.add([1])).result(), int)

    assert_type(await resize(job, Resize("u")), Thumb)
    assert_type(count(job, [1]), int)

    spec = resize.spec(Resize("u"), group_id="g", order_key=5)
    assert_type(spec, Spec[Thumb])
    done = await app.add_bulk([spec], atomic=True, on_progress=lambda so_far, total: print(so_far, total))
    assert_type(done, BulkResult[Thumb])
    assert_type(done[0], Handle[Thumb])
    assert_type(app.add_bulk_sync(resize.spec(Resize(url)) for url in "abc"), BulkResult[Thumb])

    assert_type(app.ref("mail", "send", Resize, Thumb, max_attempts=2), JobRef[Resize, Thumb])
    assert_type(app.ref("mail", "send", Resize), JobRef[Resize, Any])
    assert_type(app.ref("mail", "send"), JobRef[Any, Any])
    assert_type(resize.handle("id"), Handle[Thumb])


async def recur() -> None:
    """Have jobs made by a schedule."""
    spec = resize.spec(Resize("u"))
    nightly = await app.schedule("n", spec, cron="0 2 * * *", time_zone="Europe/Berlin", concurrency_policy="forbid")
    assert_type(nightly, Scheduler)
    assert_type(app.schedule_sync("n", spec, every=timedelta(minutes=5), suspended=None), Scheduler)
    assert_type(await app.schedules(prefix="n"), list[Scheduler])
    assert_type(await app.trigger("n", run_key="k"), Handle[Any])
    assert_type(await app.preview(every="5m", count=3), SchedulePreview)
    assert_type(await app.unschedule("n"), bool)


async def serve() -> None:
    """Work."""
    async with app, app.worker(queues=["images"], concurrency=8, pools={"pdf": 2}):
        pass
