"""The statement files: what the loader makes of them, what it refuses, and how the database carries them out."""

import ast
from pathlib import Path
from typing import Final

import pytest

import anvilmq_broker.store.libsql
from anvilmq_broker.store.libsql import statements
from tests.unit.store import query_plans

PACKAGE: Final = Path(anvilmq_broker.store.libsql.__file__).parent

COLD: Final = {
    # At a start, once: of queues, of counts, of definitions, of what partial indexes hold.
    "active_jobs",
    "all_counts",
    "all_due",
    "all_queues",
    "parked_jobs",
}
"""Statements that may walk a table. So may invariants and those for export; all others are hot."""


def parsed(text: str) -> statements.Statement:
    """The only statement of that text."""
    (found,) = statements.parse(text, "test.sql")
    return found


def hot(name: str) -> bool:
    """Whether the statement is run while the broker serves."""
    return name not in COLD and not name.startswith(("structural_", "derived_", "export_"))


# -------------------------------------------------------------------------------------------- the loader


def test_integers_stand_under_a_cast_and_other_parameters_bare() -> None:
    found = parsed("-- name: a\n-- Test.\n-- params: n int, s small, t text, b blob\nSELECT :b, :n, :s, :t;")
    assert found.text == "SELECT ?4, CAST(?1 AS INTEGER), ?2, ?3;"
    assert (found.params, found.row, found.blobs) == (("n", "s", "t", "b"), (), ())


def test_rows_are_read_from_an_array_with_their_blobs_beside_it() -> None:
    text = "-- name: a\n-- Test.\n-- params: n int\n-- rows: id int, body blob, last text\n"
    found = parsed(text + "INSERT INTO t SELECT :id, :body, :last, :n FROM rows;")
    assert found.text == (
        "INSERT INTO t SELECT (rows.value ->> 0), substr(?3, rows.value ->> 1, rows.value ->> 2), (rows.value ->> 3), "
        "CAST(?1 AS INTEGER) FROM json_each(?2) AS rows;"
    )
    assert (found.row, found.blobs) == (("id", "body", "last"), (1,))


def test_rows_of_one_field_are_read_as_they_are() -> None:
    found = parsed("-- name: a\n-- Test.\n-- params: n int\n-- each: id int\nSELECT :id, :n FROM rows;")
    assert found.text == "SELECT rows.value, CAST(?1 AS INTEGER) FROM json_each(?2) AS rows;"
    assert (found.row, found.shape) == (("id",), "each")


@pytest.mark.parametrize(("kind", "key"), [("text", "rows.key"), ("int", "CAST(rows.key AS INTEGER)")])
def test_rows_of_two_fields_are_read_from_the_members_of_an_object(kind: str, key: str) -> None:
    found = parsed(f"-- name: a\n-- Test.\n-- pairs: k {kind}, v int\nSELECT :k, :v FROM rows;")
    assert found.text == f"SELECT {key}, rows.value FROM json_each(?1) AS rows;"
    assert (found.row, found.shape) == (("k", "v"), "pairs")


def test_a_file_has_any_number_of_statements_and_a_declaration_any_number_of_lines() -> None:
    text = (
        "-- name: a\n-- Test.\nSELECT 1;\n\n-- name: b\n-- Test.\n-- params: x int\n-- params: y int\nSELECT :x, :y;\n"
    )
    assert [(found.name, found.params) for found in statements.parse(text, "t")] == [("a", ()), ("b", ("x", "y"))]


