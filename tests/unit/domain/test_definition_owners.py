"""Whose a recurring definition is: resources that come again, older generations, names that are taken."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from anvilmq_broker.domain import commands, definitions, scheduler
from anvilmq_broker.domain.definitions import Outcome, Upserted
from anvilmq_broker.domain.errors import Refused
from tests.support.clock import START_MS
from tests.support.rules import rule

OWNER = commands.Owner("JobScheduler", "shop", "nightly", "u-1", generation=5)
SPEC = commands.SchedulerSpec(every_ms=60_000, job=commands.NewJob("q", "n"))


def upsert(stored: scheduler.Scheduler | None, owner: commands.Owner | None, **fields: object) -> Upserted | Refused:
    """What an upsert of the same content by that owner comes to."""
    wanted = commands.UpsertScheduler("nightly", SPEC, owner, **fields)  # type: ignore[arg-type]
    return definitions.upsert(stored, wanted, lambda: "uid", START_MS)


def stored(owner: commands.Owner | None) -> scheduler.Scheduler:
    made = upsert(None, owner)
    assert isinstance(made, Upserted)
    return made.after


@rule("6.7")
def test_a_resource_made_again_under_its_name_takes_over_whatever_its_generation() -> None:
    again = replace(OWNER, uid="u-2", generation=1)
    done = upsert(stored(OWNER), again)
    assert isinstance(done, Upserted)
    assert (done.outcome, done.after.owner) == (Outcome.UNCHANGED, again)


@rule("6.7")
def test_an_older_generation_of_the_same_resource_is_ignored_and_a_newer_one_recorded() -> None:
    older = upsert(stored(OWNER), replace(OWNER, generation=4, spec_hash="old"))
    newer = upsert(stored(OWNER), replace(OWNER, generation=6, spec_hash="new"))
    assert isinstance(older, Upserted)
    assert isinstance(newer, Upserted)
    assert (older.outcome, older.after) == (Outcome.STALE_GENERATION, stored(OWNER))
    assert (newer.outcome, newer.after.owner) == (Outcome.UNCHANGED, replace(OWNER, generation=6, spec_hash="new"))


@rule("6.7")
@pytest.mark.parametrize("other", [{"kind": "Other"}, {"namespace": "other"}, {"name": "other"}])
def test_another_resource_does_not_get_it(other: dict[str, str]) -> None:
    refused = upsert(stored(OWNER), replace(OWNER, **other), adopt=True)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.metadata["name"]) == ("NAME_CONFLICT", "nightly")


@rule("6.7")
def test_one_without_owner_is_adopted_when_that_is_asked_for_and_an_owned_one_is_edited_by_its_owner_alone() -> None:
    refused, adopted = upsert(stored(None), OWNER), upsert(stored(None), OWNER, adopt=True)
    assert isinstance(refused, Refused)
    assert refused.reason == "NAME_CONFLICT"
    assert isinstance(adopted, Upserted)
    assert (adopted.outcome, adopted.after.next_tick_ms) == (Outcome.UPDATED, stored(None).next_tick_ms)
    alone = upsert(stored(OWNER), None)
    assert isinstance(alone, Refused)
    assert alone.reason == "OWNED_BY_CRD"
