"""The engine's end of the link: peers, their complete frames taken round robin, their answers sent once a turn.

Two hubs, one code path: `SocketHub` waits in a selector over a Unix socket, `InprocHub` is fed by brokers of the same
process. A hub never decodes. Hot file: terse on purpose.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from anvilmq_broker.engine import link
from anvilmq_broker.engine.reporting import Reporter

READ_BYTES: Final = 1 << 20
"""Read at once from one peer, so that none keeps the loop from the others."""
HELD_BYTES: Final = link.MAX_UNANSWERED_BYTES
"""Complete frames held of one peer; the rest gathers in its socket."""
CONGESTED_BYTES: Final = 8 << 20
"""Unsent bytes of a peer above which its workers are given no further job."""
_UCRED: Final = struct.Struct("3i")


class Peer:
    """One gateway. `closed`: it is gone; frames that had arrived whole may still be taken."""

    __slots__ = ("_held", "_out", "_unsent", "closed", "frames", "id")

    def __init__(self, id: int) -> None:
        self.id = id
        self.frames: deque[bytes] = deque()
        self.closed = False
        self._held = 0
        self._out: list[bytes] = []
        self._unsent = 0

    @property
    def congested(self) -> bool:
        """Whether so much waits for the peer to read that it should be sent nothing new."""
        return self._unsent > CONGESTED_BYTES

    @property
    def full(self) -> bool:
        """Whether as many frames are held as may be."""
        return self._held >= HELD_BYTES

    def hold(self, payload: bytes) -> None:
        """A complete frame has arrived."""
        self.frames.append(payload)
        self._held += len(payload)

    def pop(self) -> bytes:
        """The oldest held frame."""
        payload = self.frames.popleft()
        self._held -= len(payload)
        return payload

    def send(self, frame: bytes) -> None:
        """Queue a frame; the hub sends what has gathered when the turn ends."""
        if not self.closed:
            self._out.append(frame)
            self._unsent += len(frame)

    def gather(self) -> bytes:
        """Everything queued, as one piece."""
        out = self._out
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return data

    @property
    def queued(self) -> bool:
        """Whether a frame was queued since the last gather."""
        return bool(self._out)

    def sent(self, count: int) -> None:
        """So many of the unsent bytes have left."""
        self._unsent -= count


class Hub:
    """The peers of an engine. `lost` gathers those that are gone until the engine has taken note."""

    def __init__(self) -> None:
        self._peers: deque[Peer] = deque()
        self._next_id = 0
        self.lost: list[Peer] = []

    def poll(self, wait_ms: float | None) -> None:
        """Wait for a frame at most wait_ms (None: without end; 0: not at all) and take in what has arrived."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send what the turn has queued."""
        raise NotImplementedError

    def drop(self, peer: Peer) -> None:
        """End the connection of a peer."""
        raise NotImplementedError

    def close(self) -> None:
        """End all connections; safe twice."""
        raise NotImplementedError

    def pending(self) -> bool:
        """Whether a complete frame waits."""
        return any(peer.frames for peer in self._peers)

    def take(self) -> tuple[Peer, bytes] | None:
        """The next frame, peers taking turns; None when none waits."""
        peers = self._peers
        for _ in range(len(peers)):
            peer = peers[0]
            peers.rotate(-1)
            if peer.frames:
                return peer, peer.pop()
            if peer.closed:
                peers.remove(peer)
        return None

    def _admit(self, peer: Peer) -> None:
        self._peers.append(peer)

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _mark_lost(self, peer: Peer) -> None:
        if not peer.closed:
            peer.closed = True
            self.lost.append(peer)


class _SocketPeer(Peer):
    """left: what the socket had no room for, in order."""

    __slots__ = ("events", "left", "sock", "splitter")

    def __init__(self, id: int, sock: socket.socket) -> None:
        super().__init__(id)
        self.sock = sock
        self.splitter = link.Splitter()
        self.left: deque[memoryview] = deque()
        self.events = selectors.EVENT_READ


