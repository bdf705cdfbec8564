"""Random histories, played to a store and to the memory store: every answer, effect and row must be the same.

Both are given equal chance and equal time, so equality is exact but for what no promise covers: the wording of
refusals, the order of effects inside a command, of transitions of different jobs inside a commit, of removal by a slice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from anvilmq_broker.clock import BrokerTime
from anvilmq_broker.domain import commands, limits, state
from anvilmq_broker.domain.backoff import Backoff, Kind
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql.store import LibsqlStore
from anvilmq_broker.store.memory import MemoryStore
from tests.support import bundles
from tests.support.bundles import NO_BACKOFF, policy
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock

QUEUES: Final = ("a", "b")
NAMES: Final = ("n", "m")
OFTEN: Final = {
    "queue": st.sampled_from("aaab"),
    "name": st.sampled_from("nnnm"),
    "key": st.sampled_from(["k1", "k1", "k2"]),
}
"""Mostly the same, so that what happens happens to the same keys and lines."""
BOUNDS: Final = limits.Limits(max_queue_jobs=12)
POLICIES: Final = (
    None,
    None,
    policy(max_attempts=1),
    policy(max_attempts=3, backoff=NO_BACKOFF),
    policy(max_attempts=4, backoff=Backoff(Kind.EXPONENTIAL, 10, 35, 500), attempt_timeout_ms=5_000),
    policy(max_attempts=2, max_starts=3, max_stalled=1),
    policy(max_stalled=0, retain_completed_ms=0, retain_failed_ms=1_000, receipt_ttl_ms=500),
    policy(retain_completed_ms=172_800_000, receipt_ttl_ms=0),
)
STEPS_MS: Final = (0, 1, 1, 10, 100, 1_000, 5_000, 60_000, 3_600_000, 90_000_000, 700_000_000)
STEPS_BACK_MS: Final = (1, 500, 59_000, 61_000, 7_200_000)


def a_job(*, lifo: bool, delay_ms: int, key: str, singleton: bool, **fields: Any) -> commands.NewJob:
    """A job that a gateway would let through: lifo has no delay, a singleton has a key."""
    return bundles.new_job(
        lifo=lifo and not delay_ms, delay_ms=delay_ms, key=key, singleton=singleton and key != "", **fields
    )


new_jobs = st.builds(
    a_job,
    queue=OFTEN["queue"],
    name=OFTEN["name"],
    data=st.sampled_from([b"", b"x", b"\x00yy"]),
    content_type=st.sampled_from(["", "text/plain"]),
    priority=st.sampled_from([0, 0, 0, 1, 2_097_151]),
    delay_ms=st.sampled_from([0, 0, 0, 0, 1, 50, 5_000]),
    expires_after_ms=st.sampled_from([0, 0, 0, 60, 10_000]),
    lifo=st.sampled_from([False, False, False, True]),
    key=st.sampled_from(["", "", "", "k1", "k1", "k2"]),
    singleton=st.booleans(),
    labels=st.sampled_from([None, None, {"l": "1"}]),
    policy=st.sampled_from(POLICIES),
)
filters = st.builds(
    commands.JobFilter,
    queue=st.sampled_from(["", *QUEUES]),
    states=st.lists(st.sampled_from([int(one) for one in state.State]), max_size=2),
    name=st.sampled_from(["", *NAMES]),
    labels=st.sampled_from([{}, {"l": "1"}]),
)
batches_of_jobs = st.lists(new_jobs, min_size=1, max_size=4)
more = st.sampled_from([False, False, True])
"""Whether the transaction stays open for the next command."""


class Side:
    """One of the two stores, with its own copy of the same chance."""

    def __init__(self, open_store: Callable[[protocol.Chance], protocol.Store]) -> None:
        self._chance = SeededChance()
        self._open_store = open_store
        self.store = open_store(self._chance)
        self.store.start()

    def play(self, batch: Sequence[commands.Command], idle: dict[str, int], now_ms: int, *, commit: bool) -> list[Any]:
        """Carry out one transaction as the engine does; everything it came to."""
        free = dict(idle)

        def take_slot(queue: str) -> protocol.Slot | None:
            if not free[queue]:
                return None
            free[queue] -= 1
            return protocol.Slot("idle")

        opened = self.store.begin(now_ms)
        seen: list[Any] = []
        for run in runs(batch):
            # A store may remember when to look at a line again; asked, it knows for sure, so both decide alike.
            seen += [(queue, opened.next_ready_at(queue)) for queue in QUEUES]
            seen += opened.apply(run, take_slot)
        for queue in QUEUES:
            seen += opened.claim(queue, [protocol.Slot("dispatch")] * free[queue])
        seen += [(queue, opened.next_ready_at(queue)) for queue in QUEUES]
        opened.commit() if commit else opened.rollback()
        return seen

    def prune(self, limit: int, now_ms: int) -> tuple[int, int]:
        """Slices until there is no more: (jobs, rows) removed."""
        jobs = rows = 0
        going_on = True
        while going_on:
            (applied,) = (it for it in self.play([commands.Prune(limit)], dict.fromkeys(QUEUES, 0), now_ms, commit=True)
                          if isinstance(it, protocol.Applied))  # fmt: skip
            assert isinstance(applied.outcome, commands.Pruned)
            assert applied.outcome.rows <= limit
            jobs, rows, going_on = jobs + applied.outcome.jobs, rows + applied.outcome.rows, applied.outcome.more
        return jobs, rows

    def restart(self, *, crash: bool) -> protocol.Opening:
        """Stop, cleanly or not, and start over the same data."""
        if crash:
            self.store.abandon()
        self.store.stop()
        self.store = self._open_store(self._chance)
        return self.store.start()


def runs(batch: Sequence[commands.Command]) -> Iterable[list[commands.Command]]:
    """The batch cut after each claim, so that neighbours of one kind stay together and lines are looked at anew."""
    run: list[commands.Command] = []
    for command in batch:
        run.append(command)
        if isinstance(command, commands.Claim):
            yield run
            run = []
    yield run


def spelled_out(effect: protocol.Effect) -> list[protocol.Effect]:
    """An effect of many attempts as those of each. Said once or many times, an effect is the same."""
    if not isinstance(effect, protocol.Completed):
        return [effect]
    return [
        one
        for number, created_ms, token, started_at_ms in effect.jobs
        for one in (
            protocol.Freed(effect.queue, number, token, state.AttemptOutcome.COMPLETED, started_at_ms),
            protocol.Ended(effect.queue, number, created_ms, state.State.COMPLETED, state.FinishReason.COMPLETED),
        )
    ]


def plain(value: Any) -> Any:
    """A value in a form that compares equal when no promise is broken."""
    match value:
        case Refused():
            return ("Refused", value.reason, value.field, value.metadata, value.index, value.retry_after_ms)
        case protocol.Applied():
            told = {repr(each): each for effect in value.effects for each in map(plain, spelled_out(effect))}
            return (plain(value.outcome), [told[each] for each in sorted(told)])
        case protocol.Started():
            value = msgspec.structs.replace(value, run_at_ms=0)
        case protocol.Opening():
            at = {queue: max(at, value.now_ms) for queue, at in value.queues.items() if at is not None}
            lists = {
                name: sorted(map(plain, getattr(value, name)), key=repr)
                for name in ("leases", "parked", "expires", "ticks")
            }
            return (value.now_ms, at, lists, value.counts)
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        return (type(value).__name__, fields)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, int) else value


class StoreMachine(RuleBasedStateMachine):
    """Plays one random history to both stores."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="anvilmq-model-")
        data = Path(self._folder.name) / "data"
        self._tested = Side(lambda chance: LibsqlStore(data, chance=chance, durability="relaxed", limits=BOUNDS))
        memory: list[MemoryStore] = []

        def open_memory(chance: protocol.Chance) -> MemoryStore:
            # A memory store is its own data.
            if not memory:
                memory.append(MemoryStore(chance=chance, limits=BOUNDS))
            return memory[0]

        self._model = Side(open_memory)
        self._clock = FakeClock()
        self._time = BrokerTime(self._clock)
        self._pending: list[commands.Command] = []
        self._last: list[commands.Command] = []
        self._seqs: dict[str, int] = {}
        self._changed = True
        self._jobs: list[commands.JobRef] = []
        self._deliveries: list[commands.Delivery] = []

    def teardown(self) -> None:
        """Close both, leave no file."""
        self._tested.store.stop()
        self._folder.cleanup()

    # --------------------------------------------------------------------------------------------- adding

    @rule(jobs=batches_of_jobs, atomic=st.booleans(), more=more)
    def add(self, jobs: list[commands.NewJob], atomic: bool, more: bool) -> None:
        """Jobs without a producer."""
        self._send(commands.AddJobs(jobs, atomic), more)

    @rule(
        jobs=batches_of_jobs, producer=st.sampled_from(["p1", "p2"]), step=st.sampled_from([1, 1, 1, 0, -1]), more=more
    )
    def add_as_producer(self, jobs: list[commands.NewJob], producer: str, step: int, more: bool) -> None:
        """A producer's frame: its next seq, the same again, or a stale one."""
        seq = max(1, self._seqs.get(producer, 0) + step)
        self._seqs[producer] = max(seq, self._seqs.get(producer, 0))
        self._send(commands.AddJobs(jobs, False, producer, seq), more)

    # -------------------------------------------------------------------------------------------- working

    @rule(queues=st.permutations(QUEUES), jobs=st.integers(1, 4), claim_id=st.sampled_from(["", "c1", "c2"]), more=more)
    def claim(self, queues: list[str], jobs: int, claim_id: str, more: bool) -> None:
        """A claim by a caller without a session."""
        self._send(commands.Claim(bundles.identity("caller"), list(queues), jobs, claim_id=claim_id), more)

    @precondition(lambda self: self._deliveries)
    @rule(data=st.data(), count=st.integers(1, 4), more=more)
    def settle(self, data: st.DataObject, count: int, more: bool) -> None:
        """Any known attempts, living or dead, each in any way."""
        self._send(commands.Settle([self._settlement(data) for _ in range(count)]), more)

    @precondition(lambda self: self._deliveries)
    @rule(data=st.data(), progress=st.sampled_from([None, "1", '{"a":2}']), lines=st.integers(0, 3), more=more)
    def report(self, data: st.DataObject, progress: str | None, lines: int, more: bool) -> None:
        """Progress and lines of any known attempt."""
        written = [commands.LogLine(self._clock.wall_ms(), "info", f"line {n}") for n in range(lines)]
        self._send(commands.Report(self._lease(data), progress, written), more)

    # ----------------------------------------------------------------------------------- time, admin, receipts

    @precondition(lambda self: self._deliveries)
    @rule(data=st.data(), kind=st.sampled_from(["stalled", "timed_out", "undelivered"]), more=more)
    def end_leases(self, data: st.DataObject, kind: str, more: bool) -> None:
        """What the lease timers find, rightly or too late."""
        lists: dict[str, Any] = {kind: [self._lease(data) for _ in range(2)]}
        self._send(commands.Reap(**lists), more)

    @precondition(lambda self: self._jobs)
    @rule(data=st.data(), more=more)
    def fall_due(self, data: st.DataObject, more: bool) -> None:
        """What the timers of expiry and parking find, rightly or too early."""
        self._send(commands.Reap(expired=[self._job(data)], parked=[self._job(data), self._job(data)]), more)

    @precondition(lambda self: self._jobs)
    @rule(data=st.data(), reason=st.sampled_from(["", "why"]), more=more)
    def cancel(self, data: st.DataObject, reason: str, more: bool) -> None:
        """Any known job, or one that is not there."""
        self._send(commands.CancelJob(self._job(data), reason), more)

    @precondition(lambda self: self._jobs)
    @rule(data=st.data(), place=st.fixed_dictionaries(OFTEN), any_holder=st.booleans(), more=more)
    def free_key(self, data: st.DataObject, place: dict[str, str], any_holder: bool, more: bool) -> None:
        """Release or delete a key."""
        if any_holder:
            self._send(commands.DeleteReceipt(**place), more)
        else:
            self._send(commands.ReleaseReceipt(**place, expected=self._job(data)), more)

    # ------------------------------------------------------------------------------------- the world around

    @rule(by_ms=st.sampled_from([*STEPS_MS, *(-step for step in STEPS_BACK_MS)]))
    def move_clock(self, by_ms: int) -> None:
        """Time goes on, or an operator sets the clock back: the broker stands still, or follows when it is far."""
        self._flush()
        if by_ms >= 0:
            self._clock.advance(by_ms)
        else:
            self._clock.set_wall(self._clock.wall_ms() + by_ms)

    @rule(
        idle=st.fixed_dictionaries({queue: st.integers(0, 3) for queue in QUEUES}),
        commit=st.sampled_from([True, True, True, True, False]),
    )
    def end_transaction(self, idle: dict[str, int], commit: bool) -> None:
        """Commit what is pending, or roll it back; idle workers take what they can."""
        self._flush(idle, commit=commit)

    @rule(trouble=st.sampled_from(["lost answers", "lost answers", "stop", "crash"]))
    def have_trouble(self, trouble: str) -> None:
        """The answers were lost, so everything of the last transaction is sent again; or the broker starts again."""
        self._flush()
        if trouble == "lost answers":
            self._pending = list(self._last)
            self._flush()
        else:
            crash = trouble == "crash"
            assert plain(self._tested.restart(crash=crash)) == plain(self._model.restart(crash=crash))
            self._changed = True

    @rule(limit=st.sampled_from([1, 3, 500]))
    def prune(self, limit: int) -> None:
        """Retention, in slices of some size."""
        self._flush()
        now = self._time.now_ms()
        assert self._tested.prune(limit, now) == self._model.prune(limit, now)
        self._changed = True

    # --------------------------------------------------------------------------------------------- looking

    @precondition(lambda self: self._jobs)
    @rule(data=st.data(), wanted=filters, limit=st.integers(1, 5), flag=st.booleans())
    def look(self, data: st.DataObject, wanted: commands.JobFilter, limit: int, flag: bool) -> None:
        """One job with its log and wait reason, a filtered list, the receipts."""
        job, name = self._job(data), data.draw(st.sampled_from(["", *NAMES]))
        self._ask(commands.GetJob(job, flag, wait=True))
        self._ask(commands.ListJobLogs(job, limit, after=limit - 1))
        self._ask(commands.GetReceipt(QUEUES[0], NAMES[0], "k1"))
        for prefix in ("", "k", "k2"):
            self._ask(commands.ListReceipts(QUEUES[0], name, prefix))
        pages = [self._pages(side, wanted, limit, oldest_first=flag) for side in (self._tested, self._model)]
        assert pages[0] == pages[1]

    @invariant()
    def nothing_differs(self) -> None:
        """Rows, counts, and what the schema promises of itself."""
        if not self._changed:
            return
        self._changed = False
        tested, model = self._tested.store.export(), self._model.store.export()
        for table, rows in model.items():
            assert tested[table] == rows, table
        counts = self._tested.store.counts()
        assert counts == self._model.store.counts()
        assert sum(counts.values()) == len(model["jobs"])
        if isinstance(self._tested.store, LibsqlStore):
            assert self._tested.store.violations() == []

    # --------------------------------------------------------------------------------------------- inside

    def _send(self, command: commands.Command, more: bool) -> None:
        self._pending.append(command)
        if not more or len(self._pending) == 5:
            self._flush({"a": 1})

    def _flush(self, idle: dict[str, int] | None = None, *, commit: bool = True) -> None:
        """Carry out what is pending, with so many idle slots for each queue."""
        batch, self._pending = self._pending, []
        if not batch and not idle:
            return
        slots, now = dict.fromkeys(QUEUES, 0) | (idle or {}), self._time.now_ms()
        tested = self._tested.play(batch, slots, now, commit=commit)
        model = self._model.play(batch, slots, now, commit=commit)
        for left, right in zip(tested, model, strict=True):
            assert left == right or plain(left) == plain(right), batch
        self._last = batch or self._last
        self._changed = True
        self._learn(model)

    def _learn(self, seen: list[Any]) -> None:
        """Remember jobs and attempts; of a transaction that was rolled back they name nothing, which is as good."""
        for one in seen:
            effects = one.effects if isinstance(one, protocol.Applied) else [one]
            self._deliveries += [effect.delivery for effect in effects if isinstance(effect, protocol.Started)]
            if isinstance(one, protocol.Applied) and isinstance(one.outcome, commands.AddedJobs):
                first, made = one.outcome.first_number, len(one.outcome.states)
                self._jobs += [commands.JobRef(first + n, one.outcome.created_ms) for n in range(made)]
        del self._deliveries[:-20]
        del self._jobs[:-30]

    def _job(self, data: st.DataObject) -> commands.JobRef:
        # The newest shrink best: they are drawn as the first.
        return data.draw(st.sampled_from([*reversed(self._jobs), commands.JobRef(10_000, 1)]))

    def _delivery(self, data: st.DataObject) -> commands.Delivery:
        return data.draw(st.sampled_from(self._deliveries[::-1]))

    def _lease(self, data: st.DataObject) -> commands.LeaseRef:
        return bundles.lease(self._delivery(data))

    def _settlement(self, data: st.DataObject) -> commands.Settlement:
        of = self._delivery(data)
        return data.draw(
            st.one_of(
                st.builds(bundles.complete, st.just(of), st.sampled_from([b"", b"1"]), st.sampled_from(["", "t"])),
                st.builds(
                    bundles.fail,
                    st.just(of),
                    st.sampled_from([None, commands.ErrorInfo("E", "m", "s", "{}")]),
                    non_retryable=st.sampled_from([False, False, True]),
                    retry_after_ms=st.sampled_from([None, None, 0, 700]),
                ),
                st.builds(
                    bundles.release,
                    st.just(of),
                    delay_ms=st.sampled_from([0, 0, 80]),
                    reason=st.sampled_from(["", "no room"]),
                ),
            )
        )

    def _ask(self, query: commands.Query) -> None:
        self._flush()
        now = self._time.now_ms()
        assert plain(self._tested.store.query(query, now)) == plain(self._model.store.query(query, now))

    def _pages(self, side: Side, wanted: commands.JobFilter, limit: int, *, oldest_first: bool) -> list[Any]:
        """Every job of a list and the first page's total; where a page ends is the store's business."""
        found: list[Any] = []
        after, totals = None, 0
        while True:
            page = side.store.query(commands.ListJobs(wanted, limit, after, oldest_first), self._time.now_ms())
            assert isinstance(page, commands.JobPage)
            assert len(page.jobs) <= limit
            found += page.jobs
            totals += page.total
            if page.next is None:
                return [totals, *(plain(job) for job in found)]
            after = page.next
