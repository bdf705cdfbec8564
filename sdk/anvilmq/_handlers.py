"""Where handlers run: the async ones on one loop, plain ones in threads.

Hot. Jobs come from the I/O thread in bursts, one wake-up for each burst. Whoever ends an attempt starts the one that
gets its slot. Threads are daemons: a handler that never returns must not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from anvilmq._attempts import Attempt
from anvilmq._iothread import Mailbox
from anvilmq._runner import Runner


class Handlers:
    """Starts and interrupts attempts. Made on the loop that async handlers are to run on; started from any thread."""

    def __init__(self, runner: Runner) -> None:
        self.loop = asyncio.get_running_loop()
        self._runner = runner
        self._mailbox = Mailbox(self.loop)
        self._threads = _Threads(self._run_plain)
        self._thread_id = threading.get_ident()
        self._turn_ends = False
        # What handlers see of the context in which the worker was started; each attempt gets a copy of its own.
        self._context = contextvars.copy_context()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts, which have their slots."""
        on_loop = [attempt for attempt in attempts if attempt.definition.is_async]
        if on_loop:
            self._mailbox.post(functools.partial(self._start_all, on_loop))
        if len(on_loop) < len(attempts):
            for attempt in attempts:
                if not attempt.definition.is_async:
                    self._threads.start(attempt)

    def interrupt(self, attempt: Attempt) -> None:
        """Cancel what runs the attempt, which knows the cause. A plain handler sees it when it asks."""
        if attempt.definition.is_async:
            self._mailbox.post(functools.partial(self._cancel, attempt))

    def post(self, call: Callable[[], None]) -> None:
        """Make a call on the handler loop."""
        self._mailbox.post(call)

    def is_here(self) -> bool:
        """Is the caller on the handler loop's thread?"""
        return threading.get_ident() == self._thread_id

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        """Make the call, always the same one, once after all that this turn of the loop has still to run. Only here."""
        if not self._turn_ends:
            self._turn_ends = True
            self.loop.call_soon(self._end_turn, call)

    def stack(self) -> str:
        """Where the handler loop's thread is now."""
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - documented, for debuggers such as this
        return "".join(traceback.format_stack(frame)) if frame else "its thread has ended\n"

    def stop(self) -> None:
        """Let the threads go that have nothing to run; the rest ends after its run, or with the process."""
        self._threads.stop()

    def _end_turn(self, call: Callable[[], None]) -> None:
        self._turn_ends = False
        call()

    def _start_all(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._start_task(attempt)

    def _start_task(self, attempt: Attempt) -> None:
        # The loop knows its tasks weakly only: the attempt keeps this one, and the pool keeps the attempt.
        attempt.task = self.loop.create_task(self._run(attempt), context=self._context.copy())

    async def _run(self, attempt: Attempt) -> None:
        following = await self._runner.run(attempt)
        if following is None:
            return
        if following.definition.is_async:
            self._start_task(following)
        else:
            self._threads.start(following)

    def _run_plain(self, attempt: Attempt) -> Attempt | None:
        """Returns the next one for this thread."""
        following = self._context.copy().run(self._runner.run_plain, attempt)
        if following is None or not following.definition.is_async:
            return following
        self._mailbox.post(functools.partial(self._start_task, following))
        return None

    def _cancel(self, attempt: Attempt) -> None:
        # One that has not begun sees the cause itself; a cancelled task that never ran could not settle.
        if attempt.task is not None and attempt.started_at and not attempt.task.done():
            attempt.task.cancel(attempt.cause_text or attempt.cause)


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
