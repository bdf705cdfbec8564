"""One Work stream: its opening, the parts of its frames, what comes back, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.gateway.limits import MIB, Limits
from anvilmq_broker.gateway.session import AHEAD
from anvilmq_proto.v1 import types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import JOB_ID, LOST, TOKEN, Bundle, Streaming, delivery, turns

Frame = pb.WorkRequest
LEASE = commands.LeaseRef(7, START_MS, TOKEN)


def opening(**fields: Any) -> pb.WorkRequest:
    """The first frame of worker w, which serves queues a and b with pool 1, c with pool 2."""
    values: dict[str, Any] = {
        "worker": pb.WorkerIdentity(worker_id="w"),
        "pools": [pb.Pool(id=1, queues=["a", "b"], concurrency=4), pb.Pool(id=2, queues=["c"])],
    }
    return Frame(open=Frame.Open(**{**values, **fields}))


class Work(Streaming):
    """An open session."""

    def __init__(self, bundle: Bundle, first: pb.WorkRequest | None = None) -> None:
        super().__init__(bundle, "WorkerService/Work")
        self._bundle = bundle
        self._first = first or opening()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.wire.send(self._first)
        self.opened = (await self.wire.answer()).opened
        return self

    @property
    def number(self) -> int:
        """The session's number at the engine."""
        return self._bundle.broker.of(commands.OpenSession)[-1].session

    def notify(self, notice: commands.Notice) -> None:
        """The engine speaks."""
        assert self._bundle.broker.notify is not None
        self._bundle.broker.notify(notice)


def settle(seq: int = 1, *outcomes: int) -> pb.WorkRequest:
    items = [pb.Settlement(job_id=JOB_ID, lease_token=TOKEN, outcome=each) for each in outcomes or (1,)]  # type: ignore[arg-type]
    return Frame(settle=pb.SettleJobsRequest(seq=seq, settlements=items))


def renew(seq: int = 1, token: str = TOKEN) -> pb.RenewLeasesRequest:
    return pb.RenewLeasesRequest(seq=seq, leases=[types_pb2.Lease(job_id=JOB_ID, lease_token=token)])


# ------------------------------------------------------------------------------------------------ opening


async def test_a_session_opens_with_who_works_and_on_what() -> None:
    bundle = Bundle()
    resume = [types_pb2.Lease(job_id=JOB_ID, lease_token=TOKEN), types_pb2.Lease(job_id="x", lease_token="y")]
    async with Work(bundle, opening(resume=resume)) as work:
        assert bundle.broker.one(commands.OpenSession) == commands.OpenSession(
            work.number,
            commands.WorkerIdentity("w"),
            [commands.Pool(1, ["a", "b"], 4), commands.Pool(2, ["c"])],
            [LEASE],
        )
        assert (work.opened.ping_every_ms, work.opened.broker_version) == (10_000, "1.2.3")
        assert work.opened.max_frame_bytes == 4 * MIB
        assert [(each.lease_token, each.cause) for each in work.opened.interrupts] == [("y", 2)]


