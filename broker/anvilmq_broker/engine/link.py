"""The Broker seam: what gateways see of the engine, over a socket or in the same process, and its frames.

A frame is a 4-byte big-endian length and msgpack `[call, body]`, at most 20 MiB; the body's tag says what it is. A call
numbers its answer; 0 = no answer is wanted, and stands on every notice. The engine's end is `link_server`, the gateway's
`link_client`. Hot file: terse on purpose.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from anvilmq_broker.domain import backoff, commands, errors


class EngineLost(Exception):
    """The engine went away with the call open; its outcome is unknown. Callers answer UNAVAILABLE/NOT_READY."""


class OtherBuild(EngineLost):
    """The engine is of another build than this gateway: they would misread each other."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=190):
    """What the engine says of itself at connect. schema_hash: of the commands module; another one is refused."""

    schema_hash: str
    instance_id: str
    started_at_ms: int
    schema_version: int
    durability: int
    page_token_key: bytes


class Forget(msgspec.Struct, frozen=True, array_like=True, tag=90):
    """Nobody waits for the answer to this call any more; a command already taken is carried out all the same."""

    call: int


class Broker(Protocol):
    """The engine as a gateway uses it, on the gateway's asyncio loop."""

    hello: Hello

    async def submit(self, command: commands.Command | commands.DrainWorker) -> commands.Outcome:
        """The outcome, after the commit; `Refused` is a value (OVERLOADED when too much is unanswered).

        Cancelling the wait does not undo the command, but what a Claim started meanwhile goes back uncounted.
        Raises EngineLost.
        """

    def ask(self, command: commands.Command) -> asyncio.Future[commands.Outcome]:
        """`submit` for streams: a future instead of a task, of the outcome, or of EngineLost.

        Commands, and messages of `attach`, reach the engine in the order of these calls.
        """

    async def query(self, query: commands.Query) -> commands.Answer:
        """Committed state only. Raises EngineLost."""

    def attach(
        self, message: commands.SessionMessage, on_notice: Callable[[commands.Notice], None] | None = None
    ) -> None:
        """Send a session's message, in order with other messages. OpenSession brings the receiver of its notices,
        called on the loop until the session is closed or ended; commands.Settle and Renew of a session go by submit.
        When the engine is lost every receiver is given `SessionEnded(session, "NOT_READY")`."""


Message = commands.Command | commands.Query | commands.SessionMessage | commands.DrainWorker | Forget
Reply = commands.Outcome | commands.Answer | commands.Notice | Hello

MAX_FRAME_BYTES: Final = 20 * 1024 * 1024
MAX_UNANSWERED_BYTES: Final = 8 * 1024 * 1024
LENGTH: Final = struct.Struct(">I")

_encoder: Final = msgspec.msgpack.Encoder()
_messages: Final = msgspec.msgpack.Decoder(tuple[int, Message])
_replies: Final = msgspec.msgpack.Decoder(tuple[int, Reply])


class FrameTooLarge(ValueError):
    """A frame above MAX_FRAME_BYTES; nothing was sent."""


class Breach(Exception):
    """The peer sent what is no frame of this build: the connection is of no further use."""


def encode(call: int, body: Message | Reply) -> bytes:
    """One frame, its length included. Raises FrameTooLarge."""
    payload = _encoder.encode((call, body))
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a frame of {len(payload)} bytes; at most {MAX_FRAME_BYTES} fit")
    return LENGTH.pack(len(payload)) + payload


def decode_message(payload: bytes) -> tuple[int, Message]:
    """What a gateway sent. Raises Breach."""
    try:
        return _messages.decode(payload)
    except msgspec.DecodeError as error:
        raise Breach(str(error)) from error


def decode_reply(payload: bytes) -> tuple[int, Reply]:
    """What the engine sent. Raises Breach."""
    try:
        return _replies.decode(payload)
    except msgspec.DecodeError as error:
        raise Breach(str(error)) from error


class Splitter:
    """Cuts a stream of bytes into the payloads of frames."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """The payloads that are complete now. Raises Breach at a length that no frame has."""
        buffer = self._buffer
        buffer += data
        payloads: list[bytes] = []
        start, end = 0, len(buffer)
        while end - start >= 4:
            (length,) = LENGTH.unpack_from(buffer, start)
            if length > MAX_FRAME_BYTES:
                raise Breach(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} fit")
            if end - start - 4 < length:
                break
            payloads.append(bytes(memoryview(buffer)[start + 4 : start + 4 + length]))
            start += 4 + length
        if start:
            del buffer[:start]
        return payloads


def schema_hash() -> str:
    """A digest of every struct that goes over the link; equal only for builds that understand each other."""
    digest = hashlib.sha256()
    for module in (backoff, errors, commands):
        for name, value in sorted(vars(module).items()):
            if isinstance(value, type) and issubclass(value, msgspec.Struct):
                digest.update(f"{name} {value.__struct_config__.tag} {value.__annotations__}\n".encode())
    return digest.hexdigest()[:32]
