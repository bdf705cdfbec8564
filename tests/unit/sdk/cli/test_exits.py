"""Exit codes, and one line for what went wrong."""

import grpc
import pytest

from anvilmq import errors
from anvilmq.cli import exits
from anvilmq.cli.command import told
from anvilmq_proto.v1 import system_service_pb2 as system
from tests.support.rules import rule
from tests.unit.sdk.cli.shell import NOW_MS, Shell

EXPECTED = {
    "CANCELLED": 5,
    "UNKNOWN": 1,
    "INVALID_ARGUMENT": 2,
    "DEADLINE_EXCEEDED": 5,
    "NOT_FOUND": 3,
    "ALREADY_EXISTS": 4,
    "PERMISSION_DENIED": 6,
    "RESOURCE_EXHAUSTED": 7,
    "FAILED_PRECONDITION": 4,
    "ABORTED": 4,
    "OUT_OF_RANGE": 2,
    "UNIMPLEMENTED": 4,
    "INTERNAL": 1,
    "UNAVAILABLE": 5,
    "DATA_LOSS": 1,
    "UNAUTHENTICATED": 6,
}
NUMBERS = {code.name: code.value[0] for code in grpc.StatusCode}


@rule("7")
@pytest.mark.parametrize(("name", "exit_code"), EXPECTED.items())
def test_every_code_of_grpc_has_an_exit_code(shell: Shell, name: str, exit_code: int) -> None:
    shell.broker.answer("GetJob", errors.from_code(NUMBERS[name], "went wrong", reason="SOME_REASON"))
    shown = shell.run("job", "get", "j1")
    assert (shown.code, shown.out, shown.err) == (exit_code, "", "error: went wrong (SOME_REASON)\n")


def test_no_code_of_grpc_is_left_out() -> None:
    assert set(exits.OF_CODE) == set(NUMBERS.values()) - {0}
    assert set(exits.OF_CODE.values()) <= set(exits.MEANINGS)


def test_errors_that_are_no_calls_have_exit_codes_too() -> None:
    assert exits.code_of(errors.WaitTimeout("late")) == 5
    assert exits.code_of(errors.PayloadInvalid("$", "bad")) == 2
    assert exits.code_of(errors.SettingInvalid("ANVILMQ_URL", "bad")) == 2
    assert exits.code_of(errors.Closed()) == 1


def test_a_setting_is_named_by_its_flag_and_its_variable() -> None:
    assert told(errors.SettingInvalid("ANVILMQ_URL", "'x' has no valid port")) == (
        "--url (ANVILMQ_URL): 'x' has no valid port"
    )


def test_a_message_of_several_lines_is_told_in_one() -> None:
    assert told(errors.Internal("a\n  b", reason="R")) == "a b (R)"


def test_versions_of_both_sides_are_told(shell: Shell) -> None:
    shell.broker.answer(
        "GetServerInfo",
        system.GetServerInfoResponse(
            version="9.9", durability=system.DURABILITY_FULL, started_at_ms=NOW_MS, now_at_ms=NOW_MS + 61_000
        ),
    )
    shown = shell.run("version")
    assert shown.code == 0
    client, server, *facts = shown.out.splitlines()
    assert client.startswith("client   ")
    assert server == "server   9.9"
    assert facts == ["  durability: full", "  up: 1m1s"]
    assert shell.run("version", "-o", "json").json["server"]["version"] == "9.9"


def test_without_a_broker_the_version_of_the_client_is_told_and_the_exit_code_is_5(shell: Shell) -> None:
    shell.broker.answer("GetServerInfo", errors.Unavailable("localhost:50051: Connection refused"))
    shown = shell.run("version")
    assert (shown.code, shown.out.startswith("client   ")) == (5, True)
    assert "no broker answers at localhost:50051 (Connection refused)" in shown.err
    alone = shell.run("version", "--client")
    assert (alone.code, alone.out, alone.err) == (0, shown.out, "")


@pytest.mark.parametrize(
    ("cause", "told_as"),
    [
        ("failed: UNKNOWN: ipv4:10.0.0.1:1: CERTIFICATE_VERIFY_FAILED: self signed certificate: OK", "(self signed"),
        (
            "failed: UNKNOWN: ipv4:10.0.0.1:1: WRONG_VERSION_NUMBER: Invalid context: OK",
            "does not speak TLS; name it anvilmq",
        ),
        ("failed: UNAVAILABLE: ipv4:10.0.0.1:1: Socket closed", "if it speaks TLS, name it anvilmqs://b:1"),
        ("errors: [field: Domain name not found]", "no broker answers at b:1 (Domain name not found);"),
        ("failed: Connection refused", "no broker answers at b:1 (Connection refused);"),
    ],
)
def test_a_broker_that_cannot_be_reached_is_told_with_the_remedy(cause: str, told_as: str) -> None:
    assert told_as in told(errors.Unavailable(f"b:1: {cause}"))


def test_a_missing_token_is_told_with_the_option_that_names_it(shell: Shell) -> None:
    shell.broker.answer("GetJob", errors.from_code(16, "send the metadata", reason="TOKEN_MISSING"))
    shown = shell.run("job", "get", "j1")
    assert shown.code == 6
    assert "--token-file" in shown.err
    assert "metadata" not in shown.err