class SocketHub(Hub):
    """Listens on a Unix socket. A peer of another user is turned away; each other one is greeted with `hello`.

    path: in a folder that only this user can enter. reporter: the line to the supervisor, watched beside the peers.
    Raises OSError when the path cannot be bound.
    """

    def __init__(self, path: Path, hello: bytes, reporter: Reporter | None = None) -> None:
        super().__init__()
        self._hello = hello
        self._reporter = reporter
        self._reporter_events = selectors.EVENT_READ
        self._path = path
        self._listener = _listen(path)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        if reporter is not None:
            self._selector.register(reporter.fileno(), selectors.EVENT_READ, reporter)
        self._sockets: dict[int, _SocketPeer] = {}
        self._buffer = memoryview(bytearray(READ_BYTES))

    def poll(self, wait_ms: float | None) -> None:
        """Wait for a frame at most wait_ms (None: without end; 0: not at all) and take in what has arrived."""
        self._rearm()
        for key, events in self._selector.select(None if wait_ms is None else wait_ms / 1000):
            target = key.data
            if isinstance(target, _SocketPeer):
                if events & selectors.EVENT_WRITE:
                    self._write(target)
                if events & selectors.EVENT_READ and not target.closed:
                    self._read(target)
            elif target is None:
                self._accept()
            else:
                self._serve(target, events)

    def flush(self) -> None:
        """Send what the turn has queued, each peer's in one call."""
        for peer in list(self._sockets.values()):
            if peer.queued:
                self._send(peer)

    def drop(self, peer: Peer) -> None:
        """End the connection of a peer."""
        assert isinstance(peer, _SocketPeer)
        if self._sockets.pop(peer.id, None) is not None:
            if peer.events:
                self._selector.unregister(peer.sock)
            peer.sock.close()
        self._mark_lost(peer)

    def close(self) -> None:
        """End all connections and remove the socket; safe twice."""
        for peer in list(self._sockets.values()):
            self.drop(peer)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(self._listener)
        self._listener.close()
        self._selector.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            sock, _ = self._listener.accept()
            if not _same_user(sock):
                sock.close()
                return
            sock.setblocking(False)
            peer = _SocketPeer(self._id(), sock)
            self._sockets[peer.id] = peer
            self._selector.register(sock, peer.events, peer)
            self._admit(peer)
            peer.send(self._hello)
            self._send(peer)

    def _read(self, peer: _SocketPeer) -> None:
        try:
            count = peer.sock.recv_into(self._buffer)
            payloads = peer.splitter.feed(self._buffer[:count])
        except BlockingIOError:
            return
        except (OSError, link.Breach):
            count, payloads = 0, []
        for payload in payloads:
            peer.hold(payload)
        if not count:
            self.drop(peer)

    def _send(self, peer: _SocketPeer) -> None:
        peer.left.append(memoryview(peer.gather()))
        if len(peer.left) == 1:
            self._write(peer)

    def _write(self, peer: _SocketPeer) -> None:
        left = peer.left
        try:
            while left:
                count = peer.sock.send(left[0])
                peer.sent(count)
                if count < len(left[0]):
                    left[0] = left[0][count:]
                    return
                left.popleft()
        except BlockingIOError:
            return
        except OSError:
            self.drop(peer)

    def _rearm(self) -> None:
        """Read from peers that may send more, write to those that have not read all; costs nothing when all is as it was."""
        for peer in self._sockets.values():
            wanted = (0 if peer.full else selectors.EVENT_READ) | (selectors.EVENT_WRITE if peer.left else 0)
            if wanted != peer.events:
                _change(self._selector, peer.sock, peer.events, wanted, peer)
                peer.events = wanted
        reporter = self._reporter
        if reporter is not None:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if reporter.unsent else 0)
            if wanted != self._reporter_events:
                self._selector.modify(reporter.fileno(), wanted, reporter)
                self._reporter_events = wanted

    def _serve(self, reporter: Reporter, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            reporter.flush()
        if events & selectors.EVENT_READ:
            reporter.readable()


class InprocPeer(Peer):
    """A broker of the same process. receive: takes the bytes of the engine's frames, on the caller's loop."""

    __slots__ = ("receive", "splitter")

    def __init__(self, id: int, receive: Callable[[bytes], None]) -> None:
        super().__init__(id)
        self.receive = receive
        self.splitter = link.Splitter()


class InprocHub(Hub):
    """Frames handed over in memory. wake: called when a frame has arrived and the engine should take a step."""

    def __init__(self, hello: bytes, wake: Callable[[], None]) -> None:
        super().__init__()
        self._hello = hello
        self._wake = wake
        self._inproc: dict[int, InprocPeer] = {}

    def connect(self, receive: Callable[[bytes], None]) -> InprocPeer:
        """A new peer; it is greeted at once."""
        peer = InprocPeer(self._id(), receive)
        self._inproc[peer.id] = peer
        self._admit(peer)
        receive(self._hello)
        return peer

    def feed(self, peer: InprocPeer, data: bytes) -> None:
        """Bytes from a broker."""
        for payload in peer.splitter.feed(data):
            peer.hold(payload)
        self._wake()

    def poll(self, wait_ms: float | None) -> None:
        """Frames arrive by `feed`: there is nothing to wait for."""

    def flush(self) -> None:
        """Hand over what the turn has queued."""
        for peer in list(self._inproc.values()):
            if peer.queued:
                data = peer.gather()
                peer.sent(len(data))
                peer.receive(data)

    def drop(self, peer: Peer) -> None:
        """End the connection of a peer."""
        assert isinstance(peer, InprocPeer)
        if self._inproc.pop(peer.id, None) is not None:
            peer.receive(b"")
        self._mark_lost(peer)

    def close(self) -> None:
        """End all connections; safe twice."""
        for peer in list(self._inproc.values()):
            self.drop(peer)


def _listen(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(os.fspath(path))
    listener.setblocking(False)
    listener.listen(64)
    return listener


def _same_user(sock: socket.socket) -> bool:
    """Linux tells who is at the other end; elsewhere the folder's mode has to do."""
    if sys.platform != "linux":
        return True
    _, uid, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return bool(uid == os.getuid())


def _change(selector: selectors.BaseSelector, sock: socket.socket, before: int, wanted: int, peer: _SocketPeer) -> None:
    if not before:
        selector.register(sock, wanted, peer)
    elif not wanted:
        selector.unregister(sock)
    else:
        selector.modify(sock, wanted, peer)
