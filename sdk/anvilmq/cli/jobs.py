"""Commands about jobs that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from anvilmq.cli import exits, job_filters, paging
from anvilmq.cli.command import Cli
from anvilmq.cli.job_filters import FilterFlags
from anvilmq.cli.output import Format
from anvilmq.cli.paging import PageFlags

if TYPE_CHECKING:
    from anvilmq.admin import Admin
    from anvilmq_proto.v1.types_pb2 import Job

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", show_default=False)]


class ListFlags(FilterFlags, PageFlags):
    """What `job list` takes."""


async def list_jobs(
    cli: Cli,
    *,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            metavar="TEXT",
            help="Part of the id, the name or the idempotency key.",
            rich_help_panel="Filters (all must hold)",
            show_default=False,
        ),
    ] = None,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="Else the newest come first.")] = False,
    full: Annotated[bool, typer.Option("--full", help="With data, result, attempts and policy (json, yaml).")] = False,
    **flags: Unpack[ListFlags],
) -> None:
    """List jobs, the newest first.

    \b
    anvilmq job list --queue mail --state failed --since 2h
    """
    from anvilmq.cli import job_shapes
    from anvilmq_proto.v1 import job_service_pb2, types_pb2

    now = cli.now_ms()
    request = job_service_pb2.ListJobsRequest(
        filter=job_filters.from_flags(flags, now),
        oldest_first=oldest_first,
        view=types_pb2.JOB_VIEW_FULL if full else types_pb2.JOB_VIEW_BASIC,
    )
    request.filter.search = search or ""
    async with cli.admin() as admin:
        listing = cli.printer.listing(job_shapes.shape(now))
        await paging.fill(listing, flags, admin.list_jobs, request, lambda page: page.jobs)


async def get_job(cli: Cli, job_id: JobId) -> None:
    """Show one job: state, data, result, attempts, and why it waits."""
    from anvilmq.cli import job_shapes

    async with cli.admin() as admin:
        job = await _get(admin, job_id)
    cli.printer.one(job, job_shapes.shape(cli.now_ms()))


async def why(cli: Cli, job_id: JobId) -> None:
    """Say in one sentence why a job is where it is: what holds it, since when, until when."""
    from anvilmq.cli import job_shapes
    from anvilmq.cli.output import as_json

    async with cli.admin() as admin:
        job = await _get(admin, job_id)
    sentence = job_shapes.why_sentence(job, cli.now_ms())
    if cli.printer.form.is_for_people:
        cli.terminal.out(sentence)
    elif cli.printer.form is Format.NAME:
        cli.terminal.out(job.job_id)
    else:
        state = job_shapes.state_of(job)
        wait = as_json(job.wait) if job.HasField("wait") else None
        told = {"jobId": job.job_id, "state": state, "why": sentence, "wait": wait}
        cli.printer.value({key: value for key, value in told.items() if value is not None})


async def logs(
    cli: Cli,
    job_id: JobId,
    *,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job has ended.")] = False,
) -> None:
    """Print the lines that a job has logged, oldest first; the last 1000 are kept."""
    from anvilmq.cli.results import print_log

    async with cli.admin() as admin:
        await print_log(cli, admin, job_id, follow=follow)


async def wait(
    cli: Cli,
    job_id: JobId,
    *,
    log: Annotated[bool, typer.Option("--log", help="Show what it logs meanwhile, on stderr.")] = False,
) -> int:
    """Wait until a job has ended, and print its result.

    Exit code 0 when it completed, 1 when it failed or was cancelled, 5 when --timeout is over; the job goes on then.
    """
    from anvilmq.cli.results import wait_and_print

    async with cli.admin() as admin:
        return await wait_and_print(cli, admin, job_id, log=log)


async def cancel(
    cli: Cli,
    job_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Jobs to cancel.", show_default=False)
    ] = None,
    *,
    because: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why, kept with the job: at most 1 KiB.", show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many match.")] = False,
    **flags: Unpack[FilterFlags],
) -> int:
    """Cancel jobs: those named, or all that match the filters and have not ended.

    What waits ends at once. The worker of an active job is told; the job ends cancelled when the worker has settled it
    or its lease is over. With filters the matches are counted and you are asked first.

    \b
    anvilmq job cancel --queue mail --name newsletter --yes
    """
    from anvilmq.cli import cancelling

    if job_ids and not job_filters.is_empty(flags):
        raise exits.UsageProblem("ID", "cannot be given together with filters; leave one of them out")
    async with cli.admin() as admin:
        canceller = cancelling.Canceller(cli, admin, because or "")
        if job_ids:
            return await canceller.by_id(job_ids)
        if job_filters.is_empty(flags):
            raise exits.UsageProblem("", "name the jobs to cancel by id, or by a filter such as --queue")
        return await canceller.by_filter(flags, ask=not yes, dry_run=dry_run)


async def _get(admin: Admin, job_id: str) -> Job:
    from anvilmq_proto.v1.job_service_pb2 import GetJobRequest

    return (await admin.get_job(GetJobRequest(job_id=job_id))).job
