"""Definitions of jobs: what an app adds, and what its workers run. Hot: `add`.

JobRef is a job that is run elsewhere; JobDef one that this app has the handler of.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, Unpack, cast, overload

import msgspec

from anvilmq import _codec, durations, errors, options
from anvilmq._entries import Added
from anvilmq._iothread import forbid_on_loop
from anvilmq.handles import MATCHED_BY, Handle
from anvilmq.options import AddOptions, SpecOptions
from anvilmq_proto.v1 import types_pb2

if TYPE_CHECKING:
    from anvilmq.app import Anvil
    from anvilmq.context import Job

A = TypeVar("A")
R = TypeVar("R")
A_contra = TypeVar("A_contra", contravariant=True)

ADD_S: Final = 30.0
MAX_PAYLOAD_BYTES: Final = 15 << 20
"""What no broker takes, whatever its settings: refused here, for the connection would not carry it."""
_OVERHEAD: Final = 16
"""Bytes of a job in a frame beyond its constant part and its data, about."""


class Spec(msgspec.Struct, Generic[R], frozen=True):
    """A job to be added, by `app.add_bulk`. size: about its bytes on the wire."""

    ref: JobRef[Any, R]
    wire: types_pb2.JobSpec
    size: int


class JobRef(Generic[A, R]):
    """A job by queue and name, with the types of its payload and its result. Made by `app.ref`, or as a JobDef."""

    def __init__(self, app: Anvil, queue: str, name: str, defaults: Mapping[str, Any]) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}", queue):
            raise ValueError(f"a queue's name is 1 to 128 of A-Z a-z 0-9 _ . : -, not {queue!r}")
        if not 1 <= len(name.encode()) <= 128 or not name.isprintable():
            raise ValueError(f"a job's name is 1 to 128 bytes without control characters, not {name!r}")
        self.app = app
        self.queue = queue
        self.name = name
        self.options = dict(defaults)
        self._constant = types_pb2.JobSpec(queue=queue, name=name)
        options.apply(self._constant, self.options)
        self._constant_size = self._constant.ByteSize() + _OVERHEAD

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue}/{self.name}>"

    @property
    def payload_type(self) -> type[A]:
        """What its payload decodes to."""
        raise NotImplementedError

    @property
    def result_type(self) -> type[R]:
        """What its result decodes to."""
        raise NotImplementedError

    async def add(self, args: A, **options: Unpack[AddOptions]) -> Handle[R]:
        """Add one job; it is on the broker's disk when this returns. Adds made at the same time share a message.

        args: the payload, as JSON at most 1 MiB; bytes go as they are. Options: see AddOptions; a connection that
        breaks adds nothing twice. When the caller is cancelled, the job is added only if it was on its way already.
        Raises Unavailable at the timeout, PayloadInvalid, PayloadTooLarge, QueueFull, IdempotencyKeyReused,
        InvalidArgument, PermissionDenied, Closed; TypeError or ValueError for an option that cannot be right.
        """
        client = self.app.client
        adds = client.adds
        deadline = client.clock.monotonic() + (_timeout_s(options) if options else ADD_S)
        if adds.full:
            # Before the payload is encoded: what waits here should cost no memory.
            await adds.room(deadline)
        wire, size = self._build(args, options)
        return self._handle(await adds.add(wire, size, deadline))

    def add_sync(self, args: A, **options: Unpack[AddOptions]) -> Handle[R]:
        """The same in a thread without a loop."""
        forbid_on_loop("add_sync()", "await add()")
        client = self.app.client
        adds = client.adds
        deadline = client.clock.monotonic() + (_timeout_s(options) if options else ADD_S)
        if adds.full:
            adds.room_sync(deadline)
        wire, size = self._build(args, options)
        return self._handle(adds.add_sync(wire, size, deadline))

    def spec(self, args: A, **options: Unpack[SpecOptions]) -> Spec[R]:
        """A job for `app.add_bulk`. Encodes the payload. Raises as `add` does for what cannot be right."""
        wire, size = self._build(args, options)
        return Spec(self, wire, size)

    def handle(self, job_id: str) -> Handle[R]:
        """The handle of a job that was added earlier, or by another process. Asks nobody."""
        return Handle(self, job_id)

    def answered(self, added: Added) -> Handle[R]:
        """The handle of an answer of the broker."""
        return self._handle(added)

    def _build(self, args: A, given: SpecOptions | AddOptions) -> tuple[types_pb2.JobSpec, int]:
        data, content_type = _codec.encode(args, self.app.codec)
        if len(data) > MAX_PAYLOAD_BYTES:
            text = f"the payload has {len(data)} bytes, more than any broker takes ({MAX_PAYLOAD_BYTES})"
            raise errors.PayloadTooLarge(text, metadata={"field": "data"})
        wire = types_pb2.JobSpec()
        wire.MergeFrom(self._constant)
        wire.data = data
        if content_type != _codec.JSON:
            wire.content_type = content_type
        if given:
            options.apply(wire, cast("Mapping[str, Any]", given))
            return wire, wire.ByteSize()
        return wire, self._constant_size + len(data)

    def _handle(self, added: Added) -> Handle[R]:
        if isinstance(added, str):
            return Handle(self, added)
        return Handle(
            self,
            added.job_id,
            existing=added.existing,
            matched_by=MATCHED_BY.get(added.matched_by),
            replaced_job_id=added.replaced_job_id,
        )


class ForeignJob(JobRef[A, R]):
    """A job whose handler is in another program."""

    def __init__(
        self,
        app: Anvil,
        queue: str,
        name: str,
        defaults: Mapping[str, Any],
        payload_type: type[A],
        result_type: type[R],
    ) -> None:
        super().__init__(app, queue, name, defaults)
        self._payload_type = payload_type
        self._result_type = result_type

    @property
    def payload_type(self) -> type[A]:
        """See JobRef."""
        return self._payload_type

    @property
    def result_type(self) -> type[R]:
        """See JobRef."""
        return self._result_type


class JobDef(JobRef[A, R]):
    """A job that this app can run. fn: its handler. is_async: the handler is a coroutine function.

    no_retry_on: exceptions of the handler after which the job is not tried again.
    """

    def __init__(
        self,
        app: Anvil,
        queue: str,
        name: str,
        defaults: Mapping[str, Any],
        fn: Callable[[Job, A], Any],
        no_retry_on: tuple[type[BaseException], ...],
    ) -> None:
        super().__init__(app, queue, name, defaults)
        self.fn = fn
        self.is_async = inspect.iscoroutinefunction(fn)
        self.no_retry_on = no_retry_on
        self._args_name = _second_parameter(fn)
        self._hints: dict[str, Any] | None = None
        self.__doc__ = fn.__doc__
        self.__module__ = getattr(fn, "__module__", self.__module__)
        self.__wrapped__ = fn

    @functools.cached_property
    def payload_type(self) -> type[A]:
        """The annotation of the handler's second parameter; Any without one. TypeError when it has no meaning."""
        return cast("type[A]", self._annotation(self._args_name))

    @property
    def result_type(self) -> type[R]:
        """The handler's return annotation; Any without one. TypeError when it has no meaning."""
        return cast("type[R]", self._annotation("return"))

    def _annotation(self, name: str) -> object:
        if self._hints is None:
            # Not when it is defined: an annotation may name what the module defines further down.
            try:
                self._hints = typing.get_type_hints(self.fn)
            except NameError as error:
                raise TypeError(f"an annotation of the handler of {self.queue}/{self.name}: {error}") from error
        found: object = self._hints.get(name, Any)
        return found


