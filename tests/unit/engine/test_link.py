"""The link over real sockets: greeting, framing, back pressure, breaks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from anvilmq_broker.domain import commands, errors
from anvilmq_broker.engine import link, link_client, link_server
from anvilmq_broker.engine.link import EngineLost, OtherBuild
from anvilmq_broker.engine.link_client import SocketBroker
from anvilmq_broker.engine.link_server import SocketHub
from tests.support import bundles
from tests.support.rules import rule

_HELLO = link.Hello(link.schema_hash(), "here", 1, 1, 1, b"key")


class Echo:
    """An engine that answers each AddJobs with its number of jobs, in a thread of its own; nothing while `silent`."""

    def __init__(self, path: Path, hello: link.Hello = _HELLO) -> None:
        self.hub = SocketHub(path, link.encode(0, hello))
        self.silent = threading.Event()
        self.received: list[link.Message] = []
        self.lost = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """Stop and join."""
        self._stop.set()
        self._thread.join()
        self.hub.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.hub.poll(5)
            if self.hub.lost:
                self.lost.set()
            while not self.silent.is_set() and (taken := self.hub.take()) is not None:
                peer, payload = taken
                call, message = link.decode_message(payload)
                self.received.append(message)
                if isinstance(message, commands.AddJobs):
                    peer.send(link.encode(call, commands.AddedJobs(len(message.jobs), 0)))
                elif call:
                    peer.send(link.encode(call, commands.Done()))
            self.hub.flush()


@pytest.fixture
def path() -> Iterator[Path]:
    """Where the engine listens; short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="anvilmq-") as folder:
        yield Path(folder) / "engine.sock"


@pytest.fixture
def engine(path: Path) -> Iterator[Echo]:
    """An answering engine."""
    echo = Echo(path)
    yield echo
    echo.close()


def _add(*data: bytes) -> commands.AddJobs:
    return commands.AddJobs([bundles.new_job(data=each) for each in data])


async def test_the_engine_says_who_it_is_at_connect(engine: Echo, path: Path) -> None:
    broker = await SocketBroker.connect(path)
    assert broker.hello == _HELLO
    await broker.close()


async def test_an_engine_of_another_build_is_refused(path: Path) -> None:
    echo = Echo(path, link.Hello("another", "there", 1, 1, 1, b""))
    try:
        with pytest.raises(OtherBuild):
            await SocketBroker.connect(path)
    finally:
        echo.close()


async def test_an_engine_that_speaks_something_else_is_refused(path: Path) -> None:
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        left.set()

    server = await asyncio.start_unix_server(serve, path)
    with pytest.raises(OtherBuild):
        await SocketBroker.connect(path)
    await left.wait()
    server.close()


async def test_connecting_to_nobody_fails_at_once(path: Path) -> None:
    with pytest.raises(OSError):
        await SocketBroker.connect(path)


async def test_many_calls_share_the_connection_and_each_gets_its_own_answer(engine: Echo, path: Path) -> None:
    broker = await SocketBroker.connect(path)
    answers = await asyncio.gather(*(broker.submit(_add(*[b""] * n)) for n in range(1, 50)))
    assert [answer.first_number for answer in answers if isinstance(answer, commands.AddedJobs)] == list(range(1, 50))
    await broker.close()


async def test_messages_of_one_connection_keep_their_order(engine: Echo, path: Path) -> None:
    broker = await SocketBroker.connect(path)
    broker.attach(commands.OpenSession(1, bundles.identity(), []), lambda notice: None)
    for number in range(100):
        broker.attach(commands.AddCredit(1, [(1, number)]))
    await broker.submit(_add(b""))
    received = [message.credits[0][1] for message in engine.received if isinstance(message, commands.AddCredit)]
    assert received == list(range(100))
    await broker.close()


async def test_a_frame_of_sixteen_mebibytes_passes(engine: Echo, path: Path) -> None:
    broker = await SocketBroker.connect(path)
    answer = await broker.submit(_add(*[bytes(1 << 20)] * 16))
    assert answer == commands.AddedJobs(16, 0)
    await broker.close()


async def test_a_frame_that_no_link_carries_is_refused_and_nothing_is_sent(engine: Echo, path: Path) -> None:
    broker = await SocketBroker.connect(path)
    answer = await broker.submit(_add(*[bytes(1 << 20)] * 21))
    assert isinstance(answer, errors.Refused)
    assert answer.reason == "BATCH_TOO_LARGE"
    assert await broker.submit(_add(b"")) == commands.AddedJobs(1, 0)
    await broker.close()


@rule("7")
async def test_too_much_unanswered_refuses_adds_first_then_others_and_settlements_never(
    engine: Echo, path: Path
) -> None:
    engine.silent.set()
    broker = await SocketBroker.connect(path)
    open_calls = [asyncio.ensure_future(broker.submit(_add(bytes(1 << 20)))) for _ in range(5)]
    await asyncio.sleep(0)
    refused = await broker.submit(_add(bytes(1 << 20)))
    assert isinstance(refused, errors.Refused)
    assert (refused.reason, refused.retry_after_ms) == ("OVERLOADED", link_client.OVERLOADED_RETRY_AFTER_MS)
    one_mebibyte = commands.CancelJob(commands.JobRef(1, 1), "x" * (1 << 20))
    open_calls += [asyncio.ensure_future(broker.submit(one_mebibyte)) for _ in range(2)]
    await asyncio.sleep(0)
    refused = await broker.submit(one_mebibyte)
    assert isinstance(refused, errors.Refused)
    settlement = commands.Settlement(1, 1, "t", 1, bytes(1 << 20))
    open_calls += [asyncio.ensure_future(broker.submit(commands.Settle([settlement]))) for _ in range(4)]
    await asyncio.sleep(0)
    engine.silent.clear()
    assert not any(isinstance(answer, errors.Refused) for answer in await asyncio.gather(*open_calls))
    assert isinstance(await broker.submit(_add(b"")), commands.AddedJobs)
    await broker.close()


