"""Waiting for a job to end, and reading its log meanwhile. Both go on over broken connections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from anvilmq import errors
from anvilmq.admin import CALL_S
from anvilmq_proto.v1.job_service_pb2 import ListJobLogsRequest, WaitJobRequest, WaitJobResponse
from anvilmq_proto.v1.types_pb2 import JOB_VIEW_FULL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from anvilmq._clock import Clock
    from anvilmq.admin import Admin
    from anvilmq.cli.patience import Patience
    from anvilmq_proto.v1.types_pb2 import Job, JobLogLine

POLL_MS: Final = 30_000
LOG_POLL_MS: Final = 1_000
_PAGE: Final = 1_000


class LogReader:
    """The lines of one job's log, each once, in order.

    The last page is read again until it is full, and what it had before is left out. A token names a place in the log,
    so lines that the broker drops at its front do not move a page that was reached by one.
    """

    def __init__(self, admin: Admin, job_id: str) -> None:
        self._admin = admin
        self._request = ListJobLogsRequest(job_id=job_id, page_size=_PAGE)
        self._seen = 0

    async def read(self) -> Sequence[JobLogLine]:
        """What is new; nothing, when nothing is."""
        found: list[JobLogLine] = []
        while True:
            page = await self._admin.list_job_logs(self._request)
            found.extend(page.lines[self._seen :])
            self._seen = len(page.lines)
            if not page.next_page_token:
                return found
            self._request.page_token, self._seen = page.next_page_token, 0


class Waiter:
    """Waits for one job, at most `timeout_s` from here; None = without end."""

    def __init__(self, admin: Admin, clock: Clock, patience: Patience, *, timeout_s: float | None) -> None:
        self._admin = admin
        self._clock = clock
        self._patience = patience
        self._ends_at = None if timeout_s is None else clock.monotonic() + timeout_s

    async def wait(self, job_id: str, on_turn: Callable[[], Awaitable[None]] | None = None) -> Job:
        """The job, once it has ended. `on_turn` runs every second, and once more after the end.

        Raises WaitTimeout, JobNotFound, and Unavailable after a minute without an answer.
        """
        while True:
            request = WaitJobRequest(
                job_id=job_id, wait_ms=self._turn_ms(LOG_POLL_MS if on_turn else POLL_MS), view=JOB_VIEW_FULL
            )
            answer = await self._patience.call(partial(self._poll, request), self._ends_at)
            if on_turn is not None:
                await self._patience.call(on_turn, self._ends_at)
            if answer.finished:
                return answer.job
            if self._turn_ms(POLL_MS) == 0:
                raise errors.WaitTimeout(f"job {job_id} has not ended in time; it is left as it is")

    async def _poll(self, request: WaitJobRequest) -> WaitJobResponse:
        # The deadline that --timeout sets is for all of the wait; each poll has that of its own length.
        return await self._admin.wait_job(request, timeout_s=request.wait_ms / 1_000 + CALL_S)

    def _turn_ms(self, longest_ms: int) -> int:
        if self._ends_at is None:
            return longest_ms
        return max(0, min(longest_ms, round((self._ends_at - self._clock.monotonic()) * 1_000)))
