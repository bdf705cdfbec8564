"""Looking up and freeing idempotency keys."""

from anvilmq import errors
from anvilmq_proto.v1 import receipt_service_pb2 as receipts
from anvilmq_proto.v1 import types_pb2 as types
from tests.support.rules import rule
from tests.unit.sdk.cli.shell import NOW_MS, Shell

RECEIPT = receipts.Receipt(
    queue="mail",
    name="send",
    idempotency_key="order-7",
    mode=types.IDEMPOTENCY_MODE_RELEASE_ON_FINISH,
    job_id="j1",
    job_state=types.JOB_STATE_ACTIVE,
    created_at_ms=NOW_MS - 3_700_000,
)


@rule("2.2")
def test_receipts_are_listed_by_queue_name_and_prefix(shell: Shell) -> None:
    shell.broker.answer("ListReceipts", receipts.ListReceiptsResponse(receipts=[RECEIPT]))
    shown = shell.run("receipt", "list", "mail", "--name", "send", "--prefix", "order-", "--limit", "5")
    assert shown.out.splitlines() == [
        "NAME   KEY       JOB   STATE    MODE                AGE",
        "send   order-7   j1    active   release-on-finish   1h1m",
    ]
    assert shell.broker.requests("ListReceipts") == [
        receipts.ListReceiptsRequest(queue="mail", name="send", key_prefix="order-", page_size=5)
    ]
    assert shell.run("receipt", "list", "mail", "-o", "name").out == "order-7\n"


def test_the_receipt_of_a_job_that_is_removed_says_so(shell: Shell) -> None:
    removed = receipts.Receipt(queue="mail", name="send", idempotency_key="k", expires_at_ms=NOW_MS + 60_000)
    shell.broker.answer("GetReceipt", receipts.GetReceiptResponse(receipt=removed))
    lines = [" ".join(line.split()) for line in shell.run("receipt", "get", "mail", "send", "k").out.splitlines()]
    assert {"Job state: removed", "Expires: 2030-03-17T17:47:40.000Z (in 1m)"} <= set(lines)


def test_a_key_that_nobody_has_gives_exit_code_3(shell: Shell) -> None:
    shell.broker.answer("GetReceipt", errors.ReceiptNotFound("no receipt of k", reason="RECEIPT_NOT_FOUND"))
    assert shell.run("receipt", "get", "mail", "send", "k").code == 3


@rule("2.2")
def test_a_key_is_released_only_from_the_job_that_is_named(shell: Shell) -> None:
    shell.broker.answer(
        "ReleaseReceipt",
        receipts.ReleaseReceiptResponse(released=True),
        receipts.ReleaseReceiptResponse(job_id="j2"),
        receipts.ReleaseReceiptResponse(),
    )
    call = ("receipt", "release", "mail", "send", "k", "--job-id", "j1")
    assert shell.run(*call).code == 0
    other, nobody = shell.run(*call), shell.run(*call)
    assert (other.code, other.err) == (4, "error: k was not freed: job j2 has it\n")
    assert (nobody.code, nobody.err) == (4, "error: k was not freed: no job has it\n")
    assert shell.broker.requests("ReleaseReceipt")[0].expected_job_id == "j1"
    assert shell.run("receipt", "release", "mail", "send", "k").code == 2


def test_removing_a_key_that_is_free_is_no_error(shell: Shell) -> None:
    shell.broker.answer(
        "DeleteReceipt",
        receipts.DeleteReceiptResponse(deleted=True, job_id="j1"),
        receipts.DeleteReceiptResponse(),
    )
    assert shell.run("receipt", "rm", "mail", "send", "k").err == "k is free; job j1 had it\n"
    shown = shell.run("receipt", "rm", "mail", "send", "k")
    assert (shown.code, shown.err) == (0, "k was free\n")