async def test_a_request_larger_than_the_bound_goes_when_nothing_of_its_kind_is_open(engine: Echo, path: Path) -> None:
    engine.silent.set()
    broker = await SocketBroker.connect(path)
    large = asyncio.ensure_future(broker.submit(_add(*[bytes(1 << 20)] * 10)))
    await asyncio.sleep(0)
    assert isinstance(await broker.submit(_add(b"")), errors.Refused)
    engine.silent.clear()
    assert await large == commands.AddedJobs(10, 0)
    await broker.close()


async def test_when_the_engine_is_gone_open_calls_fail_and_sessions_end(engine: Echo, path: Path) -> None:
    engine.silent.set()
    broker = await SocketBroker.connect(path)
    notices: list[commands.Notice] = []
    broker.attach(commands.OpenSession(7, bundles.identity(), []), notices.append)
    call = asyncio.ensure_future(broker.submit(_add(b"")))
    await asyncio.sleep(0)
    engine.close()
    with pytest.raises(EngineLost):
        await call
    assert notices == [commands.SessionEnded(7, "NOT_READY")]
    assert broker.lost.done()
    with pytest.raises(EngineLost):
        await broker.query(commands.GetInfo())
    broker.attach(commands.OpenSession(8, bundles.identity(), []), notices.append)
    await asyncio.sleep(0)
    assert notices[-1] == commands.SessionEnded(8, "NOT_READY")


async def test_the_engine_notices_that_a_gateway_is_gone(engine: Echo, path: Path) -> None:
    broker = await SocketBroker.connect(path)
    await broker.close()
    assert await asyncio.to_thread(engine.lost.wait, 10)


async def test_a_gateway_that_sends_an_impossible_length_is_dropped(engine: Echo, path: Path) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"\xff\xff\xff\xff")
    await reader.read()
    assert await asyncio.to_thread(engine.lost.wait, 10)
    writer.close()


def test_a_peer_that_does_not_read_is_congested_and_costs_the_others_nothing(path: Path) -> None:
    hub = SocketHub(path, link.encode(0, _HELLO))
    slow, quick = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with slow, quick:
        for sock in (slow, quick):
            sock.connect(str(path))
            hub.poll(1_000)
        peers = list(hub._peers)
        peers[0].send(bytes(link_server.CONGESTED_BYTES + (1 << 20)))
        peers[1].send(b"x")
        hub.flush()
        assert peers[0].congested
        assert not peers[1].congested
        greeting = len(link.encode(0, _HELLO))
        assert len(quick.recv(greeting + 1, socket.MSG_WAITALL)) == greeting + 1
        slow.setblocking(False)
        while peers[0].congested:
            slow.recv(1 << 20)
            hub.poll(0)
        hub.close()


def test_peers_take_turns_and_one_that_sends_much_is_read_no_further_than_held(path: Path) -> None:
    hub = SocketHub(path, link.encode(0, _HELLO))
    busy, calm = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with busy, calm:
        for sock in (busy, calm):
            sock.connect(str(path))
            hub.poll(1_000)
        frame = link.encode(1, _add(bytes(1 << 20)))
        busy.setblocking(False)
        sent = 0
        for _ in range(400):
            with contextlib.suppress(BlockingIOError):
                sent += busy.send((frame * 2)[sent % len(frame) :])
            hub.poll(0)
        first = hub._peers[0]
        assert first.full
        assert first._held < link_server.HELD_BYTES + 2 * len(frame)
        calm.sendall(link.encode(2, _add(b"")))
        hub.poll(1_000)
        taken = [hub.take() for _ in range(3)]
        calls = [link.decode_message(payload)[0] for _, payload in filter(None, taken)]
        assert calls == [1, 2, 1]
        hub.close()


def test_frames_come_whole_however_the_bytes_are_cut() -> None:
    frames = [link.encode(n, _add(bytes(n))) for n in range(1, 30)]
    stream = b"".join(frames)
    for size in (1, 3, 7, 100, len(stream)):
        splitter = link.Splitter()
        payloads = [p for at in range(0, len(stream), size) for p in splitter.feed(stream[at : at + size])]
        assert [link.decode_message(payload)[0] for payload in payloads] == list(range(1, 30))


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x92\x01\x02", b"\x92\x01\x91\x7f"])
def test_what_is_no_message_is_a_breach(payload: bytes) -> None:
    with pytest.raises(link.Breach):
        link.decode_message(payload)


def test_every_message_and_reply_passes_the_link_unchanged() -> None:
    add = commands.AddJobs([bundles.new_job(key="k", headers={"a": "b"}, policy=bundles.policy(max_attempts=5))])
    for message in (
        add,
        commands.GetInfo(),
        commands.AddCredit(1, [(1, 2)]),
        link.Forget(5),
        commands.DrainWorker("w"),
    ):
        assert link.decode_message(link.encode(3, message)[4:]) == (3, message)
    refused = errors.Refused("OVERLOADED", "later", retry_after_ms=5)
    for reply in (
        refused,
        commands.Done(),
        commands.Settled(b"\x05", [refused]),
        commands.GoAway(1, "x", True),
        _HELLO,
    ):
        assert link.decode_reply(link.encode(0, reply)[4:]) == (0, reply)


def test_the_hash_of_the_structs_is_the_same_in_another_process() -> None:
    code = "from anvilmq_broker.engine import link; print(link.schema_hash())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == link.schema_hash()
