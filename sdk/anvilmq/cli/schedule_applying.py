"""Carries the definitions of files to the broker, or checks them; what is wrong with one does not hold back the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anvilmq import errors
from anvilmq.cli import exits, schedule_files, schedule_shapes
from anvilmq.cli.command import told
from anvilmq.cli.schedule_files import Entry, Problem
from anvilmq_proto.v1 import scheduler_service_pb2 as pb

if TYPE_CHECKING:
    from anvilmq.admin import Admin
    from anvilmq.cli.command import Cli


async def apply(cli: Cli, files: list[str], *, dry_run: bool) -> int:
    """Upsert them; the exit code is that of the first refusal."""
    entries = _entries(cli, files)
    for entry in entries:
        if isinstance(entry.found, Problem):
            cli.terminal.error(f"error: {entry.where}: {entry.found}")
    if any(isinstance(entry.found, Problem) for entry in entries):
        raise exits.Stopped(exits.USAGE, "nothing was applied")
    refused: list[errors.CallError] = []
    listing = cli.printer.listing(schedule_shapes.outcomes(cli.now_ms()))
    async with cli.admin() as admin:
        for entry in entries:
            assert isinstance(entry.found, pb.Scheduler)
            request = pb.UpsertSchedulerRequest(scheduler=entry.found, dry_run=dry_run)
            try:
                listing.add([await admin.upsert_scheduler(request)])
            except errors.Unavailable:
                listing.end("")
                raise
            except errors.CallError as error:
                cli.terminal.error(f"error: {entry.where}: {told(error)}")
                refused.append(error)
    listing.end("")
    if dry_run:
        cli.terminal.note("a dry run: nothing was changed")
    return exits.code_of(refused[0]) if refused else exits.DONE


async def lint(cli: Cli, files: list[str], *, server: bool) -> int:
    """Tell what is wrong with each; the exit code."""
    entries = _entries(cli, files)
    problems = {entry.where: str(entry.found) for entry in entries if isinstance(entry.found, Problem)}
    warnings: dict[str, list[str]] = {}
    if server:
        async with cli.admin() as admin:
            for entry in entries:
                if isinstance(entry.found, pb.Scheduler):
                    await _ask(admin, entry.where, entry.found.spec.schedule, problems, warnings)
    _tell(cli, entries, problems, warnings)
    return exits.FAILED if problems else exits.DONE


async def _ask(
    admin: Admin, where: str, schedule: pb.Schedule, problems: dict[str, str], warnings: dict[str, list[str]]
) -> None:
    try:
        answer = await admin.preview_schedule(pb.PreviewScheduleRequest(schedule=schedule, count=100))
    except errors.InvalidArgument as error:
        problems[where] = told(error)
    else:
        warnings[where] = list(answer.warnings)


def _tell(cli: Cli, entries: list[Entry], problems: dict[str, str], warnings: dict[str, list[str]]) -> None:
    if not cli.printer.form.is_for_people:
        cli.printer.value(
            {
                "items": [
                    {
                        "where": entry.where,
                        "problem": problems.get(entry.where, ""),
                        "warnings": warnings.get(entry.where, []),
                    }
                    for entry in entries
                ]
            }
        )
        return
    for entry in entries:
        if entry.where in problems:
            cli.terminal.error(f"error: {entry.where}: {problems[entry.where]}")
            continue
        cli.terminal.out(f"{entry.where}: good")
        for warning in warnings.get(entry.where, ()):
            cli.terminal.out(f"{entry.where}: warning: {warning}")


def _entries(cli: Cli, files: list[str]) -> list[Entry]:
    found = [entry for file in files for entry in schedule_files.read(file, cli.terminal)]
    seen: set[str] = set()
    for place, entry in enumerate(found):
        name = entry.found.name if isinstance(entry.found, pb.Scheduler) else ""
        if name and name in seen:
            found[place] = Entry(entry.where, Problem(f"name: {name!r} is there twice; a name stands for one schedule"))
        seen.add(name)
    return found
