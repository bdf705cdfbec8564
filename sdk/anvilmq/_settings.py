"""What the environment says about the connection: the only reader of it in the SDK, at first use and not before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from anvilmq import durations, errors

DEFAULT_URL: Final = "localhost:50051"
DEFAULT_PORT: Final = 50051
DEFAULT_GRACE: Final = "25s"


class Settings(msgspec.Struct, frozen=True):
    """Where the broker is, and who we are there.

    address: host:port, with an IPv6 host in brackets. ca_file: the only root of TLS, None = those of the system; None
    without TLS. token: "" = none. token_file: read at the first call, and again when its token is refused.
    grace_s: how long a worker may take to leave after SIGTERM.
    """

    address: str
    tls: bool = False
    token: str = ""
    token_file: Path | None = None
    ca_file: Path | None = None
    grace_s: float = 25.0

    def __repr__(self) -> str:
        token = "***" if self.token else ""
        return (
            f"Settings(address={self.address!r}, tls={self.tls}, token={token!r}, token_file={self.token_file},"
            f" ca_file={self.ca_file}, grace_s={self.grace_s})"
        )


def read(
    *,
    url: str | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings given, the rest from `environ`, by default the process's. An empty variable counts as not set.

    A token or token file that is given keeps both variables out. SettingInvalid names the variable at fault.
    """
    env = os.environ if environ is None else environ
    if token is None and token_file is None:
        token, token_file = env.get("ANVILMQ_TOKEN"), env.get("ANVILMQ_TOKEN_FILE")
    address, tls = _parse_url(url or env.get("ANVILMQ_URL") or DEFAULT_URL)
    return Settings(
        address=address,
        tls=tls,
        token=(token or "").strip(),
        token_file=Path(token_file) if token_file and not token else None,
        ca_file=_ca_file(ca_file or env.get("ANVILMQ_CA_FILE")) if tls else None,
        grace_s=_grace_s(env.get("ANVILMQ_GRACE") or DEFAULT_GRACE),
    )


def calm_grpc() -> None:
    """Set what gRPC reads from the environment when it is loaded, unless it is set there.

    Its handlers for forks are off: they crash now and then in a child of a process that has a channel, also when the
    child wants nothing of gRPC. Its own log, which goes past `logging`, tells of errors alone.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def _parse_url(url: str) -> tuple[str, bool]:
    scheme, separator, rest = url.strip().rpartition("://")
    if separator and scheme not in {"anvilmq", "anvilmqs"}:
        raise errors.SettingInvalid("ANVILMQ_URL", f"{url!r} starts with neither anvilmq:// nor anvilmqs://")
    host, port = _split_port(rest.rstrip("/"))
    if not host or not host.isascii() or set(host) & set("/@?# "):
        raise errors.SettingInvalid("ANVILMQ_URL", f"{url!r} is not host:port, anvilmq://host:port or anvilmqs://…")
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise errors.SettingInvalid("ANVILMQ_URL", f"{url!r} has no valid port")
    return f"{host}:{port}", scheme == "anvilmqs"


def _split_port(address: str) -> tuple[str, str]:
    host, separator, port = address.rpartition(":")
    if not separator or address.endswith("]"):
        return address, str(DEFAULT_PORT)
    return host, port


def _ca_file(name: str | os.PathLike[str] | None) -> Path | None:
    if not name:
        return None
    path = Path(name)
    if not path.is_file():
        # Falling back to the system's roots would trust more than was asked for.
        raise errors.SettingInvalid("ANVILMQ_CA_FILE", f"there is no file {path}")
    return path


def _grace_s(text: str) -> float:
    try:
        return durations.parse_s(text)
    except ValueError as error:
        raise errors.SettingInvalid("ANVILMQ_GRACE", str(error)) from error
