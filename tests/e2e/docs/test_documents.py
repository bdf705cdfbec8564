"""README, tutorial and how-tos, followed to the letter."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.docs import snippets
from tests.e2e.docs.snippets import Command, Shell, Snippet
from tests.support.broker_process import BrokerProcess, free_ports

_START_S = 30


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    grpc, http = (f"127.0.0.1:{port}" for port in free_ports(2))
    settings = {"ANVILMQ_GRPC_ADDRESS": grpc, "ANVILMQ_HTTP_ADDRESS": http, "ANVILMQ_URL": grpc}
    with Shell(tmp_path, settings) as shell:
        for snippet in snippets.read("docs/tutorial/first-job.md"):
            _follow(shell, snippet, http)


def test_the_example_of_the_readme_works_as_written(tmp_path: Path) -> None:
    with _broker(tmp_path) as shell:
        blocks = snippets.read("README.md")
        for snippet in blocks:
            if snippet.language == "python":
                shell.write(snippet)
        shell.leave_running("anvilmq worker run shop:app --queues images --concurrency 8")
        shell.type(Command("python producer.py", "cat.png at 200"))
        [line_block] = [block for block in blocks if "anvilmq add" in block.text]
        for line in line_block.text.splitlines():
            shell.type(Command(line.replace(" ID ", " $(anvilmq job list -o name | head -1) "), "…"))


def test_the_handler_tests_of_the_how_to_pass(tmp_path: Path) -> None:
    with Shell(tmp_path, {}) as shell:
        for snippet in snippets.read("docs/howto/test-your-handlers.md"):
            _follow(shell, snippet, "")


def test_the_schedules_of_the_how_to_run_as_it_says(tmp_path: Path) -> None:
    with _broker(tmp_path) as shell:
        for snippet in snippets.read("docs/howto/schedule-jobs.md"):
            _follow(shell, snippet, "")


def test_the_tokens_of_the_how_to_open_the_broker_that_it_shows(tmp_path: Path) -> None:
    blocks = snippets.read("docs/howto/secure-the-broker.md")
    with Shell(tmp_path, {}) as shell:
        for snippet in blocks:
            if snippet.title or snippet.language == "console":
                _follow(shell, snippet, "")
    settings = {"ANVILMQ_AUTH": "token", "ANVILMQ_TOKENS_FILE": str(tmp_path / "tokens.yaml")}
    with _broker(tmp_path, settings, ANVILMQ_TOKEN="a-token-may-also-stand-here-in-plain-text") as shell:
        shell.type(Command("anvilmq job list", "…"))
        shell.type(Command("! anvilmq add orders pack -d '{}'", "…"))
        shell.type(Command("! ANVILMQ_TOKEN=wrong anvilmq job list", "…"))


@pytest.mark.parametrize("document", sorted(path.name for path in (snippets.ROOT / "docs/howto").glob("*.md")))
def test_every_flag_of_the_broker_in_a_how_to_exists(document: str, tmp_path: Path) -> None:
    with Shell(tmp_path, {}) as shell:
        shell.type(Command("anvilmq-broker --help > help.txt", ""))
    known = set((tmp_path / "help.txt").read_text().replace("=", " ").replace(",", " ").split())
    lines = [
        line
        for block in snippets.read(f"docs/howto/{document}")
        for line in block.text.replace("\\\n", " ").splitlines()
        if "anvilmq-broker " in line
    ]
    flags = {word for line in lines for word in line.split() if word.startswith("--")}
    assert flags <= known


def _follow(shell: Shell, snippet: Snippet, http: str) -> None:
    """Do what a reader does with a block; plain `sh` is for other machines than this one."""
    if snippet.language in {"python", "yaml"} and snippet.title:
        shell.write(snippet)
    elif (snippet.language, snippet.title) == ("console", "background"):
        [command] = snippets.commands(snippet)
        shell.leave_running(command.line)
        if command.line.startswith("anvilmq-broker"):
            _wait_ready(http)
    elif snippet.language == "console":
        for command in snippets.commands(snippet):
            shell.type(command)


def _wait_ready(http: str) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(f"http://{http}/readyz", timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, "the broker is not ready"
            time.sleep(0.05)


@contextmanager
def _broker(folder: Path, settings: dict[str, str] | None = None, **clients: str) -> Iterator[Shell]:
    with (
        BrokerProcess(folder, settings=settings) as broker,
        Shell(folder, {"ANVILMQ_URL": broker.url} | clients) as shell,
    ):
        yield shell
