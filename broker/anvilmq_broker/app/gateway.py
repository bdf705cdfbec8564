"""A gateway's process: `python -m anvilmq_broker.app.gateway DESCRIPTOR`, started by the supervisor."""

from __future__ import annotations

import sys
from pathlib import Path

from anvilmq_broker.app.child_start import run_child
from anvilmq_broker.app.children import Line, Start
from anvilmq_broker.app.settings import Settings
from anvilmq_broker.domain.errors import StartRefused
from anvilmq_broker.gateway import main
from anvilmq_broker.gateway.auth import TokensInvalid
from anvilmq_broker.gateway.context import Identity
from anvilmq_broker.gateway.limits import Limits
from anvilmq_broker.gateway.server import BindFailed, Binding
from anvilmq_broker.gateway.tls import TlsFiles, TlsInvalid


def _run(start: Start, line: Line) -> int:
    settings = start.settings
    config = main.Config(
        index=start.index,
        engine_socket=Path(start.engine_socket),
        binding=Binding(start.grpc_host, start.grpc_port, _tls_files(settings)),
        identity=Identity.of_this_build(settings.namespace),
        limits=Limits(
            settings.max_payload_bytes, settings.max_flow_depth, settings.max_flow_nodes, settings.max_flow_bulk
        ),
        tokens_file=Path(settings.tokens_file) if settings.auth == "token" else None,
        grace_ms=settings.grace,
    )
    try:
        return main.run(config, line)
    except TokensInvalid as invalid:
        raise StartRefused("tokens_invalid", f"ANVILMQ_TOKENS_FILE: {invalid}") from invalid
    except TlsInvalid as invalid:
        raise StartRefused("tls_invalid", str(invalid)) from invalid
    except BindFailed as failed:
        raise StartRefused("address_taken", f"ANVILMQ_GRPC_ADDRESS: {failed}") from failed


def _tls_files(settings: Settings) -> TlsFiles | None:
    if not settings.tls_cert_file:
        return None
    client_ca = Path(settings.tls_client_ca_file) if settings.tls_client_ca_file else None
    return TlsFiles(Path(settings.tls_cert_file), Path(settings.tls_key_file), client_ca)


if __name__ == "__main__":
    sys.exit(run_child(sys.argv, _run))
