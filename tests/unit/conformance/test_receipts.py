"""Idempotency receipts: the same call gets the same job, a singleton is one at a time."""

from typing import Any

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from tests.support.bundles import NAME, NO_BACKOFF, QUEUE, complete, fail, lease, new_job, policy, release
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver

DAY = 86_400_000


def add(store: StoreDriver, **fields: Any) -> commands.AddedJobs | Refused:
    """The answer to an add of one job."""
    answer = store.send(commands.AddJobs([new_job(**fields)]))
    assert isinstance(answer, commands.AddedJobs | Refused)
    return answer


def earlier(store: StoreDriver, **fields: Any) -> commands.Earlier:
    """The earlier job that an add meets."""
    answer = add(store, **fields)
    assert isinstance(answer, commands.AddedJobs)
    assert answer.states == b""
    return answer.earlier[0]


def receipt(store: StoreDriver, key: str = "k") -> Any:
    """The receipt of a key, or its refusal."""
    answer = store.query(commands.GetReceipt(QUEUE, NAME, key))
    return answer.receipt if isinstance(answer, commands.ReceiptFound) else answer


def finish(store: StoreDriver, job: commands.JobRef, state: State) -> None:
    """End the one job of the queue."""
    match state:
        case State.COMPLETED:
            store.settle_one(complete(store.start()))
        case State.FAILED:
            store.settle_one(fail(store.start(), non_retryable=True))
        case _:
            store.cancel(job)
    assert store.state(job) is state


ENDS = [State.COMPLETED, State.FAILED, State.CANCELLED]


# ------------------------------------------------------------------------------------------------- retain


@rule("2.1")
def test_the_same_request_gets_the_first_job(store: StoreDriver) -> None:
    first = store.add_one(key="k", data=b"1")
    store.clock.advance(5)
    assert earlier(store, key="k", data=b"1") == commands.Earlier(0, first, State.WAITING, 1)
    assert store.store.counts() == {(QUEUE, State.WAITING): 1}


@rule("2.1")
@pytest.mark.parametrize("state", ENDS)
def test_the_same_request_gets_the_first_job_after_it_ended_too(store: StoreDriver, state: State) -> None:
    first = store.add_one(key="k")
    finish(store, first, state)
    assert earlier(store, key="k") == commands.Earlier(0, first, state, 1)


@rule("2.1")
def test_another_request_with_the_key_is_refused_and_writes_nothing(store: StoreDriver) -> None:
    store.add_one(key="k", data=b"1")
    before = store.rows()
    refused = add(store, key="k", data=b"2")
    assert isinstance(refused, Refused)
    assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
    assert (refused.metadata["queue"], refused.metadata["name"], refused.metadata["key"]) == (QUEUE, NAME, "k")
    assert refused.metadata["same_request"] == "false"
    assert store.rows() == before


@rule("2.1")
def test_a_key_belongs_to_its_queue_and_name(store: StoreDriver) -> None:
    jobs = [new_job(key="k"), new_job(name="other", key="k"), new_job("other", key="k"), new_job(key="K")]
    one_by_one = [store.add(job)[0] for job in jobs]
    assert len(set(one_by_one)) == 4
    assert store.add(*jobs) == one_by_one


@rule("2.1")
def test_jobs_without_a_key_never_meet(store: StoreDriver) -> None:
    assert len(set(store.add(new_job(), new_job()))) == 2


@rule("2.1")
@pytest.mark.parametrize("state", ENDS)
def test_a_receipt_lives_a_day_from_the_end_of_its_job(store: StoreDriver, state: State) -> None:
    first = store.add_one(key="k")
    store.clock.advance(30 * DAY)
    assert receipt(store).expires_at_ms == 0
    finish(store, first, state)
    assert receipt(store).expires_at_ms == store.now_ms + DAY
    store.clock.advance(DAY - 1)
    assert earlier(store, key="k").ref == first
    store.clock.advance(1)
    assert receipt(store).reason == "RECEIPT_NOT_FOUND"
    assert store.add_one(key="k", data=b"another request") != first


@rule("2.1")
def test_a_receipt_s_lifetime_can_be_set(store: StoreDriver) -> None:
    first = store.add_one(key="k", policy=policy(receipt_ttl_ms=1_000))
    store.settle_one(complete(store.start()))
    store.clock.advance(999)
    assert earlier(store, key="k", policy=policy(receipt_ttl_ms=1_000)).ref == first
    store.clock.advance(1)
    assert store.add_one(key="k") != first


@rule("2.1")
def test_a_receipt_outlives_its_job(store: StoreDriver) -> None:
    options: dict[str, Any] = {"key": "k", "policy": policy(retain_completed_ms=0)}
    first = store.add_one(**options)
    store.settle_one(complete(store.start()))
    store.prune_all()
    assert not store.exists(first)
    assert earlier(store, **options) == commands.Earlier(0, first, 0, 1)


