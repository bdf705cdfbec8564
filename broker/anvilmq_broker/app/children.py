"""What the supervisor and its children say to each other, over a socket pair, a JSON line each.

The child's end comes as an inherited descriptor. The first line is `Start`; after it the supervisor asks and the child
reports. When the supervisor's end closes it is gone, and the child must stop at once; that is how children die with it.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final

import msgspec

from anvilmq_broker.app.settings import Settings
from anvilmq_broker.engine.metrics import Snapshot
from anvilmq_broker.engine.reporting import Handler

EXIT_START_REFUSED: Final = 78
_READ_BYTES: Final = 65_536


class Start(msgspec.Struct, frozen=True, tag="start"):
    """The first line to a child.

    role: engine or gateway. index: of the gateway, from 0. grpc_host, grpc_port: where gateways listen, with
    SO_REUSEPORT; the port is never 0. engine_socket: path of the engine's Unix socket.
    """

    role: str
    index: int
    settings: Settings
    engine_socket: str
    grpc_host: str
    grpc_port: int

    @property
    def process(self) -> str:
        """Name of the process, in logs and metrics."""
        return self.role if self.role == "engine" else f"{self.role}-{self.index}"


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Asks for a sign of life and, if metrics, for what was counted; answered by Told with the same number."""

    number: int
    metrics: bool = False


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Finish what is open within grace_ms and exit with 0."""

    grace_ms: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Serving. facts: what the supervisor prints at start. For a gateway, said again whenever `serving` changes:
    it has lost its engine, or has found it again."""

    serving: bool = True
    facts: dict[str, str] = {}


class Told(msgspec.Struct, frozen=True, tag="told"):
    """Answer to Ask."""

    number: int
    metrics: Snapshot = []


class Stopping(msgspec.Struct, frozen=True, tag="stopping"):
    """The child is on its way out in good order."""


class Fatal(msgspec.Struct, frozen=True, tag="fatal"):
    """Why the child is about to exit. reason: snake_case word; message: with the remedy."""

    reason: str
    message: str


ToChild = Start | Ask | Stop
FromChild = Ready | Told | Stopping | Fatal


class Line:
    """The child's end: a `reporting.Reporter`. Nothing here blocks but `receive_start` and `finish`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._received = b""
        self._unsent = bytearray()
        self._handler: Handler | None = None
        self._decoder = msgspec.json.Decoder(ToChild)
        self._encoder = msgspec.json.Encoder()

    @classmethod
    def inherited(cls, descriptor: int) -> Line:
        """The line over this inherited descriptor."""
        return cls(socket.socket(fileno=descriptor))

    @property
    def unsent(self) -> bool:
        """Whether something waits for room in the socket."""
        return bool(self._unsent)

    def fileno(self) -> int:
        """For a selector."""
        return self._sock.fileno()

    def receive_start(self) -> Start:
        """Wait for the first line. Raises EOFError when the supervisor is gone."""
        while b"\n" not in self._received:
            data = self._sock.recv(_READ_BYTES)
            if not data:
                raise EOFError("the supervisor is gone")
            self._received += data
        line, self._received = self._received.split(b"\n", 1)
        self._sock.setblocking(False)
        start = self._decoder.decode(line)
        assert isinstance(start, Start), start
        return start

    def serve(self, handler: Handler) -> None:
        """From now on `readable` answers with the help of this handler; what came with the start is answered now."""
        self._handler = handler
        self._answer(b"")

    def readable(self) -> None:
        """Read and answer what the supervisor said."""
        assert self._handler is not None, "serve() comes first"
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._answer(data)
        else:
            self._handler.stop(0)

    def _answer(self, data: bytes) -> None:
        assert self._handler is not None
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            match self._decoder.decode(line):
                case Ask() as ask:
                    self._tell(Told(ask.number, self._handler.snapshot() if ask.metrics else []))
                case Stop() as stop:
                    self._handler.stop(stop.grace_ms)
                case Start():
                    pass

    def ready(self, *, serving: bool = True, facts: dict[str, str] | None = None) -> None:
        """Serving, or, for a gateway, not any more."""
        self._tell(Ready(serving, facts or {}))

    def stopping(self) -> None:
        """On the way out in good order."""
        self._tell(Stopping())

    def _tell(self, message: FromChild) -> None:
        self._unsent += self._encoder.encode(message) + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send as much as there is room for. A supervisor that is gone shows at the next `readable`."""
        try:
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()

    def fatal(self, reason: str, message: str) -> None:
        """Last words; wait up to a second for them to leave."""
        self._sock.settimeout(1.0)
        self._unsent += self._encoder.encode(Fatal(reason, message)) + b"\n"
        with contextlib.suppress(OSError):
            self._sock.sendall(self._unsent)
        self._unsent.clear()

    def close(self) -> None:
        """Close the line; safe twice."""
        self._sock.close()
