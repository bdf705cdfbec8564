"""Definitions in the file: what cannot be read or written stops alone; ticks cost statements by the set, not each."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.sql import Sql
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support import bundles
from tests.support.bundles import new_job
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver

SECOND = 1_000
BEYOND = 2_097_152
"""A priority that the schema refuses; no gateway lets it through."""


def define(store: StoreDriver, name: str, **fields: Any) -> str:
    """Make a definition of each second; its uid."""
    spec = commands.SchedulerSpec(**{"every_ms": SECOND, "job": new_job(), **fields})
    return str(store.send(commands.UpsertScheduler(name, spec)).scheduler.uid)


def get(store: StoreDriver, name: str) -> commands.SchedulerRecord:
    """A definition."""
    found = store.query(commands.GetScheduler(name))
    assert isinstance(found, commands.SchedulerFound), found
    return found.scheduler


def connection(store: StoreDriver) -> Connection:
    """The open database."""
    assert isinstance(store.store, LibsqlStore)
    return store.store._open_sql().connection


@rule("6.4")
@pytest.mark.parametrize("blob", ["x''", "x'c1'", "x'90'", "x'91a3'"])
def test_content_that_cannot_be_read_stops_its_definition_alone(store: StoreDriver, blob: str) -> None:
    bad, good = define(store, "bad"), define(store, "good")
    connection(store).execute(f"UPDATE scheduler_specs SET spec = {blob} WHERE name = 'bad'")
    opening = store.reopen()
    assert [it.due_ms for it in opening.ticks] == [START_MS + SECOND] * 2
    store.clock.advance(SECOND)
    store.send(commands.FireDue([bad, good], START_MS))
    told = {it.uid: it for it in store.effects if isinstance(it, protocol.Ticks)}
    assert told[bad].due_ms is None
    assert told[good].due_ms == START_MS + 2 * SECOND
    assert (get(store, "good").run_count, get(store, "bad").run_count) == (1, 0)
    assert get(store, "bad").problem_reason == "SCHEDULE_INVALID"
    assert len(store.query(commands.ListSchedulers()).schedulers) == 2
    assert isinstance(store.send(commands.TriggerScheduler("bad")).reason, str)
    define(store, "bad")
    assert (get(store, "bad").problem_reason, get(store, "bad").next_tick_at_ms) == ("", START_MS + 2 * SECOND)


@rule("6.4")
def test_a_job_that_the_schema_refuses_is_skipped_and_spoils_no_other(store: StoreDriver) -> None:
    uids = [define(store, "a"), define(store, "bad", job=new_job(priority=BEYOND)), define(store, "b")]
    store.clock.advance(2 * SECOND)
    store.batch(commands.FireDue(uids, START_MS), idle=bundles.slots(3))
    assert [get(store, name).run_count for name in ("a", "bad", "b")] == [2, 0, 2]
    bad = get(store, "bad")
    assert (bad.skipped_count, bad.problem_reason, bad.next_tick_at_ms) == (2, "INVALID_FIELD", START_MS + 3 * SECOND)
    assert "jobs_priority_range" in bad.problem_message
    told = {it.uid: it.due_ms for it in store.effects if isinstance(it, protocol.Ticks)}
    assert told == dict.fromkeys(uids, START_MS + 3 * SECOND)
    assert len([it for it in store.effects if isinstance(it, protocol.Started)]) == 3
    assert isinstance(store.store, LibsqlStore)
    assert store.store.violations() == []
    assert store.send(commands.TriggerScheduler("bad")).reason == "INVALID_FIELD"


@rule("6.2")
def test_two_hundred_ticks_cost_as_many_statements_as_two(store: StoreDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    uids = [define(store, f"s{n}", concurrency_policy=1 + n % 2) for n in range(200)]
    names: list[str] = []
    for method in ("run", "run_rows"):
        original = getattr(Sql, method)

        def noting(self: Sql, name: str, *args: Any, original: Any = original) -> Any:
            names.append(name)
            return original(self, name, *args)

        monkeypatch.setattr(Sql, method, noting)
    store.clock.advance(SECOND)
    store.send(commands.FireDue(uids[:2], START_MS))
    few, names[:] = list(names), []
    store.send(commands.FireDue(uids[2:], START_MS))
    assert [name for name in names if name != "insert_queue"] == [name for name in few if name != "insert_queue"]


@rule("6.6")
def test_ticks_that_replace_each_other_cost_no_more_the_more_there_are(
    store: StoreDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    run, cost = Sql.run, dict[int, int]()

    def noting(self: Sql, name: str, *args: Any) -> Any:
        counted.append(name)
        return run(self, name, *args)

    monkeypatch.setattr(Sql, "run", noting)
    uid = define(store, "often", concurrency_policy=3, catch_up=3, max_catch_up_runs=1_000)
    for ticks in (20, 200):
        store.clock.advance(ticks * SECOND)
        counted.clear()
        store.send(commands.FireDue([uid], store.clock.wall_ms()))
        cost[ticks] = counted.count("get_job")
    assert get(store, "often").run_count == 220
    assert cost[200] <= 11 * cost[20]


@rule("6.7")
def test_a_number_of_a_deleted_definition_does_not_come_back(store: StoreDriver) -> None:
    first = define(store, "s")
    store.clock.advance(SECOND)
    store.send(commands.FireDue([first], START_MS))
    store.send(commands.DeleteScheduler("s"))
    store.reopen()
    define(store, "s")
    numbers = [row[0] for row in store.rows()["schedulers"]]
    assert [row[0] for row in store.rows()["ticks"]] not in numbers
    assert numbers == [2]
