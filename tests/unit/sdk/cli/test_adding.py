"""Adding one job, from flags."""

from pathlib import Path

import pytest

from anvilmq import errors
from anvilmq_proto.v1 import job_service_pb2 as jobs
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.jobs_made import completed, failed
from tests.unit.sdk.cli.shell import NOW_MS, Shell

ADDED = jobs.AddJobResponse(job_id="j1", state=types.JOB_STATE_WAITING)


def test_the_id_is_all_that_is_printed(shell: Shell) -> None:
    shell.broker.answer("AddJob", ADDED)
    shown = shell.run("add", "mail", "send", "-d", '{"to": "a"}')
    assert (shown.code, shown.out, shown.err) == (0, "j1\n", "")
    assert shell.broker.requests("AddJob") == [
        jobs.AddJobRequest(job=types.JobSpec(queue="mail", name="send", data=b'{"to": "a"}'))
    ]
    assert shell.run("add", "mail", "send", "-o", "json").json == {"jobId": "j1", "state": "JOB_STATE_WAITING"}


@rule("1.2")
def test_every_flag_reaches_its_field(shell: Shell) -> None:
    shell.broker.answer("AddJob", ADDED)
    flags = """--priority 0 --delay 1h30m --lifo --idempotency-key k --idempotency-mode release-on-finish --group-id g
        --label a=b --label c= --header traceparent=00 --expires-after 2d --max-attempts 5
        --backoff exponential:2s,max=1m,jitter=0 --lease 45s --attempt-timeout 0 --max-stalled 0 --max-starts 7
        --retain-completed 0 --retain-failed 1h --receipt-ttl 3d --content-type text/plain -d hello"""
    assert shell.run("add", "mail", "send", *flags.split()).code == 0
    assert shell.broker.requests("AddJob")[0].job == types.JobSpec(
        queue="mail",
        name="send",
        data=b"hello",
        content_type="text/plain",
        headers={"traceparent": "00"},
        labels={"a": "b", "c": ""},
        priority=0,
        delay_ms=5_400_000,
        lifo=True,
        idempotency_key="k",
        idempotency_mode=types.IDEMPOTENCY_MODE_RELEASE_ON_FINISH,
        group_id="g",
        expires_after_ms=172_800_000,
        policy=types.JobPolicy(
            max_attempts=5,
            backoff=types.Backoff(kind=types.BACKOFF_KIND_EXPONENTIAL, delay_ms=2_000, max_delay_ms=60_000, jitter=0.0),
            lease_ms=45_000,
            attempt_timeout_ms=0,
            max_stalled=0,
            max_starts=7,
            retain_completed_ms=0,
            retain_failed_ms=3_600_000,
            receipt_ttl_ms=259_200_000,
        ),
    )


def test_instants_are_given_with_their_offset(shell: Shell) -> None:
    shell.broker.answer("AddJob", ADDED)
    shell.run("add", "q", "n", "--run-at", "2030-03-17T18:46:40+01:00", "--expires-at", "2030-03-17T17:46:41Z")
    (request,) = shell.broker.requests("AddJob")
    assert (request.job.run_at_ms, request.job.expires_at_ms) == (NOW_MS, NOW_MS + 1_000)


