"""Listing, showing, explaining and following jobs."""

import pytest

from anvilmq import errors
from anvilmq_proto.v1 import job_service_pb2 as jobs
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.jobs_made import completed, failed, job
from tests.unit.sdk.cli.shell import NOW_MS, Shell


def test_a_list_is_a_plain_table_where_nobody_watches(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job("j1"), failed("j22", queue="images")]))
    shown = shell.run("job", "list")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "ID    QUEUE    NAME   STATE     ATTEMPT   AGE",
        "j1    mail     send   waiting   0         2m",
        "j22   images   send   failed    3         2m",
    ]


def test_a_table_is_not_cut_where_nobody_watches_and_fits_the_screen_where_somebody_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    long = "n" * 128
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job(name=long)]))
    assert long in shell.run("job", "list").out
    on_screen = shell.run("job", "list", tty=True).out
    assert long not in on_screen
    assert "…" in on_screen
    assert max(map(len, on_screen.splitlines())) <= 70


def test_wide_shows_more_columns(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[failed(labels={"tenant": "42"})]))
    header, row = shell.run("job", "list", "-o", "wide").out.splitlines()
    assert header.split()[-4:] == ["WORKER", "KEY", "SCHEDULE", "LABELS"]
    assert "attempts_exhausted" in row
    assert row.endswith("tenant=42")


def test_nothing_found_leaves_stdout_empty(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse())
    shown = shell.run("job", "list")
    assert (shown.code, shown.out, shown.err) == (0, "", "none found\n")


def test_json_is_proto_json_with_the_token_of_the_next_page(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job(data=b"{}")], next_page_token="t"))
    assert shell.run("job", "list", "--limit", "1", "-o", "json").json == {
        "items": [
            {
                "jobId": "j1",
                "queue": "mail",
                "name": "send",
                "state": "JOB_STATE_WAITING",
                "data": "e30=",
                "createdAtMs": str(NOW_MS - 120_000),
            }
        ],
        "nextPageToken": "t",
    }


def test_jsonl_and_name_are_a_line_each_and_the_token_goes_to_stderr(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job("j1"), job("j2")], next_page_token="t"))
    names = shell.run("job", "list", "--limit", "2", "-o", "name")
    assert names.out == "j1\nj2\n"
    assert "--page-token t" in names.err
    lines = shell.run("job", "list", "--limit", "2", "-o", "jsonl").out.splitlines()
    assert [line[:14] for line in lines] == ['{"jobId": "j1"', '{"jobId": "j2"']


def test_options_may_stand_before_the_noun_and_those_of_the_command_win(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse(jobs=[job("j1")]))
    assert shell.run("-o", "name", "job", "list").out == "j1\n"
    assert shell.run("-o", "name", "job", "list", "-o", "json").json["items"][0]["jobId"] == "j1"
    shell.run("--url", "a:1", "--timeout", "9s", "job", "list", "--url", "b:2")
    assert (shell.connections[-1].url, shell.connections[-1].timeout_s) == ("b:2", 9.0)


def test_filters_reach_the_broker(shell: Shell) -> None:
    shell.broker.answer("ListJobs", jobs.ListJobsResponse())
    flags = "--queue mail --state failed --state waiting-children --name send --label a=b=c --search x --oldest-first"
    times = "--since 2h --before 1m30s --finish-reason stalled --full --limit 7 --page-token t"
    assert shell.run("job", "list", *flags.split(), *times.split()).code == 0
    (request,) = shell.broker.requests("ListJobs")
    assert request == jobs.ListJobsRequest(
        filter=jobs.JobFilter(
            queue="mail",
            states=[types.JOB_STATE_FAILED, types.JOB_STATE_WAITING_CHILDREN],
            name="send",
            labels={"a": "b=c"},
            search="x",
            created_after_at_ms=NOW_MS - 7_200_000,
            created_before_at_ms=NOW_MS - 90_000,
            finish_reason=types.FINISH_REASON_STALLED,
        ),
        oldest_first=True,
        view=types.JOB_VIEW_FULL,
        page_size=7,
        page_token="t",
    )


def test_short_pages_are_put_together_up_to_the_limit(shell: Shell) -> None:
    shell.broker.answer(
        "ListJobs",
        jobs.ListJobsResponse(jobs=[job("j1"), job("j2")], next_page_token="t1"),
        jobs.ListJobsResponse(jobs=[job("j3")], next_page_token="t2"),
    )
    shown = shell.run("job", "list", "--limit", "3", "-o", "json").json
    assert [item["jobId"] for item in shown["items"]] == ["j1", "j2", "j3"]
    assert shown["nextPageToken"] == "t2"
    assert [(request.page_size, request.page_token) for request in shell.broker.requests("ListJobs")] == [
        (3, ""),
        (1, "t1"),
    ]


