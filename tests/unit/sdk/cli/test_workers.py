"""Listing, draining and running workers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anvilmq import errors
from anvilmq.app import Anvil
from anvilmq.cli import log_lines, running
from anvilmq.cli.command import Connection
from anvilmq.cli.exits import Stopped, UsageProblem
from anvilmq_proto.v1 import worker_service_pb2 as workers
from tests.unit.sdk.cli.shell import NOW_MS, Shell

WORKER = workers.Worker(
    identity=workers.WorkerIdentity(worker_id="w1", name="blue", sdk="python", sdk_version="1.0"),
    pools=[workers.Pool(id=1, queues=["a", "b"], concurrency=8), workers.Pool(id=2, queues=["pdf"], concurrency=2)],
    running=3,
    connected_at_ms=NOW_MS - 61_000,
    session=True,
)


def test_workers_are_listed_with_their_queues_and_slots(shell: Shell) -> None:
    polling = workers.Worker(identity=workers.WorkerIdentity(worker_id="w2"), last_seen_at_ms=NOW_MS)
    shell.broker.answer("ListWorkers", workers.ListWorkersResponse(workers=[WORKER, polling]))
    assert shell.run("worker", "list", "--queue", "pdf").out.splitlines() == [
        "ID   NAME   STATE     QUEUES    RUNNING   SLOTS   AGE",
        "w1   blue   session   a,b,pdf   3         10      1m1s",
        "w2   -      polling   -         0         -       -",
    ]
    assert shell.broker.requests("ListWorkers")[0].queue == "pdf"


def test_a_worker_is_asked_to_leave(shell: Shell) -> None:
    shell.broker.answer("DrainWorker", workers.DrainWorkerResponse(), errors.WorkerNotFound("no worker w1"))
    shown = shell.run("worker", "drain", "w1", "--reason", "node goes")
    assert (shown.code, shown.err) == (0, "worker w1 is asked to leave\n")
    assert shell.broker.requests("DrainWorker") == [workers.DrainWorkerRequest(worker_id="w1", reason="node goes")]
    assert shell.run("worker", "drain", "w1").code == 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of a user; modules imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith("shop"):
            del sys.modules[name]


APP = """
from anvilmq.app import Anvil
broker = Anvil()
other = 1

@broker.job(queue="a")
async def one(job, args: None) -> None: ...

@broker.job(queue="b")
async def two(job, args: None) -> None: ...
"""


def test_an_app_is_found_in_the_current_folder(folder: Path) -> None:
    (folder / "shop_jobs.py").write_text(APP)
    assert isinstance(running.load_app("shop_jobs:broker"), Anvil)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shop_jobs", "'shop_jobs' is not understood; write it as shop.jobs:app"),
        ("shop_jobs:app", "'app' of shop_jobs does not exist; say shop_jobs:broker"),
        ("shop_jobs:other", "'other' of shop_jobs is no app; say shop_jobs:broker"),
        ("shop_nothing:app", "there is no module 'shop_nothing' in"),
        ("shop_jobs.deep:app", "there is no module 'shop_jobs.deep' in"),
    ],
)
def test_an_app_that_is_not_there_is_told_with_the_remedy(folder: Path, target: str, said: str) -> None:
    (folder / "shop_jobs.py").write_text(APP)
    with pytest.raises(UsageProblem) as told:
        running.load_app(target)
    assert said in str(told.value)


def test_a_module_that_fails_shows_where_in_the_users_own_code(folder: Path) -> None:
    (folder / "shop_bad.py").write_text("import shop_worse\n")
    (folder / "shop_worse.py").write_text("import shop_missing\n")
    with pytest.raises(Stopped) as told:
        running.load_app("shop_bad:app")
    assert told.value.exit_code == 1
    text = str(told.value)
    assert "shop_worse.py" in text
    assert "No module named 'shop_missing'" in text
    assert "importlib" not in text
    assert "running.py" not in text


class WorkerOf:
    """Stands in for the worker: keeps what it was made with, and ends at once."""

    made: dict[str, Any]

    def __init__(self, app: Anvil, **settings: Any) -> None:
        self.id = "w1"
        type(self).made = {"app": app, **settings}

    def run(self) -> None:
        """End at once."""


def test_flags_reach_the_worker(shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "shop_jobs.py").write_text(APP)
    monkeypatch.setattr(running, "Worker", WorkerOf)
    monkeypatch.setattr(log_lines, "write_to", lambda stream: None)
    flags = "--queues a,pdf --pool pdf=2 --concurrency 3 --prefetch 0 --grace 10s --http :8081 --name blue"
    assert shell.run("worker", "run", "shop_jobs:broker", *flags.split()).code == 0
    made = WorkerOf.made
    assert isinstance(made.pop("app"), Anvil)
    assert made == {
        "queues": ["a", "pdf"],
        "pools": {"pdf": 2},
        "concurrency": 3,
        "prefetch": 0,
        "grace": "10s",
        "http": ":8081",
        "name": "blue",
    }
    shell.run("worker", "run", "shop_jobs:broker")
    assert WorkerOf.made["queues"] == ["a", "b"]


def test_a_url_on_the_command_line_goes_before_that_of_the_app() -> None:
    app = Anvil("localhost:1")
    running.connect(app, Connection())
    with app:
        assert app.client.settings.address == "localhost:1"
    running.connect(app, Connection(url="localhost:2"))
    with app:
        assert app.client.settings.address == "localhost:2"


@pytest.mark.parametrize("flags", ["--pool pdf", "--pool pdf=0", "--queues a,,b", "--grace 5", "--concurrency 0"])
def test_bad_flags_of_a_worker_are_told_before_anything_starts(shell: Shell, folder: Path, flags: str) -> None:
    (folder / "shop_jobs.py").write_text(APP)
    shown = shell.run("worker", "run", "shop_jobs:broker", *flags.split())
    assert shown.code == 2
    assert flags.split(maxsplit=1)[0] in shown.err
