"""ReceiptService: look up, list, release and delete the receipts of idempotency keys."""

from __future__ import annotations

from typing import Any

from anvilmq_broker.domain import commands
from anvilmq_broker.gateway import limits, mapping, validate
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_proto.v1 import receipt_service_pb2 as pb


async def get_receipt(context: Context, _call: Call, request: pb.GetReceiptRequest) -> pb.GetReceiptResponse:
    """One receipt by its key."""
    found = await context.query(commands.GetReceipt(*_key(request)), commands.ReceiptFound)
    return pb.GetReceiptResponse(receipt=mapping.receipt(found.receipt))


async def list_receipts(context: Context, _call: Call, request: pb.ListReceiptsRequest) -> pb.ListReceiptsResponse:
    """One page of receipts, by name and key."""
    query = commands.ListReceipts(
        validate.queue(request.queue),
        validate.name(request.name) if request.name else "",
        validate.plain_text(request.key_prefix, "key_prefix", limits.MAX_KEY_BYTES),
        validate.page_size(request.page_size),
        context.pages.position(request, tuple[str, str]),
    )
    page = await context.query(query, commands.ReceiptPage)
    return pb.ListReceiptsResponse(
        receipts=[mapping.receipt(record) for record in page.receipts],
        next_page_token=context.pages.token(request, page.next),
    )


async def release_receipt(
    context: Context, _call: Call, request: pb.ReleaseReceiptRequest
) -> pb.ReleaseReceiptResponse:
    """Free a key if the expected job has it."""
    created_ms, number = validate.job_id(request.expected_job_id, "expected_job_id")
    command = commands.ReleaseReceipt(*_key(request), commands.JobRef(number, created_ms))
    freed = await context.submit(command, commands.FreedReceipt)
    return pb.ReleaseReceiptResponse(released=freed.freed, job_id="" if freed.freed else mapping.job_id(freed.holder))


async def delete_receipt(context: Context, _call: Call, request: pb.DeleteReceiptRequest) -> pb.DeleteReceiptResponse:
    """Free a key whoever has it."""
    freed = await context.submit(commands.DeleteReceipt(*_key(request)), commands.FreedReceipt)
    return pb.DeleteReceiptResponse(deleted=freed.freed, job_id=mapping.job_id(freed.holder))


def _key(request: Any) -> tuple[str, str, str]:
    return validate.queue(request.queue), validate.name(request.name), validate.key(request.idempotency_key)
