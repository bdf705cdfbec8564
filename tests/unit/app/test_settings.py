"""The settings of the broker: every row of the table, every refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anvilmq_broker.app import settings as app_settings
from anvilmq_broker.app.settings import INJECTED, NOT_OURS, TABLE, Address, Settings, SettingsInvalid

OPEN = {"ANVILMQ_AUTH": "none"}


def read(*flags: str, **variables: str) -> Settings:
    return app_settings.read(list(flags), OPEN | {f"ANVILMQ_{name}": value for name, value in variables.items()})


def faults(*flags: str, **variables: str) -> str:
    with pytest.raises(SettingsInvalid) as caught:
        read(*flags, **variables)
    return "\n".join(caught.value.faults)


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = read()
    assert settings.store == "libsql"
    assert settings.data_dir == "./anvilmq-data"
    assert settings.grpc_address == Address("127.0.0.1", 50051)
    assert settings.http_address == Address("127.0.0.1", 9090)
    assert settings.lock_wait == 0
    assert settings.durability == "full"
    assert settings.grace == 25_000
    assert (settings.max_flow_depth, settings.max_flow_nodes, settings.max_flow_bulk) == (10, 1000, 100)
    assert settings.max_payload_bytes == 1 << 20
    assert settings.max_queue_jobs == 0
    assert settings.gateways >= 1


def test_a_flag_wins_over_the_environment_and_an_empty_variable_counts_as_not_set() -> None:
    assert read("--store", "memory", STORE="libsql").store == "memory"
    assert read(STORE="").store == "libsql"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("GRACE", "110s", 110_000),
        ("GRACE", "2m", 120_000),
        ("LOCK_WAIT", "1h30m", 5_400_000),
        ("LOCK_WAIT", "250ms", 250),
        ("LOCK_WAIT", "0", 0),
        ("MAX_PAYLOAD_BYTES", "2048", 2048),
        ("MAX_PAYLOAD_BYTES", "15MiB", 15 << 20),
        ("GRPC_ADDRESS", "127.0.0.1:0", Address("127.0.0.1", 0)),
        ("GRPC_ADDRESS", "[::1]:50051", Address("::1", 50051)),
        ("HTTP_ADDRESS", "[::]:9090", Address("::", 9090)),
        ("GATEWAYS", "3", 3),
        ("LOG_LEVEL", "debug", "debug"),
    ],
)
def test_a_value_is_read_as_it_is_meant(name: str, text: str, value: Any) -> None:
    assert getattr(read(**{name: text}), name.lower()) == value


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("GRACE", "25", "a duration with its unit"),
        ("GRACE", "soon", "a duration with its unit"),
        ("GRACE", "1s1m", "a duration with its unit"),
        ("STORE", "redis", "one of libsql, memory"),
        ("GRPC_ADDRESS", "50051", "host:port"),
        ("GRPC_ADDRESS", "::1:50051", "host:port"),
        ("GRPC_ADDRESS", "localhost:70000", "host:port"),
        ("MAX_PAYLOAD_BYTES", "1023", "from 1024"),
        ("MAX_PAYLOAD_BYTES", "16MiB", "from 1024 to 15728640"),
        ("MAX_PAYLOAD_BYTES", "1MB", "a number of bytes"),
        ("GATEWAYS", "0", "from 1"),
        ("GATEWAYS", "many", "a number from 1"),
        ("ALLOW_OPEN", "yes", "0 or 1"),
    ],
)
def test_a_wrong_value_is_refused_naming_the_variable_and_what_it_may_be(name: str, text: str, hint: str) -> None:
    message = faults(**{name: text})
    assert f"ANVILMQ_{name} is {text!r}" in message
    assert hint in message


def test_a_wrong_flag_is_named_as_the_flag_it_was_given_as() -> None:
    assert "--grace is '25'" in faults("--grace", "25")


def test_all_faults_are_told_at_once() -> None:
    message = faults(GRACE="25", STORE="redis", DATADIR="/x")
    assert len(message.splitlines()) == 3


def test_an_unknown_variable_is_refused_with_the_nearest_known_one() -> None:
    assert faults(DATADIR="/data") == "ANVILMQ_DATADIR is no setting; did you mean ANVILMQ_DATA_DIR?"


@pytest.mark.parametrize("name", sorted(NOT_OURS))
def test_variables_of_the_sdk_and_the_command_line_are_left_alone(name: str) -> None:
    app_settings.read([], OPEN | {name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "ANVILMQ_PORT",
        "ANVILMQ_PORT_50051_TCP_ADDR",
        "ANVILMQ_SERVICE_HOST",
        "ANVILMQ_SERVICE_PORT_GRPC",
        "ANVILMQ_BROKER_PORT_50051_TCP",
        "ANVILMQ_HEADLESS_SERVICE_HOST",
    ],
)
def test_what_kubernetes_injects_for_services_is_left_alone(name: str) -> None:
    app_settings.read([], OPEN | {name: "tcp://10.0.0.1:50051"})


def test_no_setting_looks_like_what_kubernetes_injects() -> None:
    assert [row.variable for row in TABLE if INJECTED.match(row.variable)] == []


def test_everything_that_is_not_ours_is_ignored() -> None:
    app_settings.read([], OPEN | {"PATH": "/bin", "ANVIL": "x"})


def test_without_authentication_only_the_loopback_is_served_unless_said_otherwise() -> None:
    for address in ("0.0.0.0:50051", "[::]:50051", "10.0.0.1:50051", "broker:50051"):
        assert "ANVILMQ_ALLOW_OPEN=1" in faults(GRPC_ADDRESS=address)
        assert read(GRPC_ADDRESS=address, ALLOW_OPEN="1").auth == "none"
    for address in ("127.0.0.2:50051", "[::1]:50051", "localhost:50051"):
        assert read(GRPC_ADDRESS=address).auth == "none"


def test_tokens_are_the_default_and_want_a_file_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="ANVILMQ_TOKENS_FILE is not set"):
        app_settings.read([], {})
    missing = tmp_path / "tokens.yaml"
    with pytest.raises(SettingsInvalid, match="no file that can be read"):
        app_settings.read([], {"ANVILMQ_TOKENS_FILE": str(missing)})
    missing.write_text("[]")
    assert app_settings.read([], {"ANVILMQ_TOKENS_FILE": str(missing)}).auth == "token"


def test_half_of_tls_is_refused(tmp_path: Path) -> None:
    pem = tmp_path / "a.pem"
    pem.write_text("x")
    assert "belong together" in faults(TLS_CERT_FILE=str(pem))
    assert "needs ANVILMQ_TLS_CERT_FILE" in faults(TLS_CLIENT_CA_FILE=str(pem))
    assert read(TLS_CERT_FILE=str(pem), TLS_KEY_FILE=str(pem)).tls_key_file == str(pem)


def test_the_help_names_every_flag_every_variable_and_every_default() -> None:
    text = " ".join(app_settings.parser().format_help().split())
    for row in TABLE:
        assert row.flag in text
        assert row.variable in text
        assert (row.shown or row.default_text() or "none") in text


def test_what_is_dangerous_is_said_at_start() -> None:
    assert len(app_settings.warnings(read(DURABILITY="relaxed"))) == 2


def test_an_address_is_written_as_it_is_read() -> None:
    assert [str(Address("::", 1)), str(Address("127.0.0.1", 2))] == ["[::]:1", "127.0.0.1:2"]
