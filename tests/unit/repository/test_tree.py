"""The folder operator/ shares its name with a standard module: these tests keep that harmless, and files readable."""

import ast
import operator
import sysconfig
from pathlib import Path
from typing import Final

from tests.unit.repository import tree

MOST_LINES: Final = 600


def test_the_folders_of_the_packages_are_no_packages_themselves() -> None:
    offenders = [tree.ROOT / folder / "__init__.py" for folder in tree.PACKAGE_FOLDERS]
    assert tree.shown([path for path in offenders if path.exists()]) == []


def test_every_folder_with_tests_is_a_package() -> None:
    top = tree.ROOT / "tests"
    folders = {folder for path in tree.python_files("tests") for folder in path.parents if folder.is_relative_to(top)}
    assert tree.shown(sorted(folder for folder in folders if not (folder / "__init__.py").exists())) == []


def test_no_folder_with_tests_is_called_operator() -> None:
    assert tree.shown(sorted((tree.ROOT / "tests").rglob("operator"))) == []


def test_operator_is_the_standard_module() -> None:
    assert operator.__file__ is not None
    assert Path(operator.__file__).resolve().parent == Path(sysconfig.get_path("stdlib")).resolve()


def test_no_module_is_imported_under_a_second_name() -> None:
    second_names = {f"{folder}.anvilmq" for folder in tree.PACKAGE_FOLDERS}
    offenders = [
        path
        for path in tree.python_files(*tree.SOURCE_FOLDERS)
        if any(name.startswith(tuple(second_names)) for name in tree.imported_names(tree.parse(path)))
    ]
    assert tree.shown(offenders) == []


def test_every_module_says_what_it_is_for() -> None:
    files = tree.python_files(*tree.SOURCE_FOLDERS)
    assert tree.shown([path for path in files if not ast.get_docstring(tree.parse(path))]) == []


def test_a_long_file_says_why_it_is_long() -> None:
    long_files = [
        path
        for path in tree.python_files(*tree.SOURCE_FOLDERS)
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    ]
    silent = [path for path in long_files if "long because" not in (ast.get_docstring(tree.parse(path)) or "").lower()]
    assert tree.shown(silent) == []
