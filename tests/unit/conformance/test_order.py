"""Identity and order: what an added job carries, and which job is next."""

import string

import pytest

from anvilmq_broker.domain import commands, ids
from anvilmq_broker.domain.state import State
from tests.support.bundles import fail, new_job, policy, ref, release, slots
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver

LOWEST = 2_097_151
AWKWARD_TEXTS = [
    "a:b",
    "a/b*?#",
    "'; DROP TABLE jobs;--",
    "Zoë 漢字 🦊",
    "\u202e",
    "\x7f" * 3,
    "\U0010ffff" * 60,
    "é" * 127,
]


def names(store: StoreDriver, jobs: int = 100, queue: str = "mail") -> list[str]:
    """Names of the jobs that start now, in the order in which they start."""
    return [delivery.name for delivery in store.claim(jobs, queue)]


@rule("1.2")
def test_a_delivery_carries_what_was_added(store: StoreDriver) -> None:
    labels, headers = {"team": "blue"}, {"traceparent": "00-1"}
    store.add_one(data=b"\x00\xff", content_type="image/png", headers=headers, labels=labels, priority=7, key="k")
    delivery = store.start()
    assert (delivery.queue, delivery.name, delivery.data, delivery.content_type) == (
        "mail",
        "send",
        b"\x00\xff",
        "image/png",
    )
    assert (delivery.headers, delivery.labels, delivery.priority, delivery.key) == (headers, labels, 7, "k")


@rule("1.2")
def test_a_job_found_again_is_the_job_that_was_added(store: StoreDriver) -> None:
    added = store.add_one(data=b"{}", headers={"a": "b"}, labels={"c": "d"}, priority=3, policy=policy(max_attempts=9))
    found = store.job(added)
    assert ref(found) == added
    assert (found.data, found.headers, found.labels, found.priority) == (b"{}", {"a": "b"}, {"c": "d"}, 3)
    assert found.policy == commands.Policy(max_attempts=9)
    assert found.created_ms == store.now_ms


@rule("1.2")
def test_payloads_of_any_size_up_to_a_mebibyte_come_back_unchanged(store: StoreDriver) -> None:
    payloads = [b"", b"\x00", bytes(range(256)), bytes(1 << 20)]
    store.add(*(new_job(data=data) for data in payloads))
    assert [delivery.data for delivery in store.claim(9)] == payloads


@rule("1.2")
@pytest.mark.parametrize("text", AWKWARD_TEXTS)
def test_any_text_comes_back_unchanged_wherever_it_stands(store: StoreDriver, text: str) -> None:
    added = store.add_one(name=text, key=text, headers={"h": text}, labels={"l": text})
    found, delivery = store.job(added), store.start()
    assert (found.name, found.key, found.headers, found.labels) == (text, text, {"h": text}, {"l": text})
    assert (delivery.name, delivery.key, delivery.headers, delivery.labels) == (text, text, {"h": text}, {"l": text})


@rule("1.2")
def test_ids_sort_by_creation(store: StoreDriver) -> None:
    added = []
    for _ in range(3):
        added += store.add(new_job(), new_job())
        store.clock.advance(1)
    texts = [ids.encode(job.created_ms, job.number) for job in added]
    assert sorted(texts) == texts
    assert len(set(texts)) == 6
    assert all(set(text) <= set(string.digits + string.ascii_uppercase) for text in texts)


@rule("1.2")
def test_a_job_is_found_by_both_parts_of_its_id_alone(store: StoreDriver) -> None:
    added = store.add_one()
    assert store.exists(added)
    assert not store.exists(commands.JobRef(added.number, added.created_ms + 1))
    assert not store.exists(commands.JobRef(added.number + 1, added.created_ms))


@rule("1.3")
def test_the_most_urgent_class_goes_first_and_the_last_class_is_served_too(store: StoreDriver) -> None:
    for priority in (LOWEST, 1, 0, LOWEST - 1, 2, 0):
        store.add_one(name=f"p{priority}", priority=priority)
    assert names(store) == ["p0", "p0", "p1", "p2", f"p{LOWEST - 1}", f"p{LOWEST}"]


@rule("1.3")
@pytest.mark.parametrize("priority", [0, 1, LOWEST])
def test_jobs_of_a_class_keep_the_order_of_arrival(store: StoreDriver, priority: int) -> None:
    store.add(*(new_job(name=f"bulk{n}", priority=priority) for n in range(3)))
    store.add_one(name="same ms", priority=priority)
    store.clock.advance(1)
    store.add_one(name="later", priority=priority)
    assert names(store) == ["bulk0", "bulk1", "bulk2", "same ms", "later"]


@rule("1.3")
def test_lifo_puts_the_newest_in_front_but_only_of_its_own_class(store: StoreDriver) -> None:
    store.add(new_job(name="urgent"), new_job(name="old", priority=5))
    store.add(new_job(name="first lifo", priority=5, lifo=True), new_job(name="second lifo", priority=5, lifo=True))
    store.clock.advance(1)
    store.add(new_job(name="newest lifo", priority=5, lifo=True), new_job(name="new", priority=5))
    assert names(store) == ["urgent", "newest lifo", "second lifo", "first lifo", "old", "new"]


