"""Tables of docs/reference against the code they describe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from anvilmq_broker.domain import errors
from scripts import broker_reference

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


def test_every_reason_said_to_be_answered_is_in_the_code() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    answered, _ = page.split("## Reserved")
    sources = [path for path in (ROOT / "broker").rglob("*.py") if path.name != "errors.py"]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    listed = re.findall(r"^\| `(\w+)`", answered, re.MULTILINE)
    assert [reason for reason in listed if f'"{reason}"' not in code] == []


def test_settings_and_metrics_are_those_of_the_code() -> None:
    for path, text in broker_reference.pages().items():
        assert path.read_text(encoding="utf-8") == text, "remedy: python scripts/broker_reference.py"


def test_the_metrics_that_documents_name_exist() -> None:
    known = {one.name for one in (*broker_reference.broker_metrics(), *broker_reference.worker_metrics())}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(r"`(anvilmq_(?!broker|proto|operator)\w+)", page.read_text(encoding="utf-8"))
    }
    assert named <= known
