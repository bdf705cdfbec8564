"""Adds the jobs of a source in batches, each line once however often it is sent.

A line's key is made of the hash of all lines and its number, so a second run meets the jobs of the first. Batches go
one after the other, so jobs are added in the order of the lines.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import msgspec

from anvilmq import _retry, errors
from anvilmq.cli import specs
from anvilmq.cli.patience import LONGEST_S, Patience
from anvilmq.cli.sources import LONGEST_LINE, Line, Source
from anvilmq_proto.v1 import job_service_pb2 as jobs
from anvilmq_proto.v1.types_pb2 import JobSpec

if TYPE_CHECKING:
    from anvilmq.admin import Admin
    from anvilmq.cli.command import Cli
    from anvilmq.cli.progress import Progress

BATCH_JOBS: Final = 1_000
BATCH_BYTES: Final = 8 << 20
"""Half of what a broker takes, and more than the longest line together with it."""
_TOLD: Final = 10
_TRANSIENT: Final = frozenset({8, 14})  # RESOURCE_EXHAUSTED, UNAVAILABLE


class Item(NamedTuple):
    """A line and the job that it describes."""

    line: Line
    spec: JobSpec


class Totals(msgspec.Struct):
    """What became of the lines."""

    added: int = 0
    existing: int = 0
    refused: int = 0

    def text(self) -> str:
        """In words."""
        parts = [f"{self.added} added", f"{self.existing} there already", f"{self.refused} refused"]
        return ", ".join(part for part in parts if not part.startswith("0 ")) or "nothing added"


class Rejected:
    """The file that refused lines go to: one object a line. It exists only if there are any."""

    def __init__(self, path: Path, cli: Cli) -> None:
        self.path = path
        self._cli = cli
        self._file: IO[str] | None = None
        self._count = 0

    def write(self, line: Line, error: errors.CallError | specs.LineProblem) -> None:
        """Keep a line with what is wrong with it; the first few are told as well."""
        if self._file is None:
            self._file = self.path.open("w", encoding="utf-8")
        told = _told(error)
        kept = {"line": line.number, **told, "input": line.text.decode(errors="replace")}
        self._file.write(f"{json.dumps(kept, ensure_ascii=False)}\n")
        self._count += 1
        if self._count <= _TOLD:
            place = _place(told)
            self._cli.terminal.error(f"line {line.number}: {place}{told['message']} ({told['reason']})")
        elif self._count == _TOLD + 1:
            self._cli.terminal.error(f"more lines are refused; {self.path} has them all")

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    def remove_stale(self) -> None:
        """Remove what an earlier run left, when this one refused nothing."""
        if self._file is None:
            self.path.unlink(missing_ok=True)


class Loader:
    """Sends the lines of a source."""

    def __init__(self, cli: Cli, admin: Admin, queue: str, name: str | None, rejected: Rejected) -> None:
        self._cli = cli
        self._admin = admin
        self._queue = queue
        self._name = name
        self._rejected = rejected
        self._patience = Patience(cli.clock, cli.terminal.note)
        # With a producer a batch that is sent again gets its first answer: what it added counts as added.
        self._producer_id = secrets.token_hex(8)
        self._seq = 0
        self.totals = Totals()

    async def send_all(self, source: Source, progress: Progress) -> None:
        """Each line for itself: those that are refused are kept, the others are added."""
        for batch, unfit in self._batches(source):
            for line, problem in unfit:
                self._refuse(line, problem)
            await self._send(batch)
            progress.add(len(batch) + len(unfit))

    async def send_atomically(self, source: Source) -> None:
        """All lines in one transaction, or none. LineFault names the line that is at fault."""
        items = [self._item(line, source) for line in source.lines()]
        if not items:
            return
        request = self._request([item.spec for item in items], jobs.ATOMICITY_ALL_OR_NOTHING)
        try:
            answer = await self._patience.call(partial(self._admin.add_job_bulk, request))
        except errors.CallError as error:
            if error.index is None:
                raise
            raise LineFault(items[error.index].line, error) from error
        self._count(items, answer)

    def _item(self, line: Line, source: Source) -> Item:
        try:
            return Item(line, self._spec(line, source))
        except specs.LineProblem as problem:
            raise LineFault(line, problem) from problem

    def _batches(self, source: Source) -> Iterator[tuple[list[Item], list[tuple[Line, specs.LineProblem]]]]:
        """Batches in the order of the lines, each with the lines among them that are no jobs."""
        batch: list[Item] = []
        unfit: list[tuple[Line, specs.LineProblem]] = []
        size = 0
        for line in source.lines():
            if len(batch) + len(unfit) == BATCH_JOBS or size + len(line.text) > BATCH_BYTES:
                yield batch, unfit
                batch, unfit, size = [], [], 0
            try:
                batch.append(Item(line, self._spec(line, source)))
                size += len(line.text)
            except specs.LineProblem as problem:
                unfit.append((line, problem))
        yield batch, unfit

    def _spec(self, line: Line, source: Source) -> JobSpec:
        if len(line.text) > LONGEST_LINE:
            raise specs.LineProblem(f"is longer than {LONGEST_LINE >> 20} MiB")
        spec = specs.from_line(line.text, self._queue, self._name)
        if not spec.idempotency_key:
            spec.idempotency_key = f"load:{source.digest[:32]}:{line.number}"
        return spec

    async def _send(self, batch: list[Item]) -> None:
        """Send a batch until every job in it is added or refused for good."""
        failures = 0
        stuck_since = self._cli.clock.monotonic()
        while batch:
            request = self._request([item.spec for item in batch], jobs.ATOMICITY_PER_ITEM)
            answer = await self._patience.call(partial(self._admin.add_job_bulk, request))
            again, last = self._count(batch, answer)
            if len(again) < len(batch):
                failures, stuck_since = 0, self._cli.clock.monotonic()
            if last is not None:
                failures += 1
                if self._cli.clock.monotonic() - stuck_since > LONGEST_S:
                    raise last
                await self._cli.clock.sleep(_retry.delay_s(failures, random.random(), last))
            batch = again

    def _request(self, of: list[JobSpec], atomic: jobs.Atomicity) -> jobs.AddJobBulkRequest:
        self._seq += 1
        return jobs.AddJobBulkRequest(jobs=of, atomic=atomic, producer_id=self._producer_id, seq=self._seq)

    def _count(self, batch: list[Item], answer: jobs.AddJobBulkResponse) -> tuple[list[Item], errors.CallError | None]:
        """Count an answer; the items to send again, and the error that one of them met."""
        again: list[Item] = []
        last: errors.CallError | None = None
        for refusal in answer.errors:
            item, error = batch[refusal.index], errors.from_item_error(refusal)
            if error.code in _TRANSIENT:
                again.append(item)
                last = error
            else:
                self._refuse(item.line, error)
        existing = sum(earlier.existing for earlier in answer.earlier)
        self.totals.existing += existing
        self.totals.added += len(batch) - len(answer.errors) - existing
        if self._cli.printer.form.value == "name":
            for job_id in filter(None, answer.job_ids):
                self._cli.terminal.out(job_id)
        return again, last

    def _refuse(self, line: Line, error: errors.CallError | specs.LineProblem) -> None:
        self.totals.refused += 1
        self._rejected.write(line, error)


class LineFault(Exception):
    """A line that keeps all of them from being added."""

    def __init__(self, line: Line, error: errors.CallError | specs.LineProblem) -> None:
        told = _told(error)
        place = _place(told)
        super().__init__(f"line {line.number}: {place}{told['message']} ({told['reason']}); nothing was added")
        self.error = error


def _told(error: errors.CallError | specs.LineProblem) -> dict[str, str]:
    if isinstance(error, specs.LineProblem):
        return {"reason": "INVALID_LINE", "field": error.field, "message": str(error)}
    return {"reason": error.reason, "field": next(iter(error.fields), ""), "message": error.message}


def _place(told: dict[str, str]) -> str:
    """The field, before a message that does not begin with it by itself."""
    place = f"{told['field']}: " if told["field"] else ""
    return "" if told["message"].startswith(place) else place


async def load(cli: Cli, loader: Loader, source: Source, progress: Progress) -> None:
    """Send all lines; when it is broken off, say what is done and how to go on."""
    try:
        await loader.send_all(source, progress)
    except (errors.AnvilError, asyncio.CancelledError):
        cli.terminal.error(
            f"stopped: {loader.totals.text()}, of {source.count} lines. "
            "Run the same command again to go on: no line is added twice."
        )
        raise
