"""What the supervisor and a child say to each other, over a real socket pair."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import msgspec
import pytest

from anvilmq_broker.app import settings as app_settings
from anvilmq_broker.app.children import Ask, Fatal, FromChild, Line, Ready, Start, Stop, Stopping, ToChild, Told
from anvilmq_broker.engine.metrics import Counter, Snapshot


class Supervisor:
    """The other end of a line, blocking."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = sock.makefile("rb")
        self._decoder = msgspec.json.Decoder(FromChild)

    def say(self, *messages: ToChild) -> None:
        """Send the messages at once."""
        self._sock.sendall(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    def hear(self) -> FromChild:
        """The next message."""
        heard: FromChild = self._decoder.decode(self._file.readline())
        return heard

    def close(self) -> None:
        """Be gone."""
        self._file.close()
        self._sock.close()


class Child:
    """A handler that remembers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.stops: list[int] = []

    def snapshot(self) -> Snapshot:
        """As it was made with."""
        return self._snapshot

    def stop(self, grace_ms: int) -> None:
        """Remember."""
        self.stops.append(grace_ms)


@pytest.fixture
def ends() -> Iterator[tuple[Supervisor, Line]]:
    """Both ends of a line."""
    ours, theirs = socket.socketpair()
    supervisor, line = Supervisor(ours), Line(theirs)
    yield supervisor, line
    supervisor.close()
    line.close()


def _start() -> Start:
    settings = app_settings.read([], {"ANVILMQ_AUTH": "none", "ANVILMQ_GATEWAYS": "2"})
    return Start("gateway", 1, settings, "/tmp/engine.sock", "127.0.0.1", 50051)


def test_a_child_is_started_with_all_settings(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.say(_start(), Ask(1))
    assert line.receive_start() == _start()
    assert _start().process == "gateway-1"


def test_what_came_with_the_start_is_not_lost(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.say(_start(), Ask(1), Stop(5_000))
    line.receive_start()
    child = Child([])
    line.serve(child)
    assert supervisor.hear() == Told(1)
    assert child.stops == [5_000]


def test_a_child_tells_how_it_is_and_what_it_counted(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.say(_start())
    line.receive_start()
    counter = Counter("c_total", "Counts.", "queue")
    counter.add(("mail",), 3)
    line.serve(Child([counter.family()]))
    line.ready(facts={"store": "memory"})
    line.ready(serving=False)
    supervisor.say(Ask(1), Ask(2, metrics=True))
    line.readable()
    line.stopping()
    assert [supervisor.hear() for _ in range(5)] == [
        Ready(facts={"store": "memory"}),
        Ready(serving=False),
        Told(1),
        Told(2, [counter.family()]),
        Stopping(),
    ]


def test_more_than_the_socket_takes_follows_as_room_comes(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.say(_start())
    line.receive_start()
    line.ready(facts={"long": "x" * 5_000_000})
    assert line.unsent
    supervisor._sock.setblocking(False)
    received = b""
    while line.unsent or not received.endswith(b"\n"):
        received += supervisor._sock.recv(1 << 20)
        line.flush()
    assert len(received) > 5_000_000


def test_last_words_arrive(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.say(_start())
    line.receive_start()
    line.fatal("lock_held", "another broker holds the folder")
    line.close()
    assert supervisor.hear() == Fatal("lock_held", "another broker holds the folder")


def test_a_supervisor_that_is_gone_stops_the_child_at_once(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.say(_start())
    line.receive_start()
    child = Child([])
    line.serve(child)
    supervisor.close()
    line.readable()
    line.ready()
    assert child.stops == [0]


def test_a_child_without_a_supervisor_does_not_start(ends: tuple[Supervisor, Line]) -> None:
    supervisor, line = ends
    supervisor.close()
    with pytest.raises(EOFError):
        line.receive_start()
