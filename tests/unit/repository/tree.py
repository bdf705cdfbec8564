"""Which files the tests of the tree look at."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE_FOLDERS: Final = ("operator", "broker", "sdk", "proto")
SOURCE_FOLDERS: Final = (*PACKAGE_FOLDERS, "tests", "scripts", "bench", "examples")


def python_files(*folders: str) -> list[Path]:
    """Every Python file written by hand below the given folders of the root, sorted."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not path.name.endswith("_pb2.py"))


def parse(path: Path) -> ast.Module:
    """The syntax tree of a file.

    Without the collector meanwhile: a finalizer that compiles something makes CPython 3.11 lose count of its depth, and
    fail with "AST constructor recursion depth mismatch".
    """
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    finally:
        gc.enable()


def imported_names(module: ast.Module) -> Iterator[str]:
    """The dotted names that a module imports, `from a import b` as a.b."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def shown(paths: list[Path]) -> list[str]:
    """Paths as a reader of a failure wants them: relative to the root."""
    return [str(path.relative_to(ROOT)) for path in paths]
