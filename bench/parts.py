"""What the leader of a run and its clients say to each other."""

from __future__ import annotations

import msgspec

QUEUE = "bench"
WARM_UP = 1 << 31
"""Numbers from here on belong to the warm-up and count nowhere."""


class ProducerConfig(msgspec.Struct, frozen=True):
    """mode: add (`inflight` calls at a time), bulk (batches of `batch`), or rate (one each 1/`rate` s, shifted by
    `phase` of it, whatever the answers do)."""

    index: int
    mode: str
    jobs: int
    payload: int
    inflight: int = 1
    batch: int = 100
    rate: float = 0.0
    phase: float = 0.0


class WorkerConfig(msgspec.Struct, frozen=True):
    """tally: file of 8-byte counters, `index` being ours; concurrency: slots."""

    index: int
    tally: str
    concurrency: int


class Produced(msgspec.Struct, frozen=True):
    """acked: adds that were answered; ack_us: how long each took (from its due time on with a rate)."""

    acked: int
    began_ns: int
    ended_ns: int
    cpu_s: float
    ack_us: list[int]


class Worked(msgspec.Struct, frozen=True):
    """Of each handled job: producer << 32 | n, and the time from its due time to its handler, in µs."""

    keys: list[int]
    wait_us: list[int]
    last_ns: int
    cpu_s: float
