"""Makes a command of a function: options that all commands share, the loop it runs on, errors as lines and exit codes.

A command is a function `(cli, …) -> int | None`, plain or async; what follows `cli` is described for typer. The value
is the exit code, None means 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_type_hints

import msgspec
import typer

from anvilmq.cli import exits, times
from anvilmq.cli.output import Format, Printer
from anvilmq.cli.terminal import Terminal

if TYPE_CHECKING:
    from anvilmq._clock import Clock
    from anvilmq.admin import Admin
    from anvilmq.errors import AnvilError

_SHARED: Final = "Shared options"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="HOST:PORT",
        help="The broker: host:port, or anvilmqs://host:port for TLS. Else ANVILMQ_URL, else localhost:50051.",
        rich_help_panel=_SHARED,
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File that holds the token. Else ANVILMQ_TOKEN_FILE, ANVILMQ_TOKEN.",
        rich_help_panel=_SHARED,
    ),
]
CaFile = Annotated[
    str | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        help="The only certificates trusted with TLS. Else ANVILMQ_CA_FILE, else those of the system.",
        rich_help_panel=_SHARED,
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="Longest time of a call, such as 10s; of a wait, all of it. Else 5s, 30s for bulk calls; waits without end.",
        rich_help_panel=_SHARED,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="No progress and no notes, only data and errors.", rich_help_panel=_SHARED),
]
Output = Annotated[
    Format | None,
    typer.Option(
        "-o",
        "--output",
        metavar="table|wide|json|jsonl|yaml|name",
        help="How data is written. Else table.",
        rich_help_panel=_SHARED,
        show_default=False,
    ),
]

_FLAGS: Final = {
    "ANVILMQ_URL": "--url (ANVILMQ_URL)",
    "ANVILMQ_TOKEN_FILE": "--token-file (ANVILMQ_TOKEN_FILE)",
    "ANVILMQ_CA_FILE": "--ca-file (ANVILMQ_CA_FILE)",
    "http": "--http",
}
"""How the settings of the SDK are called here."""
_SHARED_OPTIONS: Final = {"url": Url, "token_file": TokenFile, "ca_file": CaFile, "timeout": Timeout, "quiet": Quiet}
_DEFAULTS: Final[dict[str, object]] = {"quiet": False}


class Connection(msgspec.Struct, frozen=True):
    """What flags say about the way to the broker; None leaves it to the environment. timeout_s: None = by call."""

    url: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    timeout_s: float | None = None


OpenAdmin = Callable[[Connection], AbstractAsyncContextManager["Admin"]]


class World(msgspec.Struct, frozen=True):
    """All that a command touches outside itself; tests hand in another."""

    terminal: Terminal
    open_admin: OpenAdmin
    make_clock: Callable[[], Clock]


class Cli:
    """What a command has in hand."""

    def __init__(self, world: World, connection: Connection, printer: Printer) -> None:
        self._world = world
        self.connection = connection
        self.terminal = world.terminal
        self.printer = printer

    @cached_property
    def clock(self) -> Clock:
        """Waits are measured with it."""
        return self._world.make_clock()

    def now_ms(self) -> int:
        """The time, in Unix milliseconds."""
        return self.clock.now_ms()

    def admin(self) -> AbstractAsyncContextManager[Admin]:
        """The broker, for as long as the block lasts."""
        return self._world.open_admin(self.connection)


Command = Callable[..., Awaitable[int | None] | int | None]


def register(app: typer.Typer, name: str, command: Command, *, prints_data: bool = True) -> None:
    """Add a command to an app, with the options that all share; `-o` for those that print data."""
    app.command(name, help=inspect.cleandoc(command.__doc__ or ""))(_bound(command, prints_data=prints_data))


def shared_options(*, prints_data: bool) -> list[inspect.Parameter]:
    """The options that every command has, as parameters of a function."""
    options = {**_SHARED_OPTIONS, **({"output": Output} if prints_data else {})}
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=annotation)
        for name, annotation in options.items()
    ]


def with_signature(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    """The function, as typer is to see it."""
    described: Any = function
    described.__signature__ = inspect.Signature(parameters)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return function


def _bound(command: Command, *, prints_data: bool) -> Callable[..., Any]:
    own = _own_parameters(command)
    shared = shared_options(prints_data=prints_data)
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)

    def call(context: typer.Context, **values: Any) -> None:
        given = {option.name: values.pop(option.name) for option in shared}
        code = run_command(context.obj, {**_of_root(context), **_set(given)}, command, values)
        if code:
            raise typer.Exit(code)

    return with_signature(call, [context, *own, *shared])


def _own_parameters(command: Command) -> list[inspect.Parameter]:
    """What the command takes besides `cli`; `**flags: Unpack[SomeTypedDict]` stands for a flag each key."""
    found: list[inspect.Parameter] = []
    for parameter in list(inspect.signature(command, eval_str=True).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            found.extend(_flags_of(get_args(parameter.annotation)[0]))
        else:
            found.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return found


def _flags_of(flags: type) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if get_args(annotation)[0] is bool else None,
            annotation=annotation,
        )
        for name, annotation in get_type_hints(flags, include_extras=True).items()
    ]


def _of_root(context: typer.Context) -> dict[str, Any]:
    """What was given before the noun: `anvilmq --url … job list`."""
    return _set(
        {option.name: context.find_root().params.get(option.name) for option in shared_options(prints_data=True)}
    )


def _set(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value is not False}


def run_command(world: World, shared: dict[str, Any], command: Command, values: dict[str, Any]) -> int:
    """Run a command, and turn what it raises into one line on stderr and the exit code."""
    from anvilmq.errors import AnvilError

    terminal = world.terminal
    try:
        code = _run(command, _cli(world, shared), values)
        terminal.flush()
    except exits.UsageProblem as problem:
        terminal.error(f"error: {problem}")
        return exits.USAGE
    except exits.Stopped as stop:
        if str(stop):
            terminal.error(str(stop))
        return stop.exit_code
    except AnvilError as error:
        terminal.error(f"error: {told(error)}")
        return exits.code_of(error)
    return code or exits.DONE


def told(error: AnvilError) -> str:
    """An error in one line: what is wrong, with the fields it concerns and the reason to look it up by."""
    from anvilmq.errors import CallError, SettingInvalid, Unavailable

    text = " ".join(error.message.split())
    if isinstance(error, SettingInvalid):
        return text.replace(error.variable, _FLAGS.get(error.variable, error.variable), 1)
    if not isinstance(error, CallError):
        return text
    if error.reason == "TOKEN_MISSING":
        text = "the broker wants a token; name its file with --token-file, or set ANVILMQ_TOKEN"
    elif isinstance(error, Unavailable) and not error.reason:
        text = _unreached(*text.split(": ", 1))
    fields = "; ".join(_field_told(path, problem) for path, problem in error.fields.items() if path)
    return " ".join(part for part in (fields or text, f"({error.reason})" if error.reason else "") if part)


def _unreached(address: str, cause: str = "") -> str:
    """Why no broker answers there, of which gRPC tells the history, and what to do."""
    cause = cause.removesuffix(": OK").rstrip("]")
    last = cause.rpartition(": ")[2] or "unavailable"
    if "CERTIFICATE_VERIFY_FAILED" in cause:
        return f"the certificate of {address} is not trusted ({last}); name its authority with --ca-file"
    if "WRONG_VERSION_NUMBER" in cause:
        return f"{address} does not speak TLS; name it anvilmq://{address}"
    if last == "Socket closed":
        return f"{address} closed the connection; if it speaks TLS, name it anvilmqs://{address}"
    return f"no broker answers at {address} ({last}); start one with `anvilmq dev`, or name another with --url"


def _field_told(path: str, problem: str) -> str:
    """A field and what is wrong with it. The broker's text may begin with the end of the path, as items are told."""
    head, _, rest = problem.partition(": ")
    return f"{path}: {rest if rest and path.endswith(head) else problem}"


def _cli(world: World, shared: dict[str, Any]) -> Cli:
    timeout = shared.get("timeout")
    connection = Connection(
        url=shared.get("url"),
        token_file=shared.get("token_file"),
        ca_file=shared.get("ca_file"),
        timeout_s=times.duration_ms("--timeout", timeout) / 1_000 if timeout else None,
    )
    world.terminal.quiet = bool(shared.get("quiet"))
    return Cli(world, connection, Printer(world.terminal, shared.get("output") or Format.TABLE))


def _run(command: Command, cli: Cli, values: dict[str, Any]) -> int | None:
    result = command(cli, **values)
    if not inspect.isawaitable(result):
        return result
    import asyncio

    async def wait() -> int | None:
        return await result

    return asyncio.run(wait())
