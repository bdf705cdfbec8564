"""Retries, releases, results, errors, progress and logs."""

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.backoff import Backoff, Kind
from anvilmq_broker.domain.state import AttemptOutcome, FinishReason, State
from anvilmq_broker.store import protocol
from tests.support.bundles import NO_BACKOFF, complete, fail, lease, new_job, policy, ref, release
from tests.support.chance import SeededChance
from tests.support.rules import rule
from tests.support.store_driver import StoreDriver


def backoff(kind: Kind, delay_ms: int, max_delay_ms: int = 300_000, jitter_permille: int = 0) -> commands.PolicyPatch:
    """A policy with many attempts and this backoff."""
    return policy(max_attempts=50, backoff=Backoff(kind, delay_ms, max_delay_ms, jitter_permille))


def delays(store: StoreDriver, job: commands.JobRef, failures: int) -> list[int]:
    """The delay after each of so many failures, the clock moved on each time."""
    found = []
    for _ in range(failures):
        store.settle_one(fail(store.start()))
        due = store.job(job).due_at_ms
        found.append(due - store.now_ms)
        store.clock.advance(due - store.now_ms)
    return found


# ------------------------------------------------------------------------------------------------ retries


@rule("1.6")
def test_a_job_has_three_attempts_unless_told_otherwise(store: StoreDriver) -> None:
    added = store.add_one()
    assert len(delays(store, added, 2)) == 2
    assert store.settle_one(fail(store.start())) is State.FAILED
    found = store.job(added)
    assert (found.attempt, found.finish_reason) == (3, FinishReason.ATTEMPTS_EXHAUSTED)
    assert found.finished_at_ms == store.now_ms


@rule("1.6")
def test_one_attempt_is_one_run(store: StoreDriver) -> None:
    store.add_one(policy=policy(max_attempts=1))
    # A worker's own delay gives it no further try.
    assert store.settle_one(fail(store.start(), retry_after_ms=0)) is State.FAILED
    assert store.claim() == []


@rule("1.6")
def test_the_default_backoff_is_exponential_from_a_second_with_a_quarter_of_jitter(
    store: StoreDriver, chance: SeededChance
) -> None:
    added = store.add_one(policy=policy(max_attempts=9))
    chance.spreads = [0.0, 0.0, 0.0, 0.999_999]
    assert delays(store, added, 3) == [1_000, 2_000, 4_000]
    (shortest,) = delays(store, added, 1)
    assert 6_000 <= shortest <= 6_001


@rule("1.6")
def test_a_fixed_backoff_stays_the_same(store: StoreDriver) -> None:
    added = store.add_one(policy=backoff(Kind.FIXED, 700))
    assert delays(store, added, 3) == [700, 700, 700]


@rule("1.6")
def test_an_exponential_backoff_doubles_up_to_its_cap(store: StoreDriver) -> None:
    added = store.add_one(policy=backoff(Kind.EXPONENTIAL, 100, max_delay_ms=1_000))
    assert delays(store, added, 6) == [100, 200, 400, 800, 1_000, 1_000]


@rule("1.6")
def test_the_default_cap_is_five_minutes(store: StoreDriver) -> None:
    added = store.add_one(policy=backoff(Kind.EXPONENTIAL, 200_000))
    assert delays(store, added, 2) == [200_000, 300_000]


@rule("1.6")
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.999_999])
@pytest.mark.parametrize("jitter", [0, 250, 1_000])
def test_jitter_only_shortens_and_by_no_more_than_its_share(
    store: StoreDriver, chance: SeededChance, spread: float, jitter: int
) -> None:
    added = store.add_one(policy=backoff(Kind.FIXED, 10_000, jitter_permille=jitter))
    chance.spreads = [spread]
    (delay,) = delays(store, added, 1)
    assert 10_000 - 10 * jitter <= delay <= 10_000
    assert (delay == 10_000) == (spread == 0 or jitter == 0)


@rule("1.6")
def test_a_retried_job_waits_for_its_delay_and_joins_the_tail(store: StoreDriver) -> None:
    added = store.add_one(name="retried", policy=backoff(Kind.FIXED, 1_000))
    assert store.settle_one(fail(store.start())) is State.DELAYED
    store.add_one(name="other")
    store.clock.advance(999)
    assert [delivery.name for delivery in store.claim(9)] == ["other"]
    store.clock.advance(1)
    again = store.start()
    assert (ref(again), again.attempt, again.starts) == (added, 2, 2)


@rule("1.6")
def test_a_backoff_of_nothing_joins_the_tail_of_the_class_at_once(store: StoreDriver) -> None:
    store.add_one(name="fails", policy=policy(backoff=NO_BACKOFF))
    running = store.start()
    store.clock.advance(1)
    store.add_one(name="waits")
    store.clock.advance(1)
    assert store.settle_one(fail(running)) is State.WAITING
    assert [delivery.name for delivery in store.claim(9)] == ["waits", "fails"]


