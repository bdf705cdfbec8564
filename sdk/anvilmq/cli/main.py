"""The command line as a whole: which commands there are, and how the process starts and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from anvilmq.cli import adds, dev, exits, jobs, loads, receipts, schedules, versions, workers
from anvilmq.cli.command import Connection, World, register, shared_options, with_signature
from anvilmq.cli.terminal import Terminal

if TYPE_CHECKING:
    import inspect

    from anvilmq._clock import Clock
    from anvilmq.admin import Admin

_HELP: Final = "AnvilMQ: a job broker that lives inside a Kubernetes namespace."
# What a wrong use of the command line raises, whichever package of that kind typer is built on.
_WrongUse: Final[type[Exception]] = typer.BadParameter.__mro__[2]


def main() -> NoReturn:
    """The console script."""
    sys.exit(run(sys.argv[1:], _real_world()))


def run(arguments: Sequence[str], world: World) -> int:
    """Run one command line, `--help` if it is empty; the exit code."""
    command = typer.main.get_command(build_app())
    try:
        code = command.main(list(arguments) or ["--help"], prog_name="anvilmq", standalone_mode=False, obj=world)
    except _WrongUse as problem:
        world.terminal.error(_told(problem))
        return exits.USAGE
    except (KeyboardInterrupt, typer.Abort):
        return exits.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), world.terminal.stdout.fileno())
        return exits.FAILED
    return code if isinstance(code, int) else exits.DONE


def build_app() -> typer.Typer:
    """The commands, in the order of `--help`."""
    app = _group(_HELP)
    app.callback(help=_HELP)(with_signature(_shared, _root_parameters()))
    register(app, "dev", dev.dev, prints_data=False)
    register(app, "add", adds.add)
    register(app, "load", loads.load)
    app.add_typer(_jobs(), name="job")
    app.add_typer(_workers(), name="worker")
    app.add_typer(_schedules(), name="schedule")
    app.add_typer(_receipts(), name="receipt")
    register(app, "version", versions.version)
    return app


def _jobs() -> typer.Typer:
    group = _group("List, explain, follow and cancel jobs.")
    register(group, "list", jobs.list_jobs)
    register(group, "get", jobs.get_job)
    register(group, "why", jobs.why)
    register(group, "logs", jobs.logs)
    register(group, "wait", jobs.wait)
    register(group, "cancel", jobs.cancel)
    return group


def _workers() -> typer.Typer:
    group = _group("Run, list and drain workers.")
    register(group, "run", workers.run, prints_data=False)
    register(group, "list", workers.list_workers)
    register(group, "drain", workers.drain)
    return group


def _schedules() -> typer.Typer:
    group = _group("Make, list, preview, run and suspend schedules: jobs that come again and again.")
    register(group, "list", schedules.list_schedules)
    register(group, "get", schedules.get_schedule)
    register(group, "preview", schedules.preview)
    register(group, "run", schedules.run)
    register(group, "suspend", schedules.suspend)
    register(group, "resume", schedules.resume)
    register(group, "rm", schedules.remove)
    register(group, "apply", schedules.apply)
    register(group, "lint", schedules.lint)
    return group


def _receipts() -> typer.Typer:
    group = _group("Look up and free idempotency keys.")
    register(group, "list", receipts.list_receipts)
    register(group, "get", receipts.get_receipt)
    register(group, "release", receipts.release)
    register(group, "rm", receipts.remove)
    return group


def _group(text: str) -> typer.Typer:
    return typer.Typer(help=text, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


def _root_parameters() -> list[inspect.Parameter]:
    return shared_options(prints_data=True)


def _shared(**options: Any) -> None:
    """Options before the noun are read by the command itself, see command.py."""


def _told(problem: Exception) -> str:
    """A wrong use in one line, and where to read more."""
    message = getattr(problem, "format_message", problem.__str__)()
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "anvilmq"
    return f"error: {' '.join(str(message).split()).rstrip('.')}; see {path} --help"


def _real_world() -> World:
    return World(terminal=Terminal(), open_admin=_open_admin, make_clock=_system_clock)


def _system_clock() -> Clock:
    from anvilmq._clock import SystemClock

    return SystemClock()


def _open_admin(connection: Connection) -> AbstractAsyncContextManager[Admin]:
    from anvilmq.cli import connections

    return connections.open_admin(connection)
