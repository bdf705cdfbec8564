"""Listing, previewing, running and stopping schedules."""

from __future__ import annotations

from typing import Any

import pytest

from anvilmq import errors
from anvilmq_proto.v1 import job_service_pb2 as jobs
from anvilmq_proto.v1 import scheduler_service_pb2 as pb
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.shell import NOW_MS, Result, Shell

NIGHTLY = pb.Scheduler(
    name="nightly",
    spec=pb.SchedulerSpec(
        schedule=pb.Schedule(cron="30 2 * * *", time_zone="Europe/Berlin", limit=9, jitter_ms=30_000),
        job=types.JobSpec(queue="reports", name="report", data=b'{"a":1}', labels={"team": "finance"}),
        concurrency_policy="CONCURRENCY_POLICY_FORBID",
        catch_up="CATCH_UP_POLICY_ALL",
        max_catch_up_runs=5,
        starting_deadline_ms=3_600_000,
        description="Reports",
    ),
    owner=types.Owner(kind="JobScheduler", namespace="shop", name="nightly"),
    next_tick_at_ms=NOW_MS + 7_200_000,
    last_tick_at_ms=NOW_MS - 60_000,
    last_job_id="j1",
    last_state="JOB_STATE_COMPLETED",
    run_count=4,
    skipped_count=1,
    missed_count=2,
)
OFTEN = pb.Scheduler(
    name="often",
    spec=pb.SchedulerSpec(
        schedule=pb.Schedule(every_ms=300_000, offset_ms=15_000), job=types.JobSpec(queue="q", name="n"), suspended=True
    ),
)


def lines(shown: Result) -> list[str]:
    """stdout without the spaces that align it."""
    return [" ".join(line.split()) for line in shown.out.splitlines()]


@rule("6.7")
def test_schedules_are_listed_with_their_next_tick(shell: Shell) -> None:
    shell.broker.answer("ListSchedulers", pb.ListSchedulersResponse(schedulers=[NIGHTLY, OFTEN]))
    shown = shell.run("schedule", "list", "--prefix", "n", "--queue", "reports", "--limit", "5")
    assert lines(shown) == [
        "NAME WHEN ZONE QUEUE JOB STATE NEXT LAST",
        "nightly 30 2 * * * Europe/Berlin reports report active in 2h 1m",
        "often every 5m +15s - q n suspended - -",
    ]
    assert shell.broker.requests("ListSchedulers") == [
        pb.ListSchedulersRequest(name_prefix="n", queue="reports", page_size=5)
    ]
    assert shell.run("schedule", "list", "-o", "name").out == "nightly\noften\n"
    assert "JobScheduler shop/nightly" in shell.run("schedule", "list", "-o", "wide").out


@rule("6.7")
def test_one_schedule_is_shown_with_all_there_is_to_know(shell: Shell) -> None:
    shell.broker.answer("GetScheduler", pb.GetSchedulerResponse(scheduler=NIGHTLY))
    shown = lines(shell.run("schedule", "get", "nightly"))
    assert {
        "Name: nightly",
        "State: active",
        "When: 30 2 * * *",
        "Time zone: Europe/Berlin",
        "Jitter: up to 30s",
        "Next: 2030-03-17T19:46:40.000Z (in 2h)",
        "Last job: j1 (completed)",
        "Runs: 4 of 9",
        "Skipped: 1",
        "Missed: 2",
        "Concurrency: forbid",
        "Catch up: all, at most 5",
        "Deadline: 1h",
        'Data: {"a":1}',
        "Owner: JobScheduler shop/nightly",
    } <= set(shown)


def test_a_schedule_that_cannot_tick_says_why(shell: Shell) -> None:
    stuck = pb.Scheduler(name="s", problem_reason="QUEUE_FULL", problem_message="queue q is full", last_job_id="j")
    shell.broker.answer("GetScheduler", pb.GetSchedulerResponse(scheduler=stuck), pb.GetSchedulerResponse())
    shown = lines(shell.run("schedule", "get", "s"))
    assert {"State: problem", "Problem: QUEUE_FULL: queue q is full", "Last job: j (removed)"} <= set(shown)
    assert "State: ended" in lines(shell.run("schedule", "get", "s"))