@pytest.mark.parametrize(
    ("frame", "reason", "field"),
    [
        (Frame(), "SESSION_PROTOCOL", None),
        (Frame(ping=Frame.Ping()), "SESSION_PROTOCOL", None),
        (Frame(open=opening().open, ping=Frame.Ping()), "SESSION_PROTOCOL", None),
        (Frame(open=opening().open, credits=[pb.Credit(pool=1)]), "SESSION_PROTOCOL", None),
        (Frame(open=Frame.Open()), "INVALID_FIELD", "open.worker"),
        (opening(worker=pb.WorkerIdentity()), "INVALID_FIELD", "open.worker.worker_id"),
        (opening(pools=[]), "INVALID_FIELD", "open.pools"),
        (opening(pools=[pb.Pool(id=i, queues=[f"q{i}"]) for i in range(1, 34)]), "BATCH_TOO_LARGE", "open.pools"),
        (opening(pools=[pb.Pool(id=0, queues=["a"])]), "INVALID_FIELD", "open.pools[0].id"),
        (opening(pools=[pb.Pool(id=1)]), "INVALID_FIELD", "open.pools[0].queues"),
        (
            opening(pools=[pb.Pool(id=1, queues=[f"q{i}" for i in range(65)])]),
            "BATCH_TOO_LARGE",
            "open.pools[0].queues",
        ),
        (opening(pools=[pb.Pool(id=1, queues=["a", "!"])]), "INVALID_FIELD", "open.pools[0].queues[1]"),
        (
            opening(pools=[pb.Pool(id=1, queues=["a"]), pb.Pool(id=1, queues=["b"])]),
            "INVALID_FIELD",
            "open.pools[1].id",
        ),
        (
            opening(pools=[pb.Pool(id=1, queues=["a"]), pb.Pool(id=2, queues=["b", "a"])]),
            "INVALID_FIELD",
            "open.pools[1].queues[1]",
        ),
        (opening(pools=[pb.Pool(id=1, queues=["a"], concurrency=-1)]), "INVALID_FIELD", "open.pools[0].concurrency"),
        (opening(resume=[types_pb2.Lease(job_id=JOB_ID)]), "INVALID_FIELD", "open.resume[0].lease_token"),
        (opening(max_frame_bytes=1 << 53), "INVALID_FIELD", "open.max_frame_bytes"),
    ],
)
async def test_a_session_that_opens_wrongly_ends(frame: pb.WorkRequest, reason: str, field: str | None) -> None:
    bundle = Bundle()
    async with Streaming(bundle, "WorkerService/Work") as stream:
        stream.wire.send(frame)
        refused = await stream.refusal()
    assert (refused.code, refused.reason) == (3, reason)
    assert refused.fields == ([field] if field else [])
    assert bundle.broker.messages == []


async def test_the_largest_session_is_taken() -> None:
    pools = [pb.Pool(id=i, queues=[f"q{i}-{j}" for j in range(64)]) for i in range(1, 33)]
    async with Work(Bundle(), opening(pools=pools)) as work:
        assert work.opened.ping_every_ms


async def test_a_stream_that_closes_before_it_opens_ends_well() -> None:
    bundle = Bundle()
    async with Streaming(bundle, "WorkerService/Work") as stream:
        stream.wire.close()
        await stream.ends()
    assert bundle.broker.messages == []


async def test_bytes_that_are_no_frame_end_the_session() -> None:
    async with Work(Bundle()) as work:
        work.wire.send(b"\xff\xff")
        assert (await work.refusal()).reason == "MALFORMED_MESSAGE"


async def test_a_second_opening_breaks_the_rules() -> None:
    async with Work(Bundle()) as work:
        work.wire.send(opening())
        assert (await work.refusal()).reason == "SESSION_PROTOCOL"


# -------------------------------------------------------------------------------------------------- parts


@rule("1.4")
async def test_a_settlement_is_answered_with_its_seq_and_each_item_for_itself() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        work.wire.send(settle(5, 1, 0, 2))
        (answer,) = (await work.wire.answer()).settled
        assert (answer.seq, list(answer.states), [each.index for each in answer.errors]) == (5, [5, 0, 5], [1])
        work.wire.send(settle(6, 0))
        (answer,) = (await work.wire.answer()).settled
        assert (answer.seq, list(answer.states)) == (6, [0])
        assert len(bundle.broker.of(commands.Settle)) == 1


@pytest.mark.parametrize(
    ("frame", "reason", "field"),
    [
        (settle(1, *[1] * 1_001), "BATCH_TOO_LARGE", "settle.settlements"),
        (Frame(settle=pb.SettleJobsRequest(seq=1)), "INVALID_FIELD", "settle.settlements"),
        (Frame(settle=pb.SettleJobsRequest(seq=1 << 53, settlements=[pb.Settlement()])), "INVALID_FIELD", "settle.seq"),
        (Frame(renew=pb.RenewLeasesRequest()), "INVALID_FIELD", "renew.leases"),
        (Frame(renew=renew(token="")), "INVALID_FIELD", "renew.leases[0].lease_token"),
        (Frame(credits=[pb.Credit(pool=1, jobs=1), pb.Credit(pool=3, jobs=1)]), "INVALID_FIELD", "credits[1].pool"),
        (Frame(credits=[pb.Credit(pool=1, jobs=1_001)]), "INVALID_FIELD", "credits[0].jobs"),
        (Frame(drain=Frame.Drain(pools=[1, 9])), "INVALID_FIELD", "drain.pools[1]"),
        (Frame(ping=Frame.Ping(at_ms=-1)), "INVALID_FIELD", "ping.at_ms"),
    ],
)
async def test_a_part_that_is_wrong_ends_the_session(frame: pb.WorkRequest, reason: str, field: str) -> None:
    async with Work(Bundle()) as work:
        work.wire.send(frame)
        refused = await work.refusal()
        assert (refused.reason, refused.field) == (reason, field)


