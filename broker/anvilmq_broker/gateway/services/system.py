"""SystemService: what the broker says of itself."""

from __future__ import annotations

from anvilmq_broker.domain import commands
from anvilmq_broker.gateway import features, limits, mapping
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_proto.v1 import system_service_pb2 as pb


async def get_server_info(context: Context, _call: Call, _request: pb.GetServerInfoRequest) -> pb.GetServerInfoResponse:
    """Version, limits, the state of the store."""
    info = await context.query(commands.GetInfo(), commands.Info)
    hello = context.broker.hello
    return pb.GetServerInfoResponse(
        version=context.identity.version,
        features=features.BUILT,
        namespace=context.identity.namespace,
        instance_id=hello.instance_id,
        started_at_ms=hello.started_at_ms,
        now_at_ms=info.now_ms,
        durability=mapping.enum(info.durability),
        limits=limits_message(context.limits),
        schema_version=info.schema_version,
    )


def limits_message(bounds: limits.Limits) -> pb.Limits:
    """The limits as clients read them."""
    return pb.Limits(
        max_message_bytes=limits.MAX_MESSAGE_BYTES,
        max_payload_bytes=bounds.max_payload_bytes,
        max_result_bytes=limits.MAX_RESULT_BYTES,
        max_progress_bytes=limits.MAX_PROGRESS_BYTES,
        max_log_line_bytes=limits.MAX_LOG_LINE_BYTES,
        max_bulk_jobs=limits.MAX_BULK_JOBS,
        max_bulk_bytes=limits.MAX_BULK_BYTES,
        max_flow_depth=bounds.max_flow_depth,
        max_flow_nodes=bounds.max_flow_nodes,
        max_flow_bulk=bounds.max_flow_bulk,
        max_settle_batch=limits.MAX_SETTLE_BATCH,
        max_page_size=limits.MAX_PAGE_SIZE,
        max_admin_batch=limits.MAX_ADMIN_BATCH,
        max_wait_ms=limits.MAX_WAIT_MS,
    )
