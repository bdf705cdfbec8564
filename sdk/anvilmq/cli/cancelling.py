"""Cancels many jobs, one call each, some at a time: counted first, asked, told how far it got."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from anvilmq import errors
from anvilmq.cli import exits, job_filters
from anvilmq.cli.command import told
from anvilmq.cli.output import Format
from anvilmq.cli.paging import pages
from anvilmq.cli.progress import Progress
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1.job_service_pb2 import CancelJobRequest, ListJobsRequest

if TYPE_CHECKING:
    from anvilmq.admin import Admin
    from anvilmq.cli.command import Cli
    from anvilmq.cli.job_filters import FilterFlags

AT_A_TIME: Final = 16
_LIVE: Final = (
    types.JOB_STATE_WAITING,
    types.JOB_STATE_DELAYED,
    types.JOB_STATE_ACTIVE,
    types.JOB_STATE_WAITING_CHILDREN,
)


class Canceller:
    """Cancels jobs for one command, and counts what became of them."""

    def __init__(self, cli: Cli, admin: Admin, reason: str) -> None:
        self._cli = cli
        self._admin = admin
        self._reason = reason
        self._cancelled = 0
        self._signalled = 0
        self._ended = 0
        self._missing = 0

    async def by_id(self, job_ids: Iterable[str]) -> int:
        """Cancel these; the exit code. A job that is missing is told, and the others are cancelled all the same."""
        await self._cancel(list(dict.fromkeys(job_ids)), tell_missing=True)
        self._print()
        return exits.NOT_FOUND if self._missing else exits.DONE

    async def by_filter(self, flags: FilterFlags, *, ask: bool, dry_run: bool) -> int:
        """Cancel what matches and has not ended; the exit code."""
        request = ListJobsRequest(filter=job_filters.from_flags(flags, self._cli.now_ms()))
        job_filters.require_not_terminal(flags)
        if not request.filter.states:
            request.filter.states.extend(_LIVE)
        count, is_capped = await self._count(request)
        if dry_run or not count:
            self._cli.terminal.note(f"{_number(count, is_capped)} would be cancelled" if count else "none match")
            return exits.DONE
        if ask and not self._cli.terminal.confirm(f"Cancel {_number(count, is_capped)}?"):
            raise exits.Stopped(exits.FAILED, "nothing was cancelled")
        await self._cancel_matches(request, None if is_capped else count)
        self._print()
        return exits.DONE

    async def _count(self, request: ListJobsRequest) -> tuple[int, bool]:
        first = ListJobsRequest()
        first.CopyFrom(request)
        first.page_size = 1
        page = await self._admin.list_jobs(first)
        return page.total, page.total_is_capped

    async def _cancel_matches(self, request: ListJobsRequest, total: int | None) -> None:
        # Newest first: pages then lead away from the jobs that are added meanwhile, so this comes to an end.
        try:
            with Progress(self._cli.terminal, self._cli.clock, "cancel", unit="jobs", total=total) as progress:
                async for page in pages(self._admin.list_jobs, request, lambda page: page.jobs, None):
                    await self._cancel([job.job_id for job in page.jobs], tell_missing=False)
                    progress.add(len(page.jobs))
        except (errors.AnvilError, asyncio.CancelledError):
            self._cli.terminal.error(f"stopped: {self._summary()} so far; run the same command again to go on")
            raise

    async def _cancel(self, job_ids: list[str], *, tell_missing: bool) -> None:
        places = asyncio.Semaphore(AT_A_TIME)

        async def cancel(job_id: str) -> None:
            async with places:
                await self._cancel_one(job_id, tell_missing=tell_missing)

        try:
            async with asyncio.TaskGroup() as group:
                for job_id in job_ids:
                    group.create_task(cancel(job_id))
        except ExceptionGroup as failures:
            # The first failure ended the others: it tells all there is to tell.
            raise failures.exceptions[0] from None

    async def _cancel_one(self, job_id: str, *, tell_missing: bool) -> None:
        try:
            answer = await self._admin.cancel_job(CancelJobRequest(job_id=job_id, reason=self._reason))
        except errors.JobNotFound as error:
            self._missing += 1
            if tell_missing:
                self._cli.terminal.error(f"error: {told(error)}")
            return
        if answer.signalled:
            self._signalled += 1
        elif answer.state == types.JOB_STATE_CANCELLED:
            self._cancelled += 1
        else:
            self._ended += 1
        if self._cli.printer.form is Format.NAME:
            self._cli.terminal.out(job_id)

    def _print(self) -> None:
        form = self._cli.printer.form
        if form.is_for_people:
            self._cli.terminal.out(self._summary())
        elif form is not Format.NAME:
            counts = {"cancelled": self._cancelled, "signalled": self._signalled, "ended": self._ended}
            self._cli.printer.value(counts)

    def _summary(self) -> str:
        parts = [f"{self._cancelled} cancelled"]
        if self._signalled:
            parts.append(f"{self._signalled} active, their workers are told")
        if self._ended:
            parts.append(f"{self._ended} had ended before")
        return ", ".join(parts)


def _number(count: int, is_capped: bool) -> str:
    return f"{'more than ' if is_capped else ''}{count} {'job' if count == 1 else 'jobs'}"
