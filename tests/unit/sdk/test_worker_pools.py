"""Slots, credit and prefetch: pure."""

from __future__ import annotations

from typing import Any, cast

import pytest

from anvilmq._attempts import Attempt
from anvilmq._pools import QUIET_RUNS, Slots, prefetch
from anvilmq.worker import Pool, _pools
from tests.unit.sdk.scripted import delivery


def attempt(slots: Slots, token: str = "t", received_at: float = 0.0) -> Attempt:
    nothing = cast("Any", None)
    return Attempt(delivery(token), nothing, slots, nothing, f"job-{token}", token, received_at)


def filled(slots: Slots, count: int) -> list[Attempt]:
    attempts = [attempt(slots, f"t{number}") for number in range(count)]
    for it in attempts:
        slots.offer([it])
    return attempts


@pytest.mark.parametrize(
    ("slots", "round_trip_s", "mean_run_s", "expected"),
    [
        (8, 0.010, 0.020, 4),
        (8, 0.010, 0.019, 4),
        (8, 0.010, 1.0, 0),
        (8, 0.010, 0.0001, 64),
        (8, 0.0, 0.010, 0),
        (8, 0.010, 0.0, 64),
        (100, 1.0, 0.001, 256),
    ],
)
def test_prefetch_covers_one_round_trip_within_its_bounds(
    slots: int, round_trip_s: float, mean_run_s: float, expected: int
) -> None:
    assert prefetch(slots, round_trip_s, mean_run_s) == expected


def test_credit_starts_as_the_free_slots() -> None:
    slots = Slots(1, ["q"], 4)
    assert slots.missing_credit(0.0) == 4
    filled(slots, 3)
    assert slots.missing_credit(0.0) == 1
    slots.open_credit = 1
    assert slots.missing_credit(0.0) == 0


def test_prefetch_adds_to_the_credit_once_runs_are_measured() -> None:
    slots = Slots(1, ["q"], 4)
    assert slots.missing_credit(0.010) == 4
    slots.free(attempt(slots), 0.010)
    assert slots.missing_credit(0.010) == 8


def test_prefetch_can_be_bounded_and_stopped() -> None:
    for limit, expected in ((0, 4), (2, 6), (50, 36)):
        slots = Slots(1, ["q"], 4, prefetch=limit)
        slots.free(attempt(slots), 0.0001)
        assert slots.missing_credit(0.010) == expected


def test_a_run_of_more_than_a_second_stops_the_prefetch_until_many_short_ones_followed() -> None:
    slots = Slots(1, ["q"], 4)
    slots.free(attempt(slots), 0.001)
    slots.free(attempt(slots), 1.1)
    for _ in range(QUIET_RUNS - 1):
        slots.free(attempt(slots), 0.001)
        assert slots.missing_credit(0.1) == 4
    slots.free(attempt(slots), 0.001)
    assert slots.missing_credit(0.1) > 4


def test_who_ends_a_run_hands_its_slot_to_the_longest_waiting() -> None:
    slots = Slots(1, ["q"], 1)
    first, second, third = filled(slots, 3)
    assert (slots.running, slots.waiting) == (1, 2)
    assert slots.free(first, 0.001) is second
    assert slots.free(second, 0.001) is third
    assert slots.free(third, 0.001) is None
    assert slots.running == 0


def test_a_withdrawn_attempt_is_not_started() -> None:
    slots = Slots(1, ["q"], 1)
    first, second, third = filled(slots, 3)
    assert slots.withdraw(second)
    assert not slots.withdraw(second)
    assert not slots.withdraw(first)
    assert slots.withdraw_all() == [third]
    assert slots.free(first, 0.001) is None


def test_what_waits_too_long_can_be_taken_out_and_pauses_the_prefetch() -> None:
    slots = Slots(1, ["q"], 1)
    slots.free(attempt(slots), 0.0001)
    filled(slots, 1)
    old, new = attempt(slots, "old", 1.0), attempt(slots, "new", 2.0)
    slots.offer([old])
    slots.offer([new])
    assert slots.withdraw_older(1.5) == [old]
    assert slots.waiting == 1
    slots.withdraw_all()
    assert slots.missing_credit(0.1) == 0


def test_credit_stays_within_what_the_broker_accepts() -> None:
    assert Slots(1, ["q"], 5_000).missing_credit(0.0) == 1_000


# ------------------------------------------------------------------------------------------------- pools of a worker


def test_queues_with_slots_of_their_own_leave_the_common_pool() -> None:
    assert _pools(["a", "b", "a"], 8, {"b": 2}) == (Pool(("a",), 8), Pool(("b",), 2))
    assert _pools(["b"], 8, [Pool(("b", "c"), 3)]) == (Pool(("b", "c"), 3),)


@pytest.mark.parametrize(
    ("queues", "concurrency", "apart"),
    [
        ([], 8, {}),
        (["a"], 0, {}),
        (["a"], 8, {"b": 0}),
        (["a"], 8, [Pool(("b",)), Pool(("b", "c"))]),
        (["a"], 8, {f"q{number}": 1 for number in range(32)}),
        ([f"q{number}" for number in range(65)], 8, {}),
    ],
)
def test_pools_that_the_broker_would_refuse_are_refused_here(queues: list[str], concurrency: int, apart: Any) -> None:
    with pytest.raises(ValueError):
        _pools(queues, concurrency, apart)