def test_a_payload_comes_from_the_line_from_a_file_or_from_stdin(shell: Shell, tmp_path: Path) -> None:
    shell.broker.answer("AddJob", ADDED)
    file = tmp_path / "p.json"
    file.write_bytes(b'{"from": "file"}\n')
    shell.run("add", "q", "n", "-d", f"@{file}")
    shell.run("add", "q", "n", "-d", "-", stdin='{"from": "stdin"}')
    shell.run("add", "q", "n", "-d", "-", "--content-type", "image/png", stdin=b"\x89PNG")
    shell.run("add", "q", "n")
    assert [request.job.data for request in shell.broker.requests("AddJob")] == [
        b'{"from": "file"}\n',
        b'{"from": "stdin"}',
        b"\x89PNG",
        b"",
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("-d {", "--data: the payload is no JSON"),
        ("-d @/nowhere/x.json", "--data: /nowhere/x.json cannot be read: No such file"),
        ("--delay 5", "--delay: a duration is written with a unit"),
        ("--run-at tomorrow", "--run-at: 'tomorrow' is no time; write it as 2030-01-31T09:30:00Z"),
        ("--run-at 2030-01-31T09:30:00", "--run-at: '2030-01-31T09:30:00' leaves the time zone open"),
        ("--label a", "--label: 'a' is no pair; write it as key=value"),
        ("--label a=1 --label a=2", "--label: 'a' is given twice, with different values"),
        ("--backoff linear:1s", "--backoff: 'linear:1s' is not understood; write fixed:5s, or exponential:1s,max=5m"),
        ("--backoff fixed:1s,max=2s", "--backoff: 'fixed:1s,max=2s' is not understood"),
        ("--backoff fixed:5", "--backoff: a duration is written with a unit"),
        ("--backoff fixed:5s,jitter=2", "--backoff: jitter is at least 0 and at most 1"),
        ("--priority x", "'--priority'"),
        ("--priority 99999999999", "--priority: "),
        ("--idempotency-mode never", "'--idempotency-mode'"),
        ("--timeout 5", "--timeout: a duration is written with a unit"),
        ("--log", "--log: shows what happens during --wait; add that"),
        ("--what", "No such option: --what"),
        ("extra", "unexpected extra argument"),
    ],
)
def test_bad_input_is_told_in_one_line_with_the_flag_and_the_remedy(shell: Shell, flags: str, said: str) -> None:
    shown = shell.run("add", "q", "n", *flags.split())
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err
    assert shell.broker.calls == []


def test_a_wrong_use_says_where_to_read_more(shell: Shell) -> None:
    assert shell.run("add", "q").err == "error: Missing argument 'NAME'; see anvilmq add --help\n"
    assert (
        shell.run("job", "lits").err == "error: No such command 'lits'. Did you mean 'list'?; see anvilmq job --help\n"
    )
    assert shell.run("job").err == "error: Missing command; see anvilmq job --help\n"


def test_what_the_broker_refuses_is_told_with_the_field_and_the_reason(shell: Shell) -> None:
    refusal = errors.InvalidArgument(
        "priority: 9999999 is not in 0..2097151",
        reason="INVALID_FIELD",
        fields={"job.priority": "priority: 9999999 is not in 0..2097151"},
    )
    shell.broker.answer("AddJob", refusal)
    shown = shell.run("add", "q", "n", "--priority", "9999999")
    assert shown.code == 2
    assert shown.err == "error: job.priority: 9999999 is not in 0..2097151 (INVALID_FIELD)\n"


@rule("2.1")
def test_a_job_that_was_there_is_told_beside_its_id(shell: Shell) -> None:
    shell.broker.answer("AddJob", jobs.AddJobResponse(job_id="j1", existing=True))
    shown = shell.run("add", "q", "n", "--idempotency-key", "k")
    assert (shown.code, shown.out) == (0, "j1\n")
    assert shown.err == "nothing was added: job j1 has the key\n"
    assert shell.run("add", "q", "n", "--idempotency-key", "k", "-q").err == ""


def test_waiting_prints_the_result_of_the_job_and_its_log_beside(shell: Shell) -> None:
    shell.broker.answer("AddJob", ADDED)
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=completed(), finished=True))
    shell.broker.answer(
        "ListJobLogs",
        jobs.ListJobLogsResponse(lines=[types.JobLogLine(at_ms=NOW_MS, level="info", line="half", attempt=1)]),
    )
    shown = shell.run("add", "q", "n", "--wait", "--log")
    assert (shown.code, shown.out) == (0, '{"ok":true}\n')
    assert shown.err.splitlines() == ["added j1", "2030-03-17T17:46:40.000Z info [1] half"]


def test_waiting_for_a_job_that_fails_gives_exit_code_1(shell: Shell) -> None:
    shell.broker.answer("AddJob", ADDED)
    shell.broker.answer("WaitJob", jobs.WaitJobResponse(job=failed(), finished=True))
    shown = shell.run("add", "q", "n", "--wait")
    assert (shown.code, shown.out) == (1, "")
    assert "ValueError: no such image" in shown.err
