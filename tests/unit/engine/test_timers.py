"""Moments at which something falls due."""

from anvilmq_broker.engine.timers import Timers


def test_keys_fall_due_in_the_order_of_their_moments_and_equal_ones_in_the_order_they_were_set() -> None:
    timers: Timers[str] = Timers()
    for key, at in (("late", 30), ("first", 10), ("second", 10)):
        timers.set(key, at)
    assert timers.pop_due(9, 10) == []
    assert timers.pop_due(30, 10) == ["first", "second", "late"]
    assert timers.next_ms() is None


def test_a_key_that_is_set_again_falls_due_at_its_new_moment_alone() -> None:
    timers: Timers[str] = Timers()
    timers.set("job", 10)
    timers.set("job", 50)
    assert timers.next_ms() == 50
    assert timers.pop_due(49, 10) == []
    assert timers.pop_due(50, 10) == ["job"]


def test_a_dropped_key_never_falls_due() -> None:
    timers: Timers[str] = Timers()
    timers.set("job", 10)
    timers.drop("job")
    timers.drop("unknown")
    assert timers.next_ms() is None
    assert not timers


def test_what_is_above_the_limit_stays_due() -> None:
    timers: Timers[int] = Timers()
    for key in range(5):
        timers.set(key, key)
    assert timers.pop_due(10, 3) == [0, 1, 2]
    assert timers.pop_due(10, 3) == [3, 4]


def test_keys_dropped_early_leave_nothing_behind() -> None:
    timers: Timers[int] = Timers()
    for key in range(10_000):
        timers.set(key, 1_000_000 + key)
        timers.drop(key)
    timers.set(-1, 5)
    assert len(timers._heap) < 2_000
    assert timers.pop_due(5, 10) == [-1]
