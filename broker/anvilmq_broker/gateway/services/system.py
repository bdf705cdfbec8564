"""SystemService: what the broker says of itself."""

from __future__ import annotations

from anvilmq_broker.domain import commands
from anvilmq_broker.gateway import definitions, features, limits, mapping, validate
from anvilmq_broker.gateway.context import Call, Context
from anvilmq_broker.gateway.refusals import not_built, required
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


async def list_definitions(
    context: Context, _call: Call, request: pb.ListDefinitionsRequest
) -> pb.ListDefinitionsResponse:
    """One page of the definitions that have an owner, for its controller to compare."""
    query = commands.ListDefinitions(
        definitions.owner_filter(request.owner_namespace, "owner_namespace"),
        definitions.owner_filter(request.owner_kind, "owner_kind"),
        definitions.owner_filter(request.owner_manager, "owner_manager"),
        validate.page_size(request.page_size),
        context.pages.position(request, tuple[str, str, str, int, str]),
    )
    page = await context.query(query, commands.DefinitionPage)
    return pb.ListDefinitionsResponse(
        definitions=[definitions.definition(record) for record in page.definitions],
        next_page_token=context.pages.token(request, page.next),
    )


async def release_definition(
    context: Context, _call: Call, request: pb.ReleaseDefinitionRequest
) -> pb.ReleaseDefinitionResponse:
    """Take the owner off a definition, which goes on."""
    if request.type == pb.DEFINITION_TYPE_FLOW_TEMPLATE:
        raise not_built("type")
    if request.type != pb.DEFINITION_TYPE_SCHEDULER:
        raise required("type")
    name = definitions.scheduler_name(request.name)
    if not request.HasField("owner"):
        raise required("owner")
    command = commands.ReleaseDefinition(name, definitions.owner(request.owner, "owner"))
    done = await context.submit(command, commands.ReleasedDefinition)
    return pb.ReleaseDefinitionResponse(released=done.released)


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
