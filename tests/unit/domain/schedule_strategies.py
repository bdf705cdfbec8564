"""Random schedules for hypothesis, most of them near what daylight saving time changes."""

from hypothesis import strategies as st

from anvilmq_broker.domain import cron
from tests.unit.domain import schedule_oracle


def _lists(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.one_of(*parts), min_size=1, max_size=3).map(",".join)


def _span(low: int, high: int) -> st.SearchStrategy[str]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    plain = ends.map(lambda pair: f"{pair[0]}-{pair[1]}")
    stepped = st.tuples(ends, st.integers(1, 13)).map(lambda both: f"{both[0][0]}-{both[0][1]}/{both[1]}")
    return st.one_of(plain, stepped)


def _number(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


MINUTES = st.one_of(
    st.sampled_from(["0", "30", "52", "*", "*/7", "*/20", "*/30", "*/60", "?", "0,30", "5/20", "15-45/10"]),
    _lists(_number(0, 59), _span(0, 59), st.just("*/15")),
)
HOURS = st.one_of(
    st.sampled_from(
        ["*", "*/1", "*/2", "*/3", "?", "*,5", "0", "1", "2", "3", "23", "1-4/2", "0-3", "22-23,0-2", "0/5", "0-23"]
    ),
    _lists(_number(0, 3), _number(0, 23), _span(0, 23)),
)
DAYS = st.one_of(
    st.sampled_from(["*", "*", "*", "?", "*/1", "L", "*/7", "*/2", "15,L", "28-31"]),
    _lists(_number(1, 31), _span(1, 31)),
)
MONTHS = st.one_of(st.sampled_from(["*", "*", "*", "*/2", "MAR,OCT", "sep-NOV"]), _lists(_number(1, 12), _span(1, 12)))
WEEKDAYS = st.one_of(
    st.sampled_from(
        ["*", "*", "*", "?", "0", "7", "SUN", "mon-Fri", "5-7", "0#1", "SUN#1,5#3", "5L", "L7", "1,5L", "*/2", "0-3"]
    ),
    _lists(_number(0, 7), _span(0, 6)),
)
SECONDS = st.one_of(st.sampled_from(["0", "*", "*/7", "59", "30"]), _lists(_number(0, 59), _span(0, 59)))


def comes(text: str) -> bool:
    """Whether the broker takes an expression; it may refuse only those that never come."""
    try:
        cron.parse(text)
    except cron.Invalid as error:
        if "never comes" not in str(error):
            raise
        return False
    return True


EXPRESSIONS = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join).filter(comes)
"""Of five fields."""
SECOND_EXPRESSIONS = st.tuples(SECONDS, EXPRESSIONS).map(" ".join)
"""Of six fields."""
ZONES = st.sampled_from(schedule_oracle.ZONES)
INSTANTS_MS = st.integers(0, 4_102_444_800_000)
"""From 1970 to the end of 2099."""


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, int]:
    """A zone and an hour in which its clocks change, in s; any hour of a zone that has no change."""
    zone = draw(ZONES)
    year = 2011 if zone == "Pacific/Apia" else draw(st.integers(2023, 2033))
    found = schedule_oracle.changes(zone, year)
    return zone, draw(st.sampled_from(found)) if found else 1_800_000_000 + 3600 * draw(st.integers(0, 100))
