"""`/healthz`, `/readyz` and `/metrics` of a worker: answered on the I/O loop, so no answer means that it hangs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from anvilmq import errors

MAX_REQUEST_BYTES: Final = 8 << 10
REQUEST_WITHIN_S: Final = 5.0

_PLAIN: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


class HttpServer:
    """Serves GET and HEAD at "host:port"; port 0 is any, and `address` says which.

    ready: takes this worker jobs? metrics: the text of `/metrics`.
    """

    def __init__(self, address: str, *, ready: Callable[[], bool], metrics: Callable[[], bytes]) -> None:
        self.address = address
        self._host, self._port = _split(address)
        self._ready = ready
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen. SettingInvalid when the address cannot be had."""
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=MAX_REQUEST_BYTES)
        except OSError as error:
            raise errors.SettingInvalid("http", f"cannot listen on {self.address}: {error.strerror}") from error
        self.address = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Listen no more. May be called unstarted, and twice."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_WITHIN_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        writer.close()

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", b"GET and HEAD only\n")
        match path:
            case b"/healthz":
                answer = _response("200 OK", b"ok\n")
            case b"/readyz" if self._ready():
                answer = _response("200 OK", b"ok\n")
            case b"/readyz":
                answer = _response("503 Service Unavailable", b"no session, or draining\n")
            case b"/metrics":
                answer = _response("200 OK", self._metrics(), _METRICS)
            case _:
                answer = _response("404 Not Found", b"/healthz, /readyz, /metrics\n")
        return answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else answer


def _response(status: str, body: bytes, content_type: str = _PLAIN) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _split(address: str) -> tuple[str, int]:
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdecimal() or int(port) >= 2**16:
        raise errors.SettingInvalid("http", f"{address!r} is not host:port, such as 0.0.0.0:8081")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - ":8081" means every interface, as elsewhere
