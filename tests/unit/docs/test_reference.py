"""Tables of docs/reference against the code they describe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from anvilmq_broker.domain import errors

ROOT: Final = Path(__file__).resolve().parents[3]
CODE_NAMES: Final = {
    errors.INVALID_ARGUMENT: "INVALID_ARGUMENT",
    errors.NOT_FOUND: "NOT_FOUND",
    errors.ALREADY_EXISTS: "ALREADY_EXISTS",
    errors.PERMISSION_DENIED: "PERMISSION_DENIED",
    errors.RESOURCE_EXHAUSTED: "RESOURCE_EXHAUSTED",
    errors.FAILED_PRECONDITION: "FAILED_PRECONDITION",
    errors.ABORTED: "ABORTED",
    errors.UNIMPLEMENTED: "UNIMPLEMENTED",
    errors.UNAVAILABLE: "UNAVAILABLE",
    errors.UNAUTHENTICATED: "UNAUTHENTICATED",
}


def rows(name: str) -> list[list[str]]:
    """The cells of every table row of a reference page that begins with a word in code quotes."""
    text = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    lines = re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def test_every_reason_is_listed_once_with_its_code() -> None:
    listed = [(reason.strip("`"), code) for reason, code, *_ in rows("errors.md")]
    assert sorted(listed) == sorted((reason, CODE_NAMES[code]) for reason, code in errors.CODES.items())
