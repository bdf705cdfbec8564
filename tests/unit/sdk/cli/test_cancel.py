"""Cancelling jobs by id and by filter."""

from anvilmq import errors
from anvilmq_proto.v1 import job_service_pb2 as jobs
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.jobs_made import job
from tests.unit.sdk.cli.shell import Shell

CANCELLED = jobs.CancelJobResponse(state=types.JOB_STATE_CANCELLED)
SIGNALLED = jobs.CancelJobResponse(state=types.JOB_STATE_ACTIVE, signalled=True)
ENDED = jobs.CancelJobResponse(state=types.JOB_STATE_COMPLETED)


def matches(*job_ids: str, token: str = "", total: int = 0) -> jobs.ListJobsResponse:
    return jobs.ListJobsResponse(jobs=map(job, job_ids), next_page_token=token, total=total)


@rule("1.9")
def test_jobs_are_cancelled_by_id_and_what_became_of_each_is_counted(shell: Shell) -> None:
    shell.broker.answer("CancelJob", CANCELLED, SIGNALLED, ENDED)
    shown = shell.run("job", "cancel", "j1", "j2", "j3", "j1", "--reason", "no longer needed")
    assert shown.code == 0
    assert shown.out == "1 cancelled, 1 active, their workers are told, 1 had ended before\n"
    requests = shell.broker.requests("CancelJob")
    assert [request.job_id for request in requests] == ["j1", "j2", "j3"]
    assert {request.reason for request in requests} == {"no longer needed"}


def test_a_missing_job_does_not_keep_the_others_from_being_cancelled(shell: Shell) -> None:
    shell.broker.answer("CancelJob", errors.JobNotFound("there is no job j1"), CANCELLED)
    shown = shell.run("job", "cancel", "j1", "j2", "-o", "json")
    assert shown.code == 3
    assert shown.json == {"cancelled": 1, "signalled": 0, "ended": 0}
    assert "there is no job j1" in shown.err


def test_with_filters_the_matches_are_counted_and_the_question_is_asked_first(shell: Shell) -> None:
    shell.broker.answer("ListJobs", matches("j2", total=2), matches("j2", token="t"), matches("j1"))
    shell.broker.answer("CancelJob", CANCELLED)
    shown = shell.run("job", "cancel", "--queue", "mail", stdin="y\n", tty=True)
    assert shown.code == 0
    assert "Cancel 2 jobs? [y/N]" in shown.err
    assert "2 cancelled" in shown.out
    assert [request.job_id for request in shell.broker.requests("CancelJob")] == ["j2", "j1"]
    counted = shell.broker.requests("ListJobs")[0]
    assert (counted.page_size, counted.filter.queue) == (1, "mail")
    assert list(counted.filter.states) == [1, 2, 3, 4]


def test_anything_but_yes_cancels_nothing(shell: Shell) -> None:
    shell.broker.answer("ListJobs", matches("j1", total=1))
    for answer in ("n\n", "\n", ""):
        shown = shell.run("job", "cancel", "--queue", "mail", stdin=answer, tty=True)
        assert (shown.code, shown.err.splitlines()[-1]) == (1, "Cancel 1 job? [y/N] nothing was cancelled")
    assert shell.broker.requests("CancelJob") == []


def test_where_nobody_can_answer_yes_must_be_said(shell: Shell) -> None:
    shell.broker.answer("ListJobs", matches("j1", total=1))
    shell.broker.answer("CancelJob", CANCELLED)
    refused = shell.run("job", "cancel", "--queue", "mail")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert shell.run("job", "cancel", "--queue", "mail", "--yes").code == 0


def test_a_dry_run_only_counts(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job()], total=1_000, total_is_capped=True))
    shown = shell.run("job", "cancel", "--queue", "mail", "--dry-run")
    assert (shown.code, shown.err) == (0, "more than 1000 jobs would be cancelled\n")


def test_no_match_is_no_error(shell: Shell) -> None:
    shell.broker.answer("ListJobs", matches())
    shown = shell.run("job", "cancel", "--queue", "mail", "--yes")
    assert (shown.code, shown.err) == (0, "none match\n")


def test_jobs_that_ended_or_are_gone_meanwhile_are_passed_over(shell: Shell) -> None:
    shell.broker.answer("ListJobs", matches("j1", "j2", total=2))
    shell.broker.answer("CancelJob", errors.JobNotFound("gone"), ENDED)
    shown = shell.run("job", "cancel", "--queue", "mail", "--yes")
    assert (shown.code, shown.out, shown.err) == (0, "0 cancelled, 1 had ended before\n", "")


def test_a_failure_on_the_way_says_how_far_it_got_and_how_to_go_on(shell: Shell) -> None:
    shell.broker.answer("ListJobs", matches("j1", total=2), matches("j1", token="t"), matches("j2"))
    shell.broker.answer("CancelJob", CANCELLED, errors.PermissionDenied("no", reason="SCOPE_MISSING"))
    shown = shell.run("job", "cancel", "--queue", "mail", "--yes")
    assert shown.code == 6
    assert "stopped: 1 cancelled so far; run the same command again to go on" in shown.err


def test_ids_and_filters_exclude_each_other_and_one_of_them_is_needed(shell: Shell) -> None:
    assert shell.run("job", "cancel", "j1", "--queue", "mail").code == 2
    assert shell.run("job", "cancel").code == 2
    assert shell.broker.calls == []


def test_states_of_jobs_that_have_ended_are_refused(shell: Shell) -> None:
    shown = shell.run("job", "cancel", "--queue", "mail", "--state", "failed")
    assert shown.code == 2
    assert "--state: a job that is failed has ended" in shown.err
