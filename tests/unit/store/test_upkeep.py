"""Upkeep between batches: the log is folded in, room is watched, and a full volume is survived."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql import upkeep, volume
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support.bundles import complete, new_job
from tests.support.clock import FakeClock
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.store.conftest import OpenStore

MIB = 1 << 20


def log_bytes(folder: Path) -> int:
    """Size of the write-ahead log."""
    log = folder / "db" / "anvilmq.db-wal"
    return log.stat().st_size if log.exists() else 0


def inner(store: StoreDriver) -> LibsqlStore:
    """The store that is driven."""
    assert isinstance(store.store, LibsqlStore)
    return store.store


class Space:
    """What the system says of the volume."""

    def __init__(self) -> None:
        self.free = 50 << 30
        self.total = 100 << 30
        self.asked = 0

    def __call__(self, folder: Path) -> tuple[int, int]:
        self.asked += 1
        return self.free, self.total


@pytest.fixture
def space() -> Space:
    """A volume of 100 GiB, half of it free: its floor is at 2 GiB."""
    return Space()


@pytest.fixture
def roomy(open_store: OpenStore, clock: FakeClock, space: Space) -> Iterator[StoreDriver]:
    """A store on that volume, with a ballast of 1 MiB."""
    driver = StoreDriver(lambda: open_store(free_space=space, ballast_bytes=MIB), clock)
    yield driver
    assert inner(driver).violations() == []


# ------------------------------------------------------------------------------------------ checkpoints


def test_the_log_does_not_grow_with_the_jobs(store: StoreDriver, folder: Path) -> None:
    sizes = []
    for _ in range(200):
        store.add(*(new_job(data=b"x" * 500) for _ in range(100)))
        store.settle(*map(complete, store.claim(100)))
        store.store.housekeep(idle=False)
        sizes.append(log_bytes(folder))
    assert max(sizes) < upkeep.PASSIVE_AT + upkeep.PASSIVE_AT
    assert sizes[-1] == max(sizes[:150])
    assert store.store.counts() == {("mail", State.COMPLETED): 20_000}


def test_a_log_that_grew_too_large_is_cut(store: StoreDriver, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "TRUNCATE_AT", 4 * MIB)
    for _ in range(20):
        store.add_one(data=b"x" * MIB)
    assert log_bytes(folder) > 16 * MIB
    store.store.housekeep(idle=False)
    assert log_bytes(folder) == 0


def test_a_quiet_second_folds_the_log_in(store: StoreDriver, folder: Path, clock: FakeClock) -> None:
    store.add_one()
    clock.advance(999)
    store.store.housekeep(idle=True)
    assert log_bytes(folder) > 0
    clock.advance(1)
    store.store.housekeep(idle=False)
    assert log_bytes(folder) > 0
    store.store.housekeep(idle=True)
    assert log_bytes(folder) == 0


def test_an_idle_store_is_left_alone(store: StoreDriver, clock: FakeClock) -> None:
    store.add_one()
    clock.advance(1_000)
    store.store.housekeep(idle=True)
    calls = noted(inner(store))
    for _ in range(3):
        store.store.housekeep(idle=True)
    assert calls == []


def noted(store: LibsqlStore) -> list[str]:
    """Every statement from now on."""
    connection = store._open_sql().connection
    calls: list[str] = []
    execute = connection.execute

    def note(sql: str, args: Any = ()) -> Any:
        calls.append(sql)
        return execute(sql, args)

    connection.execute = note  # type: ignore[method-assign]
    return calls


# -------------------------------------------------------------------------------------------- the floor


def test_adds_are_taken_while_there_is_more_room_than_the_floor(roomy: StoreDriver, space: Space) -> None:
    assert roomy.store.accepts_adds()
    space.free = volume.floor_bytes(space.total) - 1
    roomy.clock.advance(1_000)
    assert not roomy.store.accepts_adds()
    space.free += 1
    roomy.clock.advance(1_000)
    assert roomy.store.accepts_adds()


def test_room_is_looked_at_once_a_second_and_each_16_mib(roomy: StoreDriver, space: Space) -> None:
    roomy.store.accepts_adds()
    asked = space.asked
    roomy.clock.advance(999)
    roomy.store.accepts_adds()
    assert space.asked == asked
    for _ in range(17):
        roomy.add_one(data=b"x" * MIB)
    roomy.store.accepts_adds()
    assert space.asked == asked + 1
    roomy.clock.advance(1_000)
    roomy.store.accepts_adds()
    assert space.asked == asked + 2


@rule("1.12")
def test_pages_that_pruning_freed_are_room(roomy: StoreDriver, space: Space) -> None:
    roomy.add(*(new_job(data=b"x" * MIB) for _ in range(8)))
    roomy.settle(*map(complete, roomy.claim(8)))
    space.free = volume.floor_bytes(space.total) - 8 * MIB
    roomy.clock.advance(1_000)
    assert not roomy.store.accepts_adds()
    roomy.clock.advance(90_000_000)
    assert roomy.prune_all() == 8
    assert roomy.store.accepts_adds()


# ------------------------------------------------------------------------------------------ full volume


def fill_up(store: LibsqlStore) -> Connection:
    """From now on the file cannot grow."""
    connection = store._open_sql().connection
    pages = connection.execute("PRAGMA page_count")[0][0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    return connection


def add(store: StoreDriver, size: int) -> Any:
    """Begin a batch that adds a job of so many bytes; the batch stays open."""
    batch = store.store.begin(store.now_ms)
    return batch, lambda: batch.apply([commands.AddJobs([new_job(data=b"x" * size)])], lambda _: None)


@rule("8")
def test_a_batch_that_does_not_fit_leaves_no_trace(roomy: StoreDriver) -> None:
    job = roomy.add_one()
    before = roomy.rows()
    fill_up(inner(roomy))
    batch, apply = add(roomy, 200_000)
    with pytest.raises(errors.StorageFull):
        apply()
    batch.rollback()
    assert roomy.rows() == before
    assert roomy.settle_one(complete(roomy.start())) is State.COMPLETED
    assert roomy.state(job) is State.COMPLETED
    assert inner(roomy).violations() == []


@rule("8")
def test_a_transaction_that_a_full_volume_has_ended_may_be_rolled_back(roomy: StoreDriver) -> None:
    batch, apply = add(roomy, 1)
    apply()
    # A volume without room for the commit does this by itself.
    inner(roomy)._open_sql().connection.execute("ROLLBACK")
    batch.rollback()
    assert roomy.add_one().number == 1


def test_a_full_volume_is_given_the_ballast(
    open_store: OpenStore, clock: FakeClock, space: Space, folder: Path
) -> None:
    warnings: list[str] = []
    store = StoreDriver(lambda: open_store(free_space=space, ballast_bytes=MIB, warn=warnings.append), clock)
    store.store.accepts_adds()
    assert (folder / volume.BALLAST_FILE).exists()
    fill_up(inner(store))
    batch, apply = add(store, 200_000)
    with pytest.raises(errors.StorageFull):
        apply()
    batch.rollback()
    assert not (folder / volume.BALLAST_FILE).exists()
    assert "the volume is full" in warnings[0]
    assert not store.store.accepts_adds()


def test_the_ballast_comes_back_when_there_is_room_for_it(roomy: StoreDriver, space: Space, folder: Path) -> None:
    space.free = volume.floor_bytes(space.total) + volume.ROOM_FOR_BALLAST - 1
    roomy.store.accepts_adds()
    assert not (folder / volume.BALLAST_FILE).exists()
    space.free += 1
    roomy.clock.advance(1_000)
    roomy.store.accepts_adds()
    assert (folder / volume.BALLAST_FILE).stat().st_size == MIB


def test_a_start_without_room_gives_the_ballast_up(
    open_store: OpenStore, clock: FakeClock, space: Space, folder: Path
) -> None:
    volume.prepare(folder)
    volume.Ballast(folder, MIB).make()
    space.free = volume.ROOM_TO_START - 1
    StoreDriver(lambda: open_store(free_space=space, ballast_bytes=MIB), clock)
    assert not (folder / volume.BALLAST_FILE).exists()


def test_a_checkpoint_without_room_is_put_off(open_store: OpenStore, clock: FakeClock) -> None:
    warnings: list[str] = []
    store = StoreDriver(lambda: open_store(warn=warnings.append), clock)
    store.add_one()
    connection = inner(store)._open_sql().connection
    execute = connection.execute

    def full(sql: str, args: Any = ()) -> Any:
        if "wal_checkpoint" in sql:
            raise errors.StorageFull("database or disk is full")
        return execute(sql, args)

    connection.execute = full  # type: ignore[method-assign]
    clock.advance(1_000)
    store.store.housekeep(idle=True)
    connection.execute = execute  # type: ignore[method-assign]
    assert "could not be folded in" in warnings[0]
    assert not store.store.accepts_adds()
    assert store.start().number == 1


def test_a_batch_that_cannot_begin_leaves_no_transaction(store: StoreDriver) -> None:
    connection = inner(store)._open_sql().connection
    execute = connection.execute

    def failing(sql: str, args: Any = ()) -> Any:
        if sql.startswith("UPDATE engine"):
            raise errors.StorageFull("database or disk is full")
        return execute(sql, args)

    connection.execute = failing  # type: ignore[method-assign]
    with pytest.raises(errors.StorageFull):
        store.store.begin(store.now_ms)
    connection.execute = execute  # type: ignore[method-assign]
    assert store.add_one().number == 1
