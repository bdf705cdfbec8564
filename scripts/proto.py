"""Generates the Python code of the contract, or checks that what is committed is what would be generated.

    python scripts/proto.py            write proto/anvilmq_proto/v1/*_pb2.py and *.pyi
    python scripts/proto.py --check    exit 1 and name the files that differ

The generator is pinned in requirements.lock and writes the same bytes each time, so files are compared as they are.
"""

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "proto"
PACKAGE = Path("anvilmq_proto", "v1")


def generate(target: Path) -> None:
    """Runs protoc over every .proto file, output below target."""
    protos = sorted(str(path) for path in (SOURCE / PACKAGE).glob("*.proto"))
    builtin = resources.files("grpc_tools") / "_proto"
    status = protoc.main(
        ["protoc", f"-I{SOURCE}", f"-I{builtin}", f"--python_out={target}", f"--pyi_out={target}", *protos]
    )
    if status != 0:
        raise SystemExit(status)


def generated(root: Path) -> dict[str, bytes]:
    """The generated files below root, by their name."""
    folder = root / PACKAGE
    return {path.name: path.read_bytes() for path in folder.glob("*_pb2*.py*") if path.is_file()}


def write() -> None:
    """Brings the tree in line: new code in, code of .proto files that are gone out."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        expected = generated(Path(scratch))
    folder = SOURCE / PACKAGE
    for name in generated(SOURCE).keys() - expected.keys():
        (folder / name).unlink()
    for name, content in expected.items():
        (folder / name).write_bytes(content)


def differing() -> list[str]:
    """Names of generated files that are missing, left over or not what the generator writes."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        expected = generated(Path(scratch))
    committed = generated(SOURCE)
    names = expected.keys() | committed.keys()
    return sorted(name for name in names if expected.get(name) != committed.get(name))


def main() -> int:
    """Entry point; the exit status."""
    parser = argparse.ArgumentParser(description="Generate the code of the contract.")
    parser.add_argument("--check", action="store_true", help="change nothing, fail if the committed code is stale")
    if not parser.parse_args().check:
        write()
        return 0
    stale = differing()
    for name in stale:
        print(
            f"{Path('proto') / PACKAGE / name} is not what its .proto file generates; run: make proto", file=sys.stderr
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
