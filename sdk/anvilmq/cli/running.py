"""Runs a worker of an app that a user's module holds."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anvilmq import _settings
from anvilmq._client import Client
from anvilmq.app import Anvil
from anvilmq.cli import exits, log_lines, times
from anvilmq.worker import Worker

if TYPE_CHECKING:
    from types import ModuleType

    from anvilmq.cli.command import Cli, Connection


def run_worker(
    cli: Cli,
    target: str,
    *,
    queues: Sequence[str] | None,
    concurrency: int,
    pools: Mapping[str, int],
    prefetch: int | None,
    grace: str | None,
    http: str | None,
    name: str,
) -> int:
    """Run until the worker is told to leave; the exit code."""
    if grace is not None:
        times.duration_ms("--grace", grace)
    log_lines.write_to(cli.terminal.stderr)
    app = load_app(target)
    connect(app, cli.connection)
    try:
        worker = Worker(
            app,
            queues=queues or list(dict.fromkeys(job.queue for job in app.registry)),
            concurrency=concurrency,
            pools=pools,
            prefetch=prefetch,
            name=name,
            grace=grace,
            http=http,
        )
    except ValueError as problem:
        raise exits.UsageProblem("", str(problem)) from problem
    cli.terminal.note(f"worker {worker.id} of {target} at {app.client.settings.address}; Ctrl-C ends it")
    worker.run()
    return exits.DONE


def connect(app: Anvil, connection: Connection) -> None:
    """Let flags decide where the broker is, if there are any; else the app knows."""
    if connection.url or connection.token_file or connection.ca_file:
        settings = _settings.read(url=connection.url, token_file=connection.token_file, ca_file=connection.ca_file)
        app.use_client(Client.over_grpc(settings))


def load_app(target: str) -> Anvil:
    """The app that "module:name" names, with the current folder on the path. UsageProblem when there is none."""
    module_name, separator, name = target.partition(":")
    if not module_name or not separator or not name:
        raise exits.UsageProblem("MODULE:APP", f"{target!r} is not understood; write it as shop.jobs:app")
    module = _import(module_name)
    app = getattr(module, name, None)
    if isinstance(app, Anvil):
        return app
    apps = sorted(key for key, value in vars(module).items() if isinstance(value, Anvil))
    remedy = f"say {module_name}:{apps[0]}" if apps else "make one with anvilmq.Anvil()"
    what = "is no app" if hasattr(module, name) else "does not exist"
    raise exits.UsageProblem("MODULE:APP", f"{name!r} of {module_name} {what}; {remedy}")


def _import(module_name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module_name}.".startswith(f"{problem.name}."):
            raise exits.Stopped(exits.FAILED, _fault(module_name, problem)) from problem
        raise exits.UsageProblem(
            "MODULE:APP", f"there is no module {problem.name!r} in {here} or among what is installed"
        ) from problem
    except Exception as problem:  # the module is the user's: whatever it raises is to be shown
        raise exits.Stopped(exits.FAILED, _fault(module_name, problem)) from problem


def _fault(module_name: str, problem: Exception) -> str:
    """The stack from the user's module on: ours and that of the import would only be in the way."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    lines = [*traceback.format_list(own), *traceback.format_exception_only(problem)]
    return f"error: {module_name} cannot be imported:\n{''.join(lines)}".rstrip()