def test_a_schedule_that_is_not_there_gives_exit_code_3(shell: Shell) -> None:
    shell.broker.answer("GetScheduler", errors.SchedulerNotFound("there is no scheduler 's'"))
    assert shell.run("schedule", "get", "s").code == 3


PREVIEW = pb.PreviewScheduleResponse(
    ticks=[pb.SchedulePreviewTick(at_ms=NOW_MS + 60_000, local="2030-03-17T18:47:40+01:00")],
    description="At 02:30",
    warnings=["on 31 March 2030 the tick moves to 03:00"],
)


@rule("6.8")
def test_a_preview_shows_ticks_words_and_warnings(shell: Shell) -> None:
    shell.broker.answer("PreviewSchedule", PREVIEW)
    call = ("schedule", "preview", "--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--count", "3")
    assert lines(shell.run(*call, "--after", "2030-01-01T00:00:00Z")) == [
        "At 02:30",
        "LOCAL UTC IN",
        "2030-03-17T18:47:40+01:00 2030-03-17T17:47:40.000Z 1m",
        "warning: on 31 March 2030 the tick moves to 03:00",
    ]
    assert shell.broker.requests("PreviewSchedule") == [
        pb.PreviewScheduleRequest(
            schedule=pb.Schedule(cron="30 2 * * *", time_zone="Europe/Berlin"), count=3, after_at_ms=1_893_456_000_000
        )
    ]
    assert shell.run(*call, "-o", "name").out == "2030-03-17T17:47:40.000Z\n"
    assert shell.run(*call, "-o", "json").json["description"] == "At 02:30"


@rule("6.8")
def test_a_stored_schedule_is_previewed_by_its_name(shell: Shell) -> None:
    shell.broker.answer("GetScheduler", pb.GetSchedulerResponse(scheduler=OFTEN))
    shell.broker.answer("PreviewSchedule", PREVIEW)
    assert shell.run("schedule", "preview", "often").code == 0
    assert shell.broker.requests("PreviewSchedule") == [
        pb.PreviewScheduleRequest(schedule=OFTEN.spec.schedule, count=5)
    ]


def test_an_interval_is_previewed_too(shell: Shell) -> None:
    shell.broker.answer("PreviewSchedule", PREVIEW)
    assert shell.run("schedule", "preview", "--every", "5m", "--offset", "15s").code == 0
    (request,) = shell.broker.requests("PreviewSchedule")
    assert request.schedule == pb.Schedule(every_ms=300_000, offset_ms=15_000)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name a schedule, or describe one"),
        (("nightly", "--cron", "@daily"), "not both"),
        (("--cron", "@daily", "--every", "5m"), "say one of --cron and --every"),
        (("--offset", "5s"), "say one of --cron and --every"),
        (("--every", "5"), "--every: "),
        (("--every", "5m", "--offset", "x"), "--offset: "),
        (("--cron", "@daily", "--count", "101"), "100"),
    ],
)
def test_a_preview_of_nothing_or_of_two_things_is_refused(shell: Shell, words: tuple[str, ...], told: str) -> None:
    shown = shell.run("schedule", "preview", *words)
    assert shown.code == 2
    assert told in shown.err


def test_a_wrong_expression_is_told_with_its_field_and_gives_exit_code_2(shell: Shell) -> None:
    message = "schedule.cron: '* *' has 2 fields"
    refusal = errors.ScheduleInvalid(message, fields={"schedule.cron": message}, reason="SCHEDULE_INVALID")
    shell.broker.answer("PreviewSchedule", refusal)
    shown = shell.run("schedule", "preview", "--cron", "* *")
    assert (shown.code, shown.err) == (2, "error: schedule.cron: '* *' has 2 fields (SCHEDULE_INVALID)\n")


