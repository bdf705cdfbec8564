"""Loads the named statements of `sql/*.sql`; there is no SQL anywhere else.

A file is a row of blocks:

    -- name: free_singleton_receipt
    -- Purpose, in words.
    -- params: queue_id int, key text
    DELETE FROM receipts WHERE queue_id = :queue_id AND key = :key RETURNING key;

Types: int (any integer; bound under a CAST, since the driver binds 2^31 and more as REAL), small (an integer below
2^31, bound bare), text, blob. Arguments are given in the order of the params line. A statement for many rows marks one row as `/*row*/(…)/*row*/`; its parameters come from
each row. Those used outside it, and those on a `-- common:` line, are bound once and come first. Such a statement is made in the fixed widths WIDTHS, so that few
texts exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final

import msgspec

from anvilmq_broker.store.libsql.driver import Row, Scalar

WIDTHS: Final = (64, 8, 1)
_TYPES: Final = frozenset({"int", "small", "text", "blob"})
_PARAM: Final = re.compile(r"(?<![:\w]):([a-z_]+)")
_ROW: Final = re.compile(r"/\*row\*/(.*?)/\*row\*/", re.DOTALL)


class SqlFileError(Exception):
    """A statement file breaks the rules above."""


class Statement(msgspec.Struct, frozen=True):
    """One statement, ready to run. text: by width; width 1 of a statement without row marks is the only one."""

    name: str
    texts: dict[int, str]
    common: tuple[str, ...]
    row: tuple[str, ...]

    @property
    def many(self) -> bool:
        """Whether it takes rows."""
        return bool(self.row)


def load() -> dict[str, Statement]:
    """Every statement by name. Raises SqlFileError."""
    found: dict[str, Statement] = {}
    folder = resources.files("anvilmq_broker.store.libsql") / "sql"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".sql"):
            continue
        for statement in parse(file.read_text("utf-8"), file.name):
            if statement.name in found:
                raise SqlFileError(f"{file.name}: {statement.name} is defined twice")
            found[statement.name] = statement
    return found


def parse(text: str, where: str) -> Iterator[Statement]:
    """The statements of one file's text. Raises SqlFileError naming the file and the statement."""
    blocks = re.split(r"(?m)^-- name: ", text)
    if blocks[0].strip():
        raise SqlFileError(f"{where}: text before the first '-- name:' line")
    for block in blocks[1:]:
        head, _, rest = block.partition("\n")
        yield _statement(head.strip(), rest, where)


def widths(count: int) -> Iterator[tuple[int, int]]:
    """(start, width) pieces that cover `count` rows with the fixed widths, widest first."""
    start = 0
    for width in WIDTHS:
        while count - start >= width:
            yield start, width
            start += width


def flat(common: Sequence[Scalar], rows: Sequence[Row]) -> list[Scalar]:
    """Arguments of a statement for these rows."""
    args = list(common)
    for row in rows:
        args.extend(row)
    return args


def _statement(name: str, block: str, where: str) -> Statement:
    comments = [line[2:].strip() for line in block.splitlines() if line.startswith("--")]
    sql = "\n".join(line for line in block.splitlines() if not line.startswith("--")).strip()
    _check_shape(name, sql, comments, where)
    once = _declared(name, comments, "common:", where)
    types = once | _declared(name, comments, "params:", where)
    row = _ROW.search(sql)
    outside = sql[: row.start()] + sql[row.end() :] if row else sql
    outer, inner = _names(outside), _names(row[1]) if row else frozenset()
    if unused := set(types) - outer - inner:
        raise SqlFileError(f"{where}: {name} declares {sorted(unused)} and does not use it")
    if unknown := (outer | inner) - set(types):
        raise SqlFileError(f"{where}: {name} uses {sorted(unknown)} and does not declare it")
    common = tuple(param for param in types if param in once or param in outer)
    if row is None:
        return Statement(name, {1: _number(sql, common, types, 0)}, common, ())
    in_row = tuple(param for param in types if param not in common)
    texts = {width: _expand(sql, row[1], common, in_row, types, width) for width in WIDTHS}
    return Statement(name, texts, common, in_row)


def _check_shape(name: str, sql: str, comments: list[str], where: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SqlFileError(f"{where}: {name!r} is not a statement's name")
    if not sql.endswith(";") or ";" in sql[:-1]:
        raise SqlFileError(f"{where}: {name} must be one statement that ends with ';'")
    if re.search(r"(?i)select\s+\*", sql):
        raise SqlFileError(f"{where}: {name} selects *: name the columns")
    if not comments:
        raise SqlFileError(f"{where}: {name} does not say its purpose")


def _declared(name: str, comments: list[str], label: str, where: str) -> dict[str, str]:
    line = ", ".join(comment.removeprefix(label) for comment in comments if comment.startswith(label))
    types: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in line.split(","))):
        param, _, kind = item.partition(" ")
        if kind not in _TYPES or param in types:
            raise SqlFileError(f"{where}: {name} declares {item!r}; write 'name type' once, type one of {sorted(_TYPES)}")
        types[param] = kind
    return types


def _names(sql: str) -> frozenset[str]:
    return frozenset(_PARAM.findall(sql))


def _number(sql: str, names: tuple[str, ...], types: dict[str, str], offset: int) -> str:
    places = {name: f"?{offset + place}" for place, name in enumerate(names, 1)}

    def put(match: re.Match[str]) -> str:
        name = match[1]
        place = places.get(name)
        if place is None:
            return match[0]
        return f"CAST({place} AS INTEGER)" if types[name] == "int" else place

    return _PARAM.sub(put, sql)


def _expand(
    sql: str, row: str, common: tuple[str, ...], in_row: tuple[str, ...], types: dict[str, str], width: int
) -> str:
    rows = ", ".join(_number(row, in_row, types, len(common) + place * len(in_row)) for place in range(width))
    return _number(_ROW.sub(lambda _: rows, sql), common, types, 0)
