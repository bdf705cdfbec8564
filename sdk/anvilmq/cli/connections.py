"""The way to the broker: flags first, then the environment, then localhost:50051."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anvilmq import _settings
from anvilmq._channel import Channel
from anvilmq.admin import Admin
from anvilmq.cli.command import Connection


@asynccontextmanager
async def open_admin(connection: Connection) -> AsyncIterator[Admin]:
    """The calls of the broker that is meant, for as long as the block lasts. Raises SettingInvalid."""
    channel = Channel(_settings.read(url=connection.url, token_file=connection.token_file, ca_file=connection.ca_file))
    try:
        yield Admin(channel, timeout_s=connection.timeout_s)
    finally:
        await channel.close()
