"""The command that adds the jobs of a file."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvilmq.cli import exits
from anvilmq.cli.command import Cli

if TYPE_CHECKING:
    from anvilmq.cli.loading import Loader, Rejected
    from anvilmq.cli.sources import Source


def load(
    cli: Cli,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The queue of all of them.", show_default=False)],
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON lines; - is stdin.", show_default=False)],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Each line is the payload of a job of that name.", show_default=False
        ),
    ] = None,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="All lines in one transaction, or none: at most 1000 lines, 16 MiB.")
    ] = False,
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected",
            metavar="FILE",
            help="Where refused lines go, with what is wrong. Else FILE.rejected, stdin.rejected.",
            show_default=False,
        ),
    ] = None,
) -> Awaitable[int]:
    """Add a job for each line of a file, in their order.

    Without --name a line is an object: name, data (any JSON) or dataBase64 with contentType, and the other fields of
    a job in proto JSON, such as priority, delayMs, labels, headers, idempotencyKey, policy.

    \b
    {"name": "resize", "data": {"url": "https://example.org/cat.png"}, "priority": 5}

    A line without an idempotencyKey gets one, made of the hash of the file and the number of the line: the same file
    can be loaded again after it was broken off, and adds nothing twice for as long as the receipts are kept (a day
    after the end of a job, by default). Refused lines are kept with what is wrong; the exit code is 1 then. To send them
    again:

    \b
    jq -r .input FILE.rejected | anvilmq load QUEUE -
    """
    from anvilmq.cli.sources import open_source

    source = open_source(file, cli.terminal)
    return _load(cli, source, queue, name, rejected or Path(f"{source.name}.rejected"), atomic=atomic)


async def _load(cli: Cli, source: Source, queue: str, name: str | None, rejected_path: Path, *, atomic: bool) -> int:
    from anvilmq.cli.loading import Loader, Rejected

    rejected = Rejected(rejected_path, cli)
    with closing(source), closing(rejected):
        async with cli.admin() as admin:
            loader = Loader(cli, admin, queue, name, rejected)
            await (_all_or_nothing(loader, source) if atomic else _each(cli, loader, source))
        if not atomic:
            rejected.remove_stale()
    _print(cli, loader, source, rejected)
    return exits.FAILED if loader.totals.refused else exits.DONE


async def _each(cli: Cli, loader: Loader, source: Source) -> None:
    from anvilmq.cli.loading import load
    from anvilmq.cli.progress import Progress

    with Progress(cli.terminal, cli.clock, "load", unit="lines", total=source.count) as progress:
        await load(cli, loader, source, progress)


async def _all_or_nothing(loader: Loader, source: Source) -> None:
    from anvilmq import errors
    from anvilmq.cli.loading import BATCH_JOBS, LineFault

    if source.count > BATCH_JOBS:
        raise exits.UsageProblem(
            "--atomic",
            f"takes at most {BATCH_JOBS} lines, {source.name} has {source.count}; leave it out, or cut the file",
        )
    try:
        await loader.send_atomically(source)
    except LineFault as fault:
        code = exits.code_of(fault.error) if isinstance(fault.error, errors.CallError) else exits.USAGE
        raise exits.Stopped(code, f"error: {fault}") from fault


def _print(cli: Cli, loader: Loader, source: Source, rejected: Rejected) -> None:
    from anvilmq.cli.output import Format

    totals = loader.totals
    if cli.printer.form.is_for_people:
        kept = f"; see {rejected.path}" if totals.refused else ""
        cli.terminal.out(f"{source.count} lines: {totals.text()}{kept}")
    elif cli.printer.form is not Format.NAME:
        counts = {"lines": source.count, "added": totals.added, "existing": totals.existing, "refused": totals.refused}
        cli.printer.value(counts)
