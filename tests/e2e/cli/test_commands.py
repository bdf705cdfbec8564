"""Each command once, end to end."""

import signal
from pathlib import Path

import pytest

from tests.e2e.cli.commands import Commands
from tests.support.broker_process import BrokerProcess, free_ports
from tests.support.rules import rule


def add(commands: Commands, *words: str) -> str:
    """Add a job; its id."""
    done = commands.run("add", *words)
    assert (done.code, done.err) == (0, ""), done
    return done.out.strip()


def test_a_job_is_added_listed_shown_and_explained(commands: Commands) -> None:
    job_id = add(commands, "plain", "send", "-d", '{"to": "a"}', "--label", "tenant=42", "--priority", "7")
    (listed,) = commands.run("job", "list", "--queue", "plain", "--label", "tenant=42", "-o", "json").json["items"]
    assert (listed["jobId"], listed["state"], listed["priority"]) == (job_id, "JOB_STATE_WAITING", 7)
    assert commands.run("job", "list", "--queue", "plain", "--label", "tenant=43", "-o", "name").out == ""
    shown = commands.run("job", "get", job_id).out
    assert '{"to": "a"}' in shown
    assert "tenant=42" in shown
    assert "no worker has asked for jobs of this queue" in commands.run("job", "why", job_id).out


@rule("1.8")
def test_a_worker_runs_jobs_and_leaves_when_it_is_told(commands: Commands) -> None:
    with commands.start("worker", "run", "shop:app", "--queues", "demo", "--name", "blue") as worker:
        assert worker.line_of("stderr").startswith("worker ")
        done = commands.run("add", "demo", "double", "-d", '{"n": 21}', "--wait", "--log")
        assert (done.code, done.out) == (0, "42\n"), done
        assert "doubling 21" in done.err
        (listed,) = commands.run("worker", "list", "--queue", "demo", "-o", "json").json["items"]
        assert listed["identity"]["name"] == "blue"
        failed = commands.run("add", "demo", "fail", "--wait")
        assert (failed.code, failed.out) == (1, "")
        assert "ValueError: as it should" in failed.err
        ended = worker.stop(signal.SIGTERM)
        assert ended.code == 0, ended


def test_a_worker_is_drained_from_afar(commands: Commands) -> None:
    with commands.start("worker", "run", "shop:app", "--queues", "drained") as worker:
        worker_id = worker.line_of("stderr").split()[1]
        add(commands, "drained", "unknown")
        # It is there once it has handed back the job that it does not know.
        assert "drained/unknown" in worker.line_of("stderr")
        assert commands.run("worker", "drain", worker_id).code == 0
        out, err = worker.process.communicate(timeout=60)
        assert worker.process.returncode == 0, (out, err)


@rule("1.9")
def test_a_running_job_is_followed_and_cancelled(commands: Commands) -> None:
    job_id = add(commands, "slow", "slow")
    with commands.start("worker", "run", "shop:app", "--queues", "slow") as worker:
        with commands.start("job", "logs", "-f", job_id) as logs:
            assert logs.line_of("stdout").endswith("began")
            cancelled = commands.run("job", "cancel", job_id, "--reason", "enough")
            assert cancelled.out == "0 cancelled, 1 active, their workers are told\n"
            logs.process.communicate(timeout=60)
            assert logs.process.returncode == 0
        waited = commands.run("job", "wait", job_id)
        assert waited.code == 1
        assert "cancelled: cancel_requested: enough" in waited.err
        assert worker.stop(signal.SIGTERM).code == 0


def test_jobs_that_match_are_cancelled_and_the_others_are_not(commands: Commands) -> None:
    kept = add(commands, "many", "keep")
    for number in range(3):
        add(commands, "many", "drop", "--delay", f"{number + 1}h")
    done = commands.run("job", "cancel", "--queue", "many", "--name", "drop", "--yes")
    assert (done.code, done.out) == (0, "3 cancelled\n")
    assert commands.run("job", "list", "--queue", "many", "--state", "waiting", "-o", "name").out.split() == [kept]
    assert commands.run("job", "cancel", "--queue", "many", "--name", "drop", "--yes").err == "none match\n"


