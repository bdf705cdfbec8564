"""What a message means in the domain, and what the domain's values look like to clients."""

from __future__ import annotations

from typing import Any

import pytest

from anvilmq_broker.domain import backoff, commands, ids
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.gateway import mapping, status
from anvilmq_broker.gateway.limits import Limits
from anvilmq_broker.gateway.refusals import Rejected
from anvilmq_proto.v1 import types_pb2, worker_service_pb2
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, TOKEN, delivery, receipt, record, spec


def new_job(**fields: Any) -> commands.NewJob:
    """The job, which is the same whether its shape is remembered or not."""
    shapes: mapping.Shapes = {}
    found = mapping.new_job(spec(**fields), Limits())
    assert [mapping.new_job(spec(**fields), Limits(), shapes) for _ in range(2)] == [found, found]
    return found


@rule("1.2")
def test_every_field_of_a_job_arrives_unchanged() -> None:
    job = new_job(
        queue="images",
        name="größe/ändern 🎉",
        data=b"\x00\xff",
        content_type="image/png",
        headers={"traceparent": "00-1", "x": "ü"},
        labels={"team": "a:b|c"},
        priority=9,
        delay_ms=5,
        idempotency_key="k" * 255,
        expires_after_ms=7,
    )
    assert job == commands.NewJob(
        queue="images",
        name="größe/ändern 🎉",
        data=b"\x00\xff",
        content_type="image/png",
        priority=9,
        delay_ms=5,
        expires_after_ms=7,
        key="k" * 255,
        digest=job.digest,
        headers={"traceparent": "00-1", "x": "ü"},
        labels={"team": "a:b|c"},
    )
    assert len(job.digest) == 32
    assert new_job(run_at_ms=5, expires_at_ms=6, lifo=False).run_at_ms == 5
    assert new_job(lifo=True).lifo


def test_a_job_without_options_is_as_small_as_it_can_be() -> None:
    assert new_job() == commands.NewJob("q", "n")


def test_jobs_of_one_shape_keep_their_own_data_and_their_own_limits() -> None:
    shapes: mapping.Shapes = {}
    sent = [spec(data=b"%d" % number, priority=number // 2) for number in range(4)]
    found = [mapping.new_job(each, Limits(), shapes) for each in sent]
    assert found == [commands.NewJob("q", "n", b"%d" % number, priority=number // 2) for number in range(4)]
    assert len(shapes) == 2
    with pytest.raises(Rejected, match="bytes"):
        mapping.new_job(spec(data=b"12345"), Limits(max_payload_bytes=4), shapes)


def test_what_is_wrong_or_has_a_key_is_not_remembered() -> None:
    shapes: mapping.Shapes = {}
    for _ in range(2):
        mapping.new_job(spec(idempotency_key="k"), Limits(), shapes)
        mapping.new_job(spec(headers={"traceparent": "00-1"}), Limits(), shapes)
        with pytest.raises(Rejected):
            mapping.new_job(spec(priority=-1), Limits(), shapes)
    assert shapes == {}


@rule("1.6")
def test_a_policy_says_only_what_was_sent_and_an_explicit_zero_counts() -> None:
    assert new_job(policy=types_pb2.JobPolicy()).policy == commands.PolicyPatch()
    sent = types_pb2.JobPolicy(
        max_attempts=5,
        attempt_timeout_ms=0,
        max_starts=7,
        backoff=types_pb2.Backoff(kind="BACKOFF_KIND_FIXED", delay_ms=0, jitter=0.5),
    )
    assert new_job(policy=sent).policy == commands.PolicyPatch(
        max_attempts=5,
        attempt_timeout_ms=0,
        max_starts=7,
        backoff=backoff.Backoff(backoff.Kind.FIXED, 0, 300_000, 500),
    )


@rule("1.6")
def test_a_backoff_replaces_the_queues_as_a_whole_and_is_exponential_by_default() -> None:
    unknown: Any = 99
    mapped = new_job(policy=types_pb2.JobPolicy(backoff=types_pb2.Backoff(kind=unknown))).policy
    assert mapped is not None
    assert mapped.backoff == backoff.DEFAULT


@rule("2.1")
def test_the_digest_is_made_only_for_a_key_that_is_retained() -> None:
    assert new_job().digest == b""
    singleton = new_job(idempotency_key="k", idempotency_mode=2)
    assert (singleton.singleton, singleton.digest) == (True, b"")
    retained = [new_job(idempotency_key="k", idempotency_mode=mode) for mode in (0, 1, 77)]
    assert len({job.digest for job in retained}) == 1
    assert not any(job.singleton for job in retained)


SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"content_type": "application/json"}),
    ({}, {"headers": {"traceparent": "00-1", "tracestate": "x", "baggage": "y"}}),
    ({"headers": {"a": "1"}}, {"headers": {"baggage": "y", "a": "1"}}),
    ({}, {"idempotency_mode": 1}),
    ({"labels": {"a": "1", "b": "2"}}, {"labels": {"b": "2", "a": "1"}}),
    ({}, {"priority": 0}),
]
OTHER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"data": b"x"}),
    ({}, {"headers": {"a": "1"}}),
    ({}, {"labels": {"a": "1"}}),
    ({"labels": {"a": "1"}}, {"labels": {"a": "2"}}),
    ({}, {"priority": 1}),
    ({"delay_ms": 1}, {"run_at_ms": 1}),
    ({}, {"policy": types_pb2.JobPolicy()}),
    ({}, {"policy": types_pb2.JobPolicy(attempt_timeout_ms=0)}),
    ({"policy": types_pb2.JobPolicy(backoff={})}, {"policy": types_pb2.JobPolicy(backoff={"delay_ms": 1_000})}),
    ({"labels": {"a": "b"}}, {"headers": {"a": "b"}}),
    ({"data": b"text/plain"}, {"content_type": "text/plain"}),
]


