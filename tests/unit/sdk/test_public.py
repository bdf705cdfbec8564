"""The public face: names, import time, types."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from mypy import api

import anvilmq

ROOT: Final = Path(__file__).parents[3]
TYPED: Final = Path(__file__).parent / "typed"

EXPORTS: Final = """
    Anvil AnvilError AwaitChildren BulkResult BulkStopped Fail Handle IdempotencyKeyReused Job JobCancelled JobDef
    JobFailed JobNotFound JobRef Overloaded OwnedByCrd PayloadInvalid PayloadTooLarge Pool QueueFull Release Retry
    ScheduleInvalid SchedulePreview Scheduler Spec Unavailable WaitTimeout Worker current_job exponential fixed
""".split()


def test_the_public_names_are_these() -> None:
    assert sorted(anvilmq.__all__) == sorted(EXPORTS)
    assert set(EXPORTS) <= set(dir(anvilmq))


def test_each_public_name_is_there() -> None:
    for name in EXPORTS:
        assert getattr(anvilmq, name).__module__.startswith("anvilmq.")


def loaded_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_after("import anvilmq")
    assert {name for name in loaded if name.startswith("anvilmq")} == {"anvilmq"}
    assert not {"asyncio", "google", "grpc", "msgspec", "typer"} & loaded


def test_defining_jobs_loads_no_grpc_and_starts_nothing() -> None:
    loaded = loaded_after("""
import threading
from anvilmq import Anvil
app = Anvil()
@app.job(queue="images")
async def resize(job, args): ...
resize.spec(1)
assert threading.active_count() == 1
""")
    assert not {"grpc", "typer", "rich", "pydantic", "anvilmq_broker"} & loaded


def found_by_mypy(file: Path) -> set[tuple[int, str]]:
    """Line and code of each error in a file."""
    text, faults, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", str(file)])
    assert not faults
    errors = re.findall(rf"^(?:.*/)?{file.name}:(\d+): error: .*\[([a-z-]+)\]$", text, re.MULTILINE)
    assert len(errors) == text.count(": error: "), text
    return {(int(line), code) for line, code in errors}


def test_what_users_write_has_the_types_they_expect() -> None:
    assert found_by_mypy(TYPED / "right.py") == set()


def test_what_users_get_wrong_is_found(tmp_path: Path) -> None:
    # No .py in the tree, since it is wrong on purpose.
    file = tmp_path / "wrong.py"
    file.write_text((TYPED / "wrong.py.txt").read_text(encoding="utf-8"), encoding="utf-8")
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
    wanted = {(number, found[1]) for number, line in lines if (found := re.search(r"# wrong: ([a-z-]+)$", line))}
    assert found_by_mypy(file) == wanted