def test_a_colon_that_belongs_to_something_else_is_no_parameter() -> None:
    assert parsed("-- name: a\n-- Test.\nSELECT 'at 12:30' FROM t;").params == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1;", "text before the first"),
        ("-- name: Claim\n-- Test.\nSELECT 1;", "'Claim' is not a statement's name"),
        ("-- name: a\n-- Test.\nSELECT 1; SELECT 2;", "must be one statement"),
        ("-- name: a\n-- Test.\nSELECT 1", "must be one statement"),
        ("-- name: a\n-- Test.\nSELECT * FROM t;", "name the columns"),
        ("-- name: a\n-- Test.\nSELECT t.* FROM t;", "name the columns"),
        ("-- name: a\n-- Test.\nDELETE FROM t RETURNING *;", "name the columns"),
        ("-- name: a\n-- Test.\nSELECT ?1;", "a parameter without a name"),
        ("-- name: a\nSELECT 1;", "does not say its purpose"),
        ("-- name: a\n-- params: n int\nSELECT :n;", "does not say its purpose"),
        ("-- name: a\n-- Test.\n-- params: n int\nSELECT 1;", r"declares \['n'\] and does not use it"),
        ("-- name: a\n-- Test.\n-- rows: n int\nSELECT 1 FROM rows;", r"declares \['n'\] and does not use it"),
        ("-- name: a\n-- Test.\nSELECT :n;", r"uses \['n'\] and does not declare it"),
        ("-- name: a\n-- Test.\n-- params: n int, n int\nSELECT :n;", "write 'name type' once"),
        ("-- name: a\n-- Test.\n-- params: n real\nSELECT :n;", "type one of"),
        ("-- name: a\n-- Test.\n-- params: n\nSELECT :n;", "type one of"),
        ("-- name: a\n-- Test.\n-- params: n int\n-- rows: n int\nSELECT :n FROM rows;", "twice"),
        ("-- name: a\n-- Test.\n-- rows: n int\nSELECT :n;", "FROM rows once"),
        ("-- name: a\n-- Test.\n-- rows: n int\nSELECT :n FROM rows, (SELECT 1 FROM rows);", "FROM rows once"),
        ("-- name: a\n-- Test.\nSELECT 1 FROM rows;", "FROM rows once"),
        ("-- name: a\n-- Test.\n-- each: n int, m int\nSELECT :n, :m FROM rows;", "2 fields as each, which takes 1"),
        ("-- name: a\n-- Test.\n-- pairs: n int\nSELECT :n FROM rows;", "1 fields as pairs, which takes 2"),
        ("-- name: a\n-- Test.\n-- pairs: n int, b blob\nSELECT :n, :b FROM rows;", "only rows carry blobs"),
    ],
)
def test_what_breaks_the_rules_is_refused_by_name(text: str, complaint: str) -> None:
    with pytest.raises(statements.SqlFileError, match=complaint):
        list(statements.parse(text, "test.sql"))


def test_no_name_stands_twice_in_the_files() -> None:
    names = [
        found.name
        for file in (PACKAGE / "sql").glob("*.sql")
        for found in statements.parse(file.read_text("utf-8"), file.name)
    ]
    assert sorted(names) == sorted(statements.load())


# ------------------------------------------------------------------------------------ the statements' use


def texts_of_the_package() -> list[tuple[str, str]]:
    """Every literal text of the package's Python, with its file."""
    return [
        (path.name, node.value)
        for path in PACKAGE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_every_statement_is_used() -> None:
    used = {text for _, text in texts_of_the_package()}
    assert [name for name in statements.load() if name not in used and not name.startswith(("struct", "derived"))] == []


def test_there_is_no_sql_in_python_but_transactions_and_pragmas() -> None:
    words = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "REPLACE ", "CREATE ")
    found = [(file, text) for file, text in texts_of_the_package() if text.startswith(words)]
    assert found == [("opening.py", "SELECT sqlite_source_id()")]


# ----------------------------------------------------------------------------------------------- plans


@pytest.fixture(scope="module")
def plans() -> dict[str, list[str]]:
    """The plan of every statement."""
    return query_plans.plans()


def test_the_plans_are_those_on_file(plans: dict[str, list[str]]) -> None:
    assert query_plans.written(plans) == query_plans.kept()


def test_no_hot_statement_walks_a_table_or_sorts(plans: dict[str, list[str]]) -> None:
    own = ("SCAN rows VIRTUAL TABLE", "SCAN (subquery", "SCAN CONSTANT ROW")
    bad = [
        (name, step)
        for name, steps in plans.items()
        for step in steps
        if hot(name) and ("TEMP B-TREE" in step or (step.startswith("SCAN") and not step.startswith(own)))
    ]
    assert bad == []


def test_a_statement_that_may_walk_a_table_does(plans: dict[str, list[str]]) -> None:
    assert [name for name in COLD if not any(step.startswith("SCAN") for step in plans[name])] == []
