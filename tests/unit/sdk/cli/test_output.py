"""Formats, times and what is seen on a screen."""

import io
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from anvilmq import durations
from anvilmq.cli import tables, times, yaml_text
from anvilmq.cli.terminal import visible

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_yaml_reads_back_as_what_was_written(value: Any) -> None:
    assert yaml.load(io.StringIO(yaml_text.dump(value)), yaml.CSafeLoader) == value


def test_yaml_is_written_in_blocks() -> None:
    value = {"items": [{"id": "j1", "labels": {"a": "yes"}, "ids": []}, []], "next": ""}
    assert yaml_text.dump(value) == 'items:\n- id: j1\n  labels:\n    a: "yes"\n  ids: []\n- []\nnext: ""'


@pytest.mark.parametrize(
    ("ms", "text"),
    [(-5, "0ms"), (0, "0ms"), (999, "999ms"), (1_000, "1s"), (61_000, "1m1s"), (3_600_000, "1h"), (90_061_000, "1d1h")],
)
def test_lengths_of_time_are_shown_in_two_units(ms: int, text: str) -> None:
    assert times.short(ms) == text


@given(st.integers(0, 2**50))
def test_a_length_that_is_shown_exactly_reads_back(ms: int) -> None:
    assert durations.parse_ms(times.exact(ms)) == ms


def test_instants_are_shown_in_utc_with_their_milliseconds() -> None:
    assert times.iso(1_900_000_000_007) == "2030-03-17T17:46:40.007Z"
    assert times.iso(0) == ""


@given(st.text())
def test_no_control_character_is_left_in_what_is_shown(text: str) -> None:
    shown = visible(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert visible(shown) == shown


def test_columns_stand_below_each_other_also_with_wide_characters() -> None:
    assert tables.aligned([["名前", "b"], ["c", ""]]) == ["名前   b", "c      -"]


def test_a_cell_is_one_line() -> None:
    assert tables.one_line("a\n b\tc\x1b[1m") == "a b c\\x1b[1m"