class AsyncJob(JobDef[A, R]):
    """A JobDef with an async handler."""

    def __call__(self, job: Job, args: A) -> Coroutine[Any, Any, R]:
        """Call the handler itself: no broker, no retries."""
        return cast("Coroutine[Any, Any, R]", self.fn(job, args))


class PlainJob(JobDef[A, R]):
    """A JobDef with a plain handler, which workers run in a thread."""

    def __call__(self, job: Job, args: A) -> R:
        """Call the handler itself: no broker, no retries."""
        return cast("R", self.fn(job, args))


class Decorator(Protocol):
    """What `app.job(…)` returns: turns a handler into a JobDef."""

    # A coroutine is a value too: the first overload that fits is meant.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: Callable[[Job, A], Coroutine[Any, Any, R]], /
    ) -> AsyncJob[A, R]: ...
    @overload
    def __call__(self, fn: Callable[[Job, A], R], /) -> PlainJob[A, R]: ...


class Registry:
    """The jobs that an app can run, by queue and name."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], JobDef[Any, Any]] = {}

    def __iter__(self) -> Iterator[JobDef[Any, Any]]:
        return iter(self._jobs.values())

    def __len__(self) -> int:
        return len(self._jobs)

    def find(self, queue: str, name: str) -> JobDef[Any, Any] | None:
        """The job of that queue and name, None when this app has no handler for it."""
        return self._jobs.get((queue, name))

    def add(self, job: JobDef[Any, Any]) -> None:
        """Register a job. ValueError when queue and name are taken."""
        earlier = self._jobs.setdefault((job.queue, job.name), job)
        if earlier is not job:
            raise ValueError(
                f"job {job.name!r} of queue {job.queue!r} is defined twice: {_place(earlier)} and {_place(job)};"
                " give one of them another name="
            )


def _second_parameter(fn: Callable[..., Any]) -> str:
    kinds = inspect.Parameter
    places = [
        parameter
        for parameter in inspect.signature(fn).parameters.values()
        if parameter.kind in {kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD}
    ]
    if len(places) < 2 or any(parameter.default is kinds.empty for parameter in places[2:]):
        raise TypeError(
            f"{getattr(fn, '__qualname__', fn)} is no handler: it takes (job, args), args: None without any"
        )
    return places[1].name


def _place(job: JobDef[Any, Any]) -> str:
    return f"{job.fn.__module__}.{job.fn.__qualname__}"


def _timeout_s(given: AddOptions) -> float:
    timeout = given.pop("timeout", None)
    return ADD_S if timeout is None else durations.parse_s(timeout)
