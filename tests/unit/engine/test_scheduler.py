"""When the engine sends what about definitions: timers, a full volume, clocks that are set, ten thousand that wait."""

from collections.abc import Sequence
from typing import Any

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.engine.scheduler import FIRST_FIRED, LEAST_FIRED, LOOK_AGAIN_MS, PAUSE_MS, Scheduler
from anvilmq_broker.store import protocol
from tests.support import bundles
from tests.support.clock import START_MS, FakeClock
from tests.support.rules import rule
from tests.unit.engine.rig import Rig, refused
from tests.unit.engine.test_failures import FailingStore

MINUTE = 60_000
SPEC = commands.SchedulerSpec(every_ms=MINUTE, catch_up=2, job=bundles.new_job())


def scheduler(*due: int | None) -> tuple[Scheduler, FakeClock]:
    """One with definitions u0, u1, … that are due so much after the start."""
    clock = FakeClock()
    made = Scheduler(clock)
    made.restore(
        [protocol.Ticks(f"u{n}", at if at is None else START_MS + at, "active") for n, at in enumerate(due)], START_MS
    )
    return made, clock


def fired(found: Sequence[commands.Command]) -> list[str]:
    """The definitions of the one FireDue."""
    return [uid for one in found if isinstance(one, commands.FireDue) for uid in one.uids]


@rule("6.3")
def test_nothing_is_fired_before_it_is_due_and_the_next_moment_is_known() -> None:
    it, _ = scheduler(50, None, 20)
    assert it.next_wall_ms() == START_MS + 20
    assert it.due(START_MS + 19, lambda: True) == []
    assert it.due(START_MS + 30, lambda: True) == [commands.FireDue(["u2"], START_MS)]
    it.committed()
    assert it.next_wall_ms() == START_MS + 50


@rule("6.2")
def test_a_batch_takes_some_of_many_and_the_next_the_others() -> None:
    it, _ = scheduler(*([5] * (FIRST_FIRED + 1)))
    first = fired(it.due(START_MS + 5, lambda: True))
    it.committed()
    assert it.next_wall_ms() == START_MS + 5
    second = fired(it.due(START_MS + 5, lambda: True))
    assert (len(first), len(second), len({*first, *second})) == (FIRST_FIRED, 1, FIRST_FIRED + 1)


def test_a_batch_takes_as_many_as_others_can_bear() -> None:
    it, _ = scheduler(*([5] * 9_999))
    sizes = []
    for ms in (8, 0, 0, 0, 0, 80, 80, 80, 80, 8, 8):
        sizes.append(len(fired(it.due(START_MS + 5, lambda: True))))
        it.took(ms)
        it.committed()
    assert sizes == [50, 50, 125, 162, 181, 190, 104, 57, 31, LEAST_FIRED, LEAST_FIRED]


def test_a_few_that_take_long_say_nothing_of_many() -> None:
    it, _ = scheduler(5, *([6] * 99))
    assert len(fired(it.due(START_MS + 5, lambda: True))) == 1
    it.took(80)
    it.committed()
    assert len(fired(it.due(START_MS + 6, lambda: True))) == FIRST_FIRED


@rule("6.4")
def test_a_definition_that_says_nothing_after_its_firing_does_not_come_again() -> None:
    it, _ = scheduler(5)
    assert fired(it.due(START_MS + 5, lambda: True)) == ["u0"]
    it.committed()
    assert it.due(START_MS + 50, lambda: True) == []
    assert it.next_wall_ms() is None


@rule("6.5")
def test_downtime_begins_anew_with_a_start_and_a_pause_and_not_with_a_slow_turn() -> None:
    it, _ = scheduler(5)
    assert it.serving_since_ms == START_MS
    it.due(START_MS + PAUSE_MS, lambda: False)
    assert it.serving_since_ms == START_MS
    it.due(START_MS + 2 * PAUSE_MS + 1, lambda: False)
    assert it.serving_since_ms == START_MS + 2 * PAUSE_MS + 1


@rule("6.5")
def test_while_the_volume_is_full_ticks_wait_without_spinning_and_are_caught_up_afterwards() -> None:
    it, clock = scheduler(5)
    asked = []

    def has_room(answer: bool) -> bool:
        asked.append(answer)
        return answer

    assert it.due(START_MS + 5, lambda: has_room(False)) == []
    assert (it.next_wall_ms(), it.next_monotonic_ms()) == (None, LOOK_AGAIN_MS)
    assert it.due(START_MS + 6, lambda: has_room(False)) == []
    assert asked == [False]
    clock.advance(LOOK_AGAIN_MS)
    assert it.due(START_MS + 1_005, lambda: has_room(False)) == []
    clock.advance(LOOK_AGAIN_MS)
    assert it.due(START_MS + 2_005, lambda: has_room(True)) == [commands.FireDue(["u0"], START_MS + 2_005)]
    assert it.next_monotonic_ms() is None


