"""The command that adds one job."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from anvilmq.cli import exits, specs, values
from anvilmq.cli.command import Cli
from anvilmq.cli.specs import JobFlags

if TYPE_CHECKING:
    from anvilmq_proto.v1.job_service_pb2 import AddJobResponse
    from anvilmq_proto.v1.types_pb2 import JobSpec


def add(
    cli: Cli,
    queue: Annotated[
        str, typer.Argument(metavar="QUEUE", help="The queue; its first job makes it.", show_default=False)
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which handler it is for.", show_default=False)],
    *,
    data: Annotated[
        str | None,
        typer.Option(
            "-d", "--data", metavar="JSON|@FILE|-", help="The payload: JSON, a file, or stdin.", show_default=False
        ),
    ] = None,
    content_type: Annotated[
        str | None,
        typer.Option("--content-type", metavar="TYPE", help="Of the payload, if it is not JSON.", show_default=False),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end; print the result, exit with 1 if it fails.")
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="With --wait: show what it logs, on stderr.")] = False,
    **flags: Unpack[JobFlags],
) -> Awaitable[int]:
    """Add one job, and print its id.

    \b
    anvilmq add images resize -d '{"url": "https://example.org/cat.png"}' --max-attempts 5

    After a connection that broke in the middle the job may or may not have been added; with --idempotency-key the same
    command can be run again without adding it twice.
    """
    from anvilmq_proto.v1.types_pb2 import JobSpec

    if log and not wait:
        raise exits.UsageProblem("--log", "shows what happens during --wait; add that")
    content = content_type or ""
    spec = JobSpec(
        queue=queue,
        name=name,
        data=values.payload("--data", data, content, cli.terminal),
        content_type=content,
    )
    specs.from_flags(spec, flags)
    return _add(cli, spec, wait=wait, log=log)


async def _add(cli: Cli, spec: JobSpec, *, wait: bool, log: bool) -> int:
    from anvilmq.cli.results import wait_and_print
    from anvilmq_proto.v1.job_service_pb2 import AddJobRequest

    async with cli.admin() as admin:
        answer = await admin.add_job(AddJobRequest(job=spec))
        if answer.existing:
            cli.terminal.note(f"nothing was added: job {answer.job_id} has the key")
        elif wait:
            cli.terminal.note(f"added {answer.job_id}")
        if wait:
            return await wait_and_print(cli, admin, answer.job_id, log=log)
    _print(cli, answer)
    return exits.DONE


def _print(cli: Cli, answer: AddJobResponse) -> None:
    from anvilmq.cli.output import Format, as_json

    if cli.printer.form.is_for_people or cli.printer.form is Format.NAME:
        cli.terminal.out(answer.job_id)
    else:
        cli.printer.value(as_json(answer))
