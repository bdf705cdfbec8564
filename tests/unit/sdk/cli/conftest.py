"""What the tests of the command line are handed."""

import pytest

from tests.unit.sdk.cli.shell import Shell


@pytest.fixture
def shell() -> Shell:
    """A command line of its own, and the broker it talks to."""
    return Shell()
