"""The seam between the engine and a store: commands in, outcomes and effects out; no SQL, row or connection in it.

A batch is one transaction. The engine begins it with its clock, applies commands, lets idle workers claim, commits,
and only then lets effects touch its memory and answers leave. A store keeps no time, draws no chance and makes no
token of its own: `Chance` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from anvilmq_broker.domain import commands, job, scheduler
from anvilmq_broker.domain.state import State


class Chance(Protocol):
    """Where unguessable and random values come from; tests hand in a seeded one."""

    def token(self) -> str:
        """A fresh lease token: text, at most 64 bytes, at least 128 bits of entropy in production."""

    def spread(self) -> float:
        """A number in [0, 1), for jitter."""


class Slot(msgspec.Struct, frozen=True):
    """Room for one job: who takes it. claim_id: "" for a session. handle: the engine's own, returned untouched."""

    worker_id: str
    claim_id: str = ""
    handle: int = 0


TakeSlot = Callable[[str], Slot | None]
"""Given a queue, the slot of an idle worker, which is used up by the call, or None."""


# ------------------------------------------------------------------ effects: what memory does after the commit


class Started(msgspec.Struct, frozen=True):
    """A slot took a job: deliver, hold the lease, watch timeout_at_ms (0 = none).

    run_at_ms: when the job last arrived or fell due, for the metrics of waiting; 0 = not told.
    """

    slot: Slot
    delivery: commands.Delivery
    timeout_at_ms: int = 0
    run_at_ms: int = 0


class Ended(msgspec.Struct, frozen=True):
    """The job is terminal: watchers are told, its timers are void."""

    queue: str
    number: int
    created_ms: int
    state: int
    reason: int


class Freed(msgspec.Struct, frozen=True):
    """The lease of an attempt ended by a settlement or by the engine's own Reap. outcome: state.AttemptOutcome,
    0 for an undelivered one, which counts nowhere."""

    queue: str
    number: int
    token: str
    outcome: int
    started_at_ms: int


class Completed(msgspec.Struct, frozen=True):
    """Attempts that completed their jobs: for each of them what Freed and Ended say together, at a third of the price.

    jobs: (number, created_ms, token, started_at_ms) of each.
    """

    queue: str
    jobs: list[tuple[int, int, str, int]]


class Interrupted(msgspec.Struct, frozen=True):
    """The worker holding the lease must be told. cause: state.InterruptCause."""

    number: int
    created_ms: int
    token: str
    cause: int
    reason: str = ""


class Parked(msgspec.Struct, frozen=True):
    """A released job waits out of the line until at_ms; the engine then sends Reap.parked."""

    number: int
    created_ms: int
    at_ms: int


class Expires(msgspec.Struct, frozen=True):
    """A job that must start by at_ms; the engine then sends Reap.expired, which ignores a started one."""

    number: int
    created_ms: int
    at_ms: int


class Queued(msgspec.Struct, frozen=True):
    """A job joined the line of `queue` and is claimable from ready_at_ms on (0 = now): dispatch and timers look."""

    queue: str
    ready_at_ms: int


class Added(msgspec.Struct, frozen=True):
    """`count` jobs were added to `queue`, `existing` items met an earlier job; for metrics. source: api, scheduler."""

    queue: str
    count: int
    existing: int = 0
    source: str = "api"


class Ticks(msgspec.Struct, frozen=True):
    """The definition is due at due_ms next, None: never; the engine then sends FireDue.

    standing: for the metrics, active, suspended, ended or problem; "": it is gone.
    """

    uid: str
    due_ms: int | None
    standing: str = ""


class Ticked(msgspec.Struct, frozen=True):
    """What the ticks of one FireDue came to; for metrics. late_ms: of each that made a run, since it was due."""

    late_ms: list[int]
    skipped: int = 0
    missed: int = 0


Effect = Started | Completed | Ended | Freed | Interrupted | Parked | Expires | Queued | Added | Ticks | Ticked


def ticks_of(it: scheduler.Scheduler) -> Ticks:
    """What the engine is told of a definition."""
    due = scheduler.due_ms(it)
    return Ticks(it.uid, due, standing(due, it.suspended, it.problem_reason))


def standing(due_ms: int | None, suspended: bool, problem_reason: str) -> str:
    """See Ticks."""
    if problem_reason:
        return "problem"
    if suspended:
        return "suspended"
    return "ended" if due_ms is None else "active"