@rule("1.6")
def test_a_worker_may_set_the_next_delay_beyond_cap_and_jitter(store: StoreDriver, chance: SeededChance) -> None:
    added = store.add_one(policy=backoff(Kind.FIXED, 100, max_delay_ms=200, jitter_permille=1_000))
    store.settle_one(fail(store.start(), retry_after_ms=86_400_000))
    assert store.job(added).due_at_ms == store.now_ms + 86_400_000


@rule("1.6")
def test_a_non_retryable_failure_ends_the_job_whatever_is_left(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(max_attempts=50))
    assert store.settle_one(fail(store.start(), non_retryable=True, retry_after_ms=1)) is State.FAILED
    found = store.job(added)
    assert (found.attempt, found.finish_reason) == (1, FinishReason.NON_RETRYABLE)


@rule("1.6")
def test_a_failure_that_ends_the_job_is_told_to_the_engine(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    store.settle_one(fail(running, non_retryable=True))
    assert store.effects == [
        protocol.Freed("mail", added.number, running.token, AttemptOutcome.FAILED, store.now_ms),
        protocol.Ended("mail", added.number, added.created_ms, State.FAILED, FinishReason.NON_RETRYABLE),
    ]


# ----------------------------------------------------------------------------------------------- releases


@rule("1.7")
def test_a_released_job_goes_to_the_head_and_consumes_no_attempt(store: StoreDriver) -> None:
    added, _ = store.add(new_job(name="first"), new_job(name="second"))
    running = store.start()
    store.clock.advance(50)
    assert store.settle_one(release(running, reason="not ready")) is State.WAITING
    found = store.job(added)
    assert (found.attempt, found.starts, found.stalled) == (0, 1, 0)
    again = store.start()
    assert (again.name, again.attempt, again.starts) == ("first", 1, 2)


@rule("1.7")
def test_a_release_with_a_delay_stays_away_for_that_time_and_then_goes_first(store: StoreDriver) -> None:
    added, _ = store.add(new_job(name="first"), new_job(name="second"))
    assert store.settle_one(release(store.start(), delay_ms=1_000)) is State.DELAYED
    assert protocol.Parked(added.number, added.created_ms, store.now_ms + 1_000) in store.effects
    assert [delivery.name for delivery in store.claim(1)] == ["second"]
    store.add_one(name="third")
    # Too early a timer changes nothing.
    store.clock.advance(999)
    store.reap(parked=[added])
    assert store.state(added) is State.DELAYED
    store.clock.advance(1)
    store.reap(parked=[added])
    assert [delivery.name for delivery in store.claim(9)] == ["first", "third"]


@rule("1.7")
def test_a_parked_job_is_known_again_after_a_restart(store: StoreDriver) -> None:
    added = store.add_one()
    store.settle_one(release(store.start(), delay_ms=1_000))
    until = store.now_ms + 1_000
    assert store.reopen().parked == [protocol.Parked(added.number, added.created_ms, until)]


@rule("1.7")
def test_a_timer_for_a_job_that_is_not_parked_changes_nothing(store: StoreDriver) -> None:
    waiting, delayed = store.add(new_job(), new_job(delay_ms=10))
    store.clock.advance(20)
    before = store.rows()
    store.reap(parked=[waiting, delayed, commands.JobRef(99, 1)])
    assert store.rows() == before


@rule("1.7")
def test_releases_without_end_stop_at_max_starts(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(max_starts=4))
    states = [store.settle_one(release(store.start())) for _ in range(4)]
    assert states == [State.WAITING] * 3 + [State.FAILED]
    found = store.job(added)
    assert (found.starts, found.attempt, found.finish_reason) == (4, 0, FinishReason.MAX_STARTS)


@rule("1.7")
def test_a_hundred_starts_are_the_default_bound(store: StoreDriver) -> None:
    added = store.add_one()
    for _ in range(99):
        assert store.settle_one(release(store.start())) is State.WAITING
    assert store.settle_one(release(store.start())) is State.FAILED
    assert store.job(added).finish_reason == FinishReason.MAX_STARTS


@rule("1.7")
def test_the_default_bound_of_starts_rises_with_the_attempts(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(max_attempts=500))
    assert store.job(added).policy == commands.Policy(max_attempts=500, max_starts=500)


@rule("1.7")
def test_stalls_and_retries_do_not_pass_the_bound_of_starts_either(store: StoreDriver) -> None:
    bounded = policy(max_attempts=2, max_starts=2, max_stalled=50, backoff=NO_BACKOFF)
    stalling, failing = store.add(new_job(policy=bounded), new_job("other", policy=bounded))
    store.stall(store.start())
    store.stall(store.start())
    assert store.job(stalling).finish_reason == FinishReason.MAX_STARTS
    store.settle_one(release(store.start("other")))
    # The second start is the last: one of two attempts is left, but it cannot be started.
    assert store.settle_one(fail(store.start("other"))) is State.FAILED
    assert store.job(failing).finish_reason == FinishReason.MAX_STARTS


@rule("1.7")
def test_why_a_job_was_released_is_kept(store: StoreDriver) -> None:
    added = store.add_one()
    store.settle_one(release(store.start(), reason="no room"))
    (attempt,) = store.job(added).attempts
    assert attempt.outcome == AttemptOutcome.RELEASED
    assert attempt.error == commands.ErrorInfo("", "no room")


# ------------------------------------------------------------------------- results, errors, progress, logs


@rule("1.8")
@pytest.mark.parametrize("result", [b"\x00", b'{"sum":3}', bytes(256 * 1024)])
def test_the_result_of_a_completed_job_is_stored(store: StoreDriver, result: bytes) -> None:
    added = store.add_one()
    assert store.settle_one(complete(store.start(), result, "text/plain")) is State.COMPLETED
    found = store.job(added)
    assert (found.result, found.result_content_type) == (result, "text/plain")
    assert (found.finish_reason, found.finished_at_ms) == (FinishReason.COMPLETED, store.now_ms)
    assert found.attempts == []


@rule("1.8")
def test_a_job_without_a_result_has_an_empty_one(store: StoreDriver) -> None:
    added = store.add_one()
    store.settle_one(complete(store.start()))
    assert (store.job(added).result, store.job(added).result_content_type) == (b"", "")


@rule("1.8")
def test_results_of_a_batch_go_to_their_own_jobs(store: StoreDriver) -> None:
    added = store.add(*(new_job() for _ in range(10)))
    running = store.claim(10)
    store.settle(*(complete(one, b"%d" % one.number if one.number % 2 else b"") for one in reversed(running)))
    assert [store.job(job).result for job in added] == [b"%d" % job.number if job.number % 2 else b"" for job in added]


@rule("1.8")
def test_every_failed_attempt_keeps_its_error(store: StoreDriver) -> None:
    added = store.add_one(policy=backoff(Kind.FIXED, 10))
    error = commands.ErrorInfo("ValueError", "it is\nbad", "File x, line 1", '{"code":7}')
    store.settle_one(fail(store.start(worker_id="w1"), error))
    began = store.now_ms
    store.clock.advance(10)
    running = store.start(worker_id="w2")
    store.clock.advance(5)
    store.settle_one(fail(running, non_retryable=True))
    assert store.job(added).attempts == [
        commands.AttemptRecord(1, 1, "w1", began, began, AttemptOutcome.FAILED, error),
        commands.AttemptRecord(2, 2, "w2", began + 10, began + 15, AttemptOutcome.FAILED, None),
    ]


@rule("1.8")
def test_the_last_ten_attempts_are_kept(store: StoreDriver) -> None:
    added = store.add_one(policy=backoff(Kind.FIXED, 0))
    for number in range(13):
        store.settle_one(fail(store.start(), commands.ErrorInfo(message=f"try {number}")))
    kept = [attempt.error.message for attempt in store.job(added).attempts if attempt.error]
    assert kept == [f"try {number}" for number in range(3, 13)]


@rule("1.8")
def test_progress_is_kept_and_handed_to_the_next_attempt(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(backoff=NO_BACKOFF))
    running = store.start()
    assert running.progress_json == ""
    for progress in ('{"page":1}', '{"page":2}'):
        assert store.send(commands.Report(lease(running), progress)) == commands.Done()
    assert store.job(added).progress_json == '{"page":2}'
    store.settle_one(fail(running))
    assert store.start().progress_json == '{"page":2}'


@rule("1.8")
def test_log_lines_leave_the_progress_as_it_is(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    store.send(commands.Report(lease(running), "1"))
    store.send(commands.Report(lease(running), None, [commands.LogLine(5, "info", "hello")]))
    assert store.job(added).progress_json == "1"


@rule("1.8")
def test_log_lines_are_kept_in_order_with_the_attempt_that_wrote_them(store: StoreDriver) -> None:
    added = store.add_one(policy=policy(backoff=NO_BACKOFF))
    running = store.start()
    store.send(
        commands.Report(lease(running), None, [commands.LogLine(1, "info", "a"), commands.LogLine(2, "warning", "b")])
    )
    store.settle_one(fail(running))
    store.send(commands.Report(lease(store.start()), None, [commands.LogLine(3, "error", "c")]))
    page = store.query(commands.ListJobLogs(added))
    assert page.lines == [
        commands.LogLine(1, "info", "a", 1),
        commands.LogLine(2, "warning", "b", 1),
        commands.LogLine(3, "error", "c", 2),
    ]
    assert page.next is None


@rule("1.8")
def test_the_last_thousand_log_lines_are_kept_and_come_in_pages(store: StoreDriver) -> None:
    added = store.add_one()
    running = store.start()
    for start in range(0, 1_150, 50):
        lines = [commands.LogLine(start + n, "info", f"line {start + n}") for n in range(50)]
        store.send(commands.Report(lease(running), None, lines))
    found, after = [], 0
    while True:
        page = store.query(commands.ListJobLogs(added, limit=300, after=after))
        assert len(page.lines) <= 300
        found += [line.line for line in page.lines]
        if page.next is None:
            break
        after = page.next
    assert found == [f"line {n}" for n in range(150, 1_150)]