def test_all_goes_on_to_the_end(shell: Shell) -> None:
    shell.broker.answer(
        "ListJobs",
        jobs.ListJobsResponse(jobs=[job("j1")], next_page_token="t1"),
        jobs.ListJobsResponse(jobs=[job("j2")]),
    )
    assert shell.run("job", "list", "--all", "-o", "name").out == "j1\nj2\n"
    assert [request.page_size for request in shell.broker.requests("ListJobs")] == [1_000, 1_000]


def test_a_job_is_shown_with_its_data_result_and_attempts(shell: Shell) -> None:
    policy = types.JobPolicy(max_attempts=3, backoff=types.Backoff(delay_ms=1_500, max_delay_ms=300_000, jitter=0.25))
    shell.broker.answer("GetJob", jobs.GetJobResponse(job=failed(data=b'{"n": 1}', policy=policy)))
    lines = [" ".join(line.split()) for line in shell.run("job", "get", "j1").out.splitlines()]
    assert {
        "State: failed",
        "Reason: attempts_exhausted",
        "Attempt: 3 of 3",
        'Data: {"n": 1}',
        "Attempt 3: failed after 1s on w1, started 2030-03-17T17:46:38.000Z",
        "ValueError: no such image",
        "Policy: backoff exponential:1s500ms,max=5m,jitter=0.25",
    } <= set(lines)


def test_a_payload_that_is_no_text_is_named_by_its_size(shell: Shell) -> None:
    shell.broker.answer("GetJob", jobs.GetJobResponse(job=job(data=b"\xff\x00", content_type="image/png")))
    assert "2 bytes of image/png" in shell.run("job", "get", "j1").out


def test_control_characters_do_not_reach_the_screen(shell: Shell) -> None:
    shell.broker.answer("GetJob", jobs.GetJobResponse(job=job(data=b"\x1b[2J", finish_message="\x07")))
    for tty in (True, False):
        assert "\x1b" not in shell.run("job", "get", "j1", tty=tty).out


def test_a_job_that_is_missing_gives_exit_code_3(shell: Shell) -> None:
    shell.broker.answer("GetJob", errors.JobNotFound("there is no job j1", reason="JOB_NOT_FOUND"))
    shown = shell.run("job", "get", "j1")
    assert (shown.code, shown.out, shown.err) == (3, "", "error: there is no job j1 (JOB_NOT_FOUND)\n")


@rule("1.1")
@pytest.mark.parametrize(
    ("wait", "sentence"),
    [
        (types.WaitInfo(reason=types.WAIT_REASON_NEXT, jobs_ahead=3), "nothing holds it, 3 jobs are before it"),
        (types.WaitInfo(reason=types.WAIT_REASON_NEXT, jobs_ahead=1_000), "1000 or more jobs are before it"),
        (types.WaitInfo(reason=types.WAIT_REASON_NO_WORKER), "no worker has asked for jobs of this queue"),
        (
            types.WaitInfo(reason=types.WAIT_REASON_DELAY, until_at_ms=NOW_MS + 90_000),
            "it is not due until 2030-03-17T17:48:10.000Z (in 1m30s)",
        ),
        (
            types.WaitInfo(
                reason=types.WAIT_REASON_GROUP_BUSY,
                holder_job_id="j9",
                holder_worker_id="w3",
                since_at_ms=NOW_MS - 5_000,
            ),
            "job j9 of its group runs on w3, since 2030-03-17T17:46:35.000Z (5s ago)",
        ),
    ],
)
def test_why_says_what_holds_a_job_and_until_when(shell: Shell, wait: types.WaitInfo, sentence: str) -> None:
    shell.broker.answer("GetJob", jobs.GetJobResponse(job=job(wait=wait)))
    assert sentence in shell.run("job", "why", "j1").out
    told = shell.run("job", "why", "j1", "-o", "json").json
    assert told["state"] == "waiting"
    assert told["wait"]["reason"] == types.WaitReason.Name(wait.reason)


def test_why_knows_a_sentence_for_every_reason_of_the_contract(shell: Shell) -> None:
    for reason in types.WaitReason.keys()[1:]:
        shell.broker = type(shell.broker)()
        shell.broker.answer("GetJob", jobs.GetJobResponse(job=job(wait=types.WaitInfo(reason=reason))))
        out = shell.run("job", "why", "j1").out
        assert len(out.split()) > 4, out
        assert "{" not in out


def test_why_of_a_job_that_runs_or_has_ended_says_so(shell: Shell) -> None:
    running = job(state=types.JOB_STATE_ACTIVE, worker_id="w1", lease_expires_at_ms=NOW_MS + 20_000)
    shell.broker.answer("GetJob", jobs.GetJobResponse(job=running), jobs.GetJobResponse(job=failed()))
    assert shell.run("job", "why", "j1").out == "active on worker w1, its lease ends in 20s\n"
    assert shell.run("job", "why", "j1").out == "failed 1s ago (attempts_exhausted)\n"


