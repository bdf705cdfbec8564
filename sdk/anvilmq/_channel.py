"""Transport over gRPC: the only import of grpc in the SDK. Import it where a connection is made, since grpc is heavy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from importlib import metadata
from typing import Any, Final, cast

from google.protobuf.message import DecodeError, Message
from google.rpc import status_pb2

from anvilmq import errors
from anvilmq._settings import Settings, calm_grpc
from anvilmq._transport import Method, Req, Resp

# Work at import, for once: gRPC reads the environment when it is loaded, which is below.
calm_grpc()

import grpc  # noqa: E402
from grpc import aio  # noqa: E402

MAX_MESSAGE_BYTES: Final = 20 << 20
_STATUS_TURN_S: Final = 0.002
_STATUS_TURNS: Final = 50
_DETAILS: Final = "grpc-status-details-bin"
_OPTIONS: Final = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # Without pings a node that vanished is noticed only when the kernel gives its packets up, after many minutes.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # What may be repeated is decided above; a retry by gRPC would not know.
    ("grpc.enable_retries", 0),
)


class Channel:
    """See Transport. Connects at the first call. Make it on the loop that will use it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._callables: dict[str, Any] = {}
        self._client = f"python/{metadata.version('anvilmq')}"
        self._token = settings.token or _read_token(settings)
        self._closed = False
        if settings.tls:
            credentials = grpc.ssl_channel_credentials(root_certificates=_read_roots(settings))
            self._channel = aio.secure_channel(settings.address, credentials, options=_OPTIONS)
        else:
            self._channel = aio.insecure_channel(settings.address, options=_OPTIONS)

    async def unary(self, method: Method[Req, Resp], request: Req, *, timeout_s: float) -> Resp:
        """See Transport."""
        token = self._token
        try:
            return await self._unary_once(method, request, timeout_s)
        except errors.Unauthenticated:
            # It writes nothing, so it may be repeated; with the same token that would be of no use.
            if self._token == token:
                raise
        return await self._unary_once(method, request, timeout_s)

    async def stream(self, method: Method[Req, Resp], requests: AsyncIterator[Req]) -> AsyncGenerator[Resp, None]:
        """See Transport."""
        call = await self._start(method, requests)
        writer = asyncio.create_task(_write(call, requests)) if method.client_streaming else None
        try:
            while (answer := await call.read()) is not aio.EOF:
                yield cast("Resp", answer)
        except aio.AioRpcError as error:
            raise self._failure(await _true_status(call, error)) from error
        except asyncio.CancelledError:
            # Also what read() raises after the writer cancelled the call because `requests` failed.
            if writer is not None and writer.done() and not writer.cancelled() and (failed := writer.exception()):
                raise failed from None
            raise
        finally:
            call.cancel()
            if writer is not None:
                writer.cancel()
                await asyncio.wait([writer])
            if isinstance(requests, AsyncGenerator):
                await requests.aclose()

    async def close(self) -> None:
        """See Transport."""
        if not self._closed:
            self._closed = True
            await self._channel.close()

    async def _unary_once(self, method: Method[Req, Resp], request: Req, timeout_s: float) -> Resp:
        try:
            answer = await self._callable(method)(request, timeout=timeout_s, metadata=self._metadata())
        except aio.AioRpcError as error:
            raise self._failure(error) from error
        return cast("Resp", answer)

    async def _start(self, method: Method[Req, Resp], requests: AsyncIterator[Req]) -> Any:
        if method.client_streaming:
            return self._callable(method)(metadata=self._metadata())
        request = await anext(aiter(requests))
        return self._callable(method)(request, metadata=self._metadata())

    def _callable(self, method: Method[Req, Resp]) -> Any:
        if self._closed:
            raise errors.Closed
        found = self._callables.get(method.path)
        if found is None:
            make: Any = {
                (False, False): self._channel.unary_unary,
                (False, True): self._channel.unary_stream,
                (True, True): self._channel.stream_stream,
            }[method.client_streaming, method.server_streaming]
            found = self._callables[method.path] = make(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        return found

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        sent = ("anvilmq-client", self._client)
        return (("authorization", f"Bearer {self._token}"), sent) if self._token else (sent,)

    def _failure(self, error: aio.AioRpcError) -> errors.CallError:
        failure = _read_failure(error, self._settings.address)
        if isinstance(failure, errors.Unauthenticated) and not self._settings.token:
            # A file follows a rotated token. When it cannot be read now, the refusal is what the caller should see.
            with contextlib.suppress(errors.SettingInvalid):
                self._token = _read_token(self._settings)
        return failure


async def _write(call: Any, requests: AsyncIterator[Message]) -> None:
    try:
        # Only then: who hands over a write wants to know for sure that one which found no broker was not sent.
        await call.wait_for_connection()
        async for request in requests:
            await call.write(request)
        await call.done_writing()
    except (aio.AioRpcError, asyncio.InvalidStateError):
        # The call has ended; whoever reads learns why.
        return
    except Exception:
        call.cancel()
        raise


async def _true_status(call: Any, error: aio.AioRpcError) -> aio.AioRpcError:
    """A write that comes just after the other end has ended the call puts this text in place of the status, which
    follows within a millisecond or so. Without it nobody would learn that, say, the token was refused.
    """
    if error.details() != "Internal error from Core":
        return error
    for _ in range(_STATUS_TURNS):
        await asyncio.sleep(_STATUS_TURN_S)
        if await call.code() is not grpc.StatusCode.INTERNAL:
            break
    return aio.AioRpcError(
        await call.code(), await call.initial_metadata(), await call.trailing_metadata(), await call.details()
    )


def _read_failure(error: aio.AioRpcError, address: str) -> errors.CallError:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            with contextlib.suppress(DecodeError):
                return errors.from_status(status_pb2.Status.FromString(cast("bytes", value)))
    # No word of the broker: gRPC itself gave up, or something else answered.
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNIMPLEMENTED:
        details = f"what serves there does not know this call ({details}): no broker, or one of another version"
    return errors.from_code(code.value[0], f"{address}: {details}")


def _read_roots(settings: Settings) -> bytes | None:
    if settings.ca_file is None:
        return None
    try:
        return settings.ca_file.read_bytes()
    except OSError as error:
        raise errors.SettingInvalid("ANVILMQ_CA_FILE", f"cannot be read: {error}") from error


def _read_token(settings: Settings) -> str:
    if settings.token_file is None:
        return ""
    try:
        return settings.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.SettingInvalid("ANVILMQ_TOKEN_FILE", f"cannot be read: {error}") from error
