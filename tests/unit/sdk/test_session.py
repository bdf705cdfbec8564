"""The session on the Work stream, against a scripted broker and a clock that the test moves."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
import pytest_asyncio

from anvilmq import errors
from anvilmq._attempts import Attempt, Cause, Ending
from anvilmq._clock import ManualClock
from anvilmq._iothread import InlineIo
from anvilmq._outbox import Said
from anvilmq._pools import Slots
from anvilmq._session import Session
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire
from tests.support.rules import rule
from tests.unit.sdk.scripted import ScriptedBroker, delivery, turns


class Recorder:
    """A listener that takes every delivery into its pool and writes down what it is told."""

    def __init__(self) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.interrupts: list[tuple[str, Cause]] = []
        self.refusals: list[str] = []
        self.drains: list[str] = []
        self.failures: list[Exception] = []
        self.session: Session
        self.slots: Slots

    def received(self, deliveries: Sequence[wire.Delivery], now: float) -> None:
        for it in deliveries:
            attempt = Attempt(
                delivery=it,
                definition=cast("Any", None),
                slots=self.slots,
                reports=self.session,
                job_id=it.job_id,
                token=it.lease_token,
                received_at=now,
            )
            self.attempts[attempt.token] = attempt
            self.session.leases.add(it.job_id, it.lease_token, it.lease_ms, it.attempt_timeout_ms, attempt, now)
            self.slots.offer([attempt])

    def interrupted(self, attempt: Attempt, cause: Cause, text: str) -> None:
        self.interrupts.append((attempt.token, cause))

    def refused(self, said: Said, error: types.ItemError) -> tuple[wire.Settlement, int] | None:
        self.refusals.append(error.reason)
        if said.settlement.outcome == wire.SETTLE_OUTCOME_FAIL:
            return None
        return wire.Settlement(lease_token=said.lease.token, outcome=wire.SETTLE_OUTCOME_FAIL), 0

    def drain_asked(self, reason: str) -> None:
        self.drains.append(reason)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)


class Bench:
    """A session with everything around it."""

    def __init__(self, slots: int = 4) -> None:
        self.clock = ManualClock()
        self.broker = ScriptedBroker()
        self.listener = Recorder()
        self.listener.slots = self.slots = Slots(1, ["images"], slots, prefetch=0)

        async def connect() -> ScriptedBroker:
            return self.broker

        self.session = self.listener.session = Session(
            io=InlineIo(self.clock),
            connect=connect,
            identity=wire.WorkerIdentity(worker_id="w1"),
            pools=[self.slots],
            listener=self.listener,
            chance=lambda: 0.5,
        )

    @property
    def frames(self) -> list[wire.WorkRequest]:
        return self.broker.stream_now.frames

    async def open(self) -> None:
        self.session.start()
        await turns()

    async def deliver(self, *tokens: str, **fields: Any) -> None:
        self.broker.stream_now.deliver(*(delivery(token, **fields) for token in tokens))
        await turns()

    async def advance(self, seconds: float) -> None:
        """Move the clock from timer to timer, with turns of the loop in between."""
        await turns()
        end = self.clock.monotonic() + seconds
        while (due_at := self.clock.next_due_at()) is not None and due_at <= end:
            self.clock.advance_to(due_at)
            await turns()
        self.clock.advance_to(end)
        await turns()

    def end(self, token: str, outcome: wire.SettleOutcome = wire.SETTLE_OUTCOME_COMPLETE, size: int = 0) -> None:
        attempt = self.listener.attempts[token]
        self.slots.free(attempt, 0.001)
        settlement = wire.Settlement(job_id=attempt.job_id, lease_token=token, outcome=outcome)
        self.session.end(attempt, Ending(settlement, size))
        self.session.summon()


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.session.close()
    await turns()


async def test_the_first_frame_is_open_alone_and_credit_follows_when_it_is_opened(bench: Bench) -> None:
    bench.broker.accepts = False
    await bench.open()
    assert len(bench.frames) == 1
    opening = bench.frames[0].open
    assert opening.worker.worker_id == "w1"
    assert [(pool.id, list(pool.queues), pool.concurrency) for pool in opening.pools] == [(1, ["images"], 4)]
    bench.broker.stream_now.opened()
    await turns()
    assert [(it.pool, it.jobs) for it in bench.frames[1].credits] == [(1, 4)]


@rule("1.4")
async def test_settlements_of_one_turn_leave_in_one_frame_together_with_the_credit_of_their_slots(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a", "b", "c")
    before = len(bench.frames)
    for token in "abc":
        bench.end(token)
    await turns()
    assert len(bench.frames) == before + 1
    frame = bench.frames[-1]
    assert [it.lease_token for it in frame.settle.settlements] == ["a", "b", "c"]
    assert [it.jobs for it in frame.credits] == [3]


async def test_credit_never_exceeds_the_free_slots(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a", "b")
    bench.end("a")
    await turns()
    given = sum(it.jobs for frame in bench.frames for it in frame.credits)
    assert given == 5
    assert bench.slots.open_credit == 3


async def test_a_lease_is_renewed_at_a_third_and_all_that_is_due_goes_in_one_message(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    await bench.advance(1)
    await bench.deliver("b")
    await bench.advance(9)
    renewals = [frame.renew for frame in bench.frames if frame.HasField("renew")]
    assert [[it.lease_token for it in renewal.leases] for renewal in renewals] == [["a", "b"]]


async def test_what_is_being_settled_is_not_renewed(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.end("a")
    await bench.advance(25)
    assert not any(frame.HasField("renew") for frame in bench.frames)


@rule("1.4")
async def test_a_lease_that_runs_out_unrenewed_interrupts_its_handler_and_settles_nothing(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    await bench.advance(27)
    assert bench.listener.interrupts == [("a", Cause.LEASE_LOST)]
    bench.end("a")
    await turns()
    assert bench.broker.stream_now.settlements == []


async def test_an_answered_renewal_keeps_the_lease(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    await bench.advance(10)
    renewal = bench.frames[-1].renew
    bench.broker.stream_now.say(wire.WorkResponse(renewed=wire.RenewLeasesResponse(seq=renewal.seq)))
    await turns()
    await bench.advance(19)
    assert bench.listener.interrupts == []


async def test_an_attempt_that_takes_too_long_is_interrupted_here_too(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a", attempt_timeout_ms=5_000)
    await bench.advance(5)
    assert bench.listener.interrupts == [("a", Cause.ATTEMPT_TIMEOUT)]
    assert len(bench.session.leases) == 0


@rule("1.9")
async def test_a_cancel_is_passed_on_and_the_job_is_still_settled(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.broker.stream_now.interrupt(wire.INTERRUPT_CAUSE_CANCEL_REQUESTED, "a")
    await turns()
    assert bench.listener.interrupts == [("a", Cause.CANCEL_REQUESTED)]
    bench.end("a", wire.SETTLE_OUTCOME_RELEASE)
    await turns()
    assert [it.lease_token for it in bench.broker.stream_now.settlements] == ["a"]


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (wire.INTERRUPT_CAUSE_LEASE_LOST, Cause.LEASE_LOST),
        (wire.INTERRUPT_CAUSE_ATTEMPT_TIMEOUT, Cause.ATTEMPT_TIMEOUT),
        (wire.INTERRUPT_CAUSE_CHILD_FAILED, Cause.CHILD_FAILED),
        (wire.INTERRUPT_CAUSE_REMOVED, Cause.REMOVED),
        (wire.INTERRUPT_CAUSE_UNSPECIFIED, Cause.LEASE_LOST),
    ],
)
async def test_after_any_other_interrupt_nothing_is_settled(
    bench: Bench, cause: wire.InterruptCause, expected: Cause
) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.broker.stream_now.interrupt(cause, "a")
    await turns()
    assert bench.listener.interrupts == [("a", expected)]
    bench.end("a")
    await turns()
    assert bench.broker.stream_now.settlements == []


# ------------------------------------------------------------------------------------------------------ reconnecting


@rule("8")
async def test_a_broken_session_is_opened_again_and_unanswered_settlements_go_again(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a", "b")
    bench.end("a")
    await turns()
    bench.broker.stream_now.say(errors.Unavailable("gone"))
    await bench.advance(0.1)
    assert len(bench.broker.streams) == 2
    assert [it.lease_token for it in bench.frames[0].open.resume] == ["a", "b"]
    assert [it.lease_token for it in bench.broker.stream_now.settlements] == ["a"]
    assert [it.lease_token for it in bench.frames[1].renew.leases] == ["b"]
    assert [it.jobs for it in bench.frames[1].credits] == [3]


async def test_an_answered_settlement_does_not_go_again(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.end("a")
    await turns()
    bench.broker.stream_now.settled(bench.frames[-1].settle.seq)
    await turns()
    bench.broker.stream_now.say(errors.Unavailable("gone"))
    await bench.advance(0.1)
    assert list(bench.frames[0].open.resume) == []
    assert bench.broker.stream_now.settlements == []


async def test_a_settlement_applied_before_the_break_is_asked_for_again_though_the_broker_calls_its_lease_lost(
    bench: Bench,
) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.end("a")
    await turns()
    bench.broker.accepts = False
    bench.broker.stream_now.say(errors.Unavailable("gone"))
    await bench.advance(0.1)
    bench.broker.stream_now.opened(interrupts=[wire.Interrupt(lease_token="a", cause=wire.INTERRUPT_CAUSE_LEASE_LOST)])
    await turns()
    assert bench.listener.interrupts == []
    assert [it.lease_token for it in bench.broker.stream_now.settlements] == ["a"]


async def test_leases_lost_meanwhile_are_told_when_the_session_is_back(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.broker.accepts = False
    bench.broker.stream_now.say(errors.Unavailable("gone"))
    await bench.advance(0.1)
    bench.broker.stream_now.opened(interrupts=[wire.Interrupt(lease_token="a", cause=wire.INTERRUPT_CAUSE_LEASE_LOST)])
    await turns()
    assert bench.listener.interrupts == [("a", Cause.LEASE_LOST)]
    assert bench.session.leases_lost == 1


async def test_a_worker_waits_longer_from_try_to_try_and_never_gives_up(bench: Bench) -> None:
    bench.broker.refuse_with = [errors.Unavailable("away") for _ in range(40)]
    await bench.open()
    at = [bench.clock.monotonic()]
    while len(bench.broker.streams) < 12:
        count = len(bench.broker.streams)
        due_at = bench.clock.next_due_at()
        assert due_at is not None
        await bench.advance(due_at - bench.clock.monotonic())
        if len(bench.broker.streams) > count:
            at.append(bench.clock.monotonic())
    waits = [round(later - sooner, 3) for sooner, later in itertools.pairwise(at)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0, 10.0]
    assert bench.listener.failures == []


async def test_the_next_break_after_a_good_session_starts_with_short_waits(bench: Bench) -> None:
    bench.broker.refuse_with = [errors.Unavailable("away") for _ in range(6)]
    await bench.open()
    await bench.advance(60)
    assert bench.session.ready
    bench.broker.stream_now.say(None)
    await bench.advance(0.1)
    assert bench.session.ready


@pytest.mark.parametrize(
    "error",
    [
        errors.Unimplemented("this address does not speak gRPC"),
        errors.InvalidArgument("bad", reason="SESSION_PROTOCOL"),
    ],
)
async def test_what_no_repetition_can_heal_stops_the_worker(bench: Bench, error: Exception) -> None:
    bench.broker.refuse_with = [error]
    await bench.open()
    assert bench.listener.failures == [error]


async def test_a_bad_token_is_tried_twice_and_then_told(bench: Bench) -> None:
    bench.broker.refuse_with = [errors.Unauthenticated("bad token") for _ in range(5)]
    await bench.open()
    assert bench.listener.failures == []
    await bench.advance(1)
    assert [str(error) for error in bench.listener.failures] == ["bad token"]
    assert len(bench.broker.streams) == 2


async def test_a_token_that_was_good_once_is_tried_until_it_is_good_again(bench: Bench) -> None:
    await bench.open()
    bench.broker.refuse_with = [errors.Unauthenticated("rotated") for _ in range(5)]
    bench.broker.stream_now.say(errors.Unauthenticated("rotated"))
    await bench.advance(60)
    assert bench.listener.failures == []
    assert bench.session.ready


async def test_a_silent_broker_is_given_up_after_three_pings(bench: Bench) -> None:
    await bench.open()
    await bench.advance(30)
    assert sum(frame.HasField("ping") for frame in bench.frames) == 3
    assert len(bench.broker.streams) == 1
    await bench.advance(11)
    assert len(bench.broker.streams) == 2
    assert bench.broker.streams[0].closed


async def test_pongs_keep_an_idle_session(bench: Bench) -> None:
    await bench.open()
    for _ in range(10):
        await bench.advance(10)
        bench.broker.stream_now.say(wire.WorkResponse(pong=wire.WorkResponse.Pong()))
        await turns()
    assert len(bench.broker.streams) == 1


async def test_a_broker_that_does_not_open_the_session_is_given_up(bench: Bench) -> None:
    bench.broker.accepts = False
    await bench.open()
    await bench.advance(11)
    assert len(bench.broker.streams) == 2


async def test_go_away_opens_a_new_session_at_once(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.broker.stream_now.say(wire.WorkResponse(go_away=wire.WorkResponse.GoAway(within_ms=5_000)))
    await bench.advance(0.1)
    assert len(bench.broker.streams) == 2
    assert [it.lease_token for it in bench.frames[0].open.resume] == ["a"]
    assert bench.session.reconnect.reconnects == 0


async def test_go_away_with_drain_is_passed_on_and_the_stream_stays(bench: Bench) -> None:
    await bench.open()
    bench.broker.stream_now.say(wire.WorkResponse(go_away=wire.WorkResponse.GoAway(drain=True, reason="upgrade")))
    await turns()
    assert bench.listener.drains == ["upgrade"]
    assert len(bench.broker.streams) == 1


# --------------------------------------------------------------------------------------------------- refused, drained


async def test_a_refused_result_is_replaced_by_what_the_runner_says(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.end("a")
    await turns()
    error = types.ItemError(index=0, code=3, reason="PAYLOAD_TOO_LARGE")
    bench.broker.stream_now.settled(bench.frames[-1].settle.seq, errors=[error])
    await turns()
    assert [it.outcome for it in bench.broker.stream_now.settlements] == [
        wire.SETTLE_OUTCOME_COMPLETE,
        wire.SETTLE_OUTCOME_FAIL,
    ]
    bench.broker.stream_now.settled(bench.frames[-1].settle.seq)
    await turns()
    assert len(bench.session.leases) == 0


async def test_an_overloaded_broker_is_asked_again_after_the_time_it_said(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.end("a")
    await turns()
    error = types.ItemError(index=0, code=8, reason="OVERLOADED", retry_after_ms=2_000)
    bench.broker.stream_now.settled(bench.frames[-1].settle.seq, errors=[error])
    await turns()
    assert bench.session.unsettled == 1
    await bench.advance(2)
    assert len(bench.broker.stream_now.settlements) == 2


async def test_a_settlement_that_came_too_late_is_done_with(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.end("a")
    await turns()
    error = types.ItemError(index=0, code=9, reason="LEASE_LOST")
    bench.broker.stream_now.settled(bench.frames[-1].settle.seq, errors=[error])
    await turns()
    assert bench.session.unsettled == 0
    assert bench.listener.refusals == []
    assert len(bench.session.leases) == 0


@rule("1.7")
async def test_a_drain_takes_the_credit_back_and_gives_none_any_more(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.session.drain()
    await turns()
    assert bench.frames[-1].HasField("drain")
    bench.end("a")
    await turns()
    assert len(bench.frames[-1].credits) == 0
    assert not bench.session.ready


async def test_a_drain_outlives_the_session_in_which_it_was_said(bench: Bench) -> None:
    await bench.open()
    bench.session.drain()
    await turns()
    bench.broker.stream_now.say(errors.Unavailable("gone"))
    await bench.advance(0.1)
    assert bench.frames[1].HasField("drain")
    assert len(bench.frames[1].credits) == 0


# --------------------------------------------------------------------------------------------------- progress, logs


@rule("1.8")
async def test_the_last_lines_and_progress_of_a_job_leave_before_its_settlement(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    attempt = bench.listener.attempts["a"]
    bench.session.report_progress(attempt, "1")
    bench.session.append_log(attempt, "info", "done")
    bench.end("a")
    await turns()
    reported, settled = bench.frames[-2:]
    assert [it.progress_json for it in reported.progress] == ["1"]
    assert [it.line for it in reported.logs[0].lines] == ["done"]
    assert not reported.HasField("settle")
    assert [it.lease_token for it in settled.settle.settlements] == ["a"]


async def test_progress_of_one_job_leaves_at_most_ten_times_a_second_and_the_newest_always(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    before = len(bench.frames)
    for step in range(1, 101):
        bench.session.report_progress(bench.listener.attempts["a"], str(step))
        await bench.advance(0.01)
    await bench.advance(0.2)
    reported = [it.progress_json for frame in bench.frames[before:] for it in frame.progress]
    assert len(reported) <= 10
    assert reported[0] == "1"
    assert reported[-1] == "100"


async def test_log_lines_are_gathered_not_dropped_and_split_at_a_hundred(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    for step in range(250):
        bench.session.append_log(bench.listener.attempts["a"], "info", str(step))
    await turns()
    batches = [[it.line for it in request.lines] for frame in bench.frames for request in frame.logs]
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert [line for batch in batches for line in batch] == [str(step) for step in range(250)]


async def test_nothing_is_reported_for_a_lost_lease(bench: Bench) -> None:
    await bench.open()
    await bench.deliver("a")
    bench.broker.stream_now.interrupt(wire.INTERRUPT_CAUSE_REMOVED, "a")
    await turns()
    bench.session.report_progress(bench.listener.attempts["a"], "1")
    await turns()
    assert not any(frame.progress for frame in bench.frames)


# --------------------------------------------------------------------------------------------------- size of frames


async def test_a_frame_stays_below_what_the_broker_accepts(bench: Bench) -> None:
    bench.broker.accepts = False
    await bench.open()
    bench.broker.stream_now.opened(max_frame_bytes=1_000)
    await bench.deliver("a", "b", "c")
    for token in "abc":
        bench.end(token, size=300)
    await turns()
    assert [len(frame.settle.settlements) for frame in bench.frames[-3:]] == [1, 1, 1]


async def test_at_most_a_thousand_settlements_go_in_a_frame() -> None:
    bench = Bench(slots=2_500)
    await bench.open()
    tokens = [f"t{n}" for n in range(2_500)]
    await bench.deliver(*tokens)
    for token in tokens:
        bench.end(token)
    await turns()
    counts = [len(frame.settle.settlements) for frame in bench.frames if frame.HasField("settle")]
    assert counts == [1_000, 1_000, 500]
    await bench.session.close()