async def test_the_parts_of_a_frame_reach_the_engine_in_field_order() -> None:
    bundle = Bundle()
    seen: list[type] = []
    ask, attach = bundle.broker.ask, bundle.broker.attach

    def asking(command: Any) -> asyncio.Future[Any]:
        seen.append(type(command))
        return ask(command)

    def attaching(message: Any, on_notice: Any = None) -> None:
        seen.append(type(message))
        attach(message, on_notice)

    bundle.broker.ask, bundle.broker.attach = asking, attaching  # type: ignore[method-assign]
    async with Work(bundle) as work:
        frame = settle(1)
        frame.credits.add(pool=1, jobs=4)
        frame.renew.CopyFrom(renew())
        frame.progress.add(job_id=JOB_ID, lease_token=TOKEN, progress_json="1")
        frame.logs.add(job_id=JOB_ID, lease_token=TOKEN).lines.add(line="x")
        frame.drain.pools.append(2)
        frame.ping.at_ms = 3
        work.wire.send(frame)
        await turns()
        assert seen == [
            commands.OpenSession,
            commands.Settle,
            commands.AddCredit,
            commands.Renew,
            commands.Report,
            commands.Report,
            commands.DrainSession,
        ]


async def test_credit_and_drain_are_handed_on_as_they_come() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        work.wire.send(Frame(credits=[pb.Credit(pool=1, jobs=1_000), pb.Credit(pool=2, jobs=0)]))
        work.wire.send(Frame(drain=Frame.Drain(pools=[2])))
        work.wire.send(Frame(drain=Frame.Drain()))
        await turns()
        assert bundle.broker.messages[1:] == [
            commands.AddCredit(work.number, [(1, 1_000), (2, 0)]),
            commands.DrainSession(work.number, [2]),
            commands.DrainSession(work.number, []),
        ]
        work.notify(commands.Drained(work.number, []))
        assert list((await work.wire.answer()).drained.pools) == [1, 2]


async def test_a_renewal_is_answered_with_its_seq_and_what_is_lost() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.Renew] = commands.Renewed([commands.Interrupt(7, START_MS, TOKEN, 2)])
    async with Work(bundle) as work:
        work.wire.send(Frame(renew=renew(seq=8)))
        renewed = (await work.wire.answer()).renewed
        assert (renewed.seq, renewed.interrupts[0].job_id, renewed.interrupts[0].cause) == (8, JOB_ID, 2)
        assert bundle.broker.one(commands.Renew) == commands.Renew([LEASE], "w")


async def test_a_ping_is_answered_with_its_time() -> None:
    async with Work(Bundle()) as work:
        work.wire.send(Frame(ping=Frame.Ping(at_ms=77)))
        assert (await work.wire.answer()).pong.at_ms == 77


@rule("1.8")
async def test_reports_that_are_not_valid_are_dropped_and_counted_and_the_others_sent() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        frame = Frame()
        frame.progress.add(job_id=JOB_ID, lease_token=TOKEN, progress_json="{")
        frame.progress.add(job_id=JOB_ID, lease_token=TOKEN, progress_json="2")
        frame.logs.add(job_id="x", lease_token=TOKEN).lines.add(line="x")
        frame.logs.add(job_id=JOB_ID, lease_token=TOKEN)
        work.wire.send(frame)
        await turns()
        assert [each.progress_json for each in bundle.broker.of(commands.Report)] == ["2"]
    (family,) = [each for each in bundle.telemetry.snapshot() if each.name == "anvilmq_reports_dropped_total"]
    assert family.samples[0].value == 3


