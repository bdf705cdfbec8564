"""Writes docs/reference/settings.md and metrics.md from the code, or checks that what is committed is what would be written.

python scripts/broker_reference.py            write them
python scripts/broker_reference.py --check    exit 1 when one differs
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from anvilmq._metrics import Metrics
from anvilmq_broker.app import settings

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "reference"
SETTINGS_HEAD: Final = """\
# Settings of the broker

<!-- Written by scripts/broker_reference.py. -->

Each is a flag of `anvilmq-broker` and a variable; the flag wins, and an empty variable counts as not set. A variable whose
name begins with `ANVILMQ_` and is none of these is refused, naming the nearest one. Durations have units (`110s`, `2m`,
`1h30m`; a bare number is refused), sizes too (`64KiB`, `1MiB`). There is no file of settings.

What Kubernetes injects for Services may stand beside them, and what the SDK and the command line read:
{others}.
"""
METRICS_HEAD: Final = """\
# Metrics

<!-- Written by scripts/broker_reference.py. -->

For Prometheus, in text form. Labels hold queues, never ids; queues beyond the first 200 are `_other`. Times are in seconds,
in buckets from 1 ms to 1 h. Counters begin at 0 when a process starts.

## Of the broker

`http://…:9090/metrics`, all processes of a broker in one answer.

"""
WORKERS_HEAD: Final = """
## Of a worker

`/metrics` at the address of `anvilmq worker run --http` or `app.worker(http=…)`.

"""


class Metric(NamedTuple):
    """One line of the table."""

    name: str
    kind: str
    labels: str
    help: str


def settings_page() -> str:
    """The whole page."""
    others = ", ".join(f"`{name}`" for name in sorted(settings.NOT_OURS))
    rows = [f"| `{one.flag}` | `{one.variable}` | {_default(one)} | {one.help} |" for one in settings.TABLE]
    head = SETTINGS_HEAD.replace("{others}", others)
    return "\n".join([head, "| flag | variable | default | |", "|---|---|---|---|", *rows]) + "\n"


def _default(setting: settings.Setting) -> str:
    text = setting.shown or (setting.default if isinstance(setting.default, str) else "")
    return f"`{text}`" if text and " " not in text else text or "none"


def metrics_page() -> str:
    """The whole page."""
    return METRICS_HEAD + _table(broker_metrics()) + WORKERS_HEAD + _table(worker_metrics())


def broker_metrics() -> list[Metric]:
    """Every metric that the broker's code makes, found where it is made: `Counter("anvilmq_…", "help", "label" …)`."""
    found = {
        metric.name: metric
        for path in sorted((ROOT / "broker").rglob("*.py"))
        for metric in _made_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    return sorted(found.values())


def _made_in(module: ast.Module) -> Iterator[Metric]:
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        kind = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if kind in {"Counter", "Gauge", "Histogram"} and texts and texts[0].startswith("anvilmq_"):
            name, text, *labels = texts
            yield Metric(name, kind.lower(), ", ".join(labels), text)


def worker_metrics() -> list[Metric]:
    """Every metric of a worker that has done nothing yet."""
    text = Metrics(loop_stalls=_zero, reconnects=_zero, leases_lost=_zero, adds_pending=_zero).text().decode()
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    labels = {"anvilmq_worker_run_seconds": "queue"}
    found = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return sorted(Metric(name, kind, labels.get(name, ""), helps[name]) for name, kind in found)


def _zero() -> float:
    return 0.0


def _table(metrics: list[Metric]) -> str:
    rows = [f"| `{one.name}` | {one.kind} | {one.labels or '–'} | {one.help} |" for one in metrics]
    return "\n".join(["| metric | type | labels | |", "|---|---|---|---|", *rows]) + "\n"


def pages() -> dict[Path, str]:
    """What is to stand in each file."""
    return {FOLDER / "settings.md": settings_page(), FOLDER / "metrics.md": metrics_page()}


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path.name for path, text in pages().items() if path.read_text(encoding="utf-8") != text]
    if stale:
        print(f"error: {', '.join(stale)} is not what the code says; remedy: python scripts/broker_reference.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
