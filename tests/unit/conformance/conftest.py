"""The stores and brokers that every test of this folder runs against."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anvilmq_broker.domain import limits
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql.store import LibsqlStore
from anvilmq_broker.store.memory import MemoryStore
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock
from tests.support.store_driver import StoreDriver

OpenStore = Callable[[], protocol.Store]


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands."""
    return FakeClock()


@pytest.fixture
def chance() -> SeededChance:
    """The chance that the store is given."""
    return SeededChance()


@pytest.fixture
def bounds() -> limits.Limits:
    """No bounds; a test that wants some overrides this by parametrizing it."""
    return limits.NONE


@pytest.fixture(params=["memory", "libsql"])
def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, chance: SeededChance, bounds: limits.Limits
) -> OpenStore:
    """Makes the store over the test's data, as often as it is called."""
    if request.param == "libsql":
        return lambda: LibsqlStore(tmp_path / "data", chance=chance, limits=bounds)
    # A memory store outlives its stop: it is its own data.
    store = MemoryStore(chance=chance, limits=bounds)
    return lambda: store


@pytest.fixture
def store(open_store: OpenStore, clock: FakeClock) -> Iterator[StoreDriver]:
    """A started store."""
    driver = StoreDriver(open_store, clock)
    yield driver
    driver.store.stop()
