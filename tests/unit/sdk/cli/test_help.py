"""The help of each command: complete, and there at once."""

import subprocess
import sys
from typing import Any

import pytest
import typer

from anvilmq.cli.main import build_app
from tests.unit.sdk.cli.shell import Shell

SHARED = {"--url", "--token-file", "--ca-file", "--timeout", "--quiet"}
WITHOUT_DATA = {"dev", "worker run"}


def commands(group: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every command below a group, by the words that call it."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        words = (*path, name)
        found |= commands(command, words) if hasattr(command, "commands") else {" ".join(words): command}
    return found


COMMANDS = commands(typer.main.get_command(build_app()))


def test_there_are_the_commands_of_the_design() -> None:
    assert set(COMMANDS) == {
        "dev", "add", "load", "version",
        "job list", "job get", "job why", "job logs", "job wait", "job cancel",
        "worker run", "worker list", "worker drain",
        "schedule list", "schedule get", "schedule preview", "schedule run", "schedule suspend", "schedule resume",
        "schedule rm", "schedule apply", "schedule lint",
        "receipt list", "receipt get", "receipt release", "receipt rm",
    }  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_each_command_says_what_it_does_and_what_each_option_means(shell: Shell, words: str) -> None:
    command = COMMANDS[words]
    assert command.help
    assert len(command.help.splitlines()[0]) <= 100
    for parameter in command.params:
        assert parameter.help, f"{words}: {parameter.name}"
        assert parameter.help.endswith("."), f"{words}: {parameter.help}"
    options = {max(parameter.opts, key=len) for parameter in command.params}
    assert options >= SHARED
    assert ("--output" in options) == (words not in WITHOUT_DATA)


@pytest.mark.parametrize("words", COMMANDS)
def test_help_names_every_parameter(words: str) -> None:
    shown = typer_help(words)
    assert shown.startswith(f"Usage: anvilmq {words}")
    for parameter in COMMANDS[words].params:
        name = max(parameter.opts, key=len)
        assert (name if name.startswith("--") else parameter.metavar) in shown


def typer_help(words: str) -> str:
    """What `anvilmq … --help` prints."""
    command = typer.main.get_command(build_app())
    context = command.make_context("anvilmq", [], resilient_parsing=True)
    for word in words.split():
        command = command.commands[word]  # type: ignore[attr-defined]
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    return str(context.get_help())


PROBE = """
import sys
sys.argv = ["anvilmq", *{words!r}]
from anvilmq.cli.main import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
heavy = ["grpc", "google.protobuf", "anvilmq_proto", "anvilmq_broker", "asyncio", "rich", "shop"]
print("loaded:", [name for name in heavy if name in sys.modules])
"""


@pytest.mark.parametrize("words", [["--help"], ["worker", "run", "shop:app", "--help"], ["load", "--help"]])
def test_help_loads_neither_grpc_nor_user_modules(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=words)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded: []"
    assert done.stdout.startswith("Usage: anvilmq")
