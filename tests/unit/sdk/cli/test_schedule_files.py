"""Schedules in files: what they become, what is wrong with them, and how far a broker is needed for that."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from anvilmq import errors
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.shell import NOW_MS, Shell

MANIFEST = """
# Comments are read over.
apiVersion: anvilmq.io/v1alpha1
kind: JobScheduler
metadata:
  name: nightly-report
  namespace: shop
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  startTime: 2030-01-01T00:00:00Z
  endTime: "2031-01-01T00:00:00+01:00"
  limit: 9
  suspend: false
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 3600
  catchUpPolicy: None
  maxCatchUpRuns: 7
  jitterSeconds: 30
  deletionPolicy: Retain
  jobTemplate:
    queue: reports
    name: nightly-report
    data:
      format: pdf
      day: 2030-01-01
    headers: {x: y}
    labels: {team: finance}
    priority: 4
    delaySeconds: 5
    maxAttempts: 5
    backoff: {type: Fixed, delaySeconds: 10, maxDelaySeconds: 600, jitterPercent: 25}
    leaseSeconds: 60
    attemptTimeoutSeconds: 1800
    expiresAfterSeconds: 240
    maxStalled: 0
    groupId: g
    ttlSecondsAfterFinished: 600
"""
SENT = pb.Scheduler(
    name="nightly-report",
    spec=pb.SchedulerSpec(
        schedule=pb.Schedule(
            cron="30 2 * * *",
            time_zone="Europe/Berlin",
            start_at_ms=1_893_456_000_000,
            end_at_ms=1_924_988_400_000,
            limit=9,
            jitter_ms=30_000,
        ),
        job=types.JobSpec(
            queue="reports",
            name="nightly-report",
            data=b'{"format":"pdf","day":"2030-01-01"}',
            headers={"x": "y"},
            labels={"team": "finance"},
            priority=4,
            delay_ms=5_000,
            expires_after_ms=240_000,
            group_id="g",
            policy=types.JobPolicy(
                max_attempts=5,
                backoff=types.Backoff(kind="BACKOFF_KIND_FIXED", delay_ms=10_000, max_delay_ms=600_000, jitter=0.25),
                lease_ms=60_000,
                attempt_timeout_ms=1_800_000,
                max_stalled=0,
                retain_completed_ms=600_000,
                retain_failed_ms=600_000,
            ),
        ),
        concurrency_policy="CONCURRENCY_POLICY_FORBID",
        catch_up="CATCH_UP_POLICY_NONE",
        max_catch_up_runs=7,
        starting_deadline_ms=3_600_000,
        suspended=False,
    ),
)
PLAIN = """
name: often
description: Rates
everySeconds: 300
offsetSeconds: 15
jobTemplate: {queue: rates, name: refresh, dataJSON: '{"n": 12345678901234567890}'}
"""


def created(request: Any) -> pb.UpsertSchedulerResponse:
    """The broker makes what it is sent."""
    made = pb.Scheduler(name=request.scheduler.name, next_tick_at_ms=NOW_MS + 60_000)
    return pb.UpsertSchedulerResponse(scheduler=made, outcome="UPSERT_OUTCOME_CREATED")


def sent(shell: Shell) -> list[pb.Scheduler]:
    """What the broker was sent."""
    return [request.scheduler for request in shell.broker.requests("UpsertScheduler")]


@rule("6.7")
def test_manifests_and_plain_definitions_are_applied(shell: Shell, tmp_path: Path) -> None:
    shell.broker.answer("UpsertScheduler", created)
    file = tmp_path / "schedules.yaml"
    file.write_text(f"{MANIFEST}\n---\n{PLAIN}\n---\n", encoding="utf-8")
    shown = shell.run("schedule", "apply", "-f", str(file))
    assert [" ".join(line.split()) for line in shown.out.splitlines()] == [
        "NAME OUTCOME NEXT",
        "nightly-report created 2030-03-17T17:47:40.000Z (in 1m)",
        "often created 2030-03-17T17:47:40.000Z (in 1m)",
    ]
    first, second = sent(shell)
    assert first == SENT
    assert second == pb.Scheduler(
        name="often",
        spec=pb.SchedulerSpec(
            schedule=pb.Schedule(every_ms=300_000, offset_ms=15_000),
            job=types.JobSpec(queue="rates", name="refresh", data=b'{"n": 12345678901234567890}'),
            concurrency_policy="CONCURRENCY_POLICY_ALLOW",
            catch_up="CATCH_UP_POLICY_LATEST",
            description="Rates",
        ),
    )


def test_what_get_prints_can_be_applied_again(shell: Shell) -> None:
    stored = pb.Scheduler(uid="u", run_count=4, next_tick_at_ms=NOW_MS)
    stored.MergeFrom(SENT)
    shell.broker.answer("GetScheduler", pb.GetSchedulerResponse(scheduler=stored))
    shell.broker.answer("ListSchedulers", pb.ListSchedulersResponse(schedulers=[stored]))
    shell.broker.answer("UpsertScheduler", created)
    for words in (("get", "nightly-report", "-o", "yaml"), ("get", "n", "-o", "json"), ("list", "-o", "json")):
        printed = shell.run("schedule", *words).out
        assert shell.run("schedule", "apply", "-f", "-", stdin=printed).code == 0
    assert sent(shell) == [SENT] * 3


def test_json_needs_no_yaml(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.broker.answer("UpsertScheduler", created)
    real = builtins.__import__

    def without_yaml(name: str, *rest: Any, **more: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    text = '[{"name": "a", "schedule": "@daily", "jobTemplate": {"queue": "q", "name": "n", "data": null}}]'
    assert shell.run("schedule", "apply", "-f", "-", stdin=text).code == 0
    assert sent(shell)[0].spec.job.data == b"null"
    shown = shell.run("schedule", "apply", "-f", "-", stdin=PLAIN)
    assert shown.code == 2
    assert "install the package pyyaml" in shown.err


def test_a_dry_run_changes_nothing_and_says_so(shell: Shell) -> None:
    shell.broker.answer("UpsertScheduler", created)
    shown = shell.run("schedule", "apply", "--dry-run", "-f", "-", stdin=PLAIN)
    assert (shown.code, shown.err) == (0, "a dry run: nothing was changed\n")
    assert [request.dry_run for request in shell.broker.requests("UpsertScheduler")] == [True]


def test_one_that_the_broker_refuses_does_not_hold_back_the_others(shell: Shell) -> None:
    def answer(request: Any) -> Any:
        if request.scheduler.name == "often":
            return errors.OwnedByCrd("kubectl -n shop edit jobscheduler often", reason="OWNED_BY_CRD")
        return created(request)

    shell.broker.answer("UpsertScheduler", answer)
    shown = shell.run("schedule", "apply", "-f", "-", "-o", "name", stdin=f"{PLAIN}\n---\n{MANIFEST}")
    assert (shown.code, shown.out) == (4, "nightly-report\n")
    assert shown.err == "error: stdin (1): often: kubectl -n shop edit jobscheduler often (OWNED_BY_CRD)\n"


def test_a_broker_that_is_away_ends_it(shell: Shell) -> None:
    shell.broker.answer("UpsertScheduler", created, errors.Unavailable("nowhere: connection refused"))
    shown = shell.run("schedule", "apply", "-f", "-", "-o", "name", stdin=f"{PLAIN}\n---\n{MANIFEST}")
    assert (shown.code, shown.out) == (5, "often\n")


BASE = "name: a\njobTemplate: {queue: q, name: n}\n"
WRONG: list[tuple[str, str]] = [
    ("- 1", "is no mapping"),
    (BASE, "needs one of schedule"),
    (BASE + "schedule: '@daily'\neverySeconds: 5", "needs one of schedule"),
    (BASE + "schedule: '* * *'", "has 3 fields"),
    (BASE + "schedule: ''", "has 0 fields"),
    (BASE + "schedule: '@every 5m'", "everySeconds"),
    (BASE + "schedule: 'TZ=UTC * * * * *'", "timeZone"),
    (BASE + "schedule: '@daily'\noffsetSeconds: 5", "offsetSeconds"),
    (BASE + "everySeconds: 0", "everySeconds: Expected `int` >= 1"),
    (BASE + "everySeconds: 5\noffsetSeconds: 5", "below everySeconds, which is 5"),
    (BASE + "everySeconds: 5\ntimeZone: Europe/Berlin", "counted in UTC"),
    (BASE + "everySeconds: 5m", "everySeconds: Expected `int"),
    (BASE + "schedule: '@daily'\ntimezone: Etc/UTC", "unknown field `timezone`"),
    (BASE + "schedule: '@daily'\nconcurrencyPolicy: forbid", "concurrencyPolicy: Invalid enum value 'forbid'"),
    (BASE + "schedule: '@daily'\ncatchUpPolicy: Some", "catchUpPolicy: Invalid enum value 'Some'"),
    (BASE + "schedule: '@daily'\nmaxCatchUpRuns: 1001", "maxCatchUpRuns: Expected `int` <= 1000"),
    (BASE + "schedule: '@daily'\nstartTime: 2030-01-01T00:00:00", "startTime: "),
    (BASE + "schedule: '@daily'\nstartTime: 2030-01-01T00:00:00Z\nendTime: 2029-01-01T00:00:00Z", "endTime"),
    ("schedule: '@daily'\njobTemplate: {queue: q, name: n}", "missing required field `name`"),
    ("name: 'a b'\nschedule: '@daily'\njobTemplate: {queue: q, name: n}", "name: 'a b' is not"),
    ("name: a\nschedule: '@daily'", "needs one of jobTemplate and flow"),
    ("name: a\nschedule: '@daily'\njobTemplate: {queue: q}", "jobTemplate: Object missing required field `name`"),
    ("name: a\nschedule: '@daily'\njobTemplate: {queue: q, name: n, data: 1, dataJSON: '1'}", "excludes data"),
    ("name: a\nschedule: '@daily'\njobTemplate: {queue: q, name: n, dataJSON: '{'}", "is no JSON"),
    ("name: a\nspec: {schedule: {cron: 5}}", "Failed to parse"),
    ("name: ''\nspec: {}", "name: '' is not"),
    ("kind: Broker\napiVersion: anvilmq.io/v1alpha1", "the rest is for kubectl"),
    ("kind: JobScheduler\napiVersion: v1", "the rest is for kubectl"),
    ("kind: JobScheduler\napiVersion: anvilmq.io/v1alpha1\nspec: {}", "metadata.name"),
    (MANIFEST.replace("maxAttempts: 5", "maxAttempts: 0"), "spec.jobTemplate.maxAttempts: Expected `int` >= 1"),
    (MANIFEST.replace("spec:", "other:"), "spec: Expected `object`"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_what_is_wrong_in_a_file_is_named_without_a_broker(shell: Shell, text: str, told: str) -> None:
    shown = shell.run("schedule", "lint", "-", stdin=text)
    assert shown.code == 1
    assert shown.err.startswith("error: stdin: ")
    assert told in shown.err
    applied = shell.run("schedule", "apply", "-f", "-", stdin=f"{text}\n---\n{PLAIN}" if text != "- 1" else text)
    assert applied.code == 2
    assert applied.err.endswith("nothing was applied\n")
    assert shell.connections == []


@pytest.mark.parametrize(
    ("text", "told"), [("", "no definition"), ("a: [", "is no YAML"), ("[]", "no definition"), ("\0", "is no YAML")]
)
def test_a_file_that_is_no_list_of_schedules_is_refused(shell: Shell, text: str, told: str) -> None:
    shown = shell.run("schedule", "lint", "-", stdin=text)
    assert shown.code == 2
    assert told in shown.err
    assert "cannot be read" in shell.run("schedule", "lint", "/nowhere/x.yaml").err


def test_a_good_file_needs_no_broker_to_be_checked(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "schedules.yaml"
    file.write_text(f"{MANIFEST}\n---\n{PLAIN}", encoding="utf-8")
    shown = shell.run("schedule", "lint", str(file))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines() == [f"{file} (1): nightly-report: good", f"{file} (2): often: good"]
    assert shell.connections == []


def test_a_name_that_is_there_twice_is_found_over_all_files(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(PLAIN, encoding="utf-8")
    shown = shell.run("schedule", "lint", str(file), "-", stdin=PLAIN)
    assert shown.code == 1
    assert "stdin: often: name: 'often' is there twice" in shown.err


@rule("6.8")
def test_the_broker_says_what_an_expression_means_when_it_is_asked(shell: Shell) -> None:
    message = "schedule.time_zone: there is no time zone 'Europe/Berlin'"

    def answer(request: Any) -> Any:
        if request.schedule.time_zone:
            return errors.TimeZoneUnknown(message, fields={"schedule.time_zone": message}, reason="TIME_ZONE_UNKNOWN")
        return pb.PreviewScheduleResponse(description="Every 5 minutes", warnings=["a gap"])

    shell.broker.answer("PreviewSchedule", answer)
    shown = shell.run("schedule", "lint", "--server", "-", stdin=f"{MANIFEST}\n---\n{PLAIN}")
    assert shown.code == 1
    assert shown.err.startswith("error: stdin (1): nightly-report: schedule.time_zone: there is no time zone")
    assert shown.out.splitlines() == ["stdin (2): often: good", "stdin (2): often: warning: a gap"]
    as_json = shell.run("schedule", "lint", "--server", "-", "-o", "json", stdin=PLAIN).json
    assert as_json == {"items": [{"where": "stdin: often", "problem": "", "warnings": ["a gap"]}]}


def test_a_flow_is_sent_for_the_broker_to_find_its_template(shell: Shell) -> None:
    shell.broker.answer("UpsertScheduler", created)
    text = "name: a\nschedule: '@daily'\nflow: {templateRef: {name: import}, params: {day: $(run.date), parts: 4}}"
    assert shell.run("schedule", "apply", "-f", "-", stdin=text).code == 0
    assert sent(shell)[0].spec.flow == pb.FlowTarget(
        template="import", parameters_json='{"day":"$(run.date)","parts":4}'
    )
