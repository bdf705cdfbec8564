"""Recurring definitions of one store, and the timers that an engine would keep for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anvilmq_broker.domain import commands
from anvilmq_broker.store import protocol
from tests.support import bundles
from tests.support.store_driver import StoreDriver

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def spec(**fields: Any) -> commands.SchedulerSpec:
    """What a definition says: every second, unless told otherwise."""
    timing = {} if "cron" in fields else {"every_ms": SECOND}
    return commands.SchedulerSpec(**{"job": bundles.new_job(), **timing, **fields})


def owner(uid: str = "u1", generation: int = 1, **fields: Any) -> commands.Owner:
    """A custom resource."""
    return commands.Owner(
        **{
            "kind": "JobScheduler",
            "namespace": "team",
            "name": "nightly",
            "uid": uid,
            "generation": generation,
            **fields,
        }
    )


class Schedules:
    """Sends the commands of definitions to a store and fires what falls due, as the engine does."""

    def __init__(self, store: StoreDriver) -> None:
        self.store = store
        self.serving_since_ms = store.now_ms
        self.due: dict[str, int | None] = {}

    def send(self, command: commands.Command, idle: Sequence[protocol.Slot] = ()) -> Any:
        """The outcome of one command; timers follow its effects."""
        outcome = self.store.send(command, idle)
        self.due |= {it.uid: it.due_ms for it in self.store.effects if isinstance(it, protocol.Ticks)}
        return outcome

    def upsert(self, name: str = "s", of: commands.Owner | None = None, **fields: Any) -> commands.UpsertedScheduler:
        """Make or change a definition by `spec`."""
        adopt, dry_run = fields.pop("adopt", False), fields.pop("dry_run", False)
        outcome = self.send(commands.UpsertScheduler(name, spec(**fields), of, dry_run, adopt))
        assert isinstance(outcome, commands.UpsertedScheduler), outcome
        return outcome

    def define(self, name: str = "s", **fields: Any) -> commands.SchedulerRecord:
        """Make or change a definition; what is stored afterwards."""
        return self.upsert(name, **fields).scheduler

    def get(self, name: str = "s") -> commands.SchedulerRecord:
        """What is stored."""
        found = self.store.query(commands.GetScheduler(name))
        assert isinstance(found, commands.SchedulerFound), found
        return found.scheduler

    def trigger(self, name: str = "s", run_key: str = "") -> commands.JobRef:
        """A run now."""
        outcome = self.send(commands.TriggerScheduler(name, run_key))
        assert isinstance(outcome, commands.TriggeredScheduler), outcome
        return outcome.run

    def fire(self, *uids: str, idle: Sequence[protocol.Slot] = ()) -> list[protocol.Effect]:
        """Fire what is due, until nothing is any more; the effects. uids: these alone, due or not, once."""
        effects: list[protocol.Effect] = []
        turns = 0
        while due := list(uids) or [uid for uid, at in self.due.items() if at is not None and at <= self.store.now_ms]:
            assert self.send(commands.FireDue(due, self.serving_since_ms), idle) == commands.Done()
            effects += self.store.effects
            turns += 1
            assert turns < 100, "the same definitions are due again and again"
            if uids:
                break
        return effects

    def after(self, by_ms: int, step_ms: int = SECOND) -> None:
        """Let time pass, with a broker that serves and looks each step_ms."""
        until = self.store.now_ms + by_ms
        while self.store.now_ms < until:
            self.store.clock.advance(min(step_ms, until - self.store.now_ms))
            self.fire()

    def down(self, for_ms: int) -> None:
        """Let time pass without a broker, start it again, and fire what it finds."""
        self.store.clock.advance(for_ms)
        opening = self.store.reopen()
        self.serving_since_ms = self.store.now_ms
        self.due = {it.uid: it.due_ms for it in opening.ticks}
        self.fire()

    def runs(self, name: str = "s") -> list[commands.JobRecord]:
        """The jobs that the definition made, oldest first."""
        wanted = commands.JobFilter(scheduler=name)
        page = self.store.query(commands.ListJobs(wanted, limit=1_000, oldest_first=True))
        assert isinstance(page, commands.JobPage)
        assert page.next is None
        return page.jobs

    def ticks(self, name: str = "s") -> list[int]:
        """The ticks of its runs, in ms since the clock of the tests began."""
        return [run.tick_at_ms for run in self.runs(name)]
