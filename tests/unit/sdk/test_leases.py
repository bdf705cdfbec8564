"""The lease table: pure, so the time is a number here."""

import math

from anvilmq._leases import Lease, LeaseTable
from tests.support.rules import rule


def table_with(*tokens: str, lease_ms: int = 30_000, timeout_ms: int = 0, now: float = 0.0) -> LeaseTable[str]:
    table: LeaseTable[str] = LeaseTable()
    for token in tokens:
        table.add(f"job-{token}", token, lease_ms, timeout_ms, f"owner-{token}", now)
    return table


def tokens(leases: list[Lease[str]]) -> list[str]:
    return [lease.token for lease in leases]


def test_nothing_is_due_before_a_third_of_the_lease() -> None:
    table = table_with("a")
    assert table.next_at == 10.0
    assert table.due(9.9, connected=True).renew == []
    assert tokens(table.due(10.0, connected=True).renew) == ["a"]


@rule("1.4")
def test_each_lease_is_renewed_at_a_third_of_its_own_length() -> None:
    table = table_with("long", lease_ms=60_000)
    table.add("j", "short", 3_000, 0, "o", 0.0)
    assert tokens(table.due(1.0, connected=True).renew) == ["short"]
    assert table.next_at == 2.0


def test_a_renewal_that_is_nearly_due_goes_with_the_one_that_is() -> None:
    table = table_with("a")
    table.add("j", "b", 30_000, 0, "o", 2.0)
    table.add("j", "c", 30_000, 0, "o", 4.0)
    assert tokens(table.due(10.0, connected=True).renew) == ["a", "b"]
    assert table.next_at == 14.0


@rule("1.4")
def test_a_new_delivery_is_given_up_a_tenth_before_its_lease_ends() -> None:
    table = table_with("a")
    assert table.due(26.9, connected=False).expired == []
    assert tokens(table.due(27.0, connected=False).expired) == ["a"]
    assert len(table) == 0


def test_an_answered_renewal_counts_from_when_it_was_sent() -> None:
    table = table_with("a")
    due = table.due(10.0, connected=True)
    table.renewing(1, due.renew, 10.0)
    table.renewed(1, set())
    assert table.due(39.9, connected=False).expired == []
    assert tokens(table.due(40.0, connected=False).expired) == ["a"]


def test_a_renewal_without_an_answer_extends_nothing_and_is_tried_again() -> None:
    table = table_with("a")
    table.renewing(1, table.due(10.0, connected=True).renew, 10.0)
    again = table.due(20.0, connected=True).renew
    assert tokens(again) == ["a"]
    table.renewing(2, again, 20.0)
    assert tokens(table.due(27.0, connected=True).expired) == ["a"]


def test_the_answer_of_a_broken_session_is_not_awaited_any_more() -> None:
    table = table_with("a")
    table.renewing(1, table.due(10.0, connected=True).renew, 10.0)
    table.disconnected()
    table.renewed(1, set())
    assert tokens(table.due(27.0, connected=False).expired) == ["a"]


def test_a_token_that_the_answer_calls_lost_is_not_extended() -> None:
    table = table_with("a", "b")
    table.renewing(1, table.due(10.0, connected=True).renew, 10.0)
    table.renewed(1, {"b"})
    assert tokens(table.due(27.0, connected=False).expired) == ["b"]


def test_a_lease_being_settled_is_neither_renewed_nor_given_up_but_still_held() -> None:
    table = table_with("a")
    assert table.settle("a") is not None
    due = table.due(1_000.0, connected=True)
    assert (due.renew, due.expired, due.timed_out) == ([], [], [])
    assert tokens(table.held()) == ["a"]


def test_only_the_first_settlement_of_a_held_lease_counts() -> None:
    table = table_with("a")
    assert table.settle("a") is not None
    assert table.settle("a") is None
    assert table.settle("unknown") is None


def test_an_attempt_that_lasts_too_long_is_given_up_though_its_lease_is_good() -> None:
    table = table_with("a", timeout_ms=5_000)
    assert table.next_at == 5.0
    due = table.due(5.0, connected=True)
    assert tokens(due.timed_out) == ["a"]
    assert table.find("a") is None


def test_a_new_session_renews_everything_at_once() -> None:
    table = table_with("a", "b")
    table.connected(3.0)
    assert tokens(table.due(3.0, connected=True).renew) == ["a", "b"]


def test_without_a_connection_only_the_expiry_falls_due() -> None:
    table = table_with("a")
    assert table.due(12.0, connected=False).renew == []
    assert table.next_at == 27.0


def test_an_empty_table_has_nothing_to_wait_for() -> None:
    table = table_with("a")
    table.drop("a")
    table.due(10.0, connected=True)
    assert table.next_at == math.inf