@rule("2.1")
@rule("2.2")
def test_an_idempotency_key_is_taken_shown_and_freed(commands: Commands) -> None:
    words = ("keyed", "send", "--idempotency-key", "order-7")
    first = add(commands, *words)
    again = commands.run("add", *words)
    assert (again.code, again.out.strip()) == (0, first)
    assert commands.run("add", *words, "-d", "1").code == 4
    assert commands.run("receipt", "list", "keyed", "--prefix", "order-", "-o", "name").out == "order-7\n"
    assert first in commands.run("receipt", "get", "keyed", "send", "order-7").out
    other = add(commands, "keyed", "send")
    assert commands.run("receipt", "release", "keyed", "send", "order-7", "--job-id", other).code == 4
    assert commands.run("receipt", "release", "keyed", "send", "order-7", "--job-id", first).code == 0
    assert commands.run("receipt", "get", "keyed", "send", "order-7").code == 3
    second = add(commands, *words, "-d", "1")
    assert second in commands.run("receipt", "rm", "keyed", "send", "order-7").err


@rule("2.1")
def test_a_file_that_is_loaded_twice_adds_nothing_twice(commands: Commands) -> None:
    lines = [f'{{"name": "n", "data": {number}}}' for number in range(2_500)]
    lines[1_200] = '{"name": "n", "priority": -1}'
    (commands.folder / "jobs.jsonl").write_text("\n".join(lines))
    first = commands.run("load", "loaded", "jobs.jsonl", "-o", "json")
    assert (first.code, first.json) == (1, {"lines": 2_500, "added": 2_499, "existing": 0, "refused": 1}), first
    assert '"line": 1201' in (commands.folder / "jobs.jsonl.rejected").read_text()
    second = commands.run("load", "loaded", "-", "-o", "json", stdin="\n".join(lines))
    assert second.json == {"lines": 2_500, "added": 0, "existing": 2_499, "refused": 1}
    listed = commands.run("job", "list", "--queue", "loaded", "--all", "--oldest-first", "--full", "-o", "jsonl")
    assert len(listed.out.splitlines()) == 2_499


@rule("1.10")
def test_a_file_is_loaded_whole_or_not_at_all(commands: Commands) -> None:
    (commands.folder / "jobs.jsonl").write_text('{"name": "a"}\n{"name": "b", "priority": -1}\n')
    refused = commands.run("load", "whole", "jobs.jsonl", "--atomic")
    assert refused.code == 2
    assert "line 2" in refused.err
    assert commands.run("job", "list", "--queue", "whole", "-o", "name").out == ""


def test_both_versions_are_told(commands: Commands) -> None:
    told = commands.run("version", "-o", "json").json
    assert told["client"]["version"] == told["server"]["version"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("job get nothing", 3),
        ("job list --page-token made-up", 2),
        ("add bad/queue n", 2),
        ("add q n --max-attempts 0", 2),
        ("add q n --group-id g", 4),
        ("worker drain nobody", 3),
    ],
)
def test_refusals_have_their_exit_code_and_one_line(commands: Commands, words: str, code: int) -> None:
    done = commands.run(*words.split())
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    assert done.err.startswith("error: ")


def test_nobody_at_the_address_gives_exit_code_5(commands: Commands) -> None:
    (port,) = free_ports(1)
    done = commands.run("job", "list", "--url", f"localhost:{port}")
    assert done.code == 5
    assert f"no broker answers at localhost:{port} (Connection refused)" in done.err


def test_a_token_is_wanted_and_its_scopes_count(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text("- {name: ci, token: secret-of-ci, scopes: [{scope: produce, queues: ['ci-*']}]}\n")
    (tmp_path / "token").write_text("secret-of-ci\n")
    settings = {"ANVILMQ_AUTH": "token", "ANVILMQ_TOKENS_FILE": str(tokens)}
    with BrokerProcess(tmp_path, settings=settings) as broker:
        commands = Commands(broker.url, tmp_path)
        without = commands.run("add", "ci-1", "n")
        assert (without.code, "TOKEN_MISSING" in without.err) == (6, True), without
        assert commands.run("add", "ci-1", "n", "--token-file", "token").code == 0
        elsewhere = commands.run("add", "other", "n", "--token-file", "token")
        assert (elsewhere.code, "SCOPE_MISSING" in elsewhere.err) == (6, True), elsewhere
        commands.environment["ANVILMQ_TOKEN_FILE"] = "nowhere"
        unread = commands.run("add", "ci-1", "n")
        assert (unread.code, "--token-file (ANVILMQ_TOKEN_FILE)" in unread.err) == (2, True), unread
