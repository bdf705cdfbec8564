"""Each command about schedules once, over a real broker."""

from __future__ import annotations

from tests.e2e.cli.commands import Commands
from tests.support.rules import rule

DEFINITIONS = """
name: cli-nightly
schedule: "30 2 * * *"
timeZone: Europe/Berlin
concurrencyPolicy: Forbid
jobTemplate: {queue: cli, name: report, data: {format: pdf}}
---
apiVersion: anvilmq.io/v1alpha1
kind: JobScheduler
metadata: {name: cli-refresh}
spec:
  everySeconds: 3600
  jobTemplate: {queue: cli, name: refresh}
"""


@rule("6.7")
def test_schedules_are_applied_shown_run_stopped_and_deleted(commands: Commands) -> None:
    (commands.folder / "s.yaml").write_text(DEFINITIONS)
    assert commands.run("schedule", "lint", "--server", "s.yaml").code == 0
    assert "created" in commands.run("schedule", "apply", "-f", "s.yaml", "--dry-run").out
    assert commands.run("schedule", "list", "--prefix", "cli-", "-o", "name").out == ""
    applied = commands.run("schedule", "apply", "-f", "s.yaml", "-o", "json").json["items"]
    assert [each["outcome"] for each in applied] == ["UPSERT_OUTCOME_CREATED"] * 2
    listed = commands.run("schedule", "list", "--queue", "cli", "-o", "yaml")
    assert commands.run("schedule", "list", "--prefix", "cli-", "-o", "name").out.split() == [
        "cli-nightly",
        "cli-refresh",
    ]
    again = commands.run("schedule", "apply", "-f", "-", "-o", "json", stdin=listed.out).json["items"]
    assert [each["outcome"] for each in again] == ["UPSERT_OUTCOME_UNCHANGED"] * 2

    job_id = commands.run("schedule", "run", "cli-nightly", "--run-key", "k").out.strip()
    assert commands.run("schedule", "run", "cli-nightly", "--run-key", "k").out.strip() == job_id
    assert commands.run("job", "list", "--scheduler", "cli-nightly", "-o", "name").out.split() == [job_id]
    assert "cli-nightly" in commands.run("job", "get", job_id).out

    assert commands.run("schedule", "suspend", "cli-nightly").code == 0
    assert "suspended" in commands.run("schedule", "get", "cli-nightly").out
    assert commands.run("schedule", "resume", "cli-nightly").code == 0
    assert "active" in commands.run("schedule", "get", "cli-nightly").out
    assert commands.run("schedule", "rm", "cli-nightly", "cli-refresh").code == 0
    assert commands.run("schedule", "get", "cli-nightly").code == 3


@rule("6.8")
def test_a_schedule_is_previewed_and_a_wrong_one_refused(commands: Commands) -> None:
    shown = commands.run(
        "schedule", "preview", "--cron", "0 2 * * *", "--after", "2027-01-01T00:00:00Z", "--count", "1"
    )
    assert "2027-01-01T02:00:00+00:00" in shown.out
    wrong = commands.run("schedule", "preview", "--cron", "0 2 * *")
    assert wrong.code == 2
    assert "schedule.cron" in wrong.err
    assert "SCHEDULE_INVALID" in wrong.err