def line(number: int, attempt: int = 1) -> types.JobLogLine:
    return types.JobLogLine(at_ms=NOW_MS + number, level="info", line=f"line {number}", attempt=attempt)


def test_logs_are_printed_oldest_first_over_all_pages(shell: Shell) -> None:
    shell.broker.answer(
        "ListJobLogs",
        jobs.ListJobLogsResponse(lines=[line(1), line(2)], next_page_token="t"),
        jobs.ListJobLogsResponse(lines=[line(3)]),
    )
    assert shell.run("job", "logs", "j1").out.splitlines() == [
        "2030-03-17T17:46:40.001Z info [1] line 1",
        "2030-03-17T17:46:40.002Z info [1] line 2",
        "2030-03-17T17:46:40.003Z info [1] line 3",
    ]


def test_followed_logs_show_each_line_once_and_end_with_the_job(shell: Shell) -> None:
    shell.broker.answer(
        "ListJobLogs",
        jobs.ListJobLogsResponse(lines=[line(1)]),
        jobs.ListJobLogsResponse(lines=[line(1), line(2)], next_page_token="t"),
        jobs.ListJobLogsResponse(lines=[line(3)]),
        jobs.ListJobLogsResponse(lines=[line(3), line(4)]),
    )
    shell.broker.answer(
        "WaitJob",
        jobs.WaitJobResponse(job=job()),
        jobs.WaitJobResponse(job=job()),
        jobs.WaitJobResponse(job=completed(), finished=True),
    )
    out = shell.run("job", "logs", "-f", "j1").out
    assert [text.split()[-1] for text in out.splitlines()] == ["1", "2", "3", "4"]
    assert [request.page_token for request in shell.broker.requests("ListJobLogs")] == ["", "", "t", "t"]


@rule("1.8")
def test_waiting_prints_the_result_and_nothing_else(shell: Shell) -> None:
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=job()))
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=completed(), finished=True))
    shown = shell.run("job", "wait", "j1")
    assert (shown.code, shown.out, shown.err) == (0, '{"ok":true}\n', "")


def test_a_result_that_is_no_text_comes_out_as_it_is(shell: Shell) -> None:
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=completed(result=b"\xff\x00\x01"), finished=True))
    assert shell.run("job", "wait", "j1").out_bytes == b"\xff\x00\x01"
    assert "3 bytes that are no text" in shell.run("job", "wait", "j1", tty=True).out


def test_waiting_for_a_job_that_fails_gives_exit_code_1_and_says_why(shell: Shell) -> None:
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=failed(), finished=True))
    shown = shell.run("job", "wait", "j1")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err == "job j1 failed: attempts_exhausted: ValueError: no such image\n"
    assert shell.run("job", "wait", "j1", "-o", "json").json["state"] == "JOB_STATE_FAILED"


def test_a_wait_that_takes_too_long_gives_exit_code_5(shell: Shell) -> None:
    def later(request: jobs.WaitJobRequest) -> jobs.WaitJobResponse:
        shell.clock.now += request.wait_ms / 1_000
        return jobs.WaitJobResponse(job=job())

    shell.broker.answer("WaitJob", later)
    shown = shell.run("job", "wait", "j1", "--timeout", "70s")
    assert shown.code == 5
    assert "has not ended in time" in shown.err
    assert [request.wait_ms for request in shell.broker.requests("WaitJob")] == [30_000, 30_000, 10_000]
    assert [call.timeout_s for call in shell.broker.calls] == [35.0, 35.0, 15.0]


def test_a_wait_goes_on_when_the_broker_was_away(shell: Shell) -> None:
    shell.broker.answer(
        "WaitJob",
        jobs.WaitJobResponse(job=job()),
        errors.Unavailable("localhost:50051: broken"),
        errors.Unavailable("localhost:50051: broken"),
        jobs.WaitJobResponse(job=completed(), finished=True),
    )
    shown = shell.run("job", "wait", "j1")
    assert shown.code == 0
    assert shown.err.count("trying again") == 1


def test_a_broker_that_never_answers_is_not_waited_for(shell: Shell) -> None:
    shell.broker.answer("WaitJob", errors.Unavailable("localhost:50051: a: b: Connection refused"))
    shown = shell.run("job", "wait", "j1")
    assert shown.code == 5
    assert shown.err.startswith("error: no broker answers at localhost:50051 (Connection refused); start one with")
    assert shell.clock.slept == []


def test_a_broker_that_stays_away_is_given_up_after_a_minute(shell: Shell) -> None:
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=job()), errors.Unavailable("localhost:50051: broken"))
    began = shell.clock.now
    assert shell.run("job", "wait", "j1").code == 5
    assert 30 < shell.clock.now - began <= 70
