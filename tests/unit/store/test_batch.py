"""One transaction: what is refused alone, what a rollback takes back, in rows and in memory."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.state import State
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql.batch import LibsqlBatch
from anvilmq_broker.store.libsql.claims import NEVER
from anvilmq_broker.store.libsql.driver import Connection
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support import bundles
from tests.support.bundles import complete, new_job, slots
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver

TOO_LOW = 2_097_152
"""A priority that a gateway refuses, and the schema too."""


def inner(store: StoreDriver) -> LibsqlStore:
    """The store that is driven."""
    assert isinstance(store.store, LibsqlStore)
    return store.store


def bad(queue: str = "mail", **fields: Any) -> commands.AddJobs:
    """A command that the schema refuses, after a job that it would take."""
    return commands.AddJobs([new_job(queue), new_job(queue, priority=TOO_LOW, **fields)])


def outcomes(store: StoreDriver, *batch: commands.Command) -> list[Any]:
    """What the commands of one transaction come to."""
    return [one.outcome for one in store.batch(*batch)]


def good(queue: str = "mail") -> commands.AddJobs:
    """A command that is taken."""
    return commands.AddJobs([new_job(queue)])


# -------------------------------------------------------------------------------------------- refused alone


@rule("1.10")
def test_a_command_that_the_schema_refuses_is_refused_alone(store: StoreDriver) -> None:
    first, second, third = outcomes(store, good(), bad(), good())
    assert isinstance(second, Refused)
    assert (second.reason, "jobs_priority_range" in second.message) == ("INVALID_FIELD", True)
    assert [first.first_number, third.first_number] == [1, 2]
    assert store.store.counts() == {("mail", State.WAITING): 2}
    assert [row[2] for row in store.rows()["events"]] == [1, 2]
    assert inner(store).violations() == []


@rule("1.10")
def test_a_refused_command_leaves_no_queue_and_its_successor_gets_the_place(store: StoreDriver) -> None:
    found = outcomes(store, bad("first"), good("second"), bad("third"))
    assert [isinstance(outcome, Refused) for outcome in found] == [True, False, True]
    assert list(inner(store).queues) == ["second"]
    store.add(new_job("fourth"), new_job("first"))
    ids = {queue.name: queue.id for queue in inner(store).queues.values()}
    assert ids == {"second": 1, "fourth": 2, "first": 3}
    assert store.reopen().queues == {"second": 0, "fourth": 0, "first": 0}


@rule("1.4")
def test_slots_of_a_run_that_is_replayed_are_handed_out_again(store: StoreDriver) -> None:
    free = slots(3)
    taken = 0

    def take(queue: str) -> protocol.Slot | None:
        nonlocal taken
        taken += bool(free)
        return free.pop() if free else None

    batch = store.store.begin(store.now_ms)
    applied = batch.apply([good(), bad(), good()], take)
    batch.commit()
    started = [effect for one in applied for effect in one.effects if isinstance(effect, protocol.Started)]
    assert [one.delivery.number for one in started] == [1, 2]
    assert taken == 3
    assert inner(store).violations() == []


@rule("2.1")
def test_a_key_of_a_refused_command_is_free(store: StoreDriver) -> None:
    key = commands.AddJobs([new_job(key="k")])
    refused, added = outcomes(store, bad(key="k"), key)
    assert isinstance(refused, Refused)
    assert (added.first_number, added.earlier) == (1, [])


@pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
def test_a_text_that_would_not_come_back_is_refused_alone(store: StoreDriver, text: str) -> None:
    named = commands.AddJobs([new_job(name=text)])
    found = outcomes(store, good(), named, good())
    assert [isinstance(outcome, Refused) for outcome in found] == [False, True, False]
    refused, done = (
        one.outcome for one in store.batch(commands.CancelJob(commands.JobRef(1, store.now_ms), text), good())
    )
    assert isinstance(refused, Refused)
    assert isinstance(done, commands.AddedJobs)
    assert store.state(commands.JobRef(1, store.now_ms)) is State.WAITING


def test_commands_of_other_kinds_are_replayed_as_well(store: StoreDriver) -> None:
    store.add(*(new_job() for _ in range(3)))
    running = store.claim(3)
    said = commands.ErrorInfo("E", "a\0b")
    first, second, third = outcomes(
        store,
        commands.Settle([complete(running[0])]),
        commands.Settle([bundles.fail(running[1], said)]),
        commands.Settle([complete(running[2])]),
    )
    assert isinstance(second, Refused)
    assert first == third == commands.Settled(bytes([State.COMPLETED]))
    assert store.state(bundles.ref(running[1])) is State.ACTIVE


# ---------------------------------------------------------------------------------------------- rollback


def rolled_back(store: StoreDriver, do: Callable[[LibsqlBatch], object]) -> None:
    """Do something in a batch that is dropped."""
    batch = inner(store).begin(store.now_ms)
    do(batch)
    batch.rollback()


def test_a_rolled_back_batch_leaves_neither_rows_nor_memory(store: StoreDriver) -> None:
    store.add(new_job(), new_job(delay_ms=50))
    before, counts = store.rows(), store.store.counts()
    rolled_back(store, lambda batch: batch.apply([good("fresh"), good(), good()], lambda _: None))
    rolled_back(store, lambda batch: batch.claim("mail", slots(2)))
    assert (store.rows(), store.store.counts()) == (before, counts)
    assert inner(store).violations() == []
    assert store.add(new_job("other"))[0].number == 3


def test_a_rolled_back_claim_hides_no_job(store: StoreDriver) -> None:
    job = store.add_one()
    rolled_back(store, lambda batch: (batch.claim("mail", slots(5)), batch.next_ready_at("mail")))
    assert store.start().number == job.number


def test_a_rolled_back_step_of_the_clock_is_no_step(store: StoreDriver) -> None:
    store.add_one(delay_ms=50)
    job = store.add_one()
    now = store.now_ms
    store.clock.set_wall(now - 100_000)
    rolled_back(store, lambda batch: batch.next_ready_at("mail"))
    assert inner(store).queues["mail"].next_ready_at == now
    store.clock.set_wall(now)
    assert store.start().number == job.number
    assert inner(store).violations() == []


def test_there_is_one_batch_at_a_time_and_no_query_beside_it(store: StoreDriver) -> None:
    batch = store.store.begin(store.now_ms)
    with pytest.raises(RuntimeError, match="one batch at a time"):
        store.store.begin(store.now_ms)
    with pytest.raises(RuntimeError, match="while a batch is open"):
        store.query(commands.ListJobs(commands.JobFilter()))
    assert isinstance(batch.apply([good()], lambda _: None)[0].outcome, commands.AddedJobs)
    batch.commit()


def test_a_batch_rolled_back_twice_is_no_error(store: StoreDriver) -> None:
    batch = store.store.begin(store.now_ms)
    batch.rollback()
    batch.rollback()


# ------------------------------------------------------------------------------------------------- hints


@rule("1.3")
def test_a_cancelled_head_leaves_the_line_clear_for_a_direct_start(store: StoreDriver) -> None:
    store.cancel(store.add_one())
    store.add_one(idle=slots(1))
    assert store.store.counts()["mail", State.ACTIVE] == 1


@rule("1.3")
def test_a_line_emptied_by_exactly_as_many_slots_is_clear(store: StoreDriver) -> None:
    store.add(new_job(), new_job())
    store.claim(2)
    store.add_one(idle=slots(1))
    assert store.store.counts()["mail", State.ACTIVE] == 3


@rule("1.3")
def test_no_statement_looks_at_a_line_of_which_nothing_is_due(store: StoreDriver) -> None:
    store.add_one(delay_ms=50)
    batch = inner(store).begin(store.now_ms)
    batch.sql = Untouchable(batch.sql.connection, {})  # type: ignore[assignment]
    assert batch.claim("mail", slots(1)) == []
    assert batch.next_ready_at("mail") == store.now_ms + 50
    batch.rollback()


class Untouchable:
    """Stands for the statements and has none."""

    def __init__(self, connection: Connection, known: dict[str, Any]) -> None:
        self.connection = connection


@rule("1.3")
def test_a_step_back_of_the_clock_makes_what_waits_claimable(store: StoreDriver) -> None:
    delayed = store.add_one(delay_ms=1_000, priority=3)
    waiting = store.add(new_job(), new_job(priority=3), new_job("post"))
    store.clock.set_wall(store.now_ms - 3_600_000)
    assert store.next_ready_at() == 0
    assert [one.number for one in store.claim(9)] == [waiting[0].number, waiting[1].number]
    assert store.next_ready_at() == store.now_ms + 3_601_000
    assert store.start("post").number == waiting[2].number
    assert store.state(delayed) is State.DELAYED
    assert inner(store).violations() == []
    assert inner(store).queues["post"].next_ready_at in (NEVER, -1)


# ------------------------------------------------------------------------------------------- what is kept


ODD = [
    "\u2028\u2029",
    "\U0001f528 tool",
    "\"quoted\" 'twice' \\ back\\\\slash",
    "\\u0000",
    "{}[]:,",
    "\x01\x1f\x7f",
    "ﬁ ñ 中",
]


@rule("1.2")
@pytest.mark.parametrize("text", ODD)
def test_texts_come_back_as_they_went_in(store: StoreDriver, text: str) -> None:
    job = store.add_one(name=text, key=text, headers={"h": text}, labels={"l": text}, content_type=text)
    running = store.start(worker_id=text)
    store.send(commands.Report(bundles.lease(running), f'"{text}"', [commands.LogLine(1, text, text)]))
    store.settle(bundles.fail(running, commands.ErrorInfo(text, text, text, text), non_retryable=True))
    store.reopen()
    found = store.job(job)
    assert (found.name, found.key, found.content_type, found.worker_id) == (text, text, text, text)
    assert (found.headers, found.labels, found.progress_json) == ({"h": text}, {"l": text}, f'"{text}"')
    assert found.attempts[0].error == commands.ErrorInfo(text, text, text, text)
    assert store.query(commands.ListJobLogs(job)).lines == [commands.LogLine(1, text, text, 1)]
    assert store.query(commands.GetReceipt("mail", text, text)).receipt.ref == job


@rule("1.2")
@pytest.mark.parametrize("last", [253_402_300_799_999, 2**53 - 1 - 2**43])
def test_instants_far_away_come_back_as_they_went_in(store: StoreDriver, last: int) -> None:
    far = bundles.policy(lease_ms=3_600_000, attempt_timeout_ms=last, retain_failed_ms=last, receipt_ttl_ms=last)
    job = store.add_one(run_at_ms=last, expires_at_ms=last - 1, key="k", policy=far)
    store.reopen()
    found = store.job(job)
    assert (found.due_at_ms, found.expires_at_ms, found.policy and found.policy.receipt_ttl_ms) == (
        last,
        last - 1,
        last,
    )
    assert store.next_ready_at() == last


@rule("1.2")
@pytest.mark.parametrize("data", [b"", b"\0", b"\0" * 100, bytes(range(256)), b"x" * (15 << 20)], ids=len)
def test_payloads_and_results_come_back_as_they_went_in(store: StoreDriver, data: bytes) -> None:
    jobs = store.add(new_job(data=data), new_job(data=b"between", headers={"a": "b"}), new_job(data=data))
    running = store.claim(3)
    assert [one.data for one in running] == [data, b"between", data]
    store.settle(*(complete(one, data) for one in running))
    store.reopen()
    assert [store.job(job).result for job in jobs] == [data] * 3


@rule("1.10")
def test_a_bulk_of_1000_payloads_of_16_kib_keeps_each(store: StoreDriver) -> None:
    payloads = [n.to_bytes(2, "big") * 8_192 for n in range(1_000)]
    store.add(*(new_job(data=data) for data in payloads))
    kept: list[bytes] = []
    while started := store.claim(1_000):
        kept += [one.data for one in started]
    assert kept == payloads


def test_a_claim_of_large_payloads_takes_no_more_than_a_bounded_piece(store: StoreDriver) -> None:
    store.add(*(new_job(queue, data=b"x" * (256 << 10)) for queue in ("mail", "post") for _ in range(40)))
    first = store.claim(40)
    assert len(first) == 32
    assert store.next_ready_at() == 0
    claimed = store.send(commands.Claim(bundles.identity(), ["mail", "post"], 80))
    assert [one.number for one in claimed.deliveries] == [*range(33, 41), *range(41, 73)]
    assert inner(store).violations() == []


@rule("1.3")
def test_a_claim_in_pieces_keeps_the_order_of_classes_and_arrival(store: StoreDriver) -> None:
    jobs = store.add(*(new_job(priority=n % 3, delay_ms=5 * (n % 2)) for n in range(300)))
    store.clock.advance(1)
    due = [job.number for n in (0, 1, 2) for job in jobs[n::3] if job.number % 2]
    assert [one.number for one in store.claim(140)] == due[:140]
    assert [one.number for one in store.claim(140)] == due[140:]
    assert store.next_ready_at() == store.now_ms + 4


def test_progress_does_not_write_the_payload_again(store: StoreDriver, folder: Path) -> None:
    store.add_one(data=b"x" * (1 << 20))
    lease = bundles.lease(store.start())
    store.clock.advance(1_000)
    store.store.housekeep(idle=True)
    for n in range(10):
        store.send(commands.Report(lease, str(n)))
    assert (folder / "db" / "anvilmq.db-wal").stat().st_size < 1 << 20


def test_a_batch_is_freed_when_it_is_over(store: StoreDriver) -> None:
    gc.disable()
    try:
        batch = inner(store).begin(store.now_ms)
        batch.apply([good(), bad(), good()], lambda _: None)
        batch.claim("mail", slots(1))
        batch.commit()
        over = weakref.ref(batch)
        del batch
        assert over() is None
    finally:
        gc.enable()


@rule("1.4")
def test_an_abandoned_store_answers_nothing(store: StoreDriver) -> None:
    inner(store).abandon()
    for call in (lambda: store.add_one(), lambda: store.store.accepts_adds(), lambda: store.rows()):
        with pytest.raises(errors.StoreError, match="not open"):
            call()
    store.reopen()
