"""The promises of the schema, each broken by hand, and the invariants that speak when one is broken all the same."""

import re
from typing import Final

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Constraint, StartRefused
from anvilmq_broker.store.libsql import invariants, statements
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support import bundles
from tests.support.bundles import complete, fail, new_job, policy
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.store.conftest import OpenStore

CHECKS: Final = {
    "engine_single_row": "INSERT INTO engine SELECT 2, 1, 1, 1, 1, 1, 1",
    "queues_limits": "UPDATE queues SET group_concurrency = 0",
    "counts_not_negative": "UPDATE counts SET jobs = -1",
    "jobs_state_known": "UPDATE jobs SET state = 0, token = NULL WHERE id = 1",
    "jobs_active_has_token": "UPDATE jobs SET token = NULL WHERE state = 3",
    "jobs_terminal_has_end": "UPDATE jobs SET finished_at = NULL WHERE state = 5",
    "jobs_in_line_is_claimable": "UPDATE jobs SET ready_at = 1, ready_seq = 1 WHERE state = 3",
    "jobs_place_is_whole": "UPDATE jobs SET ready_seq = NULL WHERE state = 1",
    "jobs_waiting_children_has_pending": "UPDATE jobs SET state = 4, ready_at = NULL, ready_seq = NULL WHERE state = 1",
    "jobs_counters": "UPDATE jobs SET starts = 0 WHERE state = 3",
    "jobs_priority_range": "UPDATE jobs SET priority = 2097152",
    "jobs_policy_range": "UPDATE jobs SET lease_ms = 999",
    "jobs_group_has_order": "UPDATE jobs SET group_id = 'g'",
    "jobs_run_has_tick": "UPDATE jobs SET tick_ms = 1",
    "schedulers_due_with_tick": "UPDATE schedulers SET due_ms = NULL",
    "schedulers_suspended_flag": "UPDATE schedulers SET suspended = 2, next_tick = NULL, due_ms = NULL",
    "schedulers_suspended_never_due": "UPDATE schedulers SET suspended = 1",
    "scheduler_specs_owner_is_whole": "UPDATE scheduler_specs SET owner_kind = 'k'",
    "edges_policy_known": "INSERT INTO edges (parent_id, child_id, key, policy) VALUES (1, 2, 'k', 5)",
    "edges_held_flag": "INSERT INTO edges (parent_id, child_id, key, policy, held) VALUES (1, 2, 'k', 1, 2)",
    "receipts_singleton_flag": "UPDATE receipts SET singleton = 2",
    "receipts_singleton_never_expires": "UPDATE receipts SET singleton = 1, expires_at = 1",
    "dedup_mode_known": "INSERT INTO dedup (queue_id, dedup_id, mode, job_id) VALUES (1, 'd', 9, 1)",
    "events_not_empty": "UPDATE events SET transitions = 0",
}
"""By name of a CHECK: a statement that would break it, in the store of the fixture."""

OTHERS: Final = {
    "queues.name": "INSERT INTO queues (id, name, created_ms) VALUES (9, 'mail', 1)",
    "receipts.queue_id, receipts.name, receipts.key": "INSERT INTO receipts SELECT * FROM receipts",
    "jobs.queue_id, jobs.group_id": """UPDATE jobs SET group_id = 'g', order_key = 1, solo = 1 WHERE state = 3""",
    "foreign_key": "UPDATE jobs SET queue_id = 77",
    "attempts.job_id, attempts.start": "INSERT INTO attempts SELECT * FROM attempts",
    "schedulers.uid": "INSERT INTO schedulers (uid, name, anchor_ms, created_ms, updated_ms) SELECT uid, 'n', 1, 1, 1 FROM schedulers",
    "schedulers.name": "INSERT INTO schedulers (uid, name, anchor_ms, created_ms, updated_ms) SELECT 'u', name, 1, 1, 1 FROM schedulers",
    "ticks.scheduler_id, ticks.tick_ms": "INSERT INTO ticks SELECT * FROM ticks",
    "triggers.scheduler_id, triggers.run_key": "INSERT INTO triggers SELECT * FROM triggers",
    "jobs.created_ms": "UPDATE jobs SET created_ms = NULL",
    "jobs.run_at": "UPDATE jobs SET run_at = 'soon'",
}
"""Likewise unique keys, references, NOT NULL and types, by the name that the driver's text gives."""

BREAKS: Final = {
    "structural_two_active_in_solo_group": """
        DROP INDEX jobs_group_one_active; UPDATE jobs SET group_id = 'g', order_key = 1, solo = 1 WHERE state = 3""",
    "structural_active_without_token": "UPDATE jobs SET token = NULL WHERE state = 3",
    "structural_edge_without_job": "INSERT INTO edges (parent_id, child_id, key, policy) VALUES (1, 777, 'k', 1)",
    "structural_singleton_without_holder": "UPDATE receipts SET singleton = 1, job_id = 777",
    "structural_scheduler_without_spec": "DELETE FROM scheduler_specs",
    "derived_job_without_body": "DELETE FROM job_bodies WHERE job_id = 1",
    "derived_counts_differ": "UPDATE counts SET jobs = jobs + 1 WHERE id = 16 + 1",
    "derived_counts_too_many": "INSERT INTO counts VALUES (99 * 16 + 1, 5)",
    "derived_own_retention_count": "UPDATE jobs SET prune_at = 1 WHERE state = 5",
    "derived_waiting_out_of_line": "UPDATE jobs SET ready_at = NULL, ready_seq = NULL WHERE state = 1",
    "derived_receipt_of_open_job_expires": """UPDATE receipts SET expires_at = 1,
        job_id = (SELECT id FROM jobs WHERE state = 1)""",
}
"""By name of an invariant: what breaks it, with checks and references off."""