async def test_a_report_with_a_dead_token_comes_back_as_an_interrupt() -> None:
    bundle = Bundle()
    bundle.broker.answers[commands.Report] = Refused("LEASE_LOST", "gone")
    async with Work(bundle) as work:
        frame = Frame()
        frame.progress.add(job_id=JOB_ID, lease_token=TOKEN, progress_json="2")
        work.wire.send(frame)
        (interrupt,) = (await work.wire.answer()).interrupts
        assert (interrupt.lease_token, interrupt.cause) == (TOKEN, pb.INTERRUPT_CAUSE_LEASE_LOST)


async def test_only_so_many_settlements_are_read_ahead_of_their_answers() -> None:
    bundle = Bundle()
    futures: list[asyncio.Future[Any]] = []

    def hold(_command: commands.Settle) -> asyncio.Future[Any]:
        futures.append(asyncio.get_running_loop().create_future())
        return futures[-1]

    bundle.broker.answers[commands.Settle] = hold
    async with Work(bundle) as work:
        for seq in range(AHEAD + 5):
            work.wire.send(settle(seq))
        await turns(300)
        assert len(futures) == AHEAD
        futures[7].set_result(commands.Settled(b"\5"))
        assert (await work.wire.answer()).settled[0].seq == 7, "in any order"
        await turns()
        assert len(futures) == AHEAD + 1


# ---------------------------------------------------------------------------------------------- deliveries


@rule("1.4")
async def test_what_the_engine_starts_is_sent_at_once() -> None:
    async with Work(Bundle()) as work:
        work.notify(commands.Deliveries(work.number, [delivery(1), delivery(2)]))
        work.notify(commands.Interrupts(work.number, [commands.Interrupt(1, START_MS, "token-1", 1, "stop")]))
        frame = await work.wire.answer()
        assert [each.lease_token for each in frame.deliveries] == ["token-1", "token-2"]
        assert [(each.lease_token, each.reason) for each in frame.interrupts] == [("token-1", "stop")]


async def test_a_frame_is_as_large_as_the_worker_takes_but_never_too_small_for_one_job() -> None:
    bundle = Bundle(limits=Limits(max_payload_bytes=MIB))
    async with Work(bundle, opening(max_frame_bytes=1)) as work:
        work.notify(commands.Deliveries(work.number, [delivery(i, data=b"x" * MIB) for i in range(3)]))
        counts = [len((await work.wire.answer()).deliveries) for _ in range(3)]
        assert counts == [1, 1, 1]
        assert all(size <= 2 * MIB for size in work.wire.sizes)


@rule("1.4")
async def test_deliveries_that_cannot_be_written_go_back() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        work.wire.slow = asyncio.Event()
        work.notify(commands.Deliveries(work.number, [delivery(1)]))
        await turns()
        work.notify(commands.Deliveries(work.number, [delivery(2)]))
        work.wire.broken = True
        work.wire.slow.set()
        await asyncio.wait({work.task})
        await turns()
        assert bundle.broker.messages[1:] == [
            commands.Undeliver(
                work.number,
                [commands.LeaseRef(1, START_MS, "token-1"), commands.LeaseRef(2, START_MS, "token-2")],
            ),
            commands.CloseSession(work.number),
        ]


@rule("1.4")
async def test_a_client_that_is_gone_gets_back_nothing_that_waits_for_it() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        work.wire.slow = asyncio.Event()
        work.notify(commands.Deliveries(work.number, [delivery(1)]))
        await turns()
        work.task.cancel()
        await turns()
        assert bundle.broker.messages[1:] == [
            commands.Undeliver(work.number, [commands.LeaseRef(1, START_MS, "token-1")]),
            commands.CloseSession(work.number),
        ]


# -------------------------------------------------------------------------------------------------- ending


async def test_a_worker_that_closes_its_side_is_answered_first_and_sent_no_more() -> None:
    bundle = Bundle()
    answer = bundle.broker.answers[commands.Settle] = asyncio.get_running_loop().create_future()
    async with Work(bundle) as work:
        work.wire.send(settle(3))
        work.wire.close()
        await turns()
        work.notify(commands.Deliveries(work.number, [delivery(9)]))
        await turns()
        assert not work.task.done()
        answer.set_result(commands.Settled(b"\5"))
        assert (await work.wire.answer()).settled[0].seq == 3
        await work.ends()
        await turns()
        assert work.wire.unread == 0
        assert bundle.broker.messages[1:] == [
            commands.Undeliver(work.number, [commands.LeaseRef(9, START_MS, "token-9")]),
            commands.CloseSession(work.number),
        ]