@rule("2.1")
@pytest.mark.parametrize("singleton", [False, True])
@pytest.mark.parametrize("state", ENDS)
def test_the_end_of_an_old_holder_leaves_the_key_of_a_newer_one(
    store: StoreDriver, state: State, *, singleton: bool
) -> None:
    old = store.add_one(key="k", singleton=singleton)
    running = store.start()
    store.send(commands.DeleteReceipt(QUEUE, NAME, "k"))
    newer = store.add_one(key="k", singleton=singleton)
    if state is State.CANCELLED:
        store.cancel(old)
    store.settle_one(fail(running, non_retryable=True) if state is State.FAILED else complete(running))
    assert store.state(old) is state
    assert (receipt(store).ref, receipt(store).expires_at_ms) == (newer, 0)


# ---------------------------------------------------------------------------------------------- singleton


@rule("2.1")
def test_a_singleton_meets_its_job_whatever_the_request(store: StoreDriver) -> None:
    first = store.add_one(key="k", singleton=True, data=b"1")
    assert earlier(store, key="k", singleton=True, data=b"2").ref == first
    running = store.start()
    assert earlier(store, key="k", singleton=True) == commands.Earlier(0, first, State.ACTIVE, 1)
    assert running.data == b"1"


@rule("2.1")
def test_the_mode_stored_with_a_key_decides(store: StoreDriver) -> None:
    single, kept = store.add_one(key="single", singleton=True), store.add_one(key="kept", data=b"1")
    assert earlier(store, key="single", data=b"any").ref == single
    refused = add(store, key="kept", data=b"any", singleton=True)
    assert isinstance(refused, Refused)
    assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
    assert store.state(kept) is State.WAITING


@rule("2.1")
@pytest.mark.parametrize("state", ENDS)
def test_the_end_of_a_singleton_frees_its_key_at_once(store: StoreDriver, state: State) -> None:
    first = store.add_one(key="k", singleton=True)
    finish(store, first, state)
    assert receipt(store).reason == "RECEIPT_NOT_FOUND"
    assert store.add_one(key="k", singleton=True) != first


@rule("2.1")
def test_a_singleton_that_stalls_out_or_expires_frees_its_key(store: StoreDriver) -> None:
    store.add_one(key="k", singleton=True, policy=policy(max_stalled=0))
    store.stall(store.start())
    expiring = store.add_one(key="k", singleton=True, expires_after_ms=10)
    store.clock.advance(10)
    store.reap(expired=[expiring])
    assert receipt(store).reason == "RECEIPT_NOT_FOUND"


@rule("2.1")
def test_a_singleton_keeps_its_key_over_retry_stall_release_and_a_lost_delivery(store: StoreDriver) -> None:
    first = store.add_one(key="k", singleton=True, policy=policy(backoff=NO_BACKOFF))
    store.settle_one(fail(store.start()))
    assert earlier(store, key="k", singleton=True).ref == first
    store.stall(store.start())
    assert earlier(store, key="k", singleton=True).ref == first
    store.settle_one(release(store.start(), delay_ms=5))
    assert earlier(store, key="k", singleton=True).ref == first
    store.clock.advance(5)
    store.reap(parked=[first])
    store.reap(undelivered=[lease(store.start())])
    assert earlier(store, key="k", singleton=True).ref == first


@rule("2.1")
def test_a_key_is_free_in_the_transaction_that_ends_its_job(store: StoreDriver) -> None:
    store.add_one(key="k", singleton=True)
    running = store.start()
    _, added = store.batch(commands.Settle([complete(running)]), commands.AddJobs([new_job(key="k", singleton=True)]))
    assert isinstance(added.outcome, commands.AddedJobs)
    assert added.outcome.earlier == []


# ---------------------------------------------------------------------------------- look up, release, delete


@rule("2.2")
def test_a_receipt_can_be_looked_up(store: StoreDriver) -> None:
    job = new_job(key="k", data=b"1")
    (first,) = store.add(job)
    made = store.now_ms
    store.clock.advance(9)
    store.start()
    assert receipt(store) == commands.ReceiptRecord(QUEUE, NAME, "k", False, first, State.ACTIVE, job.digest, made, 0)
    for queue, name, key in (("x", NAME, "k"), (QUEUE, "x", "k"), (QUEUE, NAME, "x")):
        assert store.query(commands.GetReceipt(queue, name, key)).reason == "RECEIPT_NOT_FOUND"


@rule("2.2")
def test_a_singleton_s_receipt_has_no_digest(store: StoreDriver) -> None:
    first = store.add_one(key="k", singleton=True)
    assert (receipt(store).singleton, receipt(store).digest, receipt(store).ref) == (True, b"", first)


