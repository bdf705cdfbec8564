"""Ticks that fell due while no broker served: caught up as the definition says, found without walking them."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import CatchUp
from anvilmq_broker.store import protocol
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.conformance.scheduling import DAY, HOUR, MINUTE, SECOND, Schedules


@rule("6.5")
@pytest.mark.parametrize(
    ("fields", "made", "missed"),
    [
        ({}, [60], 59),
        ({"catch_up": CatchUp.LATEST}, [60], 59),
        ({"catch_up": CatchUp.NONE}, [], 60),
        ({"catch_up": CatchUp.ALL}, list(range(1, 61)), 0),
        ({"catch_up": CatchUp.ALL, "max_catch_up_runs": 3}, [58, 59, 60], 57),
        ({"catch_up": CatchUp.ALL, "starting_deadline_ms": 2 * MINUTE}, [59, 60], 58),
        ({"catch_up": CatchUp.ALL, "limit": 2}, [1, 2], 0),
    ],
)
def test_a_downtime_is_caught_up_as_the_definition_says(
    schedules: Schedules, store: StoreDriver, fields: dict[str, Any], made: list[int], missed: int
) -> None:
    schedules.define(every_ms=MINUTE, **fields)
    schedules.down(HOUR + SECOND)
    assert schedules.ticks() == [START_MS + n * MINUTE for n in made]
    found = schedules.get()
    assert (found.run_count, found.missed_count, found.skipped_count) == (len(made), missed, 0)
    if "limit" not in fields:
        assert found.next_tick_at_ms == START_MS + HOUR + MINUTE


@rule("6.5")
def test_the_default_bound_of_all_is_a_hundred(schedules: Schedules) -> None:
    schedules.define(catch_up=int(CatchUp.ALL))
    schedules.down(HOUR + 1)
    assert len(schedules.runs()) == 100
    assert schedules.get().missed_count == 3_500


@rule("6.5")
def test_years_of_missed_seconds_are_found_at_once(schedules: Schedules) -> None:
    schedules.define()
    schedules.define("cron", cron="* * * * * *", time_zone="Europe/Berlin")
    schedules.down(900 * DAY + 1)
    for name in ("s", "cron"):
        assert len(schedules.runs(name)) == 1
        assert schedules.get(name).missed_count == 900 * DAY // SECOND - 1


@rule("6.5")
def test_what_is_caught_up_is_not_caught_up_again(schedules: Schedules) -> None:
    schedules.define(every_ms=MINUTE, catch_up=int(CatchUp.ALL))
    schedules.down(10 * MINUTE)
    schedules.down(0)
    schedules.down(0)
    assert len(schedules.runs()) == 10
    schedules.after(MINUTE, MINUTE)
    assert len(schedules.runs()) == 11


@rule("6.5")
def test_a_late_look_of_a_broker_that_serves_misses_nothing(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define(catch_up=int(CatchUp.NONE))
    store.clock.advance(7 * SECOND)
    effects = schedules.fire()
    assert schedules.ticks() == [START_MS + n * SECOND for n in range(1, 8)]
    assert protocol.Ticked([6_000, 5_000, 4_000, 3_000, 2_000, 1_000, 0]) in effects


@rule("6.5")
def test_suspended_time_and_time_before_an_edit_are_never_caught_up(schedules: Schedules, store: StoreDriver) -> None:
    for name in ("suspended", "edited"):
        schedules.define(name, every_ms=MINUTE, catch_up=int(CatchUp.ALL))
    schedules.send(commands.SuspendScheduler("suspended", True))
    store.clock.advance(10 * MINUTE)
    store.reopen()
    schedules.send(commands.SuspendScheduler("suspended", False))
    schedules.define("edited", every_ms=2 * MINUTE, catch_up=int(CatchUp.ALL))
    schedules.down(4 * MINUTE)
    assert schedules.ticks("suspended") == [START_MS + n * MINUTE for n in (11, 12, 13, 14)]
    assert schedules.ticks("edited") == [START_MS + n * MINUTE for n in (12, 14)]


@rule("6.5")
def test_the_store_tells_at_its_start_when_each_definition_is_due(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define("a", every_ms=MINUTE)
    schedules.define("b", suspended=True)
    schedules.define("c", limit=1)
    schedules.after(SECOND)
    opening = store.reopen()
    standings = {schedules.get(name).uid: name for name in "abc"}
    assert {standings[it.uid]: (it.due_ms, it.standing) for it in opening.ticks} == {
        "a": (START_MS + MINUTE, "active"),
        "b": (None, "suspended"),
        "c": (None, "ended"),
    }