def effects_of(change: job.Change) -> list[Effect]:
    """What a decided change of one job means for the engine's memory; the same whatever store keeps the job."""
    before, after = change.before, change.job
    effects: list[Effect] = []
    if before.token is not None and after.token is None:
        outcome = change.attempt_outcome
        effects.append(Freed(after.queue, after.number, before.token, outcome, before.started_at_ms))
    if change.ended:
        effects.append(Ended(after.queue, after.number, after.created_ms, int(after.state), after.finish_reason))
    elif after.ready_at_ms is not None:
        effects.append(Queued(after.queue, after.ready_at_ms))
    elif after.state is State.DELAYED:
        effects.append(Parked(after.number, after.created_ms, after.run_at_ms))
    if after.expires_at_ms and not after.starts and before.starts:
        # An undelivered claim is as if it had not been: its expiry counts again.
        effects.append(Expires(after.number, after.created_ms, after.expires_at_ms))
    return effects


class Applied(NamedTuple):
    """What one command came to."""

    outcome: commands.Outcome
    effects: list[Effect]


class Batch(Protocol):
    """One open transaction."""

    def apply(self, batch: Sequence[commands.Command], take_slot: TakeSlot) -> list[Applied]:
        """Carry out the commands in order, one Applied each; a refused one changes nothing and spoils no other.

        AddJobs may start jobs at once when take_slot gives a slot and no claimable job stands before them.
        Claim here starts what is claimable now; its wait_ms is the engine's. Renew never comes here.
        Raises errors.StoreError; the batch is then rolled back and void.
        """

    def claim(self, queue: str, slots: Sequence[Slot]) -> list[Started]:
        """Start the next claimable jobs of the queue, at most one a slot, in order.

        Fewer: nothing more is claimable now, or the payloads came to a bound of the store, at least 8 MiB.
        """

    def next_ready_at(self, queue: str) -> int | None:
        """When the line's earliest job that is not claimable yet becomes so; 0: one is claimable now; None: empty line."""

    def commit(self) -> None:
        """Make the batch durable as the store's durability says. Raises errors.StoreError: outcome unknown, stop."""

    def rollback(self) -> None:
        """Drop everything of the batch."""


class HeldLease(msgspec.Struct, frozen=True):
    """An attempt that was active when the store was opened."""

    number: int
    created_ms: int
    token: str
    queue: str
    worker_id: str
    claim_id: str
    lease_ms: int
    timeout_at_ms: int
    started_at_ms: int
    cancel_requested: bool = False


class Opening(msgspec.Struct, frozen=True):
    """What the engine rebuilds its memory from; O(active + timers + definitions), never the backlog.

    queues: queue → next_ready_at as in Batch. counts: (queue, state) → jobs. now_ms: clock of the last commit.
    """

    now_ms: int
    leases: list[HeldLease]
    parked: list[Parked]
    expires: list[Expires]
    queues: dict[str, int | None]
    counts: dict[tuple[str, int], int]
    ticks: list[Ticks] = []


class Store(Protocol):
    """A place where jobs are kept."""

    schema_version: int

    def start(self) -> Opening:
        """Lock, check, open, migrate, take a new epoch. Raises errors.StartRefused with a remedy."""

    def begin(self, now_ms: int) -> Batch:
        """Open the transaction. now_ms never falls below an earlier one by the engine's doing.

        Raises errors.Fenced when another broker took the file, errors.StoreError otherwise.
        """

    def query(self, query: commands.Query, now_ms: int) -> commands.Answer:
        """Answer from committed state. WaitJob, ListWorkers and GetInfo never come here; of Wait it knows all but
        NO_WORKER, and says NEXT in its place."""

    def counts(self) -> dict[tuple[str, int], int]:
        """Jobs by (queue, state) after the last commit, kept by adding up, never by scanning."""

    def housekeep(self, idle: bool) -> None:
        """One slice of upkeep outside a batch: checkpoints, free space. idle: nothing waits."""

    def accepts_adds(self) -> bool:
        """False while free space is below the floor: adds are refused with STORAGE_FULL."""

    def stop(self) -> None:
        """Close cleanly; safe to call twice."""

    def abandon(self) -> None:
        """After a StoreError: touch nothing any more. What was written the next start finds out; `stop` does nothing."""

    def export(self) -> dict[str, list[tuple[object, ...]]]:
        """Everything stored, in a store-neutral order, for comparison: table → rows (see conformance)."""
