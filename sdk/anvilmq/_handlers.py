"""Where handlers run: the async ones on one loop, plain ones in threads.

Hot. Jobs come from the I/O thread in bursts, one wake-up for each burst. Whoever ends an attempt starts the one that
gets its slot. Threads are daemons: a handler that never returns must not keep the process from ending.

A task costs more than a short handler. So one task runs all attempts of a burst, one after the other and each in a
context of its own, until one of them has to wait: that one keeps the task, and those behind it get a task each. So
does, from the start, every attempt of a definition whose handler waited the last time.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
import threading
import traceback
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from anvilmq._attempts import Attempt
from anvilmq._iothread import Mailbox
from anvilmq._runner import Runner

if TYPE_CHECKING:
    from anvilmq._attempts import AnyJobDef


class Handlers:
    """Starts and interrupts attempts. Made on the loop that async handlers are to run on; started from any thread.

    ended: called after attempts ended, in any thread. Once for what ends in one turn of the loop: waking the I/O
    thread for each would have the two threads fight over the interpreter all the time.
    """

    def __init__(self, runner: Runner, ended: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._runner = runner
        self._ended = ended
        self._mailbox = Mailbox(self.loop)
        self._threads = _Threads(self._run_plain)
        self._thread_id = threading.get_ident()
        self._waited: set[AnyJobDef] = set()
        self._following: list[Attempt] = []
        self._turn_ends = False
        # What handlers see of the context in which the worker was started; each attempt gets a copy of its own.
        self._context = contextvars.copy_context()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts, which have their slots."""
        on_loop = [attempt for attempt in attempts if attempt.definition.is_async]
        if on_loop:
            self._mailbox.post(functools.partial(self._start, on_loop))
        if len(on_loop) < len(attempts):
            self._start_in_threads(attempts)

    def interrupt(self, attempt: Attempt) -> None:
        """Cancel what runs the attempt, which knows the cause. A plain handler sees it when it asks."""
        if attempt.definition.is_async:
            self._mailbox.post(functools.partial(self._cancel, attempt))

    def post(self, call: Callable[[], None]) -> None:
        """Make a call on the handler loop."""
        self._mailbox.post(call)

    def stack(self) -> str:
        """Where the handler loop's thread is now."""
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - documented, for debuggers such as this
        return "".join(traceback.format_stack(frame)) if frame else "its thread has ended\n"

    def stop(self) -> None:
        """Let the threads go that have nothing to run; the rest ends after its run, or with the process."""
        self._threads.stop()

    # ------------------------------------------------------------------------------------------- on the handler loop

    def _start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts of async handlers."""
        waited = self._waited
        if waited and (apart := [attempt for attempt in attempts if attempt.definition in waited]):
            self._start_apart(apart)
            attempts = [attempt for attempt in attempts if attempt.definition not in waited]
        if attempts:
            self.loop.create_task(self._run(attempts, together=True), context=self._context)

    def _start_apart(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self.loop.create_task(self._run((attempt,), together=False), context=self._context)

    def _start_in_threads(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            if not attempt.definition.is_async:
                self._threads.start(attempt)

    async def _run(self, attempts: Sequence[Attempt], *, together: bool) -> None:
        """What a task does."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        waiting = self._run_till_one_waits(iter(attempts), task, together=together)
        if waiting is not None:
            self._over(await waiting)

    def _run_till_one_waits(
        self, attempts: Iterator[Attempt], task: asyncio.Task[None], *, together: bool
    ) -> Awaitable[Attempt | None] | None:
        """Returns the rest of an attempt that waits."""
        run, new_context = self._runner.run, self._context.copy
        # What ends here is told at the end of this call, which spares the loop a turn.
        tells = together and not self._turn_ends
        self._turn_ends |= tells
        any_ended = False
        try:
            for attempt in attempts:
                coroutine, context = run(attempt), new_context()
                try:
                    waits_for = context.run(coroutine.send, None)
                except StopIteration as end:
                    any_ended = True
                    self._over(end.value)
                    if not together:
                        self._waited.discard(attempt.definition)
                    if task.cancelling():
                        # The handler cancelled the task that it ran in: that must not hit those behind it.
                        break
                    continue
                self._waited.add(attempt.definition)
                # The loop knows its tasks weakly only: the attempt keeps this one, and the pool keeps the attempt.
                attempt.task = task
                return _rest(context, coroutine, waits_for)
            return None
        finally:
            self._start_apart(attempts)
            if tells:
                self._turn_ends = False
                if any_ended:
                    self._end_turn()

    def _over(self, following: Attempt | None) -> None:
        """An attempt ended; `following` has its slot now."""
        if following is not None:
            self._following.append(following)
        if not self._turn_ends:
            # After all that this turn of the loop has still to run.
            self._turn_ends = True
            self.loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_ends = False
        self._ended()
        if self._following:
            following, self._following = self._following, []
            self._start_in_threads(following)
            self._start([attempt for attempt in following if attempt.definition.is_async])

    def _cancel(self, attempt: Attempt) -> None:
        # One that has no task has not begun, and sees the cause itself.
        if attempt.task is not None and not attempt.task.done():
            attempt.task.cancel(attempt.cause_text or attempt.cause)

    # ------------------------------------------------------------------------------------------------- in a thread

    def _run_plain(self, attempt: Attempt) -> Attempt | None:
        """Returns the next one for this thread."""
        following = self._context.copy().run(self._runner.run_plain, attempt)
        self._ended()
        if following is None or not following.definition.is_async:
            return following
        self._mailbox.post(functools.partial(self._start, (following,)))
        return None


@types.coroutine
def _rest(
    context: contextvars.Context, coroutine: Coroutine[Any, Any, Attempt | None], waits_for: object
) -> Generator[Any, Any, Attempt | None]:
    """Drive a coroutine in its context from where it waits on, as a task would."""
    try:
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                context.run(coroutine.close)
                raise
            except BaseException as error:  # noqa: BLE001 - all of it is for the handler
                waits_for = context.run(coroutine.throw, error)
            else:
                waits_for = context.run(coroutine.send, sent)
    except StopIteration as end:
        return cast("Attempt | None", end.value)


class _Threads:
    """As many threads as plain handlers have ever run at once."""

    def __init__(self, run: Callable[[Attempt], Attempt | None]) -> None:
        self._run = run
        self._queue: SimpleQueue[Attempt | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0

    def start(self, attempt: Attempt) -> None:
        with self._lock:
            self._busy += 1
            if self._busy > self._threads:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"anvilmq-handler-{self._threads}", daemon=True).start()
        self._queue.put(attempt)

    def stop(self) -> None:
        with self._lock:
            for _ in range(self._threads):
                self._queue.put(None)
            self._threads = 0

    def _serve(self) -> None:
        while (attempt := self._queue.get()) is not None:
            following: Attempt | None = attempt
            while following is not None:
                following = self._run(following)
            with self._lock:
                self._busy -= 1
