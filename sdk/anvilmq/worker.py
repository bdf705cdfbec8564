"""A worker: runs the handlers of an app. What it does inside: DESIGN.md."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import os
import platform
import signal
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from anvilmq import durations
from anvilmq._crew import Crew
from anvilmq._pools import Slots
from anvilmq._runner import Observer
from anvilmq.durations import Duration
from anvilmq_proto.v1 import worker_service_pb2 as wire

if TYPE_CHECKING:
    from anvilmq.app import Anvil

MAX_POOLS: Final = 32
MAX_QUEUES: Final = 64
EXIT_AFTER_S: Final = 1.0
"""A handler that blocks its loop must not keep a process from ending that has handed everything back."""


class Pool(msgspec.Struct, frozen=True):
    """Slots that serve some queues; the least recently served queue goes first.

    concurrency: jobs that run at once, from 1. At most 64 queues, each in one pool only.
    """

    queues: tuple[str, ...]
    concurrency: int = 8

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"a pool needs at least one slot, not {self.concurrency}")
        if not 1 <= len(self.queues) <= MAX_QUEUES:
            raise ValueError(f"a pool serves 1 to {MAX_QUEUES} queues, not {len(self.queues)}")


class Worker:
    """Runs handlers: `async with app.worker(queues=["images"], concurrency=8)` in a service, `run()` as a program.

    Async handlers run on the loop that starts the worker, so that they can use what the program has there; plain ones
    in threads. Leases are renewed elsewhere: code that blocks loses none. At the end of the block the worker leaves as
    after SIGTERM.

    queues: share `concurrency` slots. pools: slots apart for some queues, `{"pdf": 2}` or Pools; those queues leave the
    common pool. Without any, all queues of the app. prefetch: most jobs held beyond the free slots; None = as measured, 0 = none. name: shown by
    `anvilmq worker list`. grace: time to leave, by default ANVILMQ_GRACE. http: "host:port" for `/healthz`,
    `/readyz`, `/metrics`; off by default. observers: told of each attempt's end.
    """

    def __init__(
        self,
        app: Anvil,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 8,
        pools: Mapping[str, int] | Sequence[Pool] = (),
        prefetch: int | None = None,
        name: str = "",
        grace: Duration | None = None,
        http: str | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        if prefetch is not None and prefetch < 0:
            raise ValueError(f"prefetch is at least 0, not {prefetch}")
        self.id = uuid.uuid4().hex
        self.pools = _pools(queues or ([] if pools else [job.queue for job in app.registry]), concurrency, pools)
        self._app = app
        self._prefetch = prefetch
        self._name = name
        self._grace_s = None if grace is None else durations.parse_s(grace)
        self._http = http
        self._observers = tuple(observers)
        self.crew: Crew | None = None
        """What it consists of once it is started; for tests."""

    async def start(self) -> None:
        """Connect and take jobs. Does not wait for the broker: a worker may start before it.

        RuntimeError when it was started before; TypeError when a handler's annotations have no meaning; SettingInvalid.
        """
        if self.crew is not None:
            raise RuntimeError("this worker was started before; make a new one")
        served = {queue for pool in self.pools for queue in pool.queues}
        for job in self._app.registry:
            if job.queue in served:
                _ = job.payload_type  # else every attempt would fail
        client = self._app.client
        self.crew = Crew(
            client=client,
            registry=self._app.registry,
            codec=self._app.codec,
            identity=_identity(self.id, self._name),
            pools=[
                Slots(number, pool.queues, pool.concurrency, self._prefetch)
                for number, pool in enumerate(self.pools, start=1)
            ],
            grace_s=client.settings.grace_s if self._grace_s is None else self._grace_s,
            http=self._http,
            observers=self._observers,
        )
        try:
            await self.crew.start()
        except BaseException:
            self.crew = None
            raise

    async def stop(self, *, grace: Duration | None = None) -> None:
        """Leave: take no more jobs, let running ones end within the grace, hand back the rest. May be called twice."""
        if self.crew is not None:
            await self.crew.leave(None if grace is None else durations.parse_s(grace))

    async def wait(self) -> None:
        """Until the worker has left, because it was asked to. Raises what keeps it from ever working."""
        if self.crew is None:
            raise RuntimeError("this worker is not started")
        await asyncio.wrap_future(self.crew.dispatcher.finished)

    def drain(self) -> None:
        """Begin to leave, as at the first SIGTERM; at the second call hand back at once what still runs. Any thread."""
        if self.crew is not None:
            self.crew.drain()

    @property
    def ready(self) -> bool:
        """It has a session and takes jobs."""
        return self.crew is not None and self.crew.session.ready

    @property
    def http_address(self) -> str | None:
        """Where the probes are served, with the port that was chosen; None if they are not."""
        server = self.crew and self.crew.http
        return server.address if server else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def run(self) -> None:
        """Work on a loop of its own until SIGTERM, SIGINT or the broker says to leave; then close the app.

        For a program whose purpose this is. In a thread other than the main one signals are left alone. If handlers
        block their loop, the process ends here one second after everything was handed back, with exit code 0.
        """
        loop = asyncio.new_event_loop()
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(self._serve())
        finally:
            _end(loop)
            asyncio.set_event_loop(None)

    async def _serve(self) -> None:
        with _signals(self):
            async with self._app:
                await self.start()
                await self._until_left()

    async def _until_left(self) -> None:
        """`wait`, and see to it that the process ends."""
        assert self.crew is not None
        client, ended = self._app.client, threading.Event()

        def end_process() -> None:
            if not ended.wait(EXIT_AFTER_S):
                client.exit()
                os._exit(0)

        def left(_: object) -> None:
            threading.Thread(target=end_process, name="anvilmq-exit", daemon=True).start()

        self.crew.dispatcher.finished.add_done_callback(left)
        try:
            await self.wait()
        finally:
            ended.set()


def _identity(worker_id: str, name: str) -> wire.WorkerIdentity:
    # In a pod the host's name is the pod's.
    return wire.WorkerIdentity(
        worker_id=worker_id, name=name, pod=platform.node()[:128], sdk="python", sdk_version=_version()
    )


def _version() -> str:
    try:
        return importlib.metadata.version("anvilmq")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _pools(queues: Sequence[str], concurrency: int, apart: Mapping[str, int] | Sequence[Pool]) -> tuple[Pool, ...]:
    """The common pool, if a queue is left for it, and those apart. ValueError for what the broker would refuse."""
    if isinstance(apart, Mapping):
        apart = [Pool((queue,), slots) for queue, slots in apart.items()]
    named = [queue for pool in apart for queue in pool.queues]
    common = [queue for queue in dict.fromkeys(queues) if queue not in set(named)]
    pools = (Pool(tuple(common), concurrency), *apart) if common else tuple(apart)
    if len(named) != len(set(named)):
        raise ValueError(f"a queue stands in one pool only: {', '.join(sorted(named))}")
    if not pools:
        raise ValueError("no queue to work on: the app has no jobs, and none was named")
    if len(pools) > MAX_POOLS:
        raise ValueError(f"a worker has at most {MAX_POOLS} pools, not {len(pools)}")
    return pools


@contextlib.contextmanager
def _signals(worker: Worker) -> Iterator[None]:
    """SIGTERM and SIGINT begin to drain the worker, and at the second time make it hurry."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def drain(_number: int, _frame: FrameType | None) -> None:
        worker.drain()

    # Not the loop's own handlers: those wait for a loop that a handler may be blocking.
    before = {number: signal.signal(number, drain) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Close the loop. Handlers that still run are cancelled once more, and left behind after a second."""
    if tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks, timeout=EXIT_AFTER_S))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
