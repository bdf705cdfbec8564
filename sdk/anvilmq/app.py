"""Anvil: the jobs of a program, and its connection to a broker."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, overload

from anvilmq import _settings, bulk, durations, schedules
from anvilmq._bulks import TRY_S
from anvilmq._client import Client
from anvilmq._codec import Codec
from anvilmq._iothread import Reply, forbid_on_loop
from anvilmq.bulk import BulkResult, Progress
from anvilmq.durations import Duration
from anvilmq.handles import Handle
from anvilmq.jobs import AsyncJob, Decorator, ForeignJob, JobDef, JobRef, PlainJob, Registry, Spec
from anvilmq.options import JobOptions
from anvilmq.schedules import PreviewOptions, ScheduleOptions, SchedulePreview, Scheduler

if TYPE_CHECKING:
    from anvilmq._runner import Observer
    from anvilmq.context import Job
    from anvilmq.worker import Pool, Worker
    from anvilmq_proto.v1 import types_pb2

A = TypeVar("A")
R = TypeVar("R")


class Anvil:
    """The jobs of a program, and its connection to a broker. Making one does no I/O and starts no thread.

    What is not given comes from the environment at first use: ANVILMQ_URL ("localhost:50051", "anvilmq://host:port";
    "anvilmqs://…" with TLS), ANVILMQ_TOKEN or ANVILMQ_TOKEN_FILE, ANVILMQ_CA_FILE.
    codec: changes payloads and results on their way, for encryption.

    Use it from any loop and any thread. `async with`, or `with` in a program without a loop, closes it at the end.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        codec: Codec | None = None,
    ) -> None:
        self.registry = Registry()
        self.codec = codec
        self._settings = partial(_settings.read, url=url, token=token, token_file=token_file, ca_file=ca_file)
        self._lock = threading.Lock()
        self._client: Client | None = None

    # ------------------------------------------------------------------------------------------------ definitions

    def job(
        self,
        *,
        queue: str,
        name: str | None = None,
        no_retry_on: Sequence[type[BaseException]] = (),
        **options: Unpack[JobOptions],
    ) -> Decorator:
        """Define a job by its handler, `(job, args)`; a plain `def` runs in a thread of the worker.

        The annotation of `args` is the type of the payload, the return annotation that of the result. name: by default
        the function's. no_retry_on: exceptions after which it is not tried again. Options: see JobOptions.
        ValueError when the app has a job of that queue and name.
        """

        def define(fn: Callable[[Job, Any], Any], /) -> JobDef[Any, Any]:
            kind: type[JobDef[Any, Any]] = AsyncJob if inspect.iscoroutinefunction(fn) else PlainJob
            defined = kind(self, queue, name or fn.__name__, options, fn, tuple(no_retry_on))
            self.registry.add(defined)
            return defined

        return cast("Decorator", define)

    @overload
    def ref(self, queue: str, name: str, **options: Unpack[JobOptions]) -> JobRef[Any, Any]: ...
    @overload
    def ref(self, queue: str, name: str, payload: type[A], **options: Unpack[JobOptions]) -> JobRef[A, Any]: ...
    @overload
    def ref(
        self, queue: str, name: str, payload: type[A], result: type[R], **options: Unpack[JobOptions]
    ) -> JobRef[A, R]: ...
    def ref(
        self, queue: str, name: str, payload: Any = Any, result: Any = Any, **options: Unpack[JobOptions]
    ) -> JobRef[Any, Any]:
        """A job whose handler is in another program: to add it there, with the types that were agreed on.

        None stands for the type of None.
        """
        return ForeignJob(self, queue, name, cast("Mapping[str, Any]", options), payload, result)

    # ------------------------------------------------------------------------------------------------------- bulk

    async def add_bulk(
        self,
        specs: Iterable[Spec[R]],
        *,
        atomic: bool = False,
        timeout: Duration | None = None,
        on_progress: Progress | None = None,
    ) -> BulkResult[R]:
        """Add many jobs, in batches of up to 1 000; each item has its own answer, and none is added twice.

        specs: made by `job.spec(…)`, taken one batch at a time. atomic: all or nothing, in one batch at most; the
        error's `index` names the item that was refused. timeout: for each batch, by default 30 s.
        BulkStopped when a batch as a whole does not come through: it has the answers so far.
        """
        return await bulk.drive(self._bulk(specs, atomic, timeout, on_progress))

    def add_bulk_sync(
        self,
        specs: Iterable[Spec[R]],
        *,
        atomic: bool = False,
        timeout: Duration | None = None,
        on_progress: Progress | None = None,
    ) -> BulkResult[R]:
        """The same in a thread without a loop."""
        forbid_on_loop("add_bulk_sync()", "await add_bulk()")
        return bulk.drive_sync(self._bulk(specs, atomic, timeout, on_progress))

    def _bulk(
        self, specs: Iterable[Spec[R]], atomic: bool, timeout: Duration | None, on_progress: Progress | None
    ) -> bulk.Steps[R]:
        timeout_s = TRY_S if timeout is None else durations.parse_s(timeout)
        return bulk.steps(self.client, specs, atomic=atomic, timeout_s=timeout_s, on_progress=on_progress)

    # -------------------------------------------------------------------------------------------------- schedules

    async def schedule(self, name: str, spec: Spec[Any], **options: Unpack[ScheduleOptions]) -> Scheduler:
        """Have the broker add a job at each tick: `schedule("nightly", job.spec(…), cron="0 2 * * *")`.

        Makes the definition, or changes it to this; the same content changes nothing, so call it at every start. A
        changed schedule, zone or interval counts from now. name: 1 to 128 of A-Z a-z 0-9 _ . : -. Options: see
        ScheduleOptions. spec: without idempotency key, run_at and expires_at: the tick is the key of its job.
        Raises ScheduleInvalid, TimeZoneUnknown; OwnedByCrd when a custom resource keeps it; InvalidArgument,
        PermissionDenied, Unavailable; TypeError or ValueError for an option that cannot be right.
        """
        return await self._schedule(name, spec, options)

    def schedule_sync(self, name: str, spec: Spec[Any], **options: Unpack[ScheduleOptions]) -> Scheduler:
        """The same in a thread without a loop."""
        forbid_on_loop("schedule_sync()", "await schedule()")
        return self._schedule(name, spec, options).result()

    async def unschedule(self, name: str) -> bool:
        """Delete a recurring definition; the jobs it made go on. Whether it was there. OwnedByCrd."""
        return await self._unschedule(name)

    def unschedule_sync(self, name: str) -> bool:
        """The same in a thread without a loop."""
        forbid_on_loop("unschedule_sync()", "await unschedule()")
        return self._unschedule(name).result()

    async def schedules(self, *, prefix: str = "", queue: str = "") -> list[Scheduler]:
        """The recurring definitions, by name. prefix: of their names. queue: of their jobs. "" = all."""
        return await self._schedules(prefix, queue)

    def schedules_sync(self, *, prefix: str = "", queue: str = "") -> list[Scheduler]:
        """The same in a thread without a loop."""
        forbid_on_loop("schedules_sync()", "await schedules()")
        return self._schedules(prefix, queue).result()

    async def trigger(self, name: str, *, run_key: str | None = None) -> Handle[Any]:
        """Run a recurring definition once, now, also when it is suspended or ended; its ticks stay as they are.

        run_key: the same key again within 24 h gives the same run, `existing` then; at most 120 bytes.
        SchedulerNotFound.
        """
        return self._handle_of(*await self._trigger(name, run_key))

    def trigger_sync(self, name: str, *, run_key: str | None = None) -> Handle[Any]:
        """The same in a thread without a loop."""
        forbid_on_loop("trigger_sync()", "await trigger()")
        return self._handle_of(*self._trigger(name, run_key).result())

    async def preview(self, **options: Unpack[PreviewOptions]) -> SchedulePreview:
        """The next ticks of a schedule, the expression in words, and what changes of the clocks do; stores nothing.

        Options: see PreviewOptions. ScheduleInvalid, TimeZoneUnknown.
        """
        return await self._preview(options)

    def preview_sync(self, **options: Unpack[PreviewOptions]) -> SchedulePreview:
        """The same in a thread without a loop."""
        forbid_on_loop("preview_sync()", "await preview()")
        return self._preview(options).result()

    def _schedule(self, name: str, spec: Spec[Any], options: ScheduleOptions) -> Reply[Scheduler]:
        client = self.client
        return client.io.run(lambda: schedules.upsert(client, name, spec, options))

    def _unschedule(self, name: str) -> Reply[bool]:
        client = self.client
        return client.io.run(lambda: schedules.delete(client, name))

    def _schedules(self, prefix: str, queue: str) -> Reply[list[Scheduler]]:
        client = self.client
        return client.io.run(lambda: schedules.list_all(client, prefix, queue))

    def _trigger(self, name: str, run_key: str | None) -> Reply[tuple[types_pb2.Job, bool]]:
        client = self.client
        return client.io.run(lambda: schedules.trigger(client, name, run_key))

    def _preview(self, options: PreviewOptions) -> Reply[SchedulePreview]:
        client = self.client
        return client.io.run(lambda: schedules.preview(client, options))

    def _handle_of(self, job: types_pb2.Job, existing: bool) -> Handle[Any]:
        found = self.registry.find(job.queue, job.name) or self.ref(job.queue, job.name)
        return Handle(found, job.job_id, existing=existing)

    # ------------------------------------------------------------------------------------------------------- work

    def worker(
        self,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 8,
        pools: Mapping[str, int] | Sequence[Pool] = (),
        prefetch: int | None = None,
        name: str = "",
        grace: Duration | None = None,
        http: str | None = None,
        observers: Sequence[Observer] = (),
    ) -> Worker:
        """A worker for the jobs of this app, to be run with `async with`, or by `run()`. See Worker."""
        from anvilmq.worker import Worker

        return Worker(
            self,
            queues=queues,
            concurrency=concurrency,
            pools=pools,
            prefetch=prefetch,
            name=name,
            grace=grace,
            http=http,
            observers=observers,
        )

    # ------------------------------------------------------------------------------------------- first use and end

    @property
    def client(self) -> Client:
        """The connection, made at first use. SettingInvalid."""
        return self._client or self._open()

    def use_client(self, client: Client | None) -> Client | None:
        """Use that client from now on, None: make a new one at the next use. The one until now, which is not closed."""
        with self._lock:
            before, self._client = self._client, client
        return before

    async def flush(self) -> None:
        """Return when all jobs whose `add` was called before are answered."""
        if (client := self._client) is not None:
            await client.io.run(client.adds.flush)

    def flush_sync(self) -> None:
        """The same in a thread without a loop."""
        forbid_on_loop("flush_sync()", "await flush()")
        if (client := self._client) is not None:
            client.io.run(client.adds.flush).result()

    async def close(self) -> None:
        """Wait for the answers of all adds, and end the connection. The app can be used again: it connects anew."""
        if (client := self.use_client(None)) is not None:
            await client.close()

    def close_sync(self) -> None:
        """The same in a thread without a loop."""
        forbid_on_loop("close_sync()", "await close()")
        if (client := self.use_client(None)) is not None:
            client.close_sync()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close_sync()

    def _open(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = Client.over_grpc(self._settings())
            return self._client
