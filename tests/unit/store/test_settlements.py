"""Settlements in sets: what a batch of them comes to is what they would come to one by one."""

from itertools import zip_longest

import msgspec
import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.memory.store import MemoryStore
from tests.support import bundles
from tests.support.bundles import complete, fail, new_job, policy, release
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock
from tests.support.rules import rule
from tests.support.store_driver import Rows, StoreDriver


@pytest.fixture
def model(clock: FakeClock) -> StoreDriver:
    """The memory store, with the same clock and the same chance."""
    memory = MemoryStore(chance=SeededChance())
    return StoreDriver(lambda: memory, clock)


def freed(store: StoreDriver) -> list[int]:
    """Jobs whose lease ended in the last batch, by its effects."""
    one_by_one = [effect.number for effect in store.effects if isinstance(effect, protocol.Freed)]
    in_sets = [job[0] for effect in store.effects if isinstance(effect, protocol.Completed) for job in effect.jobs]
    return one_by_one + in_sets


@rule("1.4")
def test_a_settlement_given_twice_in_one_command_ends_its_attempt_once(store: StoreDriver) -> None:
    store.add_one()
    done = complete(store.start())
    settled = store.settle(done, done)
    assert settled == commands.Settled(bytes([State.COMPLETED, State.COMPLETED]))
    assert freed(store) == [1]


@rule("1.4")
def test_of_two_completions_of_an_attempt_the_first_one_s_result_is_kept(store: StoreDriver) -> None:
    job = store.add_one()
    running = store.start()
    first = commands.Settle([complete(running, b"first"), complete(running, b"second")])
    store.batch(first, commands.Settle([complete(running, b"third")]))
    assert store.job(job).result == b"first"


@rule("1.4")
@pytest.mark.parametrize("split", [False, True])
def test_of_a_failure_and_a_completion_of_an_attempt_the_first_wins(store: StoreDriver, split: bool) -> None:
    store.add_one()
    running = store.start()
    items = [fail(running), complete(running)]
    batch = [commands.Settle([item]) for item in items] if split else [commands.Settle(items)]
    store.batch(*batch)
    assert store.state(bundles.ref(running)) is State.DELAYED


@rule("1.4")
def test_a_settlement_must_name_the_job_whole(store: StoreDriver) -> None:
    store.add_one()
    running = store.start()
    settled = store.settle(msgspec.structs.replace(complete(running), created_ms=running.created_ms + 1))
    assert [refused.reason for refused in settled.refused] == ["LEASE_LOST"]
    assert store.state(bundles.ref(running)) is State.ACTIVE


@rule("1.9")
def test_a_completion_of_a_job_that_is_to_be_cancelled_cancels_it(store: StoreDriver) -> None:
    store.add_one()
    running = store.start()
    store.cancel(bundles.ref(running))
    assert store.settle_one(complete(running)) is State.CANCELLED


def test_a_set_may_be_larger_than_any_frame(store: StoreDriver) -> None:
    for _ in range(3):
        store.add(*(new_job() for _ in range(1_000)))
    running = store.claim(3_000)
    settled = store.settle(*(complete(one, b"r") for one in running))
    assert settled == commands.Settled(bytes([State.COMPLETED]) * 3_000)
    assert store.store.counts() == {("mail", State.COMPLETED): 3_000}


def test_an_empty_result_leaves_no_row(store: StoreDriver) -> None:
    job = store.add_one()
    store.settle(complete(store.start(), b"", "text/plain"))
    assert (store.job(job).result, store.job(job).result_content_type) == (b"", "")


# ---------------------------------------------------------------------------------------- receipts in sets


def receipts(store: StoreDriver) -> list[tuple[object, ...]]:
    """All receipts, as exported."""
    return store.rows()["receipts"]


@rule("2.1")
def test_the_lifetimes_of_many_receipts_start_with_the_set_that_completes_their_jobs(store: StoreDriver) -> None:
    day, minute = policy(), policy(receipt_ttl_ms=60_000)
    store.add(*(new_job(key=f"k{n}", policy=minute if n % 2 else day) for n in range(10)))
    running = store.claim(10)
    store.clock.advance(5)
    store.settle(*map(complete, running))
    lifetimes = {row[2]: row[8] for row in receipts(store)}
    ends = store.now_ms
    assert lifetimes == {f"k{n}": ends + (60_000 if n % 2 else 86_400_000) for n in range(10)}


@rule("2.1")
def test_the_keys_of_many_singletons_are_free_with_the_set_that_completes_their_jobs(store: StoreDriver) -> None:
    store.add(*(new_job(key=f"k{n}", singleton=True) for n in range(10)))
    running = store.claim(10)
    store.settle(*map(complete, running[:9]))
    assert [row[2] for row in receipts(store)] == ["k9"]


@rule("2.1")
@pytest.mark.parametrize("singleton", [False, True])
def test_a_set_leaves_a_key_to_its_newer_holder(store: StoreDriver, singleton: bool) -> None:
    store.add_one(key="k", singleton=singleton)
    running = store.start()
    store.send(commands.DeleteReceipt("mail", "send", "k"))
    newer = store.add_one(key="k", singleton=singleton)
    store.settle(complete(running))
    assert [(row[4], row[8]) for row in receipts(store)] == [(newer.number, 0)]


def difference(ours: Rows, theirs: Rows) -> object:
    """The first row that differs; two whole exports would drown a failure."""
    for table, rows in ours.items():
        for pair in zip_longest(rows, theirs[table]):
            if pair[0] != pair[1]:
                return table, pair
    return None


@rule("2.1")
def test_sets_keep_what_the_model_keeps(store: StoreDriver, model: StoreDriver) -> None:
    for driver in (store, model):
        driver.add(
            *(
                new_job(
                    queue,
                    name,
                    key=key,
                    singleton=singleton and bool(key),
                    policy=policy(retain_completed_ms=1_000) if own else None,
                )
                for queue in ("mail", "post")
                for name in ("send", "draw")
                for singleton in (False, True)
                for own in (False, True)
                for key in ("", f"{singleton}{own}")
            )
        )
        driver.clock.set_wall(driver.now_ms)
        running = driver.claim(20) + driver.claim(20, "post")
        driver.cancel(bundles.ref(running[3]))
        driver.settle(*(fail(one) if one.number % 7 == 0 else complete(one, b"r") for one in running[:-2]))
        driver.settle(*(release(one) for one in running[-2:]))
    assert difference(store.rows(), model.rows()) is None
    assert store.store.counts() == model.store.counts()
