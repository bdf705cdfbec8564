"""The table of leases, alone."""

from anvilmq_broker.domain import commands
from anvilmq_broker.engine.leases import BUCKET_MS, Lease, Leases
from anvilmq_broker.store.protocol import HeldLease, Slot, Started
from tests.support.clock import START_MS, FakeClock
from tests.support.rules import rule


def _delivery(number: int, lease_ms: int = 30_000) -> commands.Delivery:
    return commands.Delivery(number, START_MS, f"token-{number}", "mail", "send", b"", "", 1, 3, lease_ms, 0)


def _ref(number: int, token: str = "") -> commands.LeaseRef:
    return commands.LeaseRef(number, START_MS, token or f"token-{number}")


def _held(leases: Leases, number: int, now_ms: float = 0, lease_ms: int = 30_000, worker_id: str = "w") -> Lease:
    leases.start([Started(Slot(worker_id), _delivery(number, lease_ms))], now_ms)
    lease = leases.find(f"token-{number}")
    assert lease is not None
    return lease


@rule("1.5")
def test_a_lease_that_runs_out_is_found_within_a_tenth_of_a_second() -> None:
    leases = Leases(FakeClock())
    _held(leases, 1, lease_ms=1_234)
    assert leases.pop_expired(1_233, 10) == []
    at = leases.next_ms()
    assert at is not None
    assert 1_234 <= at <= 1_234 + BUCKET_MS
    assert [lease.number for lease in leases.pop_expired(at, 10)] == [1]


@rule("1.4")
def test_a_renewed_lease_runs_for_its_full_time_again() -> None:
    leases = Leases(FakeClock())
    _held(leases, 1)
    assert leases.renew(_ref(1), "w", 20_000) is not None
    assert leases.pop_expired(30_100, 10) == []
    assert leases.pop_expired(49_900, 10) == []
    assert len(leases.pop_expired(50_000, 10)) == 1


def test_a_renewal_moves_nothing_however_often_it_comes() -> None:
    leases = Leases(FakeClock())
    lease = _held(leases, 1)
    bucket = lease.bucket
    for now in range(0, 20_000, 100):
        leases.renew(_ref(1), "w", now)
    assert lease.bucket == bucket
    assert len(leases._buckets) == 1


@rule("1.4")
def test_a_token_of_another_job_or_of_none_renews_nothing() -> None:
    leases = Leases(FakeClock())
    _held(leases, 1)
    assert leases.renew(_ref(2, "token-1"), "w", 0) is None
    assert leases.renew(_ref(1, "made up"), "w", 0) is None


def test_a_good_token_under_another_worker_moves_the_lease() -> None:
    leases = Leases(FakeClock())
    _held(leases, 1, worker_id="a")
    leases.renew(_ref(1), "b", 0)
    assert leases.count_of("a") == 0
    assert [lease.number for lease in leases.held_by("b")] == [1]


def test_an_ended_lease_is_forgotten_everywhere() -> None:
    leases = Leases(FakeClock())
    _held(leases, 1)
    assert leases.end("token-1") is not None
    assert leases.end("token-1") is None
    assert len(leases) == 0
    assert leases.count_of("w") == 0
    assert leases.pop_expired(60_000, 10) == []
    assert leases.next_ms() is None


def test_what_is_above_the_limit_is_found_the_next_time() -> None:
    leases = Leases(FakeClock())
    for number in range(5):
        _held(leases, number)
    assert len(leases.pop_expired(30_000, 3)) == 3
    assert len(leases.pop_expired(30_000, 3)) == 2


@rule("1.5")
def test_an_attempt_found_at_start_gets_a_fresh_full_lease() -> None:
    clock = FakeClock()
    leases = Leases(clock)
    leases.restore(HeldLease(1, START_MS, "token-1", "mail", "w", "", 30_000, 0, START_MS), 5_000)
    assert leases.pop_expired(34_900, 10) == []
    assert len(leases.pop_expired(35_000, 10)) == 1


def test_the_time_at_which_a_lease_ends_is_told_in_unix_time() -> None:
    clock = FakeClock()
    clock.advance(1_000)
    leases = Leases(clock)
    _held(leases, 7, now_ms=clock.monotonic_ms())
    assert leases.expire_at_ms() == {7: START_MS + 31_000}
