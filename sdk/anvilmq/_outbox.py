"""What a worker has to say to the broker, and the frames that say it. Pure: no I/O, the time is handed in.

Hot: built once for each turn of the I/O loop, with everything said since the last. The rules (api, section 3):

- A settlement stays here until it is answered, and goes again in a new session.
- Parts of a frame are handled in the order of their fields, settlements first. So the last progress and lines of a
  job that is being settled leave in a frame of their own, *before* the settlement: behind it the token would be dead.
- Above ten frames a second for one job the broker keeps only the newest; here they are gathered instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from anvilmq._attempts import COMPLETED, Attempt
from anvilmq._leases import Lease
from anvilmq_proto.v1 import types_pb2 as types
from anvilmq_proto.v1 import worker_service_pb2 as wire

MAX_ITEMS: Final = 1_000
"""Settlements, and renewals, in one frame."""
MAX_LINES: Final = 100
"""Log lines in one request..."""
KEPT_LINES: Final = 1_000
"""...and the newest of a job that wait here, as many as the broker keeps."""
KEPT_BYTES: Final = 1 << 20
"""All lines of a job that wait here, so that a report fits into a frame."""
REPORT_EVERY_S: Final = 0.125
"""Shortest time between two reports of one job; the last one before its settlement does not wait."""
_ENTRY_BYTES: Final = 192
"""Upper estimate of what an item takes beside its payload: ids, token, tags, lengths."""


_COMPLETE: Final = wire.SETTLE_OUTCOME_COMPLETE
Renewing = tuple[int, Sequence[Lease[Attempt]]]
"""The `seq` of a renewal and its leases; none, if the frame renews nothing."""


class Said(msgspec.Struct, eq=False):
    """A settlement on its way. size: bytes of its payload, or a little more."""

    lease: Lease[Attempt]
    settlement: wire.Settlement
    size: int


class _Report(msgspec.Struct, eq=False):
    """Progress and lines of one job that have not left yet."""

    job_id: str
    token: str
    next_at: float = 0.0
    progress_json: str | None = None
    lines: deque[types.JobLogLine] = msgspec.field(default_factory=deque)
    lines_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes it takes in a frame, or a little more."""
        return self.lines_bytes + len(self.progress_json or "") * 4 + _ENTRY_BYTES


