"""Loads the named statements of `sql/*.sql`; there is no SQL anywhere else.

A file is a row of blocks:

    -- name: free_singleton_receipt
    -- Purpose, in words.
    -- params: queue_id small, key text
    DELETE FROM receipts WHERE queue_id = :queue_id AND key = :key RETURNING key;

Types: int (any integer; bound under a CAST, since the driver binds 2^31 and more as REAL), small (an integer below
2^31, bound bare), text, blob. Arguments are given in the order of the params line.

A statement over many rows declares a row's fields on `-- rows:` lines and reads them from the table `rows`. The rows
travel as one JSON array (integers and texts), blobs beside it in one piece that the statement cuts up: the text of the
statement is the same for any number of rows, which the driver, keeping no prepared statement, has to parse each time.
Measured against multi-row VALUES: half the time for 64 rows.

Taking an array out of an array costs more than all else about a row. A row of one field is declared on an `-- each:` line
and travels as it is; one of two on a `-- pairs:` line, as the name and the value of a member of one JSON object. Hot
statements make do with these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Final

import msgspec

_FIELDS: Final = {"each": 1, "pairs": 2}
_SHAPES: Final = ("rows", *_FIELDS)
_DECLARATIONS: Final = ("params:", *(f"{shape}:" for shape in _SHAPES))
_TYPES: Final = frozenset({"int", "small", "text", "blob"})
_PARAM: Final = re.compile(r"(?<![:\w]):([a-z_]+)")
_FROM_ROWS: Final = re.compile(r"\bFROM rows\b")


class SqlFileError(Exception):
    """A statement file breaks the rules above."""


class Statement(msgspec.Struct, frozen=True):
    """One statement, ready to run. blobs: places of blob fields in a row. shape: what declared its row, "" = no rows."""

    name: str
    text: str
    params: tuple[str, ...]
    row: tuple[str, ...]
    blobs: tuple[int, ...]
    shape: str = ""


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


def _statement(name: str, block: str, where: str) -> Statement:
    comments = [line[2:].strip() for line in block.splitlines() if line.startswith("--")]
    sql = "\n".join(line for line in block.splitlines() if not line.startswith("--")).strip()
    _check_shape(name, sql, comments, where)
    params = _declared(name, comments, "params:", where)
    shape = next((shape for shape in _SHAPES if any(comment.startswith(f"{shape}:") for comment in comments)), "")
    row = _declared(name, comments, f"{shape}:", where) if shape else {}
    used = frozenset(_PARAM.findall(sql))
    if unused := (params.keys() | row.keys()) - used:
        raise SqlFileError(f"{where}: {name} declares {sorted(unused)} and does not use it")
    if unknown := used - params.keys() - row.keys():
        raise SqlFileError(f"{where}: {name} uses {sorted(unknown)} and does not declare it")
    if doubled := params.keys() & row.keys():
        raise SqlFileError(f"{where}: {name} declares {sorted(doubled)} twice")
    if bool(row) != (len(_FROM_ROWS.findall(sql)) == 1):
        raise SqlFileError(f"{where}: {name} must read FROM rows once, exactly when it declares rows")
    if shape in _FIELDS and len(row) != _FIELDS[shape]:
        raise SqlFileError(f"{where}: {name} declares {len(row)} fields as {shape}, which takes {_FIELDS[shape]}")
    blobs = tuple(place for place, kind in enumerate(row.values()) if kind == "blob")
    if blobs and shape != "rows":
        raise SqlFileError(f"{where}: {name} declares a blob as {shape}; only rows carry blobs")
    return Statement(name, _ready(sql, params, row, shape), tuple(params), tuple(row), blobs, shape)


def _ready(sql: str, params: dict[str, str], row: dict[str, str], shape: str) -> str:
    """The text with its places: params first, then the array of rows, then the blobs."""
    array, blobs = len(params) + 1, len(params) + 2
    texts = {
        name: f"CAST(?{place} AS INTEGER)" if kind == "int" else f"?{place}"
        for place, (name, kind) in enumerate(params.items(), 1)
    }
    field = 0
    for name, kind in row.items():
        if shape == "pairs" and not field:
            texts[name] = "CAST(rows.key AS INTEGER)" if kind in ("int", "small") else "rows.key"
        elif shape != "rows":
            texts[name] = "rows.value"
        elif kind == "blob":
            texts[name] = f"substr(?{blobs}, rows.value ->> {field}, rows.value ->> {field + 1})"
        else:
            texts[name] = f"(rows.value ->> {field})"
        field += 2 if kind == "blob" else 1
    sql = _PARAM.sub(lambda match: texts[match[1]], sql)
    return _FROM_ROWS.sub(f"FROM json_each(?{array}) AS rows", sql)


def _check_shape(name: str, sql: str, comments: list[str], where: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SqlFileError(f"{where}: {name!r} is not a statement's name")
    if not sql.endswith(";") or ";" in sql[:-1]:
        raise SqlFileError(f"{where}: {name} must be one statement that ends with ';'")
    if re.search(r"(?i)(select|returning|,)\s+\*|\.\*", sql):
        raise SqlFileError(f"{where}: {name} selects *: name the columns")
    if "?" in sql:
        raise SqlFileError(f"{where}: {name} has a parameter without a name")
    if all(comment.startswith(_DECLARATIONS) for comment in comments):
        raise SqlFileError(f"{where}: {name} does not say its purpose")


def _declared(name: str, comments: list[str], label: str, where: str) -> dict[str, str]:
    line = ", ".join(comment.removeprefix(label) for comment in comments if comment.startswith(label))
    types: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in line.split(","))):
        param, _, kind = item.partition(" ")
        if kind not in _TYPES or param in types:
            raise SqlFileError(
                f"{where}: {name} declares {item!r}; write 'name type' once, type one of {sorted(_TYPES)}"
            )
        types[param] = kind
    return types
