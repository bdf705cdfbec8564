"""What commands print on stdout, in the format that was asked for.

JSON is proto JSON (bytes in base64, 64-bit integers as texts); a list is {"items": […], "nextPageToken": …}. Programs
read json, jsonl, yaml and name; table and wide are for people and may change.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from anvilmq.cli import tables, yaml_text
from anvilmq.cli.terminal import Terminal

if TYPE_CHECKING:
    from google.protobuf.message import Message


class Format(enum.StrEnum):
    """How data is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    NAME = "name"

    @property
    def is_for_people(self) -> bool:
        """Whether it may change from one version to the next."""
        return self in {Format.TABLE, Format.WIDE}


M = TypeVar("M", bound="Message")


class Shape(msgspec.Struct, Generic[M], frozen=True):
    """How a kind of thing is shown: its columns, its fields one below the other, its name. All texts."""

    columns: Sequence[tables.Column[M]]
    details: Callable[[M], Sequence[tuple[str, str]]]
    name: Callable[[M], str]


class Printer:
    """Writes data in one format."""

    def __init__(self, terminal: Terminal, form: Format) -> None:
        self._terminal = terminal
        self.form = form

    def one(self, item: M, shape: Shape[M]) -> None:
        """One thing: its details for people, an object for programs."""
        match self.form:
            case Format.TABLE | Format.WIDE:
                tables.print_details(self._terminal, shape.details(item))
            case Format.NAME:
                self._terminal.out(shape.name(item))
            case _:
                self.value(as_json(item))

    def value(self, value: Any) -> None:
        """What json.loads could return; for the formats of programs."""
        match self.form:
            case Format.YAML:
                self._terminal.out(yaml_text.dump(value))
            case Format.JSONL:
                self._terminal.out(json.dumps(value, ensure_ascii=False))
            case _:
                self._terminal.out(json.dumps(value, ensure_ascii=False, indent=2))

    def listing(self, shape: Shape[M]) -> Listing[M]:
        """A list that is handed over page by page."""
        return Listing(self, self._terminal, shape)


class Listing(Generic[M]):
    """A list under way. Lines are written as they come, what has a frame around it at the end."""

    def __init__(self, printer: Printer, terminal: Terminal, shape: Shape[M]) -> None:
        self._printer = printer
        self._terminal = terminal
        self._shape = shape
        self._held: list[M] = []

    def add(self, items: Iterable[M]) -> None:
        """The things of one page."""
        match self._printer.form:
            case Format.JSONL:
                for item in items:
                    self._printer.value(as_json(item))
            case Format.NAME:
                for item in items:
                    self._terminal.out(self._shape.name(item))
            case _:
                self._held.extend(items)

    def end(self, next_page_token: str) -> None:
        """No more; the token says where the next page begins, "" that there is none."""
        form = self._printer.form
        if form.is_for_people:
            columns = [column for column in self._shape.columns if not column.wide or form is Format.WIDE]
            tables.print_table(self._terminal, columns, self._held)
        elif form in {Format.JSON, Format.YAML}:
            self._printer.value({"items": [as_json(item) for item in self._held], "nextPageToken": next_page_token})
        if next_page_token and form not in {Format.JSON, Format.YAML}:
            self._terminal.note(f"there is more: --page-token {next_page_token}")


def as_json(message: Message) -> dict[str, Any]:
    """A message in proto JSON."""
    from google.protobuf import json_format

    return json_format.MessageToDict(message)
