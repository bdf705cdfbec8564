"""The settings of the broker: one table, one frozen value, the only reader of its environment.

Each setting is a variable ANVILMQ_<NAME> and a flag --<name>; the flag wins. An empty variable counts as not set. An
unknown ANVILMQ_ variable is refused with the nearest known one: a typo must not become a default.
"""

from __future__ import annotations

import argparse
import difflib
import ipaddress
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

PREFIX: Final = "ANVILMQ_"
NOT_OURS: Final = frozenset(f"{PREFIX}{name}" for name in ("URL", "TOKEN", "TOKEN_FILE", "CA_FILE", "CONTEXT"))
"""Variables of the SDK and the CLI, which may stand in the same environment."""
INJECTED: Final = re.compile(r"^ANVILMQ_([A-Z0-9_]+_)?(PORT(_.*)?|SERVICE_(HOST|PORT)(_.*)?)$")
"""What Kubernetes puts into pods for Services of our name; no setting may match it."""
_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")
_DURATION_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_SIZE: Final = re.compile(r"(\d+)\s*(KiB|MiB|GiB)?")
_SIZE_UNITS: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class SettingsInvalid(Exception):
    """One line for each fault, naming the variable and what it may be."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)


class Address(msgspec.Struct, frozen=True):
    """Where to listen. host: without brackets. port: 0 = any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it; a name counts as loopback only when it is localhost."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings in effect. Durations in ms, sizes in bytes, "" and 0 = none where the table says so."""

    store: str
    data_dir: str
    grpc_address: Address
    http_address: Address
    auth: str
    tokens_file: str
    allow_open: bool
    tls_cert_file: str
    tls_key_file: str
    tls_client_ca_file: str
    gateways: int
    lock_wait: int
    durability: str
    namespace: str
    grace: int
    max_flow_depth: int
    max_flow_nodes: int
    max_flow_bulk: int
    max_payload_bytes: int
    max_queue_jobs: int
    allow_filesystem: str
    startup_check: str
    log_level: str
    log_format: str


class Setting(msgspec.Struct, frozen=True):
    """One row of the table. default: as it would be written; None = computed, as `shown` says. help: one sentence."""

    name: str
    parse: Callable[[str], Any]
    default: Callable[[], str] | str
    help: str
    shown: str = ""

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Its flag."""
        return "--" + self.name.replace("_", "-")

    def default_text(self) -> str:
        """The default in effect on this machine, as it would be written."""
        return self.default if isinstance(self.default, str) else self.default()


def parse_duration_ms(text: str) -> int:
    """Ms of a duration such as 110s, 2m or 1h30m. Raises ValueError; a bare number is refused, but 0."""
    if text == "0":
        return 0
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError("a duration with its unit, such as 110s, 2m or 1h30m")
    return sum(int(number) * unit for number, unit in zip(match.groups(default="0"), _DURATION_UNITS_MS, strict=True))


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("a number of bytes, or with a unit, such as 512KiB or 1MiB")
    return int(match[1]) * _SIZE_UNITS[match[2] or ""]


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host) != bracketed or not port.isdecimal() or int(port) > 65_535:
        raise ValueError("host:port, such as 127.0.0.1:50051 or [::]:50051; port 0 takes any free one")
    return Address(host, int(port))


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return parse


def _between(low: int, high: int, parse_number: Callable[[str], int] = int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = parse_number(text)
        except ValueError as error:
            raise ValueError(f"a number from {low} to {high}" if parse_number is int else str(error)) from None
        if not low <= number <= high:
            raise ValueError(f"from {low} to {high}")
        return number

    return parse


def _parse_yes(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("0 or 1")
    return text == "1"


def _cores() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return str(max(1, cores - 1))


TABLE: Final[tuple[Setting, ...]] = (
    Setting("store", _one_of("libsql", "memory"), "libsql", "Where jobs are kept; memory forgets them at exit."),
    Setting("data_dir", str, "./anvilmq-data", "Folder of the database."),
    Setting("grpc_address", _parse_address, "127.0.0.1:50051", "Where workers and producers connect."),
    Setting("http_address", _parse_address, "127.0.0.1:9090", "Where /metrics, /livez, /readyz and /startupz are."),
    Setting("auth", _one_of("token", "none"), "token", "none lets everybody in; token wants ANVILMQ_TOKENS_FILE."),
    Setting("tokens_file", str, "", "YAML list of tokens with their scopes; read again when it changes."),
    Setting("allow_open", _parse_yes, "0", "1 permits ANVILMQ_AUTH=none on an address that others can reach."),
    Setting("tls_cert_file", str, "", "Certificate chain, PEM; read again when it changes."),
    Setting("tls_key_file", str, "", "Its private key, PEM."),
    Setting("tls_client_ca_file", str, "", "Roots that clients' certificates must come from; none: clients need no certificate."),
    Setting("gateways", _between(1, 256), _cores, "Processes that speak gRPC.", "cores - 1, at least 1"),
    Setting("lock_wait", parse_duration_ms, "0", "How long to wait for another broker to leave the data folder."),
    Setting("durability", _one_of("full", "relaxed"), "full", "relaxed may lose the last answers at a power cut."),
    Setting("namespace", str, "", "Kubernetes namespace, told to clients."),
    Setting("grace", parse_duration_ms, "25s", "Longest drain after SIGTERM."),
    Setting("max_flow_depth", _between(1, 100), "10", "Levels of a flow."),
    Setting("max_flow_nodes", _between(1, 100_000), "1000", "Nodes of a flow."),
    Setting("max_flow_bulk", _between(1, 1_000), "100", "Flows of a bulk."),
    Setting("max_payload_bytes", _between(1 << 10, 15 << 20, _parse_size), "1MiB", "Size of a job's data."),
    Setting("max_queue_jobs", _between(0, 1 << 52), "0", "Jobs of a queue that have not ended; 0 = no limit."),
    Setting("allow_filesystem", str, "", "File systems to accept although they are refused, such as nfs; comma-separated."),
    Setting("startup_check", _one_of("auto", "always"), "auto", "always: check the database's pages at each start."),
    Setting("log_level", _one_of("debug", "info", "warning", "error"), "info", "Least important lines to print."),
    Setting(
        "log_format", _one_of("auto", "json", "console"), "auto", "json, or console with colours; auto: json when not on a terminal."
    ),
)  # fmt: skip


def read(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in effect: flags, else the environment, else the defaults.

    arguments, environ: None = the process's own. Raises SettingsInvalid; --help and a wrong flag exit as argparse does.
    """
    environ = os.environ if environ is None else environ
    flags = vars(parser().parse_args(arguments))
    faults = [_unknown(name) for name in sorted(environ) if _is_unknown(name)]
    values: dict[str, Any] = {}
    for setting in TABLE:
        source, text = setting.flag, flags[setting.name]
        if text is None:
            source, text = setting.variable, environ.get(setting.variable) or setting.default_text()
        try:
            values[setting.name] = setting.parse(text)
        except ValueError as error:
            faults.append(f"{source} is {text!r}; it must be {error}")
    if not faults:
        settings = Settings(**values)
        faults = _contradictions(settings)
        if not faults:
            return settings
    raise SettingsInvalid(faults)


