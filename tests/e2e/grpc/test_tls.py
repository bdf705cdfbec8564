"""TLS: certificates that are renewed without a restart, and clients that must show one."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from anvilmq_broker.gateway.tls import TlsFiles, TlsInvalid, credentials
from anvilmq_proto.v1 import system_service_pb2
from tests.e2e.grpc.serving import call, serving

INFO = system_service_pb2.GetServerInfoRequest()


def make_certificate(folder: Path, name: str) -> tuple[bytes, bytes]:
    """A key and a certificate for localhost that signs itself, put into the folder as name.key and name.crt."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate_pem = certificate.public_bytes(serialization.Encoding.PEM)
    for path, data in ((folder / f"{name}.key", key_pem), (folder / f"{name}.crt", certificate_pem)):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        fresh.replace(path)
    return key_pem, certificate_pem


def files(folder: Path, client_ca: Path | None = None) -> TlsFiles:
    return TlsFiles(folder / "broker.crt", folder / "broker.key", client_ca)


async def test_a_renewed_certificate_is_shown_to_the_next_connection(tmp_path: Path) -> None:
    _, old = make_certificate(tmp_path, "broker")
    async with serving(files(tmp_path)) as broker:
        async with broker.channel(grpc.ssl_channel_credentials(old)) as channel:
            assert (await call(channel, "SystemService/GetServerInfo", INFO)).version
            _, new = make_certificate(tmp_path, "broker")
            assert (await call(channel, "SystemService/GetServerInfo", INFO)).version, "open connections go on"
        async with broker.channel(grpc.ssl_channel_credentials(new)) as channel:
            assert (await call(channel, "SystemService/GetServerInfo", INFO)).version
        (tmp_path / "broker.key").unlink()
        async with broker.channel(grpc.ssl_channel_credentials(new)) as channel:
            assert (await call(channel, "SystemService/GetServerInfo", INFO)).version, "in the middle of a renewal"


async def test_with_a_client_ca_only_its_clients_get_in(tmp_path: Path) -> None:
    _, certificate = make_certificate(tmp_path, "broker")
    client_key, client_certificate = make_certificate(tmp_path, "client")
    async with serving(files(tmp_path, tmp_path / "client.crt")) as broker:
        shown = grpc.ssl_channel_credentials(certificate, client_key, client_certificate)
        async with broker.channel(shown) as channel:
            assert (await call(channel, "SystemService/GetServerInfo", INFO)).version
        async with broker.channel(grpc.ssl_channel_credentials(certificate)) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(channel, "SystemService/GetServerInfo", INFO)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_files_that_are_missing_name_the_settings(tmp_path: Path) -> None:
    with pytest.raises(TlsInvalid, match="ANVILMQ_TLS_CERT_FILE"):
        credentials(files(tmp_path))


@pytest.mark.parametrize("wrong", ["broker.crt", "broker.key", "client.crt"])
def test_files_that_hold_no_certificate_or_key_name_the_settings(tmp_path: Path, wrong: str) -> None:
    make_certificate(tmp_path, "broker")
    make_certificate(tmp_path, "client")
    (tmp_path / wrong).write_text("neither")
    with pytest.raises(TlsInvalid, match="ANVILMQ_TLS_CERT_FILE"):
        credentials(files(tmp_path, tmp_path / "client.crt"))
