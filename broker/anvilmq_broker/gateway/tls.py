"""TLS from files that are read again when they change, so that a renewed certificate needs no restart."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

import grpc
import msgspec
import structlog

log: Final = structlog.get_logger()


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files. client_ca: when given, clients must show a certificate that it signed."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return (self.cert, self.key) if self.client_ca is None else (self.cert, self.key, self.client_ca)


class TlsInvalid(Exception):
    """The files cannot be read, or do not fit together; the message names the variable."""


def credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Credentials that look at the files for each new connection. Raises TlsInvalid."""
    try:
        first = _Reloading(files)
    except OSError as error:
        raise TlsInvalid(f"{error}; check ANVILMQ_TLS_CERT_FILE, _KEY_FILE, _CLIENT_CA_FILE") from error
    return grpc.dynamic_ssl_server_credentials(
        first.configuration,
        # The stubs do not know that None means: go on with the old one.
        first.changed,  # type: ignore[arg-type]
        require_client_authentication=files.client_ca is not None,
    )


class _Reloading:
    """The configuration of now. `changed` is called by gRPC's threads at each handshake."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = self._state()
        self.configuration = self._read()

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """The new configuration if a file has changed, else None: go on with the old one."""
        try:
            if (state := self._state()) == self._seen:
                return None
            configuration = self._read()
        except OSError as error:
            # In the middle of a renewal: the next handshake looks again.
            log.warning("tls_files_unreadable", error=str(error))
            return None
        self._seen = state
        log.info("tls_files_reloaded", path=str(self._files.cert))
        return configuration

    def _state(self) -> list[tuple[int, int, int]]:
        found = [path.stat() for path in self._files.paths]
        return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]

    def _read(self) -> grpc.ServerCertificateConfiguration:
        files = self._files
        pair = (files.key.read_bytes(), files.cert.read_bytes())
        roots = files.client_ca.read_bytes() if files.client_ca is not None else None
        _check(files)
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=roots)


def _check(files: TlsFiles) -> None:
    """Raise SSLError, an OSError, for what is no certificate with its key: gRPC takes it, and fails every handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Without a password a key that wants one would ask for it on the terminal.
    context.load_cert_chain(files.cert, files.key, password="")
    if files.client_ca is not None:
        context.load_verify_locations(files.client_ca)
