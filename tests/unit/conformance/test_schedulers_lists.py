"""Lists of definitions: in order, filtered, in pages that never stand still."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.store.libsql import scheduler_queries
from tests.support import bundles
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.conformance.scheduling import SECOND, Schedules, owner

NAMES = ["A", "a", "a%b", "a_b", "ab", "b", "ä", "\U0001f600"]


def names(store: StoreDriver, **fields: Any) -> list[str]:
    """Names of a list, page by page."""
    found: list[str] = []
    after = ""
    while True:
        page = store.query(commands.ListSchedulers(after=after, **fields))
        assert isinstance(page, commands.SchedulerPage)
        assert len(page.schedulers) <= fields.get("limit", 100)
        found += [one.name for one in page.schedulers]
        if not page.next:
            return found
        assert page.next > after
        after = page.next


@pytest.fixture
def named(schedules: Schedules) -> Schedules:
    """Definitions of those names, made in another order."""
    for n, name in enumerate(sorted(NAMES, reverse=True)):
        schedules.define(name, job=bundles.new_job(f"q{n % 2}"))
    return schedules


@rule("6.7")
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_definitions_are_listed_by_name_each_once(named: Schedules, store: StoreDriver, limit: int) -> None:
    assert names(store, limit=limit) == NAMES
    page = store.query(commands.ListSchedulers(limit=limit))
    assert page.schedulers[0] == named.get("A")


@rule("6.7")
@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"name_prefix": "a"}, ["a", "a%b", "a_b", "ab"]),
        ({"name_prefix": "a_"}, ["a_b"]),
        ({"name_prefix": "a%"}, ["a%b"]),
        ({"name_prefix": "ä"}, ["ä"]),
        ({"queue": "q1"}, ["a", "a_b", "b", "\U0001f600"][::1]),
        ({"queue": "q"}, []),
        ({"flow_template": "t"}, []),
        ({"allowed": ["q1"], "name_prefix": "a"}, ["a", "a_b"]),
        ({"allowed": ["q*"]}, NAMES),
        ({"allowed": []}, []),
    ],
)
def test_filters_are_joined(named: Schedules, store: StoreDriver, fields: dict[str, Any], found: list[str]) -> None:
    queues = {name: named.get(name).spec.job for name in NAMES}
    if ("queue" in fields and found) or ("allowed" in fields and "name_prefix" in fields):
        wanted = fields.get("queue", "q1")
        prefix = fields.get("name_prefix", "")
        found = [n for n in NAMES if n.startswith(prefix) and (job := queues[n]) is not None and job.queue == wanted]
        assert found
    assert names(store, limit=2, **fields) == found


@rule("6.7")
def test_a_page_ends_before_its_data_grows_too_large(schedules: Schedules, store: StoreDriver) -> None:
    for name in "abc":
        schedules.define(name, job=bundles.new_job(data=bytes(scheduler_queries.PAGE_BYTES // 2)))
    schedules.define("d", job=bundles.new_job(data=bytes(scheduler_queries.PAGE_BYTES + 1)))
    pages = []
    after = ""
    while True:
        page = store.query(commands.ListSchedulers(after=after))
        pages.append([one.name for one in page.schedulers])
        if not (after := page.next):
            break
    assert pages == [["a", "b"], ["c"], ["d"]]


@rule("6.7")
def test_owners_lists_hold_what_has_an_owner_by_its_name(schedules: Schedules, store: StoreDriver) -> None:
    schedules.define("free")
    resources = [("B", "n", "r"), ("A", "n", "s"), ("A", "n", "r"), ("A", "m", "z")]
    for n, (kind, namespace, name) in enumerate(resources):
        schedules.upsert(f"d{n}", owner(f"u{n}", kind=kind, namespace=namespace, name=name, manager=f"m{n % 2}"))
    schedules.upsert("e2", owner("u2", kind="A", namespace="n", name="r", manager="m0"))
    in_order = ["d3", "d2", "e2", "d1", "d0"]
    for limit in (1, 2, 9):
        assert owned(store, limit=limit) == in_order
    assert owned(store, kind="A") == ["d3", "d2", "e2", "d1"]
    assert owned(store, kind="A", namespace="n") == ["d2", "e2", "d1"]
    assert owned(store, namespace="n", limit=1) == ["d2", "e2", "d1", "d0"]
    assert owned(store, manager="m1", limit=1) == ["d3", "d1"]
    assert owned(store, kind="C") == owned(store, manager="m") == []
    # Behind all definitions of that type of an owner; before all of it.
    assert owned(store, after=("A", "n", "r", 2, "")) == ["d1", "d0"]
    assert owned(store, after=("A", "n", "r", 0, "zzz")) == ["d2", "e2", "d1", "d0"]


@rule("6.7")
def test_an_owned_definition_tells_where_it_stands(schedules: Schedules, store: StoreDriver) -> None:
    of = owner(generation=7, spec_hash="h", manager="m", retain=True)
    schedules.upsert(of=of, job=None)
    schedules.upsert("runs", owner("u2", name="zz"))
    schedules.after(SECOND)
    bad, good = store.query(commands.ListDefinitions()).definitions
    assert (bad.type, bad.name, bad.owner, bad.problem_reason) == (1, "s", of, "TEMPLATE_NOT_FOUND")
    found = schedules.get("runs")
    assert (good.next_tick_at_ms, good.last_tick_at_ms) == (found.next_tick_at_ms, found.last_tick_at_ms)
    assert good.last_run == found.last_run is not None


def owned(store: StoreDriver, **fields: Any) -> list[str]:
    """Names of definitions with an owner, page by page."""
    found: list[str] = []
    after = fields.pop("after", None)
    while True:
        page = store.query(commands.ListDefinitions(after=after, **fields))
        assert isinstance(page, commands.DefinitionPage)
        found += [one.name for one in page.definitions]
        if page.next is None:
            return found
        assert after is None or page.next > after
        after = page.next
