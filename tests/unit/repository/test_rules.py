"""A rule without a test does not exist: each rule that is due has one, each that is not built has none."""

import ast
import functools
import itertools
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support import rules
from tests.unit.repository import tree

NOT_BUILT: Final = tree.ROOT / "tests" / "rules-not-built.txt"


def not_built() -> list[str]:
    """The rules that are not due yet, as listed."""
    return NOT_BUILT.read_text(encoding="utf-8").split()


@functools.cache
def tested() -> dict[str, list[str]]:
    """The rules that tests stand for, each with the files of these tests."""
    found: dict[str, list[str]] = {}
    for path in tree.python_files("tests"):
        if "rule(" not in path.read_text(encoding="utf-8"):
            continue
        for number in rules_above_tests(tree.parse(path)):
            found.setdefault(number, []).append(str(path.relative_to(tree.ROOT)))
    return found


def rules_above_tests(module: ast.Module) -> Iterator[str]:
    """The numbers that stand in @rule("…") above test functions and classes of a module."""
    for node in ast.walk(module):
        match node:
            case ast.ClassDef(decorator_list=decorators):
                yield from itertools.chain.from_iterable(map(rules_of, decorators))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield from itertools.chain.from_iterable(map(rules_of, node.decorator_list))


def rules_of(decorator: ast.expr) -> Iterator[str]:
    """The number, if a decorator is rule("…"), bare or as an attribute. Hypothesis's rule takes only keywords."""
    match decorator:
        case ast.Call(func=ast.Name(id="rule") | ast.Attribute(attr="rule"), args=[ast.Constant(value=str(number))]):
            yield number


def test_every_rule_that_is_due_has_a_test() -> None:
    assert [number for number in rules.RULES if number not in {*tested(), *not_built()}] == []


def test_no_rule_listed_as_not_built_has_a_test() -> None:
    listed = set(not_built())
    assert {number: files for number, files in tested().items() if number in listed} == {}


def test_the_list_of_rules_not_built_names_each_rule_once_and_in_order() -> None:
    listed = set(not_built())
    assert not_built() == [number for number in rules.RULES if number in listed]


def test_the_mark_of_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no rule '9\.9'"):
        rules.rule("9.9")


def test_rules_are_found_above_functions_and_classes_and_nowhere_else() -> None:
    source = """
@rule("1.1")
@rules.rule("1.2")
async def test_a(): ...

@rule("1.3")
class TestB:
    @rule("1.4")
    def test_c(self): ...

    @rule(target=jobs)
    def add(self): ...

@rule("1.5")
def helper(): ...
"""
    assert sorted(rules_above_tests(ast.parse(source))) == ["1.1", "1.2", "1.3", "1.4"]
