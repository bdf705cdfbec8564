"""A broker for development."""

import signal
from pathlib import Path

from tests.e2e.cli.commands import Commands, Running
from tests.support.broker_process import free_ports


def started(commands: Commands, *words: str) -> tuple[Running, dict[str, str]]:
    """`anvilmq dev` and what it has printed, once it serves."""
    running = commands.start("dev", "--port", "0", *words)
    told = dict(running.line_of("stdout").split(maxsplit=1) for _ in range(3))
    commands.environment["ANVILMQ_URL"] = told["broker"]
    return running, told


def test_a_broker_and_the_workers_of_an_app_run_until_ctrl_c(tmp_path: Path) -> None:
    commands = Commands("", tmp_path)
    running, told = started(commands, "--app", "shop:app")
    with running:
        done = commands.run("add", "demo", "double", "-d", '{"n": 4}', "--wait")
        assert (done.code, done.out) == (0, "8\n"), done
        folder = Path(told["data"].removesuffix(" (gone at the end)"))
        assert folder.is_dir()
        ended = running.stop(signal.SIGINT)
        assert ended.code == 0, ended
    assert not folder.exists()
    assert commands.run("job", "list").code == 5


def test_data_in_a_folder_of_ones_own_is_there_the_next_time(tmp_path: Path) -> None:
    commands = Commands("", tmp_path)
    folder = str(tmp_path / "kept")
    running, _ = started(commands, "--data", folder)
    with running:
        job_id = commands.run("add", "q", "n").out.strip()
        assert running.stop(signal.SIGTERM).code == 0
    running, told = started(commands, "--data", folder)
    with running:
        assert told["data"] == f"{folder} (kept there)"
        assert commands.run("job", "list", "-o", "name").out.strip() == job_id
        assert running.stop(signal.SIGTERM).code == 0


def test_an_app_that_is_not_there_ends_it_with_the_reason(tmp_path: Path) -> None:
    commands = Commands("", tmp_path)
    done = commands.run("dev", "--port", "0", "--app", "shop:nothing")
    assert done.code == 2
    assert "'nothing' of shop does not exist; say shop:app" in done.err


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    commands = Commands("", tmp_path)
    (port,) = free_ports(1)
    with commands.start("dev", "--port", str(port)) as running:
        running.line_of("stdout")
        done = commands.run("dev", "--port", str(port))
        assert done.code == 2
        assert f"--port: {port} is taken" in done.err
        assert running.stop(signal.SIGINT).code == 0


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    commands = Commands("", tmp_path)
    (tmp_path / "file").write_text("no folder")
    done = commands.run("dev", "--port", "0", "--data", "file")
    assert done.code == 1
    assert "error: the broker has ended by itself" in done.err
    assert "file" in done.err.splitlines()[-2]
