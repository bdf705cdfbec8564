"""Commands about recurring definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

import typer

from anvilmq.cli import exits, paging
from anvilmq.cli.command import Cli
from anvilmq.cli.paging import PageFlags

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anvilmq.admin import Admin
    from anvilmq_proto.v1.scheduler_service_pb2 import PreviewScheduleResponse, Schedule

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", show_default=False)]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Names of schedules.", show_default=False)]


def _option(flag: str, metavar: str, text: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(flag, metavar=metavar, help=text, show_default=False)
    return found


class TimingFlags(TypedDict):
    """When a schedule is due. None: not given."""

    cron: Annotated[str | None, _option("--cron", "EXPR", "Five fields, or six with seconds first, or @daily.")]
    every: Annotated[str | None, _option("--every", "DURATION", "At least 100ms, counted in UTC.")]
    offset: Annotated[str | None, _option("--offset", "DURATION", "Shifts --every.")]
    time_zone: Annotated[str | None, _option("--time-zone", "ZONE", "For --cron, such as Europe/Berlin; else Etc/UTC.")]


async def list_schedules(
    cli: Cli,
    *,
    prefix: Annotated[str | None, _option("--prefix", "TEXT", "Names that begin so.")] = None,
    queue: Annotated[str | None, _option("--queue", "QUEUE", "Whose jobs go to that queue.")] = None,
    **flags: Unpack[PageFlags],
) -> None:
    """List the schedules, by name."""
    from anvilmq.cli import schedule_shapes
    from anvilmq_proto.v1.scheduler_service_pb2 import ListSchedulersRequest

    request = ListSchedulersRequest(name_prefix=prefix or "", queue=queue or "")
    async with cli.admin() as admin:
        listing = cli.printer.listing(schedule_shapes.shape(cli.now_ms()))
        await paging.fill(listing, flags, admin.list_schedulers, request, lambda page: page.schedulers)


async def get_schedule(cli: Cli, name: Name) -> None:
    """Show one schedule: when it is due, its job, what it has done, and why it cannot run."""
    from anvilmq.cli import schedule_shapes
    from anvilmq_proto.v1.scheduler_service_pb2 import GetSchedulerRequest

    async with cli.admin() as admin:
        answer = await admin.get_scheduler(GetSchedulerRequest(name=name))
    cli.printer.one(answer.scheduler, schedule_shapes.shape(cli.now_ms()))


async def preview(
    cli: Cli,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A schedule that is there; else say --cron or --every.", show_default=False
        ),
    ] = None,
    *,
    after: Annotated[str | None, _option("--after", "TIME", "Ticks later than that; else from now.")] = None,
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, max=100, help="How many ticks, up to 100.")] = 5,
    **flags: Unpack[TimingFlags],
) -> None:
    """Show the next ticks of a schedule, what it says in words, and what daylight saving time does to it.

    \b
    anvilmq schedule preview --cron "30 2 * * *" --time-zone Europe/Berlin

    Nothing is stored.
    """
    from anvilmq.cli import times
    from anvilmq_proto.v1.scheduler_service_pb2 import GetSchedulerRequest, PreviewScheduleRequest

    if (name is None) == all(value is None for value in flags.values()):
        raise exits.UsageProblem("NAME", "name a schedule, or describe one with --cron or --every, not both")
    request = PreviewScheduleRequest(count=count, after_at_ms=times.instant_ms("--after", after) if after else 0)
    if name is None:
        request.schedule.CopyFrom(_timing(flags))
    async with cli.admin() as admin:
        if name is not None:
            found = (await admin.get_scheduler(GetSchedulerRequest(name=name))).scheduler
            request.schedule.CopyFrom(found.spec.schedule)
        answer = await admin.preview_schedule(request)
    _print_preview(cli, answer)


async def run(
    cli: Cli,
    name: Name,
    *,
    run_key: Annotated[
        str | None, _option("--run-key", "KEY", "The same key again within 24 h gives the same run.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end, print its result.")] = False,
    log: Annotated[bool, typer.Option("--log", help="With --wait: show what it logs, on stderr.")] = False,
) -> int:
    """Run a schedule once, now, and print the job's id; also one that is suspended or has ended.

    Its ticks stay as they are. After a connection that broke in the middle there may be a run or not; with --run-key
    the same command can be run again without a second one.
    """
    from anvilmq.cli.output import Format, as_json
    from anvilmq.cli.results import wait_and_print
    from anvilmq_proto.v1.scheduler_service_pb2 import TriggerSchedulerRequest

    if log and not wait:
        raise exits.UsageProblem("--log", "shows what happens during --wait; add that")
    async with cli.admin() as admin:
        answer = await admin.trigger_scheduler(TriggerSchedulerRequest(name=name, run_key=run_key or ""))
        if answer.existing:
            cli.terminal.note(f"nothing was added: job {answer.job_id} has the run key")
        if wait:
            return await wait_and_print(cli, admin, answer.job_id, log=log)
    if cli.printer.form.is_for_people or cli.printer.form is Format.NAME:
        cli.terminal.out(answer.job_id)
    else:
        cli.printer.value(as_json(answer))
    return exits.DONE


async def suspend(cli: Cli, names: Names) -> int:
    """Suspend schedules: no ticks until they are resumed, and none of that time is caught up."""
    return await _set_suspended(cli, names, suspended=True)


async def resume(cli: Cli, names: Names) -> int:
    """Resume schedules that are suspended; they count from now."""
    return await _set_suspended(cli, names, suspended=False)


async def remove(cli: Cli, names: Names) -> int:
    """Delete schedules; the jobs they made go on."""
    from anvilmq_proto.v1.scheduler_service_pb2 import DeleteSchedulerRequest

    async def delete(admin: Admin, name: str) -> str:
        await admin.delete_scheduler(DeleteSchedulerRequest(name=name))
        return "deleted"

    return await _each(cli, names, delete)


async def apply(
    cli: Cli,
    *,
    files: Annotated[
        list[str],
        typer.Option(
            "-f", "--file", metavar="FILE", help="YAML or JSON, - for stdin. May be repeated.", show_default=False
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of them.")] = False,
) -> int:
    """Make or change the schedules of files; one that is there with the same content is left as it is.

    \b
    name: nightly-report
    schedule: "30 2 * * *"
    timeZone: Europe/Berlin
    jobTemplate: {queue: reports, name: nightly-report, data: {format: pdf}}

    A JobScheduler manifest does too, and so does what get prints as YAML or JSON. All files are checked before the first
    schedule is sent; one that the broker refuses does not hold back the others.
    """
    from anvilmq.cli import schedule_applying

    return await schedule_applying.apply(cli, files, dry_run=dry_run)


async def lint(
    cli: Cli,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="YAML or JSON, - for stdin.", show_default=False)],
    *,
    server: Annotated[
        bool, typer.Option("--server", help="Also have the broker read each schedule, and show its warnings.")
    ] = False,
) -> int:
    """Check files of schedules: keys, kinds of values, ranges, what goes together; without a broker.

    What a cron expression or a time zone means only the broker knows: --server asks it, and stores nothing. Exit code
    1 when something is wrong.
    """
    from anvilmq.cli import schedule_applying

    return await schedule_applying.lint(cli, files, server=server)


async def _set_suspended(cli: Cli, names: list[str], *, suspended: bool) -> int:
    from anvilmq_proto.v1.scheduler_service_pb2 import SetSchedulerSuspendedRequest

    async def set_one(admin: Admin, name: str) -> str:
        await admin.set_scheduler_suspended(SetSchedulerSuspendedRequest(name=name, suspended=suspended))
        return "suspended" if suspended else "resumed"

    return await _each(cli, names, set_one)


async def _each(cli: Cli, names: list[str], act: Callable[[Admin, str], Awaitable[str]]) -> int:
    """Do it to each; the others are done all the same when one fails, whose exit code is that of the command."""
    from anvilmq.cli.command import told
    from anvilmq.cli.output import Format
    from anvilmq.errors import CallError

    failures: list[CallError] = []
    done: dict[str, str] = {}
    async with cli.admin() as admin:
        for name in dict.fromkeys(names):
            try:
                done[name] = await act(admin, name)
            except CallError as error:
                cli.terminal.error(f"error: {told(error)}")
                failures.append(error)
    form = cli.printer.form
    if form is Format.NAME:
        for name in done:
            cli.terminal.out(name)
    elif form.is_for_people:
        for name, word in done.items():
            cli.terminal.note(f"{name} {word}")
    else:
        cli.printer.value(done)
    return exits.code_of(failures[0]) if failures else exits.DONE


def _timing(flags: TimingFlags) -> Schedule:
    from anvilmq.cli import times
    from anvilmq_proto.v1.scheduler_service_pb2 import Schedule

    cron, every = flags["cron"], flags["every"]
    if (cron is None) == (every is None):
        raise exits.UsageProblem("--cron", "say one of --cron and --every")
    message = Schedule(time_zone=flags["time_zone"] or "")
    if cron is not None:
        message.cron = cron
    if every is not None:
        message.every_ms = times.duration_ms("--every", every)
    if flags["offset"] is not None:
        message.offset_ms = times.duration_ms("--offset", flags["offset"])
    return message


def _print_preview(cli: Cli, answer: PreviewScheduleResponse) -> None:
    from anvilmq.cli import tables, times
    from anvilmq.cli.output import Format, as_json
    from anvilmq.cli.tables import Column
    from anvilmq_proto.v1.scheduler_service_pb2 import SchedulePreviewTick

    form, now_ms = cli.printer.form, cli.now_ms()
    if form is Format.NAME:
        for tick in answer.ticks:
            cli.terminal.out(times.iso(tick.at_ms))
    elif not form.is_for_people:
        cli.printer.value(as_json(answer))
    else:
        cli.terminal.out(answer.description)
        columns = (
            Column[SchedulePreviewTick]("LOCAL", lambda tick: tick.local),
            Column[SchedulePreviewTick]("UTC", lambda tick: times.iso(tick.at_ms)),
            Column[SchedulePreviewTick]("IN", lambda tick: times.short(tick.at_ms - now_ms)),
        )
        tables.print_table(cli.terminal, columns, answer.ticks)
        for warning in answer.warnings:
            cli.terminal.out(f"warning: {warning}")
