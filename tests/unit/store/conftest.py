"""A libSQL store on a fresh folder, driven like the engine drives it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock
from tests.support.store_driver import StoreDriver

OpenStore = Callable[..., LibsqlStore]


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands."""
    return FakeClock()


@pytest.fixture
def chance() -> SeededChance:
    """The chance that the store is given."""
    return SeededChance()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder."""
    return tmp_path / "data"


@pytest.fixture
def open_store(folder: Path, chance: SeededChance, clock: FakeClock) -> Iterator[OpenStore]:
    """Makes a store over the data folder, not started; further options by name."""
    made: list[LibsqlStore] = []

    def make(**options: Any) -> LibsqlStore:
        options.setdefault("monotonic", lambda: clock.monotonic_ms() / 1000)
        made.append(LibsqlStore(options.pop("folder", folder), chance=chance, **options))
        return made[-1]

    yield make
    for store in made:
        store.stop()


@pytest.fixture
def store(open_store: OpenStore, clock: FakeClock) -> StoreDriver:
    """A started store."""
    return StoreDriver(open_store, clock)
