"""What the SDK's tests share."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.unit.sdk.fake_broker import World, make_world


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """An app on a fake broker; nothing is left of it afterwards."""
    made = make_world()
    yield made
    made.broker.release()
    await made.client.adds.close()
