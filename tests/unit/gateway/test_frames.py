"""What is ready together leaves together; large frames are cut, and nothing overtakes what it speaks of."""

from __future__ import annotations

from anvilmq_broker.domain import commands
from anvilmq_broker.gateway import frames, mapping
from anvilmq_broker.gateway.frames import Outbox
from anvilmq_broker.gateway.limits import KIB, MIB
from anvilmq_proto.v1 import types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb
from tests.support.clock import START_MS
from tests.support.rules import rule
from tests.unit.gateway.bundle import delivery


def outbox(max_bytes: int = 4 * MIB) -> Outbox:
    """One that may speak."""
    box = Outbox(max_bytes)
    box.opened(pb.WorkResponse.Opened())
    box.next_frame()
    return box


def all_frames(box: Outbox) -> list[pb.WorkResponse]:
    found = []
    while box:
        found.append(pb.WorkResponse.FromString(box.next_frame()[0]))
    return found


def test_nothing_is_said_before_opened() -> None:
    box = Outbox(4 * MIB)
    box.pong(1)
    box.deliveries([delivery()])
    assert not box
    box.opened(pb.WorkResponse.Opened(ping_every_ms=5))
    first, second = all_frames(box)
    assert [field.name for field, _ in first.ListFields()] == ["opened"]
    assert [field.name for field, _ in second.ListFields()] == ["deliveries", "pong"]


def test_what_is_ready_at_one_time_leaves_in_one_frame() -> None:
    box = outbox()
    box.settled(pb.SettleJobsResponse(seq=1))
    box.settled(pb.SettleJobsResponse(seq=2))
    box.deliveries([delivery(1), delivery(2)])
    box.renewed(pb.RenewLeasesResponse(seq=3))
    box.interrupts([commands.Interrupt(7, START_MS, "t", 1)])
    box.drained([2, 1])
    box.go_away(pb.WorkResponse.GoAway(reason="r"))
    box.pong(9)
    (frame,) = all_frames(box)
    assert [each.seq for each in frame.settled] == [1, 2]
    assert (len(frame.deliveries), frame.renewed.seq, len(frame.interrupts)) == (2, 3, 1)
    assert (list(frame.drained.pools), frame.go_away.reason, frame.pong.at_ms) == ([1, 2], "r", 9)


def test_an_empty_pong_or_drained_is_still_said() -> None:
    box = outbox()
    box.pong(0)
    box.drained([])
    (frame,) = all_frames(box)
    assert frame.HasField("pong")
    assert frame.HasField("drained")


def test_two_renewals_leave_in_two_frames() -> None:
    box = outbox()
    box.renewed(pb.RenewLeasesResponse(seq=1))
    box.renewed(pb.RenewLeasesResponse(seq=2))
    assert [frame.renewed.seq for frame in all_frames(box)] == [1, 2]


@rule("1.4")
def test_a_frame_has_at_most_256_deliveries() -> None:
    box = outbox()
    box.deliveries(delivery(number) for number in range(600))
    assert [len(frame.deliveries) for frame in all_frames(box)] == [256, 256, 88]


def test_a_frame_stays_below_its_bytes() -> None:
    box = outbox(2 * MIB)
    box.deliveries(delivery(number, data=b"x" * (MIB // 3)) for number in range(20))
    found = all_frames(box)
    assert sum(len(frame.deliveries) for frame in found) == 20
    assert all(frame.ByteSize() <= 2 * MIB for frame in found)
    assert len(found) < 6


def test_the_weight_of_a_delivery_is_never_less_than_what_it_takes() -> None:
    heavy = delivery(
        data=b"x" * 999,
        queue="q" * 128,
        name="ä" * 64,
        content_type="t" * 128,
        key="€" * 85,
        headers={f"h{i}": "ü" * 120 for i in range(32)},
        labels={f"{'k' * 61}{i:02}": "€" * 42 for i in range(32)},
        progress_json='"' + "€" * 20_000 + '"',
    )
    for one in (heavy, delivery(), delivery(queue="q" * 128, name="n" * 128, content_type="t" * 128, key="k" * 255)):
        box = outbox()
        box.deliveries([one])
        assert len(box.next_frame()[0]) <= frames.weight(one)


def test_a_delivery_larger_than_a_frame_goes_alone() -> None:
    box = outbox(KIB)
    box.deliveries([delivery(1, data=b"x" * MIB), delivery(2)])
    assert [len(frame.deliveries) for frame in all_frames(box)] == [1, 1]


def test_interrupts_and_drained_do_not_overtake_the_deliveries_they_speak_of() -> None:
    box = outbox()
    box.deliveries(delivery(number) for number in range(300))
    box.interrupts([commands.Interrupt(299, START_MS, "token-299", 1)])
    box.drained([1])
    first, second = all_frames(box)
    assert (len(first.interrupts), first.HasField("drained")) == (0, False)
    assert (len(second.interrupts), second.HasField("drained")) == (1, True)


def test_many_errors_of_settlements_are_spread_over_frames() -> None:
    box = outbox(MIB)
    for seq in range(8):
        errors = [types_pb2.ItemError(index=i, message="x" * 200) for i in range(1_000)]
        box.settled(pb.SettleJobsResponse(seq=seq, states=[0] * 1_000, errors=errors))  # type: ignore[list-item]
    box.pong(1)
    found = all_frames(box)
    assert [each.seq for frame in found for each in frame.settled] == list(range(8))
    assert all(frame.ByteSize() <= MIB for frame in found)
    assert [frame.HasField("pong") for frame in found] == [False] * (len(found) - 1) + [True]


def test_what_was_not_written_can_be_taken_out() -> None:
    box = outbox()
    box.deliveries([delivery(1), delivery(2)])
    assert [lease.token for lease in box.undelivered()] == ["token-1", "token-2"]
    assert not box


def test_a_go_away_that_drains_is_not_replaced_by_one_that_does_not() -> None:
    box = outbox()
    box.go_away(pb.WorkResponse.GoAway(drain=True, reason="leave"))
    box.go_away(pb.WorkResponse.GoAway(reason="again"))
    (frame,) = all_frames(box)
    assert frame.go_away.reason == "leave"


def test_the_first_deliveries_that_fit_together_are_counted() -> None:
    assert frames.fitting([], MIB, 256) == 0
    assert frames.fitting([delivery(data=b"x" * MIB)], 1, 256) == 1
    assert frames.fitting([delivery()] * 300, 4 * MIB, 256) == 256


def test_the_bytes_of_a_delivery_are_those_of_its_message() -> None:
    many = [
        delivery(number, created_ms=START_MS + number % 3, data=b"x" * size, **fields)
        for number, size in ((1, 0), (2, 127), (3, 128), (1_024, 16_383), (1 << 40, 16_384), (7, 3 * MIB))
        for fields in (
            {},
            {"content_type": "text/plain", "attempt": 300, "starts": 301, "attempt_timeout_ms": 1 << 40, "priority": 9},
            {"name": "ä", "lease_ms": 1, "max_attempts": 1_000, "pool": (1 << 32) - 1, "token": "t" * 64},
            {"headers": {"h": "ü"}, "labels": {"l": ""}, "key": "k", "stalled": 2, "progress_json": "1"},
            {"scheduler": "nightly", "tick_at_ms": START_MS},
        )
    ]
    plain = pb.WorkResponse()
    mapping.put_deliveries(plain.deliveries, many)
    box = outbox(64 * MIB)
    box.deliveries(many)
    (frame,) = all_frames(box)
    assert frame == plain