def parser() -> argparse.ArgumentParser:
    """The command line of `anvilmq-broker`."""
    top = argparse.ArgumentParser(
        prog="anvilmq-broker",
        description="The AnvilMQ broker: one engine and its gateways. Stops on SIGTERM.",
        epilog="Each option may also be given as the environment variable named beside it; the option wins. "
        "Exit codes: 0 stopped, 1 failed, 2 wrong usage, 78 start refused, with {reason, message} as the last line.",
        allow_abbrev=False,
    )
    for setting in TABLE:
        default = setting.shown or setting.default_text() or "none"
        top.add_argument(
            setting.flag,
            dest=setting.name,
            metavar="…",
            help=f"{setting.help} [{setting.variable}, default {default}]".replace("%", "%%"),
        )
    return top


def warnings(settings: Settings) -> list[str]:
    """What works but should be known; printed at start."""
    found = []
    if settings.auth == "none":
        found.append("ANVILMQ_AUTH=none: whoever reaches the gRPC address may do everything")
    if settings.durability == "relaxed":
        found.append("ANVILMQ_DURABILITY=relaxed: a power cut may lose the last answered calls")
    return found


def runtime_dirs() -> list[Path]:
    """Where the engine's socket may be made, best first; the last resort is the temp folder."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return [*([Path(given)] if given else []), Path("/run/anvilmq")]


def _is_unknown(name: str) -> bool:
    return (
        name.startswith(PREFIX)
        and name not in NOT_OURS
        and all(name != setting.variable for setting in TABLE)
        and INJECTED.match(name) is None
    )


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [setting.variable for setting in TABLE], 1, 0)[0]
    return f"{name} is no setting; did you mean {near}?"


def _contradictions(settings: Settings) -> list[str]:
    faults = []
    if settings.auth == "none" and not settings.allow_open and not settings.grpc_address.is_loopback:
        faults.append(
            f"ANVILMQ_AUTH=none opens {settings.grpc_address} to everybody who can reach it; set ANVILMQ_TOKENS_FILE and "
            "ANVILMQ_AUTH=token, or ANVILMQ_ALLOW_OPEN=1 if that is meant"
        )
    if settings.auth == "token" and not settings.tokens_file:
        faults.append(
            "ANVILMQ_TOKENS_FILE is not set; name the file of tokens, or set ANVILMQ_AUTH=none to let everybody in"
        )
    if bool(settings.tls_cert_file) != bool(settings.tls_key_file):
        faults.append("ANVILMQ_TLS_CERT_FILE and ANVILMQ_TLS_KEY_FILE belong together; set both or none")
    if settings.tls_client_ca_file and not settings.tls_cert_file:
        faults.append("ANVILMQ_TLS_CLIENT_CA_FILE needs ANVILMQ_TLS_CERT_FILE and ANVILMQ_TLS_KEY_FILE")
    faults += [
        f"{PREFIX}{name.upper()} names {path!r}, which is no file that can be read"
        for name in ("tokens_file", "tls_cert_file", "tls_key_file", "tls_client_ca_file")
        if (path := getattr(settings, name)) and not (Path(path).is_file() and os.access(path, os.R_OK))
    ]
    return faults


def log_as_json(settings: Settings) -> bool:
    """Whether lines are JSON: as set, else when nobody reads them on a terminal."""
    if settings.log_format == "auto":
        return not sys.stderr.isatty()
    return settings.log_format == "json"
