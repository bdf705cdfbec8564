"""How the end of a job is told: its result on stdout, or why there is none on stderr; and what it logs on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anvilmq.cli import exits, job_shapes, times, values
from anvilmq.cli.output import as_json
from anvilmq.cli.patience import Patience
from anvilmq.cli.terminal import visible
from anvilmq.cli.waits import LogReader, Waiter
from anvilmq_proto.v1 import types_pb2 as types

if TYPE_CHECKING:
    from anvilmq.admin import Admin
    from anvilmq.cli.command import Cli


async def wait_and_print(cli: Cli, admin: Admin, job_id: str, *, log: bool) -> int:
    """Wait for a job, print its end; the exit code: 0 when it completed, 1 when not."""
    waiter = waiter_of(cli, admin)
    reader = LogReader(admin, job_id)

    async def show() -> None:
        for line in await reader.read():
            cli.terminal.error(log_text(line))

    return print_end(cli, await waiter.wait(job_id, show if log else None))


async def print_log(cli: Cli, admin: Admin, job_id: str, *, follow: bool) -> None:
    """Print the lines of a job on stdout, until it has ended if they are to be followed."""
    reader = LogReader(admin, job_id)

    async def show() -> None:
        for line in await reader.read():
            if cli.printer.form.is_for_people:
                text = log_text(line)
                cli.terminal.out(visible(text) if cli.terminal.out_is_tty else text)
            else:
                cli.printer.value(as_json(line))
        cli.terminal.flush()

    if follow:
        await waiter_of(cli, admin).wait(job_id, show)
    else:
        await show()


def waiter_of(cli: Cli, admin: Admin) -> Waiter:
    """Waits as long as --timeout says."""
    return Waiter(admin, cli.clock, Patience(cli.clock, cli.terminal.note), timeout_s=cli.connection.timeout_s)


def print_end(cli: Cli, job: types.Job) -> int:
    """A job that has ended: for people its result alone, for programs all of it. The exit code."""
    if not cli.printer.form.is_for_people:
        cli.printer.one(job, job_shapes.shape(cli.now_ms()))
    elif job.result:
        cli.terminal.out_bytes(job.result)
    if job.state == types.JOB_STATE_COMPLETED:
        return exits.DONE
    reason = values.enum_word(types.FinishReason, job.finish_reason)
    told = [f"job {job.job_id} {job_shapes.state_of(job)}: {reason}", job.finish_message, job_shapes.last_error(job)]
    cli.terminal.error(": ".join(part for part in told if part))
    return exits.FAILED


def log_text(line: types.JobLogLine) -> str:
    """A line of a log: when, how grave, in which attempt, what."""
    return f"{times.iso(line.at_ms)} {line.level or '-'} [{line.attempt}] {line.line}"
