"""Adding the jobs of a file."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from anvilmq import errors
from anvilmq.cli import loading, sources
from anvilmq_proto.v1 import job_service_pb2 as jobs
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.shell import Shell


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file of two jobs."""
    return written(tmp_path, {"name": "a", "data": {"n": 1}}, {"name": "b"})


def written(folder: Path, *lines: Any) -> Path:
    file = folder / "jobs.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file


def accept(request: jobs.AddJobBulkRequest) -> jobs.AddJobBulkResponse:
    """Adds everything."""
    return jobs.AddJobBulkResponse(job_ids=[f"{request.seq}-{place}" for place in range(len(request.jobs))])


def refuse(*refusals: types.ItemError) -> jobs.AddJobBulkResponse:
    return jobs.AddJobBulkResponse(errors=refusals)


def invalid(index: int, field: str = "priority") -> types.ItemError:
    return types.ItemError(index=index, code=3, reason="INVALID_FIELD", field=field, message=f"{field} is too large")


def test_each_line_is_a_job_in_the_order_of_the_file(shell: Shell, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"name": "a", "data": {"n": 1}, "priority": 5, "delayMs": 1000, "labels": {"l": "1"}},
        "",
        {"name": "b", "policy": {"maxAttempts": 2}, "queue": "mail"},
        {"name": "c", "dataBase64": "/wA=", "contentType": "image/png", "idempotencyKey": "own"},
    )
    shell.broker.answer("AddJobBulk", accept)
    shown = shell.run("load", "mail", str(file))
    assert (shown.code, shown.out, shown.err) == (0, "3 lines: 3 added\n", "")
    (request,) = shell.broker.requests("AddJobBulk")
    assert request.atomic == jobs.ATOMICITY_PER_ITEM
    assert (len(request.producer_id), request.seq) == (16, 1)
    first, second, third = request.jobs
    assert (first.queue, first.name, first.data, first.priority, first.delay_ms) == ("mail", "a", b'{"n": 1}', 5, 1_000)
    assert dict(first.labels) == {"l": "1"}
    assert second.policy == types.JobPolicy(max_attempts=2)
    assert (third.data, third.content_type, third.idempotency_key) == (b"\xff\x00", "image/png", "own")


def test_data_keeps_its_bytes(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, '{"data": {"z": 1.10, "a": 12345678901234567890123,  "b":"\\u00e9"}, "name": "n"}')
    shell.broker.answer("AddJobBulk", accept)
    shell.run("load", "mail", str(file))
    assert shell.broker.requests("AddJobBulk")[0].jobs[0].data == (
        b'{"z": 1.10, "a": 12345678901234567890123,  "b":"\\u00e9"}'
    )


def test_with_a_name_each_line_is_a_payload(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, '{"name": "not the job"}', "[1]", "7")
    shell.broker.answer("AddJobBulk", accept)
    assert shell.run("load", "mail", str(file), "--name", "n").code == 0
    assert [(spec.name, spec.data) for spec in shell.broker.requests("AddJobBulk")[0].jobs] == [
        ("n", b'{"name": "not the job"}'),
        ("n", b"[1]"),
        ("n", b"7"),
    ]


@rule("2.1")
def test_keys_come_from_the_hash_of_the_file_and_the_number_of_the_line(shell: Shell, lines: Path) -> None:
    shell.broker.answer("AddJobBulk", accept)
    shell.run("load", "mail", str(lines))
    shell.run("load", "mail", "-", stdin=lines.read_bytes())
    lines.write_text(lines.read_text() + "\n")
    shell.run("load", "mail", str(lines))
    first, again, changed = (
        [spec.idempotency_key for spec in request.jobs] for request in shell.broker.requests("AddJobBulk")
    )
    assert first == again
    assert [key.rpartition(":")[2] for key in first] == ["1", "2"]
    assert first[0].rpartition(":")[0] == first[1].rpartition(":")[0] != changed[0].rpartition(":")[0]


def test_a_second_run_says_what_was_there_already(shell: Shell, lines: Path) -> None:
    earlier = [jobs.EarlierJob(index=place, existing=True, matched_by=types.MATCHED_BY_RECEIPT) for place in (0, 1)]
    shell.broker.answer("AddJobBulk", jobs.AddJobBulkResponse(job_ids=["j1", "j2"], earlier=earlier))
    assert shell.run("load", "mail", str(lines)).out == "2 lines: 2 there already\n"


def test_large_files_go_in_batches_one_after_the_other(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, *range(2_500))
    shell.broker.answer("AddJobBulk", accept)
    assert shell.run("load", "mail", str(file), "--name", "n").out == "2500 lines: 2500 added\n"
    requests = shell.broker.requests("AddJobBulk")
    assert [(len(request.jobs), request.seq) for request in requests] == [(1_000, 1), (1_000, 2), (500, 3)]
    assert len({request.producer_id for request in requests}) == 1


