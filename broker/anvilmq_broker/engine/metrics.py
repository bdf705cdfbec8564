"""Kept counters, gauges and histograms, their snapshot, and its text form for Prometheus.

Each process counts for itself; the supervisor merges the snapshots, so there is no registry and no module state. A
sample is found by its label values; labels hold no ids, and queues beyond 200 are `_other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

SECONDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
)  # fmt: skip
"""Bounds of every histogram of times: 1 ms … 1 h."""
COUNTS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Bounds of a histogram of sizes."""
MAX_QUEUES: Final = 200
OTHER: Final = "_other"

Labels = tuple[str, ...]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One line: label values, and the value, or for a histogram its bucket counts (not cumulative), last +Inf, and sum."""

    labels: list[str]
    value: float = 0.0
    buckets: list[int] = []


class Family(msgspec.Struct, frozen=True, array_like=True):
    """One metric with its samples. kind: counter, gauge, histogram. bounds: of a histogram."""

    name: str
    kind: str
    help: str
    label_names: list[str]
    samples: list[Sample]
    bounds: list[float] = []


Snapshot = list[Family]


class Counter:
    """Rises only. `add` is the hot call: one dictionary update."""

    __slots__ = ("help", "kind", "label_names", "name", "values")

    def __init__(self, name: str, help: str, *label_names: str, kind: str = "counter") -> None:
        self.name, self.help, self.label_names, self.kind = name, help, label_names, kind
        self.values: dict[Labels, float] = {}

    def add(self, labels: Labels = (), amount: float = 1.0) -> None:
        """Add to the sample of these label values."""
        values = self.values
        values[labels] = values.get(labels, 0.0) + amount

    def family(self) -> Family:
        """What a snapshot holds of it."""
        samples = [Sample(list(labels), value) for labels, value in self.values.items()]
        return Family(self.name, self.kind, self.help, list(self.label_names), samples)


class Gauge(Counter):
    """Goes up and down."""

    __slots__ = ()

    def __init__(self, name: str, help: str, *label_names: str) -> None:
        super().__init__(name, help, *label_names, kind="gauge")

    def set(self, value: float, labels: Labels = ()) -> None:
        """Set the sample of these label values."""
        self.values[labels] = value


class _Buckets:
    __slots__ = ("counts", "sum")

    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        self.sum = 0.0


class Histogram:
    """Counts observations by their size."""

    __slots__ = ("bounds", "help", "label_names", "name", "samples")

    def __init__(self, name: str, help: str, *label_names: str, bounds: Sequence[float] = SECONDS) -> None:
        self.name, self.help, self.label_names, self.bounds = name, help, label_names, bounds
        self.samples: dict[Labels, _Buckets] = {}

    def observe(self, value: float, labels: Labels = (), times: int = 1) -> None:
        """Count one observation, or several equal ones."""
        buckets = self.samples.get(labels)
        if buckets is None:
            buckets = self.samples[labels] = _Buckets(len(self.bounds) + 1)
        buckets.counts[bisect_left(self.bounds, value)] += times
        buckets.sum += value * times

    def family(self) -> Family:
        """What a snapshot holds of it."""
        samples = [Sample(list(labels), b.sum, list(b.counts)) for labels, b in self.samples.items()]
        return Family(self.name, "histogram", self.help, list(self.label_names), samples, list(self.bounds))


class QueueNames:
    """Label values for queues: the first 200 by name, all later ones `_other`."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, queue: str) -> str:
        """The label value of this queue."""
        name = self._names.get(queue)
        if name is None:
            if len(self._names) >= MAX_QUEUES:
                return OTHER
            name = self._names[queue] = queue
        return name


def merge(snapshots: Iterable[Snapshot]) -> Snapshot:
    """One snapshot out of several processes': equal samples are added up, families keep the order of first sight."""
    merged: dict[str, tuple[Family, dict[Labels, Sample]]] = {}
    for snapshot in snapshots:
        for family in snapshot:
            _, samples = merged.setdefault(family.name, (family, {}))
            for sample in family.samples:
                labels = tuple(sample.labels)
                earlier = samples.get(labels)
                samples[labels] = sample if earlier is None else _sum(earlier, sample)
    return [msgspec.structs.replace(family, samples=list(samples.values())) for family, samples in merged.values()]


def _sum(one: Sample, other: Sample) -> Sample:
    buckets = [a + b for a, b in zip(one.buckets, other.buckets, strict=True)]
    return Sample(one.labels, one.value + other.value, buckets)


def render(snapshot: Snapshot) -> str:
    """The text exposition format of Prometheus (0.0.4)."""
    lines: list[str] = []
    for family in snapshot:
        lines += (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
        for sample in family.samples:
            if family.kind == "histogram":
                lines += _histogram_lines(family, sample)
            else:
                lines.append(f"{family.name}{_labels(family.label_names, sample.labels)} {_number(sample.value)}")
    return "\n".join(lines) + "\n"


def _histogram_lines(family: Family, sample: Sample) -> list[str]:
    names, lines, total = [*family.label_names, "le"], [], 0
    for bound, count in zip([*map(_number, family.bounds), "+Inf"], sample.buckets, strict=True):
        total += count
        lines.append(f"{family.name}_bucket{_labels(names, [*sample.labels, bound])} {total}")
    labels = _labels(family.label_names, sample.labels)
    lines += (f"{family.name}_sum{labels} {_number(sample.value)}", f"{family.name}_count{labels} {total}")
    return lines


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
