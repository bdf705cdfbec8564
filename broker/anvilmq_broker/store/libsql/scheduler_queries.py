"""Queries about recurring definitions in the libSQL store: keyset pages, every walk bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from anvilmq_broker.domain import commands, definitions, refusals, view
from anvilmq_broker.domain.errors import Refused
from anvilmq_broker.domain.scheduler import Scheduler
from anvilmq_broker.domain.state import State
from anvilmq_broker.store.libsql import scheduler_rows
from anvilmq_broker.store.libsql.driver import Row
from anvilmq_broker.store.libsql.sql import Sql

PAGE_BYTES: Final = 3 << 20
"""Data of the jobs of one page; one larger definition goes alone."""
_ROWS: Final = 500
_EVERY_TEXT_IS_BELOW: Final = "\U0010ffff"
Place = tuple[str, str, str, str]
"""Owner's kind, namespace, name; definition's name."""


def get_scheduler(sql: Sql, query: commands.GetScheduler, now_ms: int) -> commands.SchedulerFound | Refused:
    """Answer GetScheduler."""
    stored = scheduler_rows.find(sql, query.name)
    if stored is None:
        return refusals.scheduler_not_found(query.name)
    return commands.SchedulerFound(definitions.record(stored.it, last_state(sql, stored.it, now_ms)))


def last_state(sql: Sql, it: Scheduler, now_ms: int) -> int:
    """Reported state of the definition's last run, 0 when there is none or it is gone."""
    found = sql.run("job_state", it.last_run.number, it.last_run.created_ms) if it.last_run else []
    if not found:
        return 0
    return int(view.state_reported(State(found[0][0]), found[0][1], now_ms))


def list_schedulers(sql: Sql, query: commands.ListSchedulers, now_ms: int) -> commands.SchedulerPage:
    """Answer ListSchedulers."""
    page: list[commands.SchedulerRecord] = []
    last, size = query.after, 0
    for looked, (name, queue) in enumerate(_names(sql, query)):
        if looked == view.MOST_LOOKED_AT:
            return commands.SchedulerPage(page, last)
        if view.definition_matches(query, name, queue or ""):
            stored = scheduler_rows.find(sql, name)
            assert stored is not None
            size += len(stored.it.spec.job.data) if stored.it.spec.job else 0
            if page and (len(page) == query.limit or size > PAGE_BYTES):
                return commands.SchedulerPage(page, last)
            page.append(definitions.record(stored.it, last_state(sql, stored.it, now_ms)))
        last = name
    return commands.SchedulerPage(page)


def _names(sql: Sql, query: commands.ListSchedulers) -> Iterator[Row]:
    after, below = query.after, query.name_prefix + _EVERY_TEXT_IS_BELOW
    while found := sql.run("list_scheduler_names", after, query.name_prefix, below, _ROWS):
        yield from found
        if len(found) < _ROWS:
            return
        after = found[-1][0]


def list_definitions(sql: Sql, query: commands.ListDefinitions) -> commands.DefinitionPage:
    """Answer ListDefinitions."""
    page: list[commands.DefinitionRecord] = []
    last: Place = ("", "", "", "")
    for looked, row in enumerate(_owned(sql, query)):
        if len(page) == query.limit or looked == view.MOST_LOOKED_AT:
            return commands.DefinitionPage(page, (*last[:3], definitions.SCHEDULER_TYPE, last[3]))
        owner = scheduler_rows.decode_owner(row[4])
        if view.owner_matches(query, owner):
            page.append(_owned_record(row, owner))
        last = row[:4]
    return commands.DefinitionPage(page)


def _owned(sql: Sql, query: commands.ListDefinitions) -> Iterator[Row]:
    """Definitions with an owner from the place of the page on; with a kind, and with a namespace of it, those alone."""
    place = _place_of(query)
    while found := sql.run("list_owned", *place, _ROWS):
        for row in found:
            if query.kind and (row[0] != query.kind or (query.namespace and row[1] > query.namespace)):
                return
            yield row
        if len(found) < _ROWS:
            return
        place = found[-1][:4]


def _place_of(query: commands.ListDefinitions) -> Place:
    first: Place = (query.kind, query.namespace if query.kind else "", "", "")
    if query.after is None:
        return first
    kind, namespace, owner, type_, name = query.after
    if type_ != definitions.SCHEDULER_TYPE:
        # Behind all of that owner's schedulers, or before them.
        name = _EVERY_TEXT_IS_BELOW if type_ > definitions.SCHEDULER_TYPE else ""
    return max(first, (kind, namespace, owner, name))


def _owned_record(row: Row, owner: commands.Owner) -> commands.DefinitionRecord:
    _, _, _, name, _, next_tick, last_tick, run, run_created_ms, reason, message = row
    return commands.DefinitionRecord(
        definitions.SCHEDULER_TYPE,
        name,
        owner,
        next_tick or 0,
        last_tick or 0,
        None if run is None else commands.JobRef(run, run_created_ms),
        reason or "",
        message or "",
    )
