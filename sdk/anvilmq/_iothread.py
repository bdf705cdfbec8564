"""The loop that all I/O runs on, and the ways onto it from other loops and threads.

In a program this is the loop of one thread a process, started at first use (IoThread): gRPC for asyncio wants one
loop, and code of handlers that blocks must not stop renewals. In `testing.env` it is the loop of the test (InlineIo).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent import futures
from typing import Any, Generic, TypeVar

from anvilmq import errors
from anvilmq._clock import Clock, SystemClock

T = TypeVar("T")


class Mailbox:
    """Calls to be made on one loop, from any thread, in the order given: a deque, and one wake-up a burst.

    Waking a loop costs a system call and a fight over the interpreter; calls that come while the wake-up is under way
    ride along.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._calls: deque[Callable[[], object]] = deque()
        self._woken = False

    def post(self, call: Callable[[], object]) -> None:
        """Make the call on the loop, soon. RuntimeError when that loop is closed."""
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        # Clear the flag before draining: a post in between wakes us once for nothing; the other order loses it.
        self._woken = False
        for _ in range(len(self._calls)):
            call = self._calls.popleft()
            try:
                call()
            except Exception as error:  # noqa: BLE001 - one bad call must not take the others with it
                self.loop.call_exception_handler({"message": f"failed: {call!r}", "exception": error})


class Reply(Generic[T]):
    """What a coroutine on the I/O loop will return: to be awaited on any loop, or waited for in a thread without one.

    Cancelling the await cancels the coroutine.
    """

    __slots__ = ("_future",)

    def __init__(self, future: futures.Future[T]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> T:
        """Block until it is there. RuntimeError on an event loop, which this would stop."""
        forbid_on_loop("this", "await it")
        return self._future.result()

    def cancel(self) -> None:
        """Cancel the coroutine."""
        self._future.cancel()


class Io:
    """A loop, a clock, and the ways onto the loop. The base of IoThread and InlineIo."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.loop = loop
        self.clock = clock
        self._pid = os.getpid()
        self._inbox = Mailbox(loop)

    def check(self) -> None:
        """Raise UsedAfterFork when this process is a fork of the one that started the I/O."""
        if os.getpid() != self._pid:
            raise errors.UsedAfterFork

    def call_soon(self, call: Callable[[], object]) -> None:
        """Make a plain call on the I/O loop, from any thread; calls are made in order. It must not block or raise."""
        self._inbox.post(call)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Reply[T]:
        """Start a coroutine on the I/O loop, from any loop or thread. `work` makes it, and is called there.

        UsedAfterFork; Closed when the loop is.
        """
        self.check()
        made = _made_by(work)
        try:
            return Reply(asyncio.run_coroutine_threadsafe(made, self.loop))
        except RuntimeError as error:
            made.close()
            raise errors.Closed from error

    def stop(self) -> None:
        """Give the loop back. Blocks until its thread has ended, if it has one. May be called twice."""


class InlineIo(Io):
    """I/O on the loop that is running, without a thread: for tests of one loop and a fake clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(asyncio.get_running_loop(), clock)


class IoThread(Io):
    """I/O on a loop in a thread of its own, which starts here and ends with `stop`, or with the process."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(asyncio.new_event_loop(), clock or SystemClock())
        # A daemon, so that a program that forgets to close us can end; what it still has to send is sent at exit.
        self._thread = threading.Thread(target=self._serve, name="anvilmq-io", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """See Io. Coroutines that still run are cancelled."""
        if os.getpid() != self._pid or not self._thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(_end_tasks())
        finally:
            self.loop.close()


class SharedIo:
    """The one I/O thread of a process: started for its first user, ended with its last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._io: IoThread | None = None
        self._users = 0
        self._pid = 0

    def acquire(self) -> IoThread:
        """The I/O of this process, which the caller holds until it calls `release`."""
        with self._lock:
            if self._io is None or self._pid != os.getpid():
                # After a fork the thread is gone: a child that has not used us yet gets its own.
                self._io, self._users, self._pid = IoThread(), 0, os.getpid()
            self._users += 1
            return self._io

    def release(self, io: Io) -> None:
        """Give up what `acquire` returned."""
        with self._lock:
            if io is not self._io or self._pid != os.getpid():
                return
            self._users -= 1
            if self._users:
                return
            self._io = None
        io.stop()


SHARED = SharedIo()
"""Process-wide by purpose, and empty until it is used: two I/O threads in one process would hinder each other."""


def forbid_on_loop(blocking: str, instead: str) -> None:
    """Raise RuntimeError when this thread runs an event loop, which `blocking` would stop; say what to do `instead`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{blocking} blocks, and would stop the event loop of this thread: {instead}")


async def _made_by(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await work()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
