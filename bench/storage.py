"""The libSQL store as the engine holds it: what the benchmarks of the store alone share."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from anvilmq_broker.domain import commands
from anvilmq_broker.domain.state import SettleOutcome
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql.store import LibsqlStore

QUEUE = "bench"


class Chance:
    """Real tokens, so that their cost and length are in the figures."""

    def token(self) -> str:
        """128 bits as text."""
        return secrets.token_urlsafe(16)

    def spread(self) -> float:
        """No job fails here, so none is spread."""
        return 0.5


@contextmanager
def fresh_store(folder: Path) -> Iterator[protocol.Store]:
    """A started store on an empty data folder, durability full; stopped at the end."""
    store = LibsqlStore(folder / "data", chance=Chance(), durability="full")
    store.start()
    try:
        yield store
    finally:
        store.stop()


def no_slot(_queue: str) -> None:
    """No worker is idle: every add goes into the line."""
    return


def completions(started: Sequence[protocol.Started]) -> list[commands.Settlement]:
    """What the workers answer: every job done, with an empty result."""
    return [
        commands.Settlement(one.delivery.number, one.delivery.created_ms, one.delivery.token, SettleOutcome.COMPLETE)
        for one in started
    ]