@rule("2.1")
@pytest.mark.parametrize(("one", "other"), SAME)
def test_requests_that_mean_the_same_have_the_same_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert mapping.request_digest(spec(**one)) == mapping.request_digest(spec(**other))


@rule("2.1")
@pytest.mark.parametrize(("one", "other"), OTHER)
def test_requests_that_differ_have_other_digests(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert mapping.request_digest(spec(**one)) != mapping.request_digest(spec(**other))


@rule("2.1")
def test_the_digest_is_the_same_in_every_release() -> None:
    # A changed digest would refuse repeats of requests that an older broker has answered.
    sent = spec(
        data=b"{}",
        idempotency_key="k",
        labels={"b": "2", "a": "1"},
        headers={"x": "y"},
        policy=types_pb2.JobPolicy(max_attempts=3, backoff=types_pb2.Backoff(jitter=0.25)),
    )
    assert mapping.request_digest(sent).hex() == "2356a5bdcae473af5b269f09de3848a47950835adc62931ea9470d457ffe7d1c"


@pytest.mark.parametrize(
    ("sent", "mapped"),
    [
        (
            {"outcome": 1, "result": b"42", "result_content_type": "application/json", "delay_ms": 9},
            {"outcome": 1, "result": b"42"},
        ),
        (
            {
                "outcome": 2,
                "non_retryable": True,
                "retry_after_ms": 0,
                "error": types_pb2.JobError(type="E", stack="s"),
            },
            {"outcome": 2, "non_retryable": True, "retry_after_ms": 0, "error": commands.ErrorInfo("E", "", "s")},
        ),
        ({"outcome": 2, "result": b"left aside"}, {"outcome": 2}),
        ({"outcome": 3, "delay_ms": 5, "reason": "shutdown"}, {"outcome": 3, "delay_ms": 5, "reason": "shutdown"}),
    ],
)
def test_a_settlement_carries_what_its_outcome_asks_for(sent: dict[str, Any], mapped: dict[str, Any]) -> None:
    message = worker_service_pb2.Settlement(job_id=JOB_ID, lease_token=TOKEN, **sent)
    assert mapping.settlement(message) == commands.Settlement(number=7, created_ms=START_MS, token=TOKEN, **mapped)


@rule("1.4")
@pytest.mark.parametrize(
    ("job_id", "token"), [("no id", TOKEN), (JOB_ID.lower(), TOKEN), (JOB_ID, "t" * 65), (JOB_ID, "ü")]
)
def test_a_lease_that_the_broker_cannot_have_given_is_lost(job_id: str, token: str) -> None:
    with pytest.raises(Rejected) as caught:
        mapping.lease(types_pb2.Lease(job_id=job_id, lease_token=token))
    assert caught.value.refused.reason == "LEASE_LOST"


def test_a_delivery_has_every_field_of_the_attempt() -> None:
    target = worker_service_pb2.WorkResponse()
    full = delivery(
        content_type="a/b",
        headers={"h": "1"},
        labels={"l": "2"},
        attempt=2,
        attempt_timeout_ms=9,
        priority=4,
        key="k",
        starts=3,
        stalled=1,
        progress_json="[1]",
        group_id="g",
        order_key=5,
    )
    mapping.put_deliveries(target.deliveries, [full, delivery(8)])
    first, second = target.deliveries
    assert first == worker_service_pb2.Delivery(
        job_id=JOB_ID,
        lease_token="token-7",
        queue="q",
        name="n",
        data=b"{}",
        content_type="a/b",
        attempt=2,
        max_attempts=3,
        lease_ms=30_000,
        attempt_timeout_ms=9,
        headers={"h": "1"},
        created_at_ms=START_MS,
        group_id="g",
        pool=1,
        priority=4,
        labels={"l": "2"},
        order_key=5,
        idempotency_key="k",
        starts=3,
        stalled_count=1,
        progress_json="[1]",
    )
    assert second.content_type == "application/json"
    assert second.job_id == ids.encode(START_MS, 8)


@rule("1.1")
def test_a_delayed_job_is_told_as_waiting_once_it_is_due() -> None:
    delayed = record(state=2, due_at_ms=START_MS + 10)
    assert mapping.job(delayed, START_MS + 9, full=False).state == types_pb2.JOB_STATE_DELAYED
    assert mapping.job(delayed, START_MS + 10, full=False).state == types_pb2.JOB_STATE_WAITING


def test_a_job_in_full_has_payload_policy_and_attempts_and_a_basic_one_has_not() -> None:
    stored = record(
        state=5,
        data=b"d",
        headers={"h": "1"},
        labels={"l": "2"},
        policy=commands.Policy(retain_failed_ms=0),
        result=b"r",
        progress_json="1",
        attempts=[commands.AttemptRecord(1, 1, "w", 5, 6, 2, commands.ErrorInfo("T", "m", "s", "{}"))],
        key="k",
        singleton=True,
    )
    full = mapping.job(stored, START_MS, full=True)
    assert (full.data, full.content_type, dict(full.headers)) == (b"d", "application/json", {"h": "1"})
    assert (full.result, full.result_content_type, full.progress_json) == (b"r", "application/json", "1")
    assert full.policy.max_attempts == 3
    assert full.policy.HasField("retain_failed_ms")
    assert not full.policy.HasField("retain_completed_ms")
    assert full.policy.backoff.jitter == 0.25
    assert full.attempts[0].error == types_pb2.JobError(type="T", message="m", stack="s", details_json="{}")
    assert full.idempotency_mode == types_pb2.IDEMPOTENCY_MODE_RELEASE_ON_FINISH
    basic = mapping.job(stored, START_MS, full=False)
    for field in ("data", "content_type", "headers", "result", "result_content_type", "progress_json", "attempts"):
        basic_value = getattr(basic, field)
        assert not basic_value, field
    assert not basic.HasField("policy")
    assert dict(basic.labels) == {"l": "2"}


@rule("1.1")
def test_a_wait_reason_names_what_holds_the_job() -> None:
    wait = commands.Wait(9, commands.JobRef(8, START_MS), "w", 1, 2, 3, 4, True)
    assert mapping.job(record(wait=wait), START_MS, full=False).wait == types_pb2.WaitInfo(
        reason=types_pb2.WAIT_REASON_NO_WORKER,
        holder_job_id=ids.encode(START_MS, 8),
        holder_worker_id="w",
        since_at_ms=1,
        until_at_ms=2,
        jobs_ahead=3,
        pending_children=4,
        by_group=True,
    )


@rule("2.2")
def test_a_receipt_shows_its_digest_in_hexadecimal_but_a_singleton_has_none() -> None:
    assert mapping.receipt(receipt()).digest == "0102"
    assert mapping.receipt(receipt()).job_id == JOB_ID
    singleton = mapping.receipt(receipt(singleton=True))
    assert (singleton.digest, singleton.mode) == ("", types_pb2.IDEMPOTENCY_MODE_RELEASE_ON_FINISH)


def test_the_numbers_of_the_domain_are_those_of_the_wire() -> None:
    from anvilmq_broker.domain import state

    pairs = [
        (state.State, types_pb2.JobState),
        (state.WaitReason, types_pb2.WaitReason),
        (state.FinishReason, types_pb2.FinishReason),
        (state.AttemptOutcome, types_pb2.AttemptOutcome),
        (state.SettleOutcome, worker_service_pb2.SettleOutcome),
        (state.InterruptCause, worker_service_pb2.InterruptCause),
        (backoff.Kind, types_pb2.BackoffKind),
    ]
    for domain, wire in pairs:
        prefix = wire.DESCRIPTOR.values[0].name.removesuffix("UNSPECIFIED")
        assert {f"{prefix}{each.name}": each.value for each in domain} == {
            key: number for key, number in wire.items() if number
        }


def test_an_item_error_keeps_the_path_inside_its_item() -> None:
    refused = Refused("QUEUE_FULL", "full", "", {"queue": "q"}, retry_after_ms=9)
    assert status.item_error(refused, 4) == types_pb2.ItemError(
        index=4, code=8, reason="QUEUE_FULL", message="full", metadata={"queue": "q"}, retry_after_ms=9
    )
    assert status.item_error(Refused("INVALID_FIELD", "bad", "policy.max_attempts"), 1).field == "policy.max_attempts"
