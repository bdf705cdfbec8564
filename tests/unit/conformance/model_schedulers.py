"""Random histories with recurring definitions in them, on top of those of jobs; see model.py."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from anvilmq_broker.domain import commands
from anvilmq_broker.store import protocol
from tests.support import bundles
from tests.support.clock import START_MS
from tests.unit.conformance.model import POLICIES, QUEUES, StoreMachine, more, plain

NAMES: Final = ("s1", "s1", "s2")
TIMINGS: Final = (
    {"every_ms": 1_000},
    {"every_ms": 500},
    {"every_ms": 1_000},
    {"every_ms": 1_000},
    {"every_ms": 60_000, "offset_ms": 7},
    {"every_ms": 3_600_000, "jitter_ms": 30_000},
    {"cron": "* * * * *", "jitter_ms": 90_000},
    {"cron": "*/7 * * * * *", "time_zone": "Asia/Kolkata"},
    {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
    {"cron": "no expression"},
    {"cron": "0 0 * * *", "time_zone": "Atlantis/Gone"},
)
BOUNDS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"limit": 1},
    {"limit": 3},
    {"start_at_ms": START_MS + 5_000},
    {"end_at_ms": START_MS + 70_000_000},
)
WHEN: Final = (
    (0, 3_600_000),
    (0, START_MS),
    (1, 0),
    (2_500, 3_600_000),
    (2_500, 1_500),
    (20_000, 3_600_000),
    (20_000, 10_000),
    (3_600_000, 0),
    (3_600_000, 5_000),
)
"""How late a timer is looked at, and for how long the broker has served by then, in ms."""


def a_spec(timing: dict[str, Any], bounds: dict[str, Any], **fields: Any) -> commands.SchedulerSpec:
    """A definition's content."""
    return commands.SchedulerSpec(**timing, **bounds, **fields)


templates = st.builds(
    bundles.new_job,
    queue=st.sampled_from(QUEUES),
    data=st.sampled_from([b"", b"x"]),
    priority=st.sampled_from([0, 0, 1]),
    delay_ms=st.sampled_from([0, 0, 0, 50]),
    policy=st.sampled_from(POLICIES),
)
specs = st.builds(
    a_spec,
    timing=st.sampled_from(TIMINGS),
    bounds=st.sampled_from(BOUNDS),
    job=st.one_of(templates, templates, templates, templates, st.none()),
    concurrency_policy=st.integers(1, 3),
    catch_up=st.integers(1, 3),
    max_catch_up_runs=st.sampled_from([1, 3, 100]),
    starting_deadline_ms=st.sampled_from([0, 0, 0, 5_000]),
    suspended=st.sampled_from([None, None, None, True, False]),
)
owners = st.one_of(
    st.none(),
    st.none(),
    st.none(),
    st.builds(
        commands.Owner,
        st.sampled_from(["JobScheduler", "Kind"]),
        st.just("team"),
        st.sampled_from(["r1", "r2"]),
        st.sampled_from(["u1", "u2"]),
        st.integers(0, 3),
        st.sampled_from(["", "h1", "h2"]),
        st.sampled_from(["", "m"]),
    ),
)
names = st.sampled_from(NAMES)


