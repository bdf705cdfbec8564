"""Public ids: a time and a number, forth and back, in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvilmq_broker.domain import ids

times = st.integers(0, (1 << 48) - 1)
numbers = st.integers(0, (1 << 80) - 1)


@given(times, numbers)
def test_an_id_names_its_time_and_number(created_ms: int, number: int) -> None:
    text = ids.encode(created_ms, number)
    assert len(text) == ids.LENGTH
    assert ids.decode(text) == (created_ms, number)


@given(st.tuples(times, numbers), st.tuples(times, numbers))
def test_ids_sort_as_their_times_and_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (ids.encode(*one) < ids.encode(*other)) == (one < other)


@given(times, st.integers(0, 1 << 60), st.integers(0, 3_000))
def test_a_run_of_ids_is_that_of_each(created_ms: int, first: int, count: int) -> None:
    assert ids.encode_run(created_ms, first, count) == [ids.encode(created_ms, first + n) for n in range(count)]


@pytest.mark.parametrize(
    "text", ["", "0" * 25, "0" * 27, "0" * 25 + "I", "I" + "0" * 25, "0" * 24 + "a0", "8" + "0" * 25, "0" * 26 + "\n"]
)
def test_other_texts_are_no_ids(text: str) -> None:
    assert ids.decode(text) is None
