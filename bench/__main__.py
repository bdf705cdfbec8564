"""`python -m bench NAME …`: run benchmarks one after the other and print a table each. Without a name: list them."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from bench import machine, report

_MODULES = {"store": "store_cost"} | {name: name for name in ("p1", "p2", "p3", "p4", "p6", "p8", "p9")}


def main() -> int:
    """Parse the command line, measure, print; exit 1 when a run lost or doubled a job."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.set_defaults(module=None)
    commands = parser.add_subparsers(title="benchmarks", metavar="NAME")
    for name, module_name in _MODULES.items():
        module = importlib.import_module(f"bench.{module_name}")
        command = commands.add_parser(name, help=module.ABOUT, description=module.__doc__)
        command.set_defaults(module=module)
        _common(command)
        module.arguments(command)
    options = parser.parse_args()
    if options.module is None:
        parser.print_help()
        return 0
    return _measure(options.module, options)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=5, help="runs of each case; the table shows the median (default 5)")
    parser.add_argument("--payload", type=int, default=1024, help="bytes of a job's payload (default 1024)")
    parser.add_argument("--folder", type=Path, default=None, help="where databases go (default: the temporary folder)")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write every run to FILE")


def _measure(module: ModuleType, options: argparse.Namespace) -> int:
    facts = machine.describe(options.folder or Path(tempfile.gettempdir()))
    if facts["file system"] in ("tmpfs", "ramfs"):
        print("warning: the folder lies in memory, so a flush costs nothing; name a disk by --folder", file=sys.stderr)
    result = module.run(options)
    print(report.table(result))
    print(f"\n{report.machine_line(facts)}")
    if options.json:
        report.save(report.Report(facts, [result]), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
