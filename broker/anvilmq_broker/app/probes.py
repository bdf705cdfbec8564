"""The broker's HTTP side: /livez, /readyz, /startupz, /metrics. A few lines of HTTP/1.1, one request a connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from anvilmq_broker.app.settings import Address

_MAX_HEAD_BYTES: Final = 16_384
_TIMEOUT_S: Final = 10.0
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}

Answer = tuple[int, str]
"""Status and text."""
Page = Callable[[], Awaitable[Answer]]


class Probes:
    """Serves pages by path. `start` binds (OSError when the address is taken), `stop` closes; both safe twice."""

    def __init__(self, address: Address, pages: dict[str, Page]) -> None:
        self._address = address
        self._pages = pages
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        """Listen; the address with its port."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._serve, self._address.host, self._address.port, limit=_MAX_HEAD_BYTES
            )
        return Address(self._address.host, self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Take no further request."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_TIMEOUT_S):
                status, text, with_body = await self._answer(reader)
                body = text.encode()
                head = (
                    f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"
                    f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
                )
                writer.write(head.encode() + (body if with_body else b""))
                await writer.drain()
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, str, bool]:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        except (ValueError, asyncio.LimitOverrunError):
            return 400, "not a request\n", True
        if method not in ("GET", "HEAD"):
            return 405, "only GET\n", True
        page = self._pages.get(target.partition("?")[0])
        status, text = (404, "nothing here\n") if page is None else await page()
        return status, text, method == "GET"
