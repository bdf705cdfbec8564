"""The command that says which versions meet."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anvilmq.cli import exits
from anvilmq.cli.command import Cli
from anvilmq.cli.output import Format

if TYPE_CHECKING:
    from anvilmq_proto.v1.system_service_pb2 import GetServerInfoResponse


async def version(
    cli: Cli,
    *,
    client: Annotated[bool, typer.Option("--client", help="Do not ask the broker.")] = False,
) -> int:
    """Print the version of this program and that of the broker.

    Exit code 5 when the broker cannot be reached; the version of this program is printed all the same.
    """
    own = metadata.version("anvilmq")
    if client:
        _print(cli, own, None)
        return exits.DONE
    from anvilmq import errors
    from anvilmq.cli.command import told
    from anvilmq_proto.v1.system_service_pb2 import GetServerInfoRequest

    try:
        async with cli.admin() as admin:
            info = await admin.get_server_info(GetServerInfoRequest())
    except errors.CallError as error:
        _print(cli, own, None)
        raise exits.Stopped(exits.code_of(error), f"error: {told(error)}") from error
    _print(cli, own, info)
    return exits.DONE


def _print(cli: Cli, own: str, info: GetServerInfoResponse | None) -> None:
    from anvilmq.cli.output import as_json

    form = cli.printer.form
    if form is Format.NAME:
        cli.terminal.out(own)
    elif form.is_for_people:
        cli.terminal.out(f"client   {own}")
        for line in _server_lines(info) if info is not None else ():
            cli.terminal.out(line)
    else:
        told: dict[str, Any] = {"client": {"version": own}}
        cli.printer.value(told | ({"server": as_json(info)} if info is not None else {}))


def _server_lines(info: GetServerInfoResponse) -> list[str]:
    from anvilmq.cli import times, values
    from anvilmq_proto.v1 import system_service_pb2 as system

    durability = values.enum_word(system.Durability, info.durability)
    facts = {
        "durability": durability,
        "namespace": info.namespace,
        "features": ", ".join(info.features),
        "up": times.short(info.now_at_ms - info.started_at_ms),
        "maintenance": (info.maintenance_reason or "on") if info.maintenance else "",
    }
    return [f"server   {info.version}", *(f"  {name}: {fact}" for name, fact in facts.items() if fact)]