def test_a_run_now_prints_the_id_of_its_job(shell: Shell) -> None:
    shell.broker.answer(
        "TriggerScheduler",
        pb.TriggerSchedulerResponse(job_id="j1"),
        pb.TriggerSchedulerResponse(job_id="j1", existing=True),
    )
    assert shell.run("schedule", "run", "nightly", "--run-key", "monday").out == "j1\n"
    again = shell.run("schedule", "run", "nightly", "--run-key", "monday", "-o", "json")
    assert again.json == {"jobId": "j1", "existing": True}
    assert again.err == "nothing was added: job j1 has the run key\n"
    assert shell.broker.requests("TriggerScheduler")[0] == pb.TriggerSchedulerRequest(name="nightly", run_key="monday")
    assert shell.run("schedule", "run", "nightly", "--log").code == 2


def test_a_run_can_be_waited_for(shell: Shell) -> None:
    shell.broker.answer("TriggerScheduler", pb.TriggerSchedulerResponse(job_id="j1"))
    done = types.Job(job_id="j1", state="JOB_STATE_COMPLETED", result=b"7")
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=done, finished=True))
    shown = shell.run("schedule", "run", "nightly", "--wait")
    assert (shown.code, shown.out) == (0, "7\n")


@rule("6.5")
@pytest.mark.parametrize(("verb", "value", "word"), [("suspend", True, "suspended"), ("resume", False, "resumed")])
def test_schedules_are_suspended_and_resumed(shell: Shell, verb: str, value: bool, word: str) -> None:
    shell.broker.answer("SetSchedulerSuspended", pb.SetSchedulerSuspendedResponse())
    shown = shell.run("schedule", verb, "a", "b", "a")
    assert (shown.code, shown.err) == (0, f"a {word}\nb {word}\n")
    assert shell.broker.requests("SetSchedulerSuspended") == [
        pb.SetSchedulerSuspendedRequest(name=name, suspended=value) for name in "ab"
    ]
    assert shell.run("schedule", verb, "a", "-o", "json").json == {"a": word}


def test_one_that_cannot_be_deleted_does_not_hold_back_the_others(shell: Shell) -> None:
    def answer(request: Any) -> Any:
        if request.name == "missing":
            return errors.SchedulerNotFound("there is no scheduler 'missing'", reason="SCHEDULER_NOT_FOUND")
        if request.name == "owned":
            return errors.OwnedByCrd("kubectl -n shop delete jobscheduler owned", reason="OWNED_BY_CRD")
        return pb.DeleteSchedulerResponse(deleted=True)

    shell.broker.answer("DeleteScheduler", answer)
    shown = shell.run("schedule", "rm", "owned", "missing", "a")
    assert shown.code == 4
    assert shown.err.splitlines() == [
        "error: kubectl -n shop delete jobscheduler owned (OWNED_BY_CRD)",
        "error: there is no scheduler 'missing' (SCHEDULER_NOT_FOUND)",
        "a deleted",
    ]
    assert shell.run("schedule", "rm", "missing").code == 3
    assert shell.run("schedule", "rm", "a", "-o", "name").out == "a\n"


def test_jobs_of_a_schedule_are_listed_and_name_it(shell: Shell) -> None:
    job = types.Job(job_id="j", scheduler="nightly", tick_at_ms=NOW_MS)
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job]))
    shell.broker.answer("GetJob", jobs.GetJobResponse(job=job))
    assert "nightly" in shell.run("job", "list", "--scheduler", "nightly", "-o", "wide").out
    assert shell.broker.requests("ListJobs")[0].filter.scheduler == "nightly"
    assert {"Schedule: nightly", "Tick: 2030-03-17T17:46:40.000Z"} <= set(lines(shell.run("job", "get", "j")))
