"""Writes docs/reference/cli.md from the command line itself, or checks that what is committed is what would be written.

python scripts/cli_reference.py            write it
python scripts/cli_reference.py --check    exit 1 when it differs
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from anvilmq.cli import exits
from anvilmq.cli.command import shared_options
from anvilmq.cli.main import build_app

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
HEAD: Final = """\
# The command `anvilmq`

<!-- Written by scripts/cli_reference.py. -->

Data goes to stdout, everything else to stderr. Tables are for people: fitted to the screen on a terminal, whole and plain
elsewhere, and they may change. `-o json`, `jsonl`, `yaml` and `name` are for programs. JSON is proto JSON: names in
camelCase, bytes in base64, 64-bit integers as texts; a list is `{"items": […], "nextPageToken": …}`. Durations have units
(`90s`, `1h30m`), times an offset (`2030-01-31T09:30:00Z`).

Flags go before variables (`ANVILMQ_URL`, `ANVILMQ_TOKEN_FILE`, `ANVILMQ_TOKEN`, `ANVILMQ_CA_FILE`), and these before
`localhost:50051`. The shared options may stand before the first word or after the last.
"""


def reference() -> str:
    """The whole page."""
    app: Any = typer.main.get_command(build_app())
    shared = {option.name for option in shared_options(prints_data=True)}
    parts = [HEAD, "## Exit codes\n", exit_codes(), "\n## Shared options\n"]
    parts.append(table([parameter for parameter in app.params if parameter.name in shared]))
    for words, command in commands(app):
        parts.append(f"\n## anvilmq {words}\n")
        parts.append(section(words, command, shared))
    return "\n".join(parts).rstrip() + "\n"


def exit_codes() -> str:
    """The table of exit codes."""
    rows = [f"| {code} | {meaning} |" for code, meaning in exits.MEANINGS.items()]
    return "\n".join(["| code | means |", "|---|---|", *rows])


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The commands below a group, with the words that call them."""
    for name, command in group.commands.items():
        words = (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield " ".join(words), command


def section(words: str, command: Any, shared: set[str]) -> str:
    """One command: how it is called, what it does, its own options."""
    own = [parameter for parameter in command.params if parameter.name not in shared]
    arguments = " ".join(argument(parameter) for parameter in own if is_argument(parameter))
    usage = " ".join(part for part in ("anvilmq", words, arguments, "[OPTIONS]") if part)
    parts = [f"```\n{usage}\n```\n", text(command.help)]
    if own:
        parts += ["", table(own)]
    return "\n".join(parts)


def text(help_text: str) -> str:
    """The help of a command as Markdown: a paragraph marked to keep its lines is code."""
    paragraphs = help_text.split("\n\n")
    return "\n\n".join(
        f"```\n{paragraph.removeprefix(chr(8)).strip()}\n```" if paragraph.startswith("\b") else escaped(paragraph)
        for paragraph in paragraphs
    )


def table(parameters: list[Any]) -> str:
    """Arguments and options, one a line."""
    rows = [f"| {called(parameter)} | {cell(parameter)} |" for parameter in parameters]
    return "\n".join(["| option | |", "|---|---|", *rows])


def called(parameter: Any) -> str:
    """How a parameter is written."""
    if is_argument(parameter):
        return f"`{parameter.metavar.replace('|', chr(92) + '|')}`"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.is_flag:
        return names
    return f"{names} `{parameter.metavar}`".replace("|", "\\|")


def cell(parameter: Any) -> str:
    """What a parameter means, and its default."""
    shown = f" Default {parameter.default}." if isinstance(parameter.default, int) and not parameter.is_flag else ""
    required = " Required." if parameter.required and not is_argument(parameter) else ""
    return escaped(f"{parameter.help}{shown}{required}").replace("|", "\\|")


def argument(parameter: Any) -> str:
    """An argument in the usage."""
    return str(parameter.metavar) if parameter.required else f"[{parameter.metavar}…]"


def is_argument(parameter: Any) -> bool:
    """Whether it has a place instead of a name."""
    return not parameter.opts[0].startswith("-")


def escaped(words: str) -> str:
    """Text without signs that Markdown would take for its own."""
    return words.replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 when the page differs, write nothing")
    if not parser.parse_args().check:
        TARGET.write_text(reference(), encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != reference():
        sys.exit(f"{TARGET.name} is not what would be written; remedy: python scripts/cli_reference.py")


if __name__ == "__main__":
    main()