class SchedulerMachine(StoreMachine):
    """Plays one random history with definitions to both stores."""

    def __init__(self) -> None:
        super().__init__()
        self._due: dict[str, int | None] = {}
        self._specs: list[commands.SchedulerSpec] = []

    @initialize(first=specs, second=specs, policy=st.integers(1, 3))
    def begin(self, first: commands.SchedulerSpec, second: commands.SchedulerSpec, policy: int) -> None:
        """One definition that surely ticks, one of any kind, and another timing for it."""
        sure = a_spec(TIMINGS[0], {}, job=bundles.new_job(QUEUES[0]), concurrency_policy=policy)
        self._specs = [sure, second, first]
        self._send(commands.UpsertScheduler("s1", sure), True)
        self._send(commands.UpsertScheduler("s2", first), False)

    @rule(name=names, spec=specs, owner=owners, adopt=st.booleans(), dry_run=st.sampled_from([False] * 4 + [True]))
    def upsert(
        self, name: str, spec: commands.SchedulerSpec, owner: commands.Owner | None, adopt: bool, dry_run: bool
    ) -> None:
        """Make or change a definition."""
        self._specs = [spec, *self._specs[:2]]
        self._send(commands.UpsertScheduler(name, spec, owner, dry_run, adopt), False)

    @precondition(lambda self: self._specs)
    @rule(data=st.data(), name=names, owner=owners, more=more)
    def upsert_again(self, data: st.DataObject, name: str, owner: commands.Owner | None, more: bool) -> None:
        """The same content again, by the same or another owner."""
        spec = data.draw(st.sampled_from(self._specs))
        self._send(commands.UpsertScheduler(name, spec, owner, adopt=True), True)
        self._send(commands.UpsertScheduler(name, spec, owner, adopt=True), more)

    @rule(name=names, owner=owners, allow_missing=st.booleans(), suspended=st.booleans(), verb=st.integers(0, 5))
    def edit(self, name: str, owner: commands.Owner | None, allow_missing: bool, suspended: bool, verb: int) -> None:
        """Suspend or resume mostly, release or delete sometimes."""
        if verb == 0:
            self._send(commands.DeleteScheduler(name, owner, allow_missing), False)
        elif verb == 1 and owner is not None:
            self._send(commands.ReleaseDefinition(name, owner), False)
        else:
            self._send(commands.SuspendScheduler(name, suspended), False)

    @rule(name=names, run_key=st.sampled_from(["", "k1", "k2"]), more=more)
    def trigger(self, name: str, run_key: str, more: bool) -> None:
        """A run now."""
        self._send(commands.TriggerScheduler(name, run_key), more)

    @precondition(lambda self: any(self._due.values()))
    @rule(
        when=st.sampled_from(WHEN),
        idle=st.fixed_dictionaries({queue: st.integers(0, 2) for queue in QUEUES}),
        others=st.booleans(),
        more=more,
    )
    def fire(self, when: tuple[int, int], idle: dict[str, int], others: bool, more: bool) -> None:
        """The next timer runs out, is looked at late, by a broker that has served for some time, or only now.

        others: those whose time has not come are asked too.
        """
        self._flush()
        late_ms, served_ms = when
        due_ms = min(due for due in self._due.values() if due) + late_ms
        self._clock.advance(max(0, due_ms - self._clock.wall_ms()))
        now = self._time.now_ms()
        uids = [uid for uid, due in self._due.items() if others or (due and due <= now)]
        self._send(commands.FireDue(uids, max(0, now - served_ms)), True)
        if not more:
            self._flush(idle)

    @rule(limit=st.sampled_from([1, 2, 500]))
    def count_anew(self, limit: int) -> None:
        """What the engine does after the clock was set back far, in slices."""
        self._flush()
        after, now = "", self._time.now_ms()
        while True:
            seen = [
                side.play([commands.ReanchorSchedulers(after, limit)], dict.fromkeys(QUEUES, 0), now, commit=True)
                for side in (self._tested, self._model)
            ]
            assert plain(seen[0]) == plain(seen[1])
            self._changed = True
            outcome = next(one.outcome for one in seen[0] if isinstance(one, protocol.Applied))
            assert isinstance(outcome, commands.Reanchored)
            after = outcome.next
            if not after:
                return

    @rule(
        name=names,
        wanted=st.builds(
            commands.ListSchedulers,
            st.sampled_from(["", "s", "s1", "x"]),
            st.sampled_from(["", *QUEUES]),
            limit=st.integers(1, 3),
            allowed=st.sampled_from([None, ["a"], []]),
        ),
        owned=st.builds(
            commands.ListDefinitions,
            st.sampled_from(["", "team", "none"]),
            st.sampled_from(["", "JobScheduler"]),
            st.sampled_from(["", "m"]),
            limit=st.integers(1, 3),
        ),
        scheduler=names,
    )
    def look_at_definitions(
        self, name: str, wanted: commands.ListSchedulers, owned: commands.ListDefinitions, scheduler: str
    ) -> None:
        """One definition, filtered lists, the runs of one."""
        self._ask(commands.GetScheduler(name))
        self._ask(wanted)
        self._ask(owned)
        pages = [
            self._pages(side, commands.JobFilter(scheduler=scheduler), 3, oldest_first=True)
            for side in (self._tested, self._model)
        ]
        assert pages[0] == pages[1]

    def _learn(self, seen: list[Any]) -> None:
        super()._learn(seen)
        told = [effect for one in seen if isinstance(one, protocol.Applied) for effect in one.effects]
        self._due |= {it.uid: it.due_ms for it in told if isinstance(it, protocol.Ticks)}
        made = [it.delivery for it in told if isinstance(it, protocol.Started)]
        self._jobs += [bundles.ref(it) for it in made if it.scheduler]
