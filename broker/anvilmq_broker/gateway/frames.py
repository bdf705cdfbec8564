"""What a worker's session has to say, and how it is cut into frames. Runs for every job: terse on purpose."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from anvilmq_broker.domain import commands
from anvilmq_broker.gateway import limits, mapping
from anvilmq_broker.gateway.deliveries import Deliveries
from anvilmq_proto.v1 import worker_service_pb2 as pb

_DELIVERY_BYTES: Final = 1_024
_ERROR_BYTES: Final = 512
_MAX_INTERRUPTS: Final = 1_000


def weight(one: commands.Delivery) -> int:
    """Bytes that a delivery takes in a frame, at most."""
    size = len(one.data) + _DELIVERY_BYTES
    if one.progress_json:
        size += 4 * len(one.progress_json)
    if one.headers:
        size += limits.MAX_HEADER_BYTES + 8 * len(one.headers)
    if one.labels:
        size += 256 * len(one.labels)
    return size


def fitting(deliveries: Sequence[commands.Delivery], max_bytes: int, max_count: int) -> int:
    """How many of the first deliveries fit together; at least one, whatever its size."""
    room = max_bytes
    for index, one in enumerate(deliveries):
        room -= weight(one)
        if index and (room < 0 or index >= max_count):
            return index
    return len(deliveries)


class Outbox:
    """The answers of one session that are not written yet; what is ready together leaves together."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._encoder = Deliveries()
        self._may_speak = False
        self._opened: pb.WorkResponse.Opened | None = None
        self._settled: deque[pb.SettleJobsResponse] = deque()
        self._deliveries: deque[commands.Delivery] = deque()
        self._renewed: deque[pb.RenewLeasesResponse] = deque()
        self._interrupts: deque[commands.Interrupt] = deque()
        self._drained: list[int] | None = None
        self._go_away: pb.WorkResponse.GoAway | None = None
        self._pong: int | None = None

    def __bool__(self) -> bool:
        # Nothing is said before `opened`.
        return self._may_speak and bool(
            self._settled
            or self._deliveries
            or self._renewed
            or self._interrupts
            or self._opened is not None
            or self._drained is not None
            or self._go_away is not None
            or self._pong is not None
        )

    def opened(self, message: pb.WorkResponse.Opened) -> None:
        """The first answer."""
        self._may_speak = True
        self._opened = message

    def settled(self, message: pb.SettleJobsResponse) -> None:
        """The answer to a settle part."""
        self._settled.append(message)

    def deliveries(self, found: Iterable[commands.Delivery]) -> None:
        """Started attempts."""
        self._deliveries.extend(found)

    def renewed(self, message: pb.RenewLeasesResponse) -> None:
        """The answer to a renew part."""
        self._renewed.append(message)

    def interrupts(self, found: Iterable[commands.Interrupt]) -> None:
        """Attempts that must stop."""
        self._interrupts.extend(found)

    def drained(self, pools: Iterable[int]) -> None:
        """No delivery against the credit of these pools follows those that are in here."""
        self._drained = sorted({*(self._drained or ()), *pools})

    def go_away(self, message: pb.WorkResponse.GoAway) -> None:
        """The worker shall leave this stream. One that says drain is kept over one that does not."""
        if self._go_away is None or not self._go_away.drain:
            self._go_away = message

    def pong(self, at_ms: int) -> None:
        """The answer to the newest ping."""
        self._pong = at_ms

    def undelivered(self) -> list[commands.LeaseRef]:
        """The deliveries in here, taken out: they will not be written."""
        left = [lease_of(one) for one in self._deliveries]
        self._deliveries.clear()
        return left

    def next_frame(self) -> tuple[bytes, list[commands.Delivery]]:
        """The next frame, encoded, and the deliveries in it. Call only while there is something."""
        frame = pb.WorkResponse()
        if self._opened is not None:
            frame.opened.CopyFrom(self._opened)
            self._opened = None
            return frame.SerializeToString(), []
        room = self._take_settled(frame, self.max_bytes)
        sent, encoded = self._take_deliveries(room, frame)
        if self._renewed:
            frame.renewed.CopyFrom(self._renewed.popleft())
        if not self._deliveries and not self._settled:
            # What follows speaks of deliveries that are in here, or have left.
            if self._interrupts:
                count = min(len(self._interrupts), _MAX_INTERRUPTS)
                mapping.put_interrupts(frame.interrupts, [self._interrupts.popleft() for _ in range(count)])
            self._take_rest(frame)
        # An encoding and another one behind it are the encoding of both together.
        return b"".join((frame.SerializeToString(), *encoded)), sent

    def _take_settled(self, frame: pb.WorkResponse, room: int) -> int:
        while self._settled and room > 0:
            one = self._settled.popleft()
            room -= 32 + len(one.states) + _ERROR_BYTES * len(one.errors)
            frame.settled.append(one)
        return room

    def _take_deliveries(self, room: int, frame: pb.WorkResponse) -> tuple[list[commands.Delivery], list[bytes]]:
        waiting, sent, encoded = self._deliveries, list[commands.Delivery](), list[bytes]()
        encode = self._encoder.encode
        while waiting and len(sent) < limits.MAX_FRAME_DELIVERIES:
            one = encode(waiting[0])
            room -= len(one)
            # A delivery waits for a frame of its own when others, or settlements, have used the room up.
            if room < 0 and (sent or frame.settled):
                break
            sent.append(waiting.popleft())
            encoded.append(one)
        return sent, encoded

    def _take_rest(self, frame: pb.WorkResponse) -> None:
        if self._drained is not None:
            frame.drained.pools.extend(self._drained)
            frame.drained.SetInParent()
            self._drained = None
        if self._go_away is not None:
            frame.go_away.CopyFrom(self._go_away)
            self._go_away = None
        if self._pong is not None:
            frame.pong.at_ms = self._pong
            frame.pong.SetInParent()
            self._pong = None


def lease_of(one: commands.Delivery) -> commands.LeaseRef:
    """The lease that a delivery brings."""
    return commands.LeaseRef(one.number, one.created_ms, one.token)
