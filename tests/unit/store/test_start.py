"""Starting and stopping: what is set, checked, refused and remembered, and who is fenced."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.domain.errors import StartRefused
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql import driver, opening
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support import bundles
from tests.support.bundles import complete, new_job, policy
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver
from tests.unit.store.conftest import OpenStore


@contextmanager
def opened(folder: Path) -> Iterator[Connection]:
    """The database file, opened beside or without its store."""
    connection = Connection(folder / "db" / "anvilmq.db")
    try:
        yield connection
    finally:
        connection.close()


def libsql(store: StoreDriver) -> LibsqlStore:
    """The store that is driven."""
    assert isinstance(store.store, LibsqlStore)
    return store.store


def refusal(store: LibsqlStore) -> StartRefused:
    """Why it does not start."""
    with pytest.raises(StartRefused) as caught:
        store.start()
    return caught.value


# ----------------------------------------------------------------------------------------------- pragmas


@rule("8")
@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("relaxed", 1)])
def test_pragmas_are_read_back_as_they_were_set(open_store: OpenStore, durability: str, synchronous: int) -> None:
    store = open_store(durability=durability)
    store.start()
    sql = store._open_sql()
    for name, _, expected in (*opening.PRAGMAS, ("synchronous", 0, synchronous)):
        assert sql.connection.execute(f"PRAGMA {name}") == [(expected,)], name


def test_a_pragma_that_does_not_take_refuses_the_start(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "PRAGMAS", (("mmap_size", 0, 4096),))
    assert "PRAGMA mmap_size is 0" in refusal(open_store()).message


def test_a_driver_that_was_not_tested_is_refused(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "KNOWN_SOURCE_IDS", frozenset({"another"}))
    assert refusal(open_store()).reason == "driver_unknown"


def test_the_installed_driver_is_one_that_was_tested(tmp_path: Path) -> None:
    connection = Connection(tmp_path / "t.db")
    assert connection.execute("SELECT sqlite_source_id()")[0][0] in driver.KNOWN_SOURCE_IDS
    connection.close()


# ------------------------------------------------------------------------------------------------- epoch


@rule("8")
def test_a_broker_whose_epoch_was_taken_writes_nothing_more(store: StoreDriver, folder: Path) -> None:
    job = store.add_one()
    with opened(folder) as thief:
        thief.execute("UPDATE engine SET epoch = epoch + 1")
    for _ in range(2):
        with pytest.raises(errors.Fenced):
            store.add_one()
    assert store.rows()["jobs"][-1][0] == job.number


def test_a_batch_that_began_before_the_theft_keeps_the_thief_waiting(store: StoreDriver, folder: Path) -> None:
    batch = store.store.begin(store.now_ms)
    with opened(folder) as thief:
        thief.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(errors.Busy):
            thief.execute("UPDATE engine SET epoch = epoch + 1")
    batch.commit()


def test_every_start_takes_a_new_epoch(store: StoreDriver, folder: Path) -> None:
    for _ in range(2):
        store.reopen()
    store.store.stop()
    with opened(folder) as file:
        assert file.execute("SELECT epoch FROM engine") == [(3,)]


# ----------------------------------------------------------------------------------------------- numbers


@rule("1.2")
@pytest.mark.parametrize("crash", [False, True])
def test_numbers_of_the_last_batch_are_not_used_again(store: StoreDriver, crash: bool) -> None:
    before = [store.add_one().number for _ in range(3)]
    events = len(store.rows()["events"])
    if crash:
        libsql(store).abandon()
    store.reopen()
    after = store.add_one().number
    assert after == before[-1] + 1
    assert [row[0] for row in store.rows()["events"]] == list(range(1, events + 2))


@rule("1.2")
def test_the_number_of_a_job_removed_in_its_own_batch_is_not_used_again(store: StoreDriver) -> None:
    job = store.add_one()
    guessed = commands.JobRef(job.number + 1, store.now_ms)
    gone = commands.AddJobs([new_job(policy=policy(retain_failed_ms=0))])
    outcomes = [one.outcome for one in store.batch(gone, commands.CancelJob(guessed), commands.Prune())]
    assert outcomes[2] == commands.Pruned(1, 1, False)
    store.reopen()
    assert store.add_one().number == guessed.number + 1


def test_numbers_of_an_emptied_log_are_not_used_again(store: StoreDriver) -> None:
    for _ in range(3):
        store.add_one()
    last = store.rows()["events"][-1][0]
    store.clock.advance(90_000_000)
    store.prune_all()
    assert store.rows()["events"] == []
    store.reopen()
    store.add_one()
    assert store.rows()["events"][0][0] == last + 1  # type: ignore[operator]


@rule("1.7")
def test_places_at_the_front_are_not_used_again(store: StoreDriver) -> None:
    first = store.add_one(lifo=True)
    store.reopen()
    second = store.add_one(lifo=True)
    assert [one.number for one in store.claim(2)] == [second.number, first.number]


# ------------------------------------------------------------------------------------------------ checks


def test_a_check_that_was_asked_for_is_done_once(store: StoreDriver, open_store: OpenStore, folder: Path) -> None:
    job = store.add_one()
    libsql(store).abandon()
    assert (folder / opening.CHECK_NEEDED).exists()
    store.reopen()
    assert not (folder / opening.CHECK_NEEDED).exists()
    assert store.exists(job)


def test_a_damaged_file_is_found_when_a_check_is_asked_for(
    store: StoreDriver, open_store: OpenStore, folder: Path
) -> None:
    damage(store, folder)
    (folder / opening.CHECK_NEEDED).touch()
    refused = refusal(open_store())
    assert refused.reason in ("database_damaged", "database_unusable")
    assert "restore" in refused.message
    assert (folder / opening.CHECK_NEEDED).exists()


def test_a_damaged_file_is_found_when_every_start_checks(
    store: StoreDriver, open_store: OpenStore, folder: Path
) -> None:
    damage(store, folder)
    assert refusal(open_store(startup_check="always")).reason in ("database_damaged", "database_unusable")


def damage(store: StoreDriver, folder: Path) -> None:
    """Overwrite pages in the middle of the file."""
    store.add(*(new_job(data=b"x" * 2_000) for _ in range(200)))
    store.store.stop()
    file = folder / "db" / "anvilmq.db"
    with file.open("r+b") as damaged:
        damaged.seek(file.stat().st_size // 2)
        damaged.write(os.urandom(8 * 4096))


def test_a_file_that_is_no_database_is_refused(open_store: OpenStore, folder: Path) -> None:
    (folder / "db").mkdir(parents=True)
    (folder / "db" / "anvilmq.db").write_bytes(b"no database" * 1_000)
    refused = refusal(open_store())
    assert refused.reason == "database_unusable"
    assert "restore it from a backup" in refused.message


def test_a_file_that_another_program_writes_is_refused(
    store: StoreDriver, open_store: OpenStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.store.stop()
    quick = tuple(
        (name, 0, 0) if name == "busy_timeout" else (name, value, got) for name, value, got in opening.PRAGMAS
    )
    monkeypatch.setattr(opening, "PRAGMAS", quick)
    with opened(folder) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = refusal(open_store())
        other.execute("ROLLBACK")
    assert refused.reason == "database_in_use"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.StorageFull("full"), "storage_full"),
        (errors.StorageIO("no"), "storage_failing"),
        (errors.Busy("locked"), "database_in_use"),
        (errors.Corrupt("malformed"), "database_unusable"),
        (errors.StoreError("what"), "database_unusable"),
    ],
)
def test_each_error_of_a_start_has_its_remedy(error: errors.StoreError, reason: str) -> None:
    assert opening.refusal(error, Path("/data")).reason == reason


def test_a_failed_start_leaves_the_folder_to_the_next(open_store: OpenStore, folder: Path) -> None:
    (folder / "db").mkdir(parents=True)
    (folder / "db" / "anvilmq.db").write_bytes(b"no database" * 1_000)
    refusal(open_store())
    (folder / "db" / "anvilmq.db").unlink()
    open_store().start()


# ------------------------------------------------------------------------------------------ stop, abandon


def test_a_store_may_be_stopped_twice_and_unstarted(open_store: OpenStore) -> None:
    store = open_store()
    store.stop()
    store.start()
    store.stop()
    store.stop()
    store.abandon()
    with pytest.raises(errors.StoreError, match="not open"):
        store.begin(1)


def test_a_stop_folds_the_log_in(store: StoreDriver, folder: Path) -> None:
    store.add_one()
    store.store.stop()
    assert [path.name for path in (folder / "db").iterdir()] == ["anvilmq.db"]


@rule("8")
def test_a_stop_drops_an_open_batch(store: StoreDriver) -> None:
    batch = store.store.begin(store.now_ms)
    batch.apply([commands.AddJobs([new_job()])], lambda _: None)
    store.reopen()
    assert store.rows()["jobs"] == []


@rule("8")
def test_an_abandoned_file_is_left_as_it_is(store: StoreDriver, folder: Path) -> None:
    store.add_one()
    log = (folder / "db" / "anvilmq.db-wal").stat()
    libsql(store).abandon()
    store.store.stop()
    gc.collect()
    assert (folder / "db" / "anvilmq.db-wal").stat() == log


# ---------------------------------------------------------------------------------------------- memory


@rule("1.5")
def test_a_start_tells_all_that_memory_is_rebuilt_from(store: StoreDriver) -> None:
    store.add(new_job(), new_job("post", delay_ms=7_000, expires_after_ms=9_000), new_job("done"))
    store.settle(complete(store.start("done")))
    running, released = store.start(), store.add_one()
    store.settle(bundles.release(store.start(), delay_ms=500))
    now = store.now_ms
    found = store.reopen()
    assert [lease.token for lease in found.leases] == [running.token]
    assert [(it.number, it.at_ms) for it in found.parked] == [(released.number, now + 500)]
    assert [(it.number, it.at_ms) for it in found.expires] == [(2, now + 9_000)]
    assert found.queues == {"mail": None, "post": now + 7_000, "done": None}
    assert found.counts == {
        ("mail", State.ACTIVE): 1, ("mail", State.DELAYED): 1, ("post", State.DELAYED): 1, ("done", State.COMPLETED): 1
    }  # fmt: skip
    assert libsql(store).violations() == []


@rule("8")
def test_a_kept_count_that_is_wrong_stops_nothing(store: StoreDriver, folder: Path) -> None:
    store.add(new_job(), new_job())
    store.store.stop()
    with opened(folder) as file:
        file.execute("UPDATE counts SET jobs = 0")
    store.reopen()
    assert store.settle_one(complete(store.start())) is State.COMPLETED
    assert store.store.counts() == {("mail", State.COMPLETED): 1}