def test_batches_end_before_they_are_too_large(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, *[f'"{"x" * (3 << 20)}"'] * 3)
    shell.broker.answer("AddJobBulk", accept)
    assert shell.run("load", "mail", str(file), "--name", "n").code == 0
    assert [len(request.jobs) for request in shell.broker.requests("AddJobBulk")] == [2, 1]


def test_refused_lines_are_kept_with_what_is_wrong_and_give_exit_code_1(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, {"name": "a"}, "{nonsense", {"name": "b", "priority": 9}, [1], {"name": "c"})
    shell.broker.answer("AddJobBulk", refuse(invalid(1)))
    shown = shell.run("load", "mail", str(file))
    assert shown.code == 1
    assert shown.out == f"5 lines: 2 added, 3 refused; see {file}.rejected\n"
    kept = [json.loads(line) for line in Path(f"{file}.rejected").read_text().splitlines()]
    assert sorted((line["line"], line["reason"], line["field"], line["input"]) for line in kept) == [
        (2, "INVALID_LINE", "", "{nonsense"),
        (3, "INVALID_FIELD", "priority", '{"name": "b", "priority": 9}'),
        (4, "INVALID_LINE", "", "[1]"),
    ]
    assert "line 3: priority: priority is too large (INVALID_FIELD)" in shown.err
    assert "if each line is a payload, say --name" in shown.err


@pytest.mark.parametrize(
    ("line", "field", "said"),
    [
        ('{"data": 1}', "name", "is missing, or no text"),
        ('{"name": 1}', "name", "is missing, or no text"),
        ('{"name": "a", "queue": "other"}', "queue", "leave it out"),
        ('{"name": "a", "dataBase64": "*"}', "dataBase64", "is no base64"),
        ('{"name": "a", "data": 1, "dataBase64": ""}', "dataBase64", "excludes data"),
        ('{"name": "a", "prio": 1}', "", "prio"),
        ('{"name": "a", "priority": "x"}', "", "priority"),
        ("[" * 100_000, "", "is no JSON"),
        ('"\xff"', "", "is no JSON object"),
    ],
)
def test_a_line_that_is_no_job_is_told_without_asking_the_broker(
    shell: Shell, tmp_path: Path, line: str, field: str, said: str
) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text(line, encoding="utf-8")
    assert shell.run("load", "mail", str(file)).code == 1
    (kept,) = map(json.loads, Path(f"{file}.rejected").read_text().splitlines())
    assert (kept["field"], kept["line"]) == (field, 1)
    assert said in kept["message"]
    assert shell.broker.calls == []


def test_only_the_first_refusals_are_told(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, *["nonsense"] * 50)
    shown = shell.run("load", "mail", str(file))
    assert len(shown.err.splitlines()) == 11
    assert len(Path(f"{file}.rejected").read_text().splitlines()) == 50


