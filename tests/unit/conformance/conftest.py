"""The stores and brokers that every test of this folder runs against."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anvilmq_broker.domain import limits
from anvilmq_broker.engine.inproc import InprocEngine
from anvilmq_broker.store import protocol
from anvilmq_broker.store.libsql.store import LibsqlStore
from anvilmq_broker.store.memory import MemoryStore
from tests.support.chance import SeededChance
from tests.support.clock import FakeClock
from tests.support.socket_engine import SocketEngine
from tests.support.store_driver import StoreDriver
from tests.unit.conformance.lab import Lab
from tests.unit.conformance.scheduling import Schedules

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


@pytest.fixture(params=["memory", "libsql", "libsql behind a socket"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, chance: SeededChance) -> Iterator[Lab]:
    """The engine over each store in process, and over the default one through its socket."""
    memory = MemoryStore(chance=chance)

    def open_store() -> protocol.Store:
        return memory if request.param == "memory" else LibsqlStore(tmp_path / "data", chance=chance)

    # The path of a Unix socket is short, pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="anvilmq-") as folder:
        path = Path(folder) / "engine"

        def make_engine(store: protocol.Store, clock: FakeClock) -> InprocEngine:
            if request.param == "libsql behind a socket":
                return SocketEngine(store, clock, path)
            return InprocEngine(store, clock, held=True)

        yield Lab(open_store, make_engine)


@pytest.fixture
def schedules(store: StoreDriver) -> Schedules:
    """The definitions of the started store."""
    return Schedules(store)