@rule("2.2")
def test_receipts_are_listed_by_prefix_in_order_and_in_pages(store: StoreDriver) -> None:
    keys = ["order-2", "order-10", "invoice-1", "order-1", "Order-1", "order", "ordem-9"]
    store.add(*(new_job(key=key) for key in keys), new_job(name="z", key="order-0"), new_job("other", key="order-7"))
    listed = list_receipts(store, name=NAME, key_prefix="order-", limit=2)
    assert listed == [(NAME, "order-1"), (NAME, "order-10"), (NAME, "order-2")]
    everywhere = list_receipts(store, key_prefix="order-", limit=2)
    assert everywhere == [(NAME, "order-1"), (NAME, "order-10"), (NAME, "order-2"), ("z", "order-0")]
    assert len(list_receipts(store, limit=100)) == 8
    assert list_receipts(store, queue="nobody's") == []


@rule("2.2")
def test_a_prefix_is_text_and_no_pattern(store: StoreDriver) -> None:
    store.add(*(new_job(key=key) for key in ("a%b", "a_b", "axb", "a*b")))
    for prefix in ("a%", "a_", "a*"):
        assert [key[:2] for _, key in list_receipts(store, key_prefix=prefix)] == [prefix]


@rule("2.2")
def test_an_expired_receipt_is_not_listed(store: StoreDriver) -> None:
    store.add_one(key="k", policy=policy(receipt_ttl_ms=10))
    store.settle_one(complete(store.start()))
    store.clock.advance(10)
    assert list_receipts(store) == []


def list_receipts(store: StoreDriver, queue: str = QUEUE, **fields: Any) -> list[tuple[str, str]]:
    """(name, key) of every page's receipts."""
    found: list[tuple[str, str]] = []
    after = None
    while True:
        page = store.query(commands.ListReceipts(queue, after=after, **fields))
        found += [(one.name, one.key) for one in page.receipts]
        if page.next is None:
            return found
        after = page.next


@rule("2.2")
def test_a_key_is_released_by_whoever_names_its_holder(store: StoreDriver) -> None:
    first = store.add_one(key="k")
    assert store.send(commands.ReleaseReceipt(QUEUE, NAME, "k", first)) == commands.FreedReceipt(True, first)
    assert receipt(store).reason == "RECEIPT_NOT_FOUND"
    assert store.add_one(key="k") != first
    assert store.state(first) is State.WAITING


@rule("2.2")
def test_a_release_that_names_another_job_changes_nothing_and_names_the_holder(store: StoreDriver) -> None:
    holder, other = store.add(new_job(key="k"), new_job())
    before = store.rows()
    assert store.send(commands.ReleaseReceipt(QUEUE, NAME, "k", other)) == commands.FreedReceipt(False, holder)
    later = commands.JobRef(holder.number, holder.created_ms + 1)
    assert store.send(commands.ReleaseReceipt(QUEUE, NAME, "k", later)) == commands.FreedReceipt(False, holder)
    assert store.rows() == before


@rule("2.2")
def test_releasing_or_deleting_a_key_that_nobody_has_is_no_error(store: StoreDriver) -> None:
    job = store.add_one()
    for queue in (QUEUE, "nobody's"):
        assert store.send(commands.ReleaseReceipt(queue, NAME, "k", job)) == commands.FreedReceipt(False, None)
        assert store.send(commands.DeleteReceipt(queue, NAME, "k")) == commands.FreedReceipt(False, None)


@rule("2.2")
def test_an_expired_key_is_nobody_s(store: StoreDriver) -> None:
    job = store.add_one(key="k", policy=policy(receipt_ttl_ms=10))
    store.settle_one(complete(store.start()))
    store.clock.advance(10)
    assert store.send(commands.ReleaseReceipt(QUEUE, NAME, "k", job)) == commands.FreedReceipt(False, None)
    assert store.send(commands.DeleteReceipt(QUEUE, NAME, "k")) == commands.FreedReceipt(False, None)


@rule("2.2")
def test_a_key_is_deleted_whoever_has_it(store: StoreDriver) -> None:
    holder = store.add_one(key="k")
    assert store.send(commands.DeleteReceipt(QUEUE, NAME, "k")) == commands.FreedReceipt(True, holder)
    assert store.send(commands.DeleteReceipt(QUEUE, NAME, "k")) == commands.FreedReceipt(False, None)
    assert store.exists(holder)


@rule("2.2")
def test_a_freed_singleton_key_can_be_taken_while_its_job_runs(store: StoreDriver) -> None:
    first = store.add_one(key="k", singleton=True)
    running = store.start()
    store.send(commands.ReleaseReceipt(QUEUE, NAME, "k", first))
    second = store.add_one(key="k", singleton=True)
    store.settle_one(complete(running))
    assert receipt(store).ref == second
