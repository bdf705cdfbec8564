"""Nobody but the driver touches the open database. In processes of their own: a hook stays for ever."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]

PROGRAM: Final = """
import json, os, shutil, sqlite3, sys
from pathlib import Path
from anvilmq_broker.domain import commands
from anvilmq_broker.store.libsql import guard
from anvilmq_broker.store.libsql.store import LibsqlStore
from tests.support.chance import SeededChance

folder = Path(sys.argv[1])
store = LibsqlStore(folder, chance=SeededChance(), startup_check="always")
guard.install(folder)
store.start()
for now in range(3):
    batch = store.begin(now)
    batch.apply([commands.AddJobs([commands.NewJob("mail", "send", b"x" * (9 << 20))])], lambda _: None)
    batch.commit()
    store.housekeep(idle=False)
    store.accepts_adds()
database = folder / "db" / "anvilmq.db"
said = []
for act in sys.argv[2:]:
    try:
        exec(act)
    except guard.Untouchable as refused:
        said.append(str(refused).rpartition(": ")[2])
    else:
        said.append("done")
assert store.violations() == []
store.stop()
store.start()
assert store.counts() == {("mail", 1): 3}
store.stop()
print(json.dumps(said))
"""

REFUSED: Final = (
    "open(database)",
    "database.read_bytes()",
    "os.open(database, os.O_RDONLY)",
    "os.open(os.fsencode(database), os.O_RDONLY)",
    "os.chdir(folder / 'db'); open('anvilmq.db-wal')",
    "os.symlink(folder / 'db', folder / 'link'); open(folder / 'link' / 'anvilmq.db')",
    "open(folder / 'db' / 'new', 'w')",
    "sqlite3.connect(database)",
    "sqlite3.connect(f'file:{database}?mode=ro', uri=True)",
    "shutil.copy(database, folder / 'copy')",
    "os.remove(database)",
    "(folder / 'db' / 'anvilmq.db-wal').unlink()",
    "os.rename(database, folder / 'away')",
    "os.rename(folder / 'db', folder / 'away')",
    "(folder / 'other').touch(); os.rename(folder / 'other', database)",
    "os.truncate(database, 0)",
    "os.link(database, folder / 'copy')",
)
FREE: Final = (
    "(folder / 'check.needed').touch(); (folder / 'check.needed').unlink()",
    "open(folder / 'broker.lock').close()",
    "database.stat(); list((folder / 'db').iterdir())",
    "sqlite3.connect(':memory:').close()",
    "open(os.devnull).close(); os.fdopen(os.open(os.devnull, os.O_RDONLY)).close()",
    "(folder / 'dbx').write_text('x')",
)


def play(folder: Path, acts: Sequence[str]) -> dict[str, str]:
    """What each of these acts comes to in a process that runs a store under guard."""
    command = [sys.executable, "-c", PROGRAM, str(folder), *acts]
    # The program needs the tests' own support; a safe path leaves the current folder out.
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=environ)
    assert done.returncode == 0, done.stderr
    return dict(zip(acts, json.loads(done.stdout), strict=True))


def test_what_would_touch_the_database_is_refused_before_it_happens(tmp_path: Path) -> None:
    said = play(tmp_path / "data", REFUSED)
    assert [act for act in REFUSED if said[act] != "only the driver touches the open database"] == []


def test_everything_else_is_free(tmp_path: Path) -> None:
    said = play(tmp_path / "data", FREE)
    assert [act for act in FREE if said[act] != "done"] == []
