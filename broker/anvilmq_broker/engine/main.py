"""The engine's process: open the store, serve the socket, report to the supervisor, leave in good order."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from anvilmq_broker.clock import Clock, SystemClock
from anvilmq_broker.domain import errors
from anvilmq_broker.domain.limits import Limits
from anvilmq_broker.engine import link
from anvilmq_broker.engine.chance import SystemChance
from anvilmq_broker.engine.link_server import SocketHub
from anvilmq_broker.engine.loop import Engine
from anvilmq_broker.engine.metrics import Snapshot
from anvilmq_broker.engine.reporting import Reporter
from anvilmq_broker.engine.telemetry import Telemetry
from anvilmq_broker.store import protocol

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
DURABILITIES: Final = {"full": 1, "relaxed": 2}
_GC_YOUNG: Final = 50_000
"""Objects made between two collections of the youngest: a batch makes thousands, and none in a cycle."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine must know. store: libsql or memory. socket: path in a folder of this user alone."""

    store: str
    data_dir: Path
    durability: str
    socket: Path
    lock_wait_ms: int = 0
    max_queue_jobs: int = 0
    allow_filesystem: str = ""
    startup_check: str = "auto"


def run_engine(config: Config, reporter: Reporter, warn: Callable[[str], None], clock: Clock | None = None) -> int:
    """Serve until told to stop; the exit code. Raises errors.StartRefused; OSError when the socket cannot be bound.

    warn: takes what the store wants its operator to know.
    """
    clock = clock or SystemClock()
    telemetry = Telemetry()
    store = open_store(config, warn)
    opening = store.start()
    hub = SocketHub(config.socket, link.encode(0, _hello(config, store, clock)), reporter)
    engine = Engine(store, hub, clock, telemetry, DURABILITIES[config.durability])
    control = _Control(engine)
    reporter.serve(control)
    engine.start(opening)
    reporter.ready(facts={"store": config.store, "durability": config.durability})
    _tune_gc()
    try:
        while not control.stopping:
            engine.step(None)
    except errors.StoreError as error:
        # Nothing of the batch was answered. The next start finds out what of it was written.
        telemetry.failed(error)
        store.abandon()
        return EXIT_FAILED
    except BaseException:
        store.abandon()
        raise
    finally:
        hub.close()
        store.stop()
    telemetry.stopped()
    reporter.stopping()
    return EXIT_OK


def open_store(config: Config, warn: Callable[[str], None]) -> protocol.Store:
    """The store that the configuration names, not started."""
    limits = Limits(max_queue_jobs=config.max_queue_jobs)
    if config.store == "memory":
        from anvilmq_broker.store.memory.store import MemoryStore

        return MemoryStore(chance=SystemChance(), limits=limits)
    from anvilmq_broker.store.libsql import guard, volume
    from anvilmq_broker.store.libsql.store import LibsqlStore

    guard.install(config.data_dir)
    return LibsqlStore(
        config.data_dir,
        chance=SystemChance(),
        durability="relaxed" if config.durability == "relaxed" else "full",
        limits=limits,
        lock_wait_s=config.lock_wait_ms / 1000,
        allow_filesystem=config.allow_filesystem,
        startup_check="always" if config.startup_check == "always" else "auto",
        warn=warn,
        ballast_bytes=volume.BALLAST_BYTES,
    )


class _Control:
    """Carries out what the supervisor says."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.stopping = False

    def snapshot(self) -> Snapshot:
        """The engine's metrics."""
        return self._engine.snapshot()

    def stop(self, grace_ms: int) -> None:
        """Gateways have drained by now: stop after this turn."""
        self.stopping = True


def _hello(config: Config, store: protocol.Store, clock: Clock) -> link.Hello:
    return link.Hello(
        link.schema_hash(),
        os.urandom(8).hex(),
        clock.wall_ms(),
        store.schema_version,
        DURABILITIES[config.durability],
        os.urandom(32),
    )


def _tune_gc() -> None:
    """Collections are rare, and never walk what stands since the start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_YOUNG, 20, 100)