@rule("1.3")
def test_queues_do_not_see_each_other(store: StoreDriver) -> None:
    store.add(new_job("a", "in a"), new_job("b", "in b"))
    assert names(store, queue="b") == ["in b"]
    assert names(store, queue="a") == ["in a"]
    assert names(store, queue="never heard of") == []


@rule("1.3")
def test_a_delayed_job_does_not_start_before_its_time_and_starts_at_it(store: StoreDriver) -> None:
    added = store.add_one(delay_ms=1_000)
    assert store.state(added) is State.DELAYED
    store.clock.advance(999)
    assert names(store) == []
    store.clock.advance(1)
    assert names(store) == ["send"]


@rule("1.3")
def test_a_job_due_at_an_instant_starts_at_it(store: StoreDriver) -> None:
    added = store.add_one(run_at_ms=store.now_ms + 500)
    assert store.job(added).due_at_ms == store.now_ms + 500
    store.clock.advance(499)
    assert names(store) == []
    store.clock.advance(1)
    assert names(store) == ["send"]


@rule("1.3")
def test_an_instant_in_the_past_is_now(store: StoreDriver) -> None:
    added = store.add_one(run_at_ms=store.now_ms - 5_000)
    assert store.state(added) is State.WAITING
    assert store.job(added).due_at_ms == 0


@rule("1.3")
def test_the_line_says_when_to_look_again(store: StoreDriver) -> None:
    assert store.next_ready_at() is None
    store.add(new_job(delay_ms=900), new_job(delay_ms=300, priority=4))
    assert store.next_ready_at() == store.now_ms + 300
    # An earlier due time added later counts.
    store.add_one(delay_ms=100)
    assert store.next_ready_at() == store.now_ms + 100
    store.clock.advance(100)
    assert store.next_ready_at() == 0
    assert names(store) == ["send"]
    assert store.next_ready_at() == store.now_ms + 200


@rule("1.3")
def test_an_immediate_job_overtakes_one_that_is_not_due(store: StoreDriver) -> None:
    store.add_one(name="later", delay_ms=10_000)
    store.add_one(name="now", priority=9)
    assert names(store) == ["now"]


@rule("1.3")
def test_a_due_job_joins_the_tail_of_its_class_at_its_due_time(store: StoreDriver) -> None:
    store.add(new_job(name="due", delay_ms=100), new_job(name="before"))
    store.clock.advance(50)
    store.add_one(name="before too")
    store.clock.advance(100)
    store.add_one(name="after")
    assert names(store) == ["before", "before too", "due", "after"]


@rule("1.3")
def test_equal_due_times_keep_the_order_of_arrival(store: StoreDriver) -> None:
    store.add_one(name="first", delay_ms=100)
    store.clock.advance(40)
    store.add_one(name="second", delay_ms=60)
    store.clock.advance(30)
    store.add_one(name="third", run_at_ms=store.now_ms + 30)
    store.clock.advance(30)
    assert names(store) == ["first", "second", "third"]


@rule("1.3")
def test_a_due_job_goes_ahead_of_one_that_is_retried_after_it(store: StoreDriver) -> None:
    store.add(new_job(name="retried"), new_job(name="due", delay_ms=100))
    running = store.start()
    store.clock.advance(150)
    store.settle_one(fail(running, retry_after_ms=0))
    assert names(store) == ["due", "retried"]


@rule("1.3")
def test_one_put_back_to_the_front_does_not_shuffle_the_others(store: StoreDriver) -> None:
    store.add(*(new_job(name=f"n{n}") for n in range(4)))
    first = store.start()
    store.settle_one(release(first))
    assert names(store) == ["n0", "n1", "n2", "n3"]


@rule("1.3")
def test_an_added_job_starts_at_once_when_a_worker_is_idle(store: StoreDriver) -> None:
    answer = store.send(commands.AddJobs([new_job(name="a"), new_job(name="b")]), idle=slots(1))
    assert answer.states == bytes([State.ACTIVE, State.WAITING])
    assert store.state(commands.JobRef(answer.first_number, answer.created_ms)) is State.ACTIVE
    assert names(store) == ["b"]


@rule("1.3")
def test_an_added_job_does_not_overtake_one_that_waits(store: StoreDriver) -> None:
    store.add_one(name="waits")
    new = store.add_one(name="new", idle=slots(1))
    assert store.state(new) is State.WAITING
    assert names(store) == ["waits", "new"]


@rule("1.3")
def test_a_delayed_job_is_not_started_by_its_add(store: StoreDriver) -> None:
    answer = store.send(commands.AddJobs([new_job(delay_ms=10)]), idle=slots(1))
    assert answer.states == bytes([State.DELAYED])


@rule("1.3")
def test_a_clock_set_back_by_hours_does_not_hold_up_what_waits(store: StoreDriver) -> None:
    store.add_one(name="waits")
    due = store.add_one(name="due tomorrow", delay_ms=86_400_000)
    store.clock.set_wall(store.now_ms - 3_600_000)
    assert names(store) == ["waits"]
    assert store.state(due) is State.DELAYED
