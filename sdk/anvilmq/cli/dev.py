"""The command that starts a broker for development."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from anvilmq.cli import exits
from anvilmq.cli.command import Cli


async def dev(
    cli: Cli,
    *,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="DIR", help="Where jobs are kept. Else they are gone at the end.", show_default=False
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:APP",
            help="Run the handlers of that app too, as worker run does.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Of the broker; 0 is any that is free.")
    ] = 50_051,
    http_port: Annotated[
        int,
        typer.Option(
            "--http-port", metavar="N", min=0, max=65_535, help="Of /metrics and probes; 0 is any that is free."
        ),
    ] = 0,
) -> int:
    """Start a broker on this machine, open to everyone on it, until Ctrl-C.

    It is the real broker with its embedded store. At the first Ctrl-C workers let running jobs end, then the broker
    stops; at the second they hand them back at once.
    """
    if importlib.util.find_spec("structlog") is None or importlib.util.find_spec("libsql") is None:
        raise exits.Stopped(exits.FAILED, "error: the broker is not installed; remedy: pip install 'anvilmq[broker]'")
    from anvilmq.cli.dev_processes import DevBroker

    return await DevBroker(cli, data=data, app=app, port=port, http_port=http_port).run()