@rule("6.2")
def test_ticks_of_a_batch_that_found_no_room_are_not_lost() -> None:
    it, clock = scheduler(5, 6)
    assert fired(it.due(START_MS + 6, lambda: True)) == ["u0", "u1"]
    it.undo(START_MS + 6)
    assert (it.next_wall_ms(), it.next_monotonic_ms()) == (None, LOOK_AGAIN_MS)
    clock.advance(LOOK_AGAIN_MS)
    assert fired(it.due(START_MS + 1_006, lambda: True)) == ["u0", "u1"]


@rule("6.4")
def test_a_long_step_back_counts_every_definition_anew_slice_by_slice() -> None:
    it, _ = scheduler(5)
    it.stepped_back(START_MS - 90_000)
    assert (it.next_wall_ms(), it.serving_since_ms) == (0, START_MS - 90_000)
    assert it.due(START_MS - 90_000, lambda: True) == [commands.ReanchorSchedulers("")]
    it.reanchored(commands.Reanchored("u7"))
    assert it.due(START_MS - 90_000, lambda: True) == [commands.ReanchorSchedulers("u7")]
    it.reanchored(commands.Reanchored())
    assert it.due(START_MS - 90_000, lambda: True) == []
    assert it.next_wall_ms() == START_MS + 5


def test_definitions_are_counted_by_their_standing() -> None:
    it, _ = scheduler(5, None)
    it.follow(protocol.Ticks("u1", None, "suspended"))
    it.follow(protocol.Ticks("u2", 9, "active"))
    assert it.standings() == {"active": 2, "suspended": 1}
    it.follow(protocol.Ticks("u0", None))
    assert it.standings() == {"active": 1, "suspended": 1}


# ------------------------------------------------------------------------------------------ inside the loop


def fail_when_it_adds(what: str, detail: Any) -> None:
    """A volume that has no room for a tick."""
    if what == "apply" and any(isinstance(one, commands.FireDue) for one in detail):
        raise errors.StorageFull("no room")


@rule("6.5")
async def test_a_full_volume_holds_ticks_back_and_nothing_else() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        await rig.broker.submit(commands.UpsertScheduler("s", SPEC))
        await rig.broker.submit(
            commands.UpsertScheduler("all", commands.SchedulerSpec(every_ms=MINUTE, catch_up=3, job=SPEC.job))
        )
        store.accepting = False
        began = store.began
        await rig.engine.advance(3 * MINUTE)
        assert store.began - began <= 3, "only retention, once a minute"
        assert store.counts() == {}
        for command in (commands.UpsertScheduler("t", SPEC), commands.TriggerScheduler("s")):
            assert refused(await rig.broker.submit(command)).reason == "STORAGE_FULL"
        assert isinstance(await rig.broker.submit(commands.SuspendScheduler("none", True)), errors.Refused)
        store.accepting = True
        await rig.engine.advance(2 * LOOK_AGAIN_MS)
        assert rig.metric("anvilmq_scheduler_ticks_total", "fired") == 3
        assert rig.metric("anvilmq_scheduler_ticks_total", "missed") == 3
        await rig.engine.advance(MINUTE)
        assert rig.metric("anvilmq_scheduler_ticks_total", "fired") == 5


@rule("6.2")
async def test_a_tick_that_finds_the_volume_full_fires_when_there_is_room() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        await rig.broker.submit(commands.UpsertScheduler("s", commands.SchedulerSpec(every_ms=MINUTE, job=SPEC.job)))
        store.fail = fail_when_it_adds
        await rig.engine.advance(MINUTE + 500)
        assert store.counts() == {}
        store.fail = lambda what, detail: None
        await rig.engine.advance(2 * LOOK_AGAIN_MS)
        assert sum(store.counts().values()) == 1
        page = await rig.broker.query(commands.ListJobs(commands.JobFilter()))
        assert isinstance(page, commands.JobPage)
        assert [one.tick_at_ms for one in page.jobs] == [START_MS + MINUTE]


async def test_ten_thousand_definitions_that_wait_cost_no_transaction() -> None:
    store = FailingStore()
    async with Rig(store) as rig:
        batch = store.begin(START_MS)
        hourly = commands.SchedulerSpec(every_ms=60 * MINUTE, job=SPEC.job)
        batch.apply([commands.UpsertScheduler(f"s{n}", hourly) for n in range(10_000)], lambda _: None)
        batch.commit()
    async with Rig(store) as rig:
        began = store.began
        await rig.engine.advance(30 * MINUTE)
        assert store.began - began <= 31, "only retention, once a minute"
