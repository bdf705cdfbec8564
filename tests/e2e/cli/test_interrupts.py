"""Ctrl-C, and what goes on after it."""

import json
import signal

from tests.e2e.cli.commands import Commands
from tests.support.rules import rule


@rule("2.1")
def test_a_load_that_was_interrupted_goes_on_where_it_was(commands: Commands) -> None:
    count = 20_000
    (commands.folder / "jobs.jsonl").write_text("".join(f"{number}\n" for number in range(count)))
    words = ("load", "cut", "jobs.jsonl", "--name", "n", "-o")
    with commands.start(*words, "name") as loading:
        loading.line_of("stdout")
        stopped = loading.stop(signal.SIGINT)
    assert stopped.code == 130, stopped
    assert "Run the same command again to go on: no line is added twice." in stopped.err
    rest = commands.run(*words, "json")
    assert rest.code == 0, rest
    counts = json.loads(rest.out)
    assert counts["added"] + counts["existing"] == count
    assert counts["existing"] > 0
    assert counts["added"] > 0


def test_a_wait_is_interrupted_at_once(commands: Commands) -> None:
    job_id = commands.run("add", "waited", "n").out.strip()
    with commands.start("job", "wait", job_id, "--log") as waiting:
        # Nothing tells from outside that it waits; a signal before it does ends it just the same.
        assert waiting.stop(signal.SIGINT).code in (130, -signal.SIGINT)
