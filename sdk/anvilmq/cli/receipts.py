"""Commands about receipts: which idempotency keys are taken, and freeing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from anvilmq.cli import exits, paging
from anvilmq.cli.command import Cli
from anvilmq.cli.paging import PageFlags

if TYPE_CHECKING:
    from anvilmq.cli.output import Shape
    from anvilmq_proto.v1.receipt_service_pb2 import Receipt

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the job.", show_default=False)]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The idempotency key.", show_default=False)]


async def list_receipts(
    cli: Cli,
    queue: Queue,
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of jobs of that name.", show_default=False)
    ] = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="TEXT", help="Keys that begin so.", show_default=False)
    ] = None,
    **flags: Unpack[PageFlags],
) -> None:
    """List the receipts of a queue, by name and key."""
    from anvilmq_proto.v1.receipt_service_pb2 import ListReceiptsRequest

    request = ListReceiptsRequest(queue=queue, name=name or "", key_prefix=prefix or "")
    async with cli.admin() as admin:
        listing = cli.printer.listing(_shape(cli.now_ms()))
        await paging.fill(listing, flags, admin.list_receipts, request, lambda page: page.receipts)


async def get_receipt(cli: Cli, queue: Queue, name: Name, key: Key) -> None:
    """Show which job has a key, and until when."""
    from anvilmq_proto.v1.receipt_service_pb2 import GetReceiptRequest

    async with cli.admin() as admin:
        answer = await admin.get_receipt(GetReceiptRequest(queue=queue, name=name, idempotency_key=key))
    cli.printer.one(answer.receipt, _shape(cli.now_ms()))


async def release(
    cli: Cli,
    queue: Queue,
    name: Name,
    key: Key,
    *,
    job_id: Annotated[
        str, typer.Option("--job-id", metavar="ID", help="Only if that job has the key.", show_default=False)
    ],
) -> int:
    """Free a key if the job that is named has it; the job stays as it is.

    Exit code 4 when another job has it, or none.
    """
    from anvilmq.cli.output import as_json
    from anvilmq_proto.v1.receipt_service_pb2 import ReleaseReceiptRequest

    request = ReleaseReceiptRequest(queue=queue, name=name, idempotency_key=key, expected_job_id=job_id)
    async with cli.admin() as admin:
        answer = await admin.release_receipt(request)
    if not cli.printer.form.is_for_people:
        cli.printer.value(as_json(answer))
    elif answer.released:
        cli.terminal.note(f"{key} is free")
    if answer.released:
        return exits.DONE
    holder = f"job {answer.job_id} has it" if answer.job_id else "no job has it"
    cli.terminal.error(f"error: {key} was not freed: {holder}")
    return exits.CONFLICT


async def remove(cli: Cli, queue: Queue, name: Name, key: Key) -> None:
    """Free a key whoever has it; the job stays as it is. A key that nobody has is no error.

    Run twice it may hit the next holder: release names the job it is meant for.
    """
    from anvilmq.cli.output import as_json
    from anvilmq_proto.v1.receipt_service_pb2 import DeleteReceiptRequest

    async with cli.admin() as admin:
        answer = await admin.delete_receipt(DeleteReceiptRequest(queue=queue, name=name, idempotency_key=key))
    if not cli.printer.form.is_for_people:
        cli.printer.value(as_json(answer))
    elif answer.deleted:
        cli.terminal.note(f"{key} is free; job {answer.job_id} had it")
    else:
        cli.terminal.note(f"{key} was free")


def _shape(now_ms: int) -> Shape[Receipt]:
    from anvilmq.cli import times, values
    from anvilmq.cli.output import Shape
    from anvilmq.cli.tables import Column
    from anvilmq_proto.v1 import types_pb2 as types

    def mode(receipt: Receipt) -> str:
        return values.enum_word(types.IdempotencyMode, receipt.mode).replace("_", "-")

    def state(receipt: Receipt) -> str:
        return values.enum_word(types.JobState, receipt.job_state) or "removed"

    return Shape(
        columns=(
            Column("NAME", lambda receipt: receipt.name),
            Column("KEY", lambda receipt: receipt.idempotency_key),
            Column("JOB", lambda receipt: receipt.job_id),
            Column("STATE", state),
            Column("MODE", mode),
            Column("AGE", lambda receipt: times.age(receipt.created_at_ms, now_ms)),
            Column("EXPIRES", lambda receipt: times.iso(receipt.expires_at_ms), wide=True),
            Column("DIGEST", lambda receipt: receipt.digest, wide=True),
        ),
        details=lambda receipt: [
            ("Queue", receipt.queue),
            ("Name", receipt.name),
            ("Key", receipt.idempotency_key),
            ("Job", receipt.job_id),
            ("Job state", state(receipt)),
            ("Mode", mode(receipt)),
            ("Created", times.relative(receipt.created_at_ms, now_ms)),
            ("Expires", times.relative(receipt.expires_at_ms, now_ms) or "not while its job goes on"),
            ("Digest", receipt.digest),
        ],
        name=lambda receipt: receipt.idempotency_key,
    )