async def test_a_replaced_session_ends_as_aborted_and_is_not_closed_again() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        work.notify(commands.SessionEnded(work.number, "SESSION_REPLACED"))
        refused = await work.refusal()
        assert (refused.code, refused.reason, refused.metadata) == (10, "SESSION_REPLACED", {"worker_id": "w"})
        await turns()
        assert not bundle.broker.of(commands.CloseSession)


async def test_a_lost_engine_ends_the_session_as_unavailable() -> None:
    for lose in (
        lambda work, bundle: work.notify(commands.SessionEnded(work.number, "NOT_READY")),
        lambda work, bundle: (bundle.broker.answers.update({commands.Settle: LOST}), work.wire.send(settle())),
    ):
        bundle = Bundle()
        async with Work(bundle) as work:
            lose(work, bundle)
            refused = await work.refusal()
            assert (refused.code, refused.reason) == (14, "NOT_READY")


async def test_without_an_engine_no_session_opens() -> None:
    bundle = Bundle()
    bundle.context.lost()
    async with Streaming(bundle, "WorkerService/Work") as stream:
        stream.wire.send(opening())
        assert (await stream.refusal()).reason == "NOT_READY"


async def test_three_silent_intervals_end_the_session() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        bundle.timers.advance(29_999)
        await turns()
        assert not work.task.done()
        bundle.timers.advance(1)
        refused = await work.refusal()
        assert (refused.code, refused.reason, refused.metadata) == (14, "SESSION_TIMEOUT", {"worker_id": "w"})
        assert refused.retry_ms > 0
        await turns()
        assert bundle.broker.one(commands.CloseSession).session == work.number


async def test_a_stream_that_never_opens_ends_as_silent_too() -> None:
    bundle = Bundle()
    async with Streaming(bundle, "WorkerService/Work") as stream:
        await turns()
        bundle.timers.advance(30_000)
        assert (await stream.refusal()).reason == "SESSION_TIMEOUT"


async def test_any_frame_breaks_the_silence_and_the_engine_is_told_once_an_interval() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        for _ in range(12):
            bundle.timers.advance(6_000)
            work.wire.send(Frame(ping=Frame.Ping(at_ms=1)))
            await turns()
        assert not work.task.done()
        assert len(bundle.broker.of(commands.SessionSeen)) == 6


async def test_a_worker_that_is_asked_to_drain_is_told_over_its_stream() -> None:
    async with Work(Bundle()) as work:
        work.notify(commands.GoAway(work.number, "node leaves", True))
        go_away = (await work.wire.answer()).go_away
        assert (go_away.drain, go_away.reason, go_away.within_ms) == (True, "node leaves", 0)


async def test_a_broker_that_leaves_asks_its_workers_to_go_and_ends_their_streams_in_time() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        draining = asyncio.ensure_future(bundle.gateway.drain(1_000))
        go_away = (await work.wire.answer()).go_away
        assert (go_away.within_ms, go_away.drain) == (1_000, False)
        work.wire.send(settle(4))
        assert (await work.wire.answer()).settled[0].seq == 4, "what runs can still be settled"
        bundle.timers.advance(1_000)
        assert (await work.refusal()).reason == "DRAINING"
        await draining


async def test_a_broker_that_leaves_does_not_wait_for_workers_that_have_gone() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        draining = asyncio.ensure_future(bundle.gateway.drain(1_000))
        await turns()
        work.wire.close()
        await work.ends()
        await draining


@rule("1.8")
async def test_progress_that_is_held_back_is_sent_when_the_stream_ends() -> None:
    bundle = Bundle()
    async with Work(bundle) as work:
        frame = Frame()
        for number in range(12):
            frame.progress.add(job_id=JOB_ID, lease_token=TOKEN, progress_json=str(number))
        work.wire.send(frame)
        work.wire.close()
        await work.ends()
    assert [each.progress_json for each in bundle.broker.of(commands.Report)][-1] == "11"
