"""Queries that must count nothing (sql/invariants.sql): structural ones refuse a start, derived ones are for checks."""

from __future__ import annotations

from anvilmq_broker.store.libsql.sql import Sql


def violations(sql: Sql, *, structural_only: bool) -> list[str]:
    """Names of the invariants that do not hold, with how many rows break them."""
    prefixes = ("structural_",) if structural_only else ("structural_", "derived_")
    counted = {name: sql.run(name)[0][0] for name in sql.names() if name.startswith(prefixes)}
    return [f"{name}: {count}" for name, count in counted.items() if count]