@pytest.fixture
def full(store: StoreDriver) -> LibsqlStore:
    """A store with jobs in every state, receipts, attempts, results, a log, a definition that has ticked."""
    store.add(*(new_job(key=f"k{n}") for n in range(6)))
    first, second, third, fourth, _ = store.claim(5)
    store.settle(complete(first, b"r"), fail(second), fail(third, non_retryable=True))
    store.cancel(bundles.ref(fourth))
    store.settle(complete(fourth))
    store.add(new_job(delay_ms=5), new_job(priority=3))
    store.start()
    defined = store.send(commands.UpsertScheduler("hourly", commands.SchedulerSpec(every_ms=3_600_000, job=new_job())))
    store.send(commands.TriggerScheduler("hourly", "key"))
    store.clock.advance(3_600_000)
    store.send(commands.FireDue([defined.scheduler.uid], store.now_ms))
    assert isinstance(store.store, LibsqlStore)
    assert store.store.violations() == []
    return store.store


@pytest.fixture
def connection(full: LibsqlStore) -> Connection:
    """Its connection."""
    return full._open_sql().connection


# ------------------------------------------------------------------------------------------- the schema


@rule("1.1")
@pytest.mark.parametrize("name", CHECKS)
def test_a_row_that_breaks_a_check_is_refused_by_its_name(connection: Connection, name: str) -> None:
    with pytest.raises(Constraint) as caught:
        connection.execute(CHECKS[name])
    assert caught.value.name == name


@pytest.mark.parametrize("name", OTHERS)
def test_a_row_that_breaks_another_promise_is_refused_too(connection: Connection, name: str) -> None:
    with pytest.raises(Constraint) as caught:
        connection.execute(OTHERS[name])
    assert caught.value.name == name


def test_every_check_of_the_schema_was_broken(connection: Connection) -> None:
    schema = "\n".join(row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    assert sorted(re.findall(r"CONSTRAINT (\w+) CHECK", schema)) == sorted(CHECKS)


# ------------------------------------------------------------------------------------------- invariants


def tamper(connection: Connection, text: str) -> None:
    """Write what the schema would refuse."""
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in text.split(";"):
        connection.execute(statement)
    connection.execute("PRAGMA ignore_check_constraints = OFF")
    connection.execute("PRAGMA foreign_keys = ON")


@pytest.mark.parametrize("name", BREAKS)
def test_an_invariant_speaks_when_a_row_breaks_it(full: LibsqlStore, connection: Connection, name: str) -> None:
    tamper(connection, BREAKS[name])
    assert name in {found.partition(":")[0] for found in full.violations()}


def test_every_invariant_was_broken() -> None:
    assert sorted(name for name in statements.load() if name.startswith(("structural_", "derived_"))) == sorted(BREAKS)


@pytest.mark.parametrize("name", [name for name in BREAKS if name.startswith("structural_")])
def test_a_broken_structure_refuses_the_start(
    full: LibsqlStore, connection: Connection, open_store: OpenStore, name: str
) -> None:
    tamper(connection, BREAKS[name])
    full.stop()
    with pytest.raises(StartRefused, match=f"{name}.*restore a backup") as caught:
        open_store().start()
    assert caught.value.reason == "invariant_broken"


@pytest.mark.parametrize("name", [name for name in BREAKS if name.startswith("derived_")])
def test_a_broken_derived_value_does_not(
    full: LibsqlStore, connection: Connection, open_store: OpenStore, name: str
) -> None:
    tamper(connection, BREAKS[name])
    full.stop()
    open_store().start()


def test_a_hint_in_memory_that_rows_contradict_is_told(full: LibsqlStore) -> None:
    full.queues["mail"].next_ready_at = 5
    assert [found for found in full.violations() if found.startswith("next_ready_at of mail: 5")]


def test_structural_ones_are_looked_at_alone_when_asked(full: LibsqlStore, connection: Connection) -> None:
    tamper(connection, BREAKS["derived_counts_differ"])
    assert invariants.violations(full._open_sql(), structural_only=True) == []


@rule("1.12")
def test_nothing_is_broken_by_jobs_with_a_retention_of_their_own(store: StoreDriver) -> None:
    store.add(*(new_job(policy=policy(retain_completed_ms=5, retain_failed_ms=9)) for _ in range(4)))
    running = store.claim(3)
    store.settle(complete(running[0]), fail(running[1], non_retryable=True), complete(running[2]))
    assert isinstance(store.store, LibsqlStore)
    assert store.store.violations() == []
    store.clock.advance(5)
    assert store.prune_all() == 2
    assert store.store.violations() == []
