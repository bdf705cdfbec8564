"""P2, end to end in bulk: producers add batches, awaiting each answer; workers take several jobs at a time."""

from __future__ import annotations

import argparse

from bench import p1, report

NAME = "p2"
ABOUT = "end to end, bulk: 4 producers × batches of 100, 4 workers"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark alone."""
    parser.add_argument("--batch", type=int, nargs="+", default=[100], help="jobs a bulk (default 100)")
    p1.population(parser)


def run(options: argparse.Namespace) -> report.Result:
    """Measure each size of a bulk, `--runs` times."""
    cases = [
        report.Case(f"{options.producers} × bulk of {batch}", p1.repeat(options, mode="bulk", batch=batch))
        for batch in options.batch
    ]
    return report.Result(NAME, "P2: end to end, bulk", p1.COLUMNS, cases)
