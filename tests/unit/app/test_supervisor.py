"""Parts of the supervisor that need no processes; the whole of it is tested with real ones."""

from __future__ import annotations

import asyncio
import socket

import pytest

from anvilmq_broker.app.probes import Answer, Probes
from anvilmq_broker.app.settings import Address
from anvilmq_broker.app.supervisor import AddressTaken, hold_address


def test_a_held_port_is_shared_by_gateways_and_by_no_second_broker() -> None:
    with hold_address(Address("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        assert port
        with socket.socket() as gateway:
            gateway.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            gateway.bind(("127.0.0.1", port))
            gateway.listen()
            with pytest.raises(AddressTaken, match=f"127.0.0.1:{port}"):
                hold_address(Address("127.0.0.1", port))


def test_a_port_on_which_anything_listens_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(AddressTaken):
            hold_address(Address("127.0.0.1", other.getsockname()[1]))


async def _ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_pages_are_served_and_everything_else_is_refused() -> None:
    async def page() -> Answer:
        return 503, "waiting\n"

    probes = Probes(Address("127.0.0.1", 0), {"/readyz": page})
    port = (await probes.start()).port
    answer = await _ask(port, b"GET /readyz?verbose HTTP/1.1\r\nhost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b"\r\n\r\nwaiting\n")
    assert (await _ask(port, b"HEAD /readyz HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n")
    assert (await _ask(port, b"GET /other HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    assert (await _ask(port, b"POST /readyz HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405 ")
    assert (await _ask(port, b"\xff\xfe\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await _ask(port, b"x" * 100_000 + b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    await probes.stop()
    await probes.stop()
