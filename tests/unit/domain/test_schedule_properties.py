"""What holds for every schedule at every time: ticks move on, none is skipped or doubled, arithmetic equals walking."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from anvilmq_broker.domain import schedule
from tests.support.rules import rule
from tests.unit.domain import schedule_strategies

HOUR_MS = 3_600_000
MOST_WALKED = 40

CRONS = st.builds(
    schedule.parse_cron,
    st.one_of(schedule_strategies.EXPRESSIONS, schedule_strategies.SECOND_EXPRESSIONS),
    schedule_strategies.ZONES,
)
EVERY = st.integers(100, 40 * 86_400_000).flatmap(
    lambda every_ms: st.builds(schedule.parse_every, st.just(every_ms), st.integers(0, every_ms - 1))
)
TIMINGS: st.SearchStrategy[schedule.Timing] = st.one_of(CRONS, CRONS, EVERY)
NEAR_A_CHANGE_MS = st.tuples(schedule_strategies.changes(), st.integers(-48 * HOUR_MS, 24 * HOUR_MS)).map(
    lambda drawn: drawn[0][1] * 1000 + drawn[1]
)
INSTANTS_MS = st.one_of(schedule_strategies.INSTANTS_MS, NEAR_A_CHANGE_MS)


def walk(when: schedule.Timing, after_ms: int) -> list[int]:
    """The next ticks, one by one."""
    found: list[int] = []
    at = after_ms
    while len(found) < MOST_WALKED and (tick := when.next_after(at)) is not None:
        found.append(tick)
        at = tick
    return found


@rule("6.4")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(TIMINGS, INSTANTS_MS)
def test_the_next_tick_is_later_than_the_last(when: schedule.Timing, after_ms: int) -> None:
    ticks = [after_ms, *walk(when, after_ms)]
    assert all(earlier < later for earlier, later in pairwise(ticks))


@rule("6.4")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(TIMINGS, INSTANTS_MS, st.data())
def test_no_tick_is_skipped_or_doubled_wherever_a_walk_is_cut(
    when: schedule.Timing, after_ms: int, data: st.DataObject
) -> None:
    ticks = walk(when, after_ms)
    if ticks:
        cut = data.draw(
            st.one_of(
                st.integers(after_ms, ticks[-1]),
                st.sampled_from(ticks),
                st.sampled_from(ticks).map(lambda tick: tick - 1),
            )
        )
        assert when.next_after(max(cut, after_ms)) == next(
            (tick for tick in ticks if tick > max(cut, after_ms)), when.next_after(ticks[-1])
        )


@rule("6.5")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(TIMINGS, INSTANTS_MS, st.data())
def test_counting_equals_walking(when: schedule.Timing, after_ms: int, data: st.DataObject) -> None:
    ticks = walk(when, after_ms)
    end = ticks[-1] if ticks else after_ms
    until_ms = data.draw(st.one_of(st.integers(after_ms, end), st.sampled_from([after_ms, *ticks])))
    passed = [tick for tick in ticks if tick <= until_ms]
    assert when.count(after_ms, until_ms) == len(passed)
    assert when.last_until(until_ms, after_ms) == (passed[-1] if passed else None)


@rule("6.5")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(TIMINGS, st.lists(INSTANTS_MS, min_size=3, max_size=3).map(sorted))
def test_counts_of_two_stretches_add_up(when: schedule.Timing, instants: list[int]) -> None:
    first, middle, last = instants
    assert when.count(first, middle) + when.count(middle, last) == when.count(first, last)


@rule("6.5")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(TIMINGS, INSTANTS_MS, st.integers(0, 10 * 366 * 86_400_000))
def test_the_last_tick_of_years_is_followed_by_none(when: schedule.Timing, after_ms: int, span_ms: int) -> None:
    until_ms = after_ms + span_ms
    last = when.last_until(until_ms, after_ms)
    if last is None:
        assert when.count(after_ms, until_ms) == 0
    else:
        assert after_ms < last <= until_ms
        assert when.count(last, until_ms) == 0
        assert when.next_after(last - 1) == last


@rule("6.5")
@settings(max_examples=100, deadline=None, derandomize=True)
@given(TIMINGS, INSTANTS_MS, st.integers(0, 10**12))
def test_a_range_that_runs_backwards_holds_nothing(when: schedule.Timing, after_ms: int, back_ms: int) -> None:
    assert when.count(after_ms, after_ms - back_ms) == 0
    assert when.last_until(after_ms - back_ms, after_ms) is None