class Outbox:
    """The things to say. frame_bytes: largest frame, as `opened` says."""

    def __init__(self) -> None:
        self.frame_bytes = 4 << 20
        self.draining = False
        self._seq = 0
        self._settlements: deque[Said] = deque()
        self._unanswered: dict[int, tuple[float, list[Said]]] = {}
        self._renewals: deque[Sequence[Lease[Attempt]]] = deque()
        self._reports: dict[str, _Report] = {}
        self._unreported: dict[str, _Report] = {}
        self._last_words: list[_Report] = []
        self._drain = False
        self._ping_at_ms = 0

    # ------------------------------------------------------------------------------------------ what is to be said

    def settle(self, said: Said) -> None:
        """End an attempt. Its gathered progress and lines leave before."""
        self._settlements.append(said)
        if not self._reports or (report := self._reports.pop(said.lease.token, None)) is None:
            return
        if self._unreported.pop(report.token, None) is not None:
            self._last_words.append(report)

    def report_progress(self, job_id: str, token: str, progress_json: str) -> None:
        """Replace the job's progress; the last value counts."""
        self._report(job_id, token).progress_json = progress_json

    def append_log(self, job_id: str, token: str, line: types.JobLogLine) -> None:
        """Add a line to the job's log."""
        report = self._report(job_id, token)
        report.lines.append(line)
        report.lines_bytes += line.ByteSize() + 4
        while len(report.lines) > KEPT_LINES or report.lines_bytes > KEPT_BYTES:
            report.lines_bytes -= report.lines.popleft().ByteSize() + 4

    def forget(self, token: str) -> None:
        """The lease is lost: what its job reported would be refused."""
        self._reports.pop(token, None)
        self._unreported.pop(token, None)

    def drain(self) -> None:
        """Take all credit back."""
        self.draining = self._drain = True

    def ping(self, at_ms: int) -> None:
        """Show that this worker lives. at_ms: Unix time, comes back with the answer."""
        self._ping_at_ms = at_ms

    # ------------------------------------------------------------------------------------------------------ frames

    def next_report_at(self) -> float | None:
        """When gathered progress or lines may leave; None when there are none."""
        if not self._unreported:
            return None
        return min(report.next_at for report in self._unreported.values())

    def frames(
        self, now: float, credits: Sequence[wire.Credit], renew: Sequence[Lease[Attempt]]
    ) -> Iterator[tuple[wire.WorkRequest, Renewing]]:
        """All that is to be said, one frame as a rule; each with what it renews."""
        if self._last_words:
            yield from self._last_words_frames()
        if renew:
            self._renewals.extend(renew[first : first + MAX_ITEMS] for first in range(0, len(renew), MAX_ITEMS))
        unsaid = credits
        while unsaid or self._has_something(now):
            frame = wire.WorkRequest()
            room = self._put_settlements(frame, now, self.frame_bytes - _ENTRY_BYTES)
            if unsaid:
                frame.credits.extend(unsaid)
                unsaid = ()
            renewing = self._put_renewals(frame)
            self._put_reports(frame, now, room)
            if self._drain:
                frame.drain.SetInParent()
                self._drain = False
            if self._ping_at_ms:
                frame.ping.at_ms = self._ping_at_ms
                self._ping_at_ms = 0
            yield frame, renewing

    def answered(self, seq: int) -> tuple[float, list[Said]] | None:
        """When the settlements `seq` left, and what they were; None for an answer to nothing. They are done with."""
        return self._unanswered.pop(seq, None)

    @property
    def unsettled(self) -> int:
        """Settlements without an answer, sent or not."""
        return len(self._settlements) + sum(len(said) for _, said in self._unanswered.values())

    def disconnected(self) -> None:
        """The session broke: what was not answered goes again, in its old order; what only it concerned is dropped."""
        for seq in sorted(self._unanswered, reverse=True):
            self._settlements.extendleft(reversed(self._unanswered[seq][1]))
        self._unanswered.clear()
        self._renewals.clear()
        self._ping_at_ms = 0
        self._drain = self.draining

    def _report(self, job_id: str, token: str) -> _Report:
        report = self._reports.get(token)
        if report is None:
            report = self._reports[token] = _Report(job_id=job_id, token=token)
        self._unreported[token] = report
        return report

    def _has_something(self, now: float) -> bool:
        if self._settlements or self._renewals or self._drain or self._ping_at_ms:
            return True
        return bool(self._unreported) and any(report.next_at <= now for report in self._unreported.values())

    def _put_settlements(self, frame: wire.WorkRequest, now: float, room: int) -> int:
        """Move settlements into the frame; returns the bytes left. One always fits, whatever its size."""
        waiting = self._settlements
        if not waiting:
            return room
        self._seq += 1
        frame.settle.seq = self._seq
        put = frame.settle.settlements
        batch: list[Said] = []
        for _ in range(min(len(waiting), MAX_ITEMS)):
            said = waiting[0]
            size = said.size + _ENTRY_BYTES
            if size > room and batch:
                break
            room -= size
            batch.append(waiting.popleft())
            if said.settlement is COMPLETED:
                # Field by field: by name in one call it takes longer.
                item, lease = put.add(), said.lease
                item.job_id, item.lease_token, item.outcome = lease.job_id, lease.token, _COMPLETE
            else:
                put.append(said.settlement)
        self._unanswered[self._seq] = (now, batch)
        return room

    def _put_renewals(self, frame: wire.WorkRequest) -> Renewing:
        if not self._renewals:
            return 0, []
        leases = self._renewals.popleft()
        self._seq += 1
        frame.renew.seq = self._seq
        frame.renew.leases.extend(types.Lease(job_id=lease.job_id, lease_token=lease.token) for lease in leases)
        return self._seq, leases

    def _put_reports(self, frame: wire.WorkRequest, now: float, room: int) -> None:
        if not self._unreported:
            return
        for report in [report for report in self._unreported.values() if report.next_at <= now]:
            if report.size > room and (frame.progress or frame.logs or frame.HasField("settle")):
                return
            room -= report.size
            del self._unreported[report.token]
            _put_report(frame, report)
            report.next_at = now + REPORT_EVERY_S

    def _last_words_frames(self) -> Iterator[tuple[wire.WorkRequest, Renewing]]:
        frame, room = wire.WorkRequest(), self.frame_bytes
        for report in self._last_words:
            if report.size > room and (frame.progress or frame.logs):
                yield frame, (0, [])
                frame, room = wire.WorkRequest(), self.frame_bytes
            room -= report.size
            _put_report(frame, report)
        self._last_words = []
        yield frame, (0, [])


def _put_report(frame: wire.WorkRequest, report: _Report) -> None:
    """Empty the report into the frame."""
    if report.progress_json is not None:
        frame.progress.add(job_id=report.job_id, lease_token=report.token, progress_json=report.progress_json)
    lines = list(report.lines)
    for first in range(0, len(lines), MAX_LINES):
        frame.logs.add(job_id=report.job_id, lease_token=report.token, lines=lines[first : first + MAX_LINES])
    report.progress_json, report.lines_bytes = None, 0
    report.lines.clear()
