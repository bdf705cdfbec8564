"""One broker for the tests of a module, and commands in a folder of their own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli.commands import Commands
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that lets everybody in."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def commands(broker: BrokerProcess, tmp_path: Path) -> Commands:
    """Commands that find that broker in their environment."""
    return Commands(broker.url, tmp_path)