def test_a_run_without_refusals_removes_the_file_of_an_earlier_one(shell: Shell, lines: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("old")
    shell.broker.answer("AddJobBulk", accept)
    assert shell.run("load", "mail", str(lines), "--rejected", str(kept)).code == 0
    assert not kept.exists()


def test_an_empty_file_adds_nothing(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, "", "  ")
    assert shell.run("load", "mail", str(file)).out == "0 lines: nothing added\n"
    assert shell.run("load", "mail", str(file), "--atomic").code == 0
    assert shell.broker.calls == []


def test_counts_for_programs_and_ids_for_pipes(shell: Shell, lines: Path) -> None:
    shell.broker.answer("AddJobBulk", accept)
    assert shell.run("load", "mail", str(lines), "-o", "json").json == {
        "lines": 2, "added": 2, "existing": 0, "refused": 0,
    }  # fmt: skip
    assert shell.run("load", "mail", str(lines), "-o", "name").out == "1-0\n1-1\n"


def test_jobs_refused_for_load_are_sent_again_later(shell: Shell, lines: Path) -> None:
    full = types.ItemError(index=1, code=8, reason="QUEUE_FULL", message="full", retry_after_ms=1_500)
    shell.broker.answer("AddJobBulk", refuse(full), accept)
    assert shell.run("load", "mail", str(lines)).out == "2 lines: 2 added\n"
    first, again = shell.broker.requests("AddJobBulk")
    assert [spec.name for spec in again.jobs] == ["b"]
    assert (first.seq, again.seq) == (1, 2)
    assert shell.clock.slept[0] >= 1.5


def test_a_queue_that_stays_full_is_given_up_after_a_minute(shell: Shell, lines: Path) -> None:
    full = types.ItemError(index=0, code=8, reason="QUEUE_FULL", message="the queue is full", retry_after_ms=5_000)
    both = [full, types.ItemError(index=1, code=8, reason="QUEUE_FULL", message="the queue is full")]
    shell.broker.answer("AddJobBulk", refuse(*both))
    shown = shell.run("load", "mail", str(lines))
    assert shown.code == 7
    assert shown.err.splitlines() == [
        "stopped: nothing added, of 2 lines. Run the same command again to go on: no line is added twice.",
        "error: the queue is full (QUEUE_FULL)",
    ]


def test_a_batch_without_an_answer_goes_again_under_the_same_number(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, *range(1_001))
    shell.broker.answer("AddJobBulk", accept, errors.Unavailable("a:1: broken"), accept)
    shown = shell.run("load", "mail", str(file), "--name", "n")
    assert (shown.code, shown.out) == (0, "1001 lines: 1001 added\n")
    assert [request.seq for request in shell.broker.requests("AddJobBulk")] == [1, 2, 2]


def test_progress_is_a_line_each_five_seconds_where_nobody_watches(shell: Shell, tmp_path: Path) -> None:
    def slowly(request: jobs.AddJobBulkRequest) -> jobs.AddJobBulkResponse:
        shell.clock.now += 3
        return accept(request)

    shell.broker.answer("AddJobBulk", slowly)
    file = written(tmp_path, *range(5_000))
    shown = shell.run("load", "mail", str(file), "--name", "n")
    assert shown.err.splitlines() == [
        "load: 2000 of 5000 lines (40%), 333/s, 9s left",
        "load: 4000 of 5000 lines (80%), 333/s, 3s left",
    ]
    assert shell.run("load", "mail", str(file), "--name", "n", "-q").err == ""


def test_progress_is_a_bar_where_somebody_watches(shell: Shell, lines: Path) -> None:
    shell.broker.answer("AddJobBulk", accept)
    shown = shell.run("load", "mail", str(lines), tty=True)
    assert "load" in shown.err
    assert shown.out == "2 lines: 2 added\n"


def test_an_interrupt_says_what_is_done_and_how_to_go_on(shell: Shell, tmp_path: Path) -> None:
    def interrupt(request: jobs.AddJobBulkRequest) -> jobs.AddJobBulkResponse:
        if request.seq == 2:
            signal.raise_signal(signal.SIGINT)
        return accept(request)

    shell.broker.answer("AddJobBulk", interrupt)
    file = written(tmp_path, *range(3_000))
    shown = shell.run("load", "mail", str(file), "--name", "n")
    assert (shown.code, shown.out) == (130, "")
    assert shown.err == (
        "stopped: 1000 added, of 3000 lines. Run the same command again to go on: no line is added twice.\n"
    )


def test_atomic_is_one_transaction(shell: Shell, lines: Path) -> None:
    shell.broker.answer("AddJobBulk", accept)
    assert shell.run("load", "mail", str(lines), "--atomic").out == "2 lines: 2 added\n"
    (request,) = shell.broker.requests("AddJobBulk")
    assert request.atomic == jobs.ATOMICITY_ALL_OR_NOTHING


@rule("1.10")
def test_atomic_names_the_line_that_keeps_all_from_being_added(shell: Shell, lines: Path) -> None:
    refusal = errors.InvalidArgument("priority is too large", reason="INVALID_FIELD", metadata={"index": "1"})
    shell.broker.answer("AddJobBulk", refusal)
    shown = shell.run("load", "mail", str(lines), "--atomic")
    assert shown.code == 2
    assert shown.err == "error: line 2: priority is too large (INVALID_FIELD); nothing was added\n"
    lines.write_text("nonsense")
    shown = shell.run("load", "mail", str(lines), "--atomic")
    assert (shown.code, shown.err.startswith("error: line 1: is no JSON")) == (2, True)


def test_atomic_refuses_more_lines_than_one_transaction_holds(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, *range(loading.BATCH_JOBS + 1))
    shown = shell.run("load", "mail", str(file), "--name", "n", "--atomic")
    assert shown.code == 2
    assert "takes at most 1000 lines" in shown.err
    assert shell.broker.calls == []


def test_a_file_that_cannot_be_read_is_told(shell: Shell, tmp_path: Path) -> None:
    for where in ("nowhere.jsonl", str(tmp_path)):
        shown = shell.run("load", "mail", where)
        assert shown.code == 2
        assert shown.err.startswith(f"error: FILE: {where} cannot be read: ")


def test_a_field_that_the_message_begins_with_is_not_told_twice() -> None:
    refused = errors.from_code(3, "priority: -1 is too small", reason="INVALID_FIELD", fields={"priority": "too small"})
    assert str(loading.LineFault(sources.Line(2, b"{}"), refused)).startswith("line 2: priority: -1 is too small (")
