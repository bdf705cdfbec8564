"""What the environment says about the connection."""

import subprocess
import sys
from pathlib import Path

import pytest

from anvilmq import _settings, errors


@pytest.mark.parametrize(
    ("url", "address", "tls"),
    [
        ("", "localhost:50051", False),
        ("broker:1234", "broker:1234", False),
        ("broker", "broker:50051", False),
        ("anvilmq://broker:1234", "broker:1234", False),
        ("anvilmqs://broker.shop.svc/", "broker.shop.svc:50051", True),
        ("[::1]:1234", "[::1]:1234", False),
        ("anvilmq://[::1]", "[::1]:50051", False),
    ],
)
def test_the_url_says_where_the_broker_is(url: str, address: str, tls: bool) -> None:
    settings = _settings.read(environ={"ANVILMQ_URL": url})
    assert (settings.address, settings.tls) == (address, tls)


@pytest.mark.parametrize("url", ["http://broker", "broker:", "broker:0", "broker:65536", ":1", "a b", "anvilmq://a/b"])
def test_a_wrong_url_is_refused_with_the_name_of_its_variable(url: str) -> None:
    with pytest.raises(errors.SettingInvalid, match=r"^ANVILMQ_URL: ") as caught:
        _settings.read(environ={"ANVILMQ_URL": url})
    assert caught.value.variable == "ANVILMQ_URL"


def test_what_is_given_goes_before_the_environment() -> None:
    settings = _settings.read(
        url="there:1", token="mine", environ={"ANVILMQ_URL": "here:1", "ANVILMQ_TOKEN_FILE": "/theirs"}
    )
    assert (settings.address, settings.token, settings.token_file) == ("there:1", "mine", None)


def test_a_token_goes_before_a_token_file() -> None:
    settings = _settings.read(environ={"ANVILMQ_TOKEN": " a\n", "ANVILMQ_TOKEN_FILE": "/b"})
    assert (settings.token, settings.token_file) == ("a", None)
    assert _settings.read(environ={"ANVILMQ_TOKEN": "", "ANVILMQ_TOKEN_FILE": "/b"}).token_file == Path("/b")


def test_the_ca_file_is_looked_at_only_with_tls(tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.crt")
    assert _settings.read(environ={"ANVILMQ_URL": "a:1", "ANVILMQ_CA_FILE": missing}).ca_file is None
    with pytest.raises(errors.SettingInvalid, match=r"^ANVILMQ_CA_FILE: there is no file"):
        _settings.read(environ={"ANVILMQ_URL": "anvilmqs://a:1", "ANVILMQ_CA_FILE": missing})


def test_the_grace_is_a_duration() -> None:
    assert _settings.read(environ={}).grace_s == 25
    assert _settings.read(environ={"ANVILMQ_GRACE": "110s"}).grace_s == 110
    with pytest.raises(errors.SettingInvalid, match="ANVILMQ_GRACE"):
        _settings.read(environ={"ANVILMQ_GRACE": "110"})


def test_a_token_is_never_printed() -> None:
    assert "geheim" not in repr(_settings.read(token="geheim", environ={}))


def test_nothing_is_read_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from anvilmq import Anvil

    monkeypatch.setenv("ANVILMQ_URL", "http://wrong")
    app = Anvil()
    with pytest.raises(errors.SettingInvalid):
        _ = app.client


def test_grpc_is_calmed_before_it_is_loaded_and_users_settings_stay() -> None:
    program = "import anvilmq._channel, os; print(os.environ['GRPC_ENABLE_FORK_SUPPORT'], os.environ['GRPC_VERBOSITY'])"
    environ = {"GRPC_VERBOSITY": "DEBUG"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["0", "DEBUG"]
