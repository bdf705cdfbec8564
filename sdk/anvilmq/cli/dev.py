"""The command that starts a broker for development."""

from __future__ import annotations

from typing import Annotated

import typer

from anvilmq.cli import exits
from anvilmq.cli.command import Cli


def dev(
    cli: Cli,
    *,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="DIR", help="Where data is kept. Else it is gone at the end.", show_default=False
        ),
    ] = None,
) -> int:
    """Start a broker for development."""
    raise exits.Stopped(exits.CONFLICT, "not yet")
