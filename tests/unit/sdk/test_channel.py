"""The transport over gRPC, against a server on the loopback that answers as the test says."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc import aio
from grpc_status import rpc_status

from anvilmq import _settings, errors
from anvilmq._channel import Channel
from anvilmq._entries import ADD_STREAM
from anvilmq._transport import method
from anvilmq_proto.v1 import event_service_pb2, job_service_pb2
from anvilmq_proto.v1 import job_service_pb2 as wire

GET = method("JobService", "GetJob", wire.GetJobRequest, wire.GetJobResponse)
WATCH = method(
    "EventService", "WatchEvents", event_service_pb2.WatchEventsRequest, event_service_pb2.WatchEventsResponse
)

Context = Any
Get = Callable[[wire.GetJobRequest, Context], Awaitable[wire.GetJobResponse]]
Add = Callable[[AsyncIterator[wire.AddJobStreamRequest], Context], AsyncGenerator[wire.AddJobStreamResponse, None]]


async def answer_job(request: wire.GetJobRequest, context: Context) -> wire.GetJobResponse:
    """The job that was asked for."""
    answer = wire.GetJobResponse()
    answer.job.job_id = request.job_id
    return answer


async def answer_adds(
    requests: AsyncIterator[wire.AddJobStreamRequest], context: Context
) -> AsyncGenerator[wire.AddJobStreamResponse, None]:
    """As many ids as jobs."""
    async for request in requests:
        yield wire.AddJobStreamResponse(job_ids=[f"{request.seq}-{index}" for index in range(len(request.jobs))])


@asynccontextmanager
async def serving(
    *, get: Get = answer_job, add: Add = answer_adds, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[str]:
    """The address of a server."""
    server = aio.server(options=[("grpc.max_receive_message_length", 20 << 20)])
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(
                "anvilmq.v1.JobService",
                {
                    "GetJob": grpc.unary_unary_rpc_method_handler(
                        get,
                        request_deserializer=wire.GetJobRequest.FromString,
                        response_serializer=wire.GetJobResponse.SerializeToString,
                    ),
                    "AddJobStream": grpc.stream_stream_rpc_method_handler(
                        add,
                        request_deserializer=wire.AddJobStreamRequest.FromString,
                        response_serializer=wire.AddJobStreamResponse.SerializeToString,
                    ),
                },
            )
        ]
    )
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def connected(url: str, **given: Any) -> AsyncIterator[Channel]:
    """A channel to that address."""
    channel = Channel(_settings.read(url=url, environ={}, **given))
    try:
        yield channel
    finally:
        await channel.close()
        await channel.close()


async def get(channel: Channel, job_id: str = "1", timeout_s: float = 10) -> str:
    """Ask for a job."""
    return (await channel.unary(GET, wire.GetJobRequest(job_id=job_id), timeout_s=timeout_s)).job.job_id


async def frames(*seqs: int) -> AsyncIterator[wire.AddJobStreamRequest]:
    """Frames with one job each."""
    for seq in seqs:
        frame = wire.AddJobStreamRequest(seq=seq)
        frame.jobs.add()
        yield frame


async def test_a_unary_call_is_answered() -> None:
    async with serving() as url, connected(url) as channel:
        assert await get(channel, "42") == "42"


async def test_a_stream_is_answered_frame_by_frame_and_ends_when_its_requests_do() -> None:
    async with serving() as url, connected(url) as channel, aclosing(channel.stream(ADD_STREAM, frames(1, 2))) as got:
        assert [answer.job_ids[0] async for answer in got] == ["1-0", "2-0"]


async def test_a_call_says_who_calls() -> None:
    seen: list[dict[str, Any]] = []

    async def note(request: wire.GetJobRequest, context: Context) -> wire.GetJobResponse:
        seen.append(dict(context.invocation_metadata()))
        return wire.GetJobResponse()

    async with serving(get=note) as url:
        async with connected(url, token="secret") as channel:
            await get(channel)
        async with connected(url) as channel:
            await get(channel)
    assert seen[0]["authorization"] == "Bearer secret"
    assert seen[0]["anvilmq-client"].startswith("python/")
    assert "authorization" not in seen[1]


async def test_a_refusal_becomes_the_class_of_its_reason() -> None:
    async def refuse(request: wire.GetJobRequest, context: Context) -> wire.GetJobResponse:
        status = status_pb2.Status(code=code_pb2.NOT_FOUND, message="no job 1")
        status.details.add().Pack(error_details_pb2.ErrorInfo(reason="JOB_NOT_FOUND", metadata={"job_id": "1"}))
        await context.abort_with_status(rpc_status.to_status(status))
        raise AssertionError

    async with serving(get=refuse) as url, connected(url) as channel:
        with pytest.raises(errors.JobNotFound, match="no job 1") as caught:
            await get(channel)
    assert caught.value.metadata == {"job_id": "1"}


async def test_a_call_without_an_answer_ends_at_its_deadline() -> None:
    async def never(request: wire.GetJobRequest, context: Context) -> wire.GetJobResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(get=never) as url, connected(url) as channel:
        with pytest.raises(errors.DeadlineExceeded):
            await get(channel, timeout_s=0.05)


def unused_port() -> int:
    """A port of the loopback where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def test_without_a_broker_a_call_is_unavailable_and_names_the_address() -> None:
    url = f"127.0.0.1:{unused_port()}"
    async with connected(url) as channel:
        with pytest.raises(errors.Unavailable, match=url):
            await get(channel)


async def test_without_a_broker_a_stream_takes_nothing_to_send() -> None:
    taken: list[int] = []

    async def noted() -> AsyncIterator[wire.AddJobStreamRequest]:
        taken.append(1)
        yield wire.AddJobStreamRequest()

    async with connected(f"127.0.0.1:{unused_port()}") as channel, aclosing(channel.stream(ADD_STREAM, noted())) as got:
        with pytest.raises(errors.Unavailable):
            await anext(got)
    assert taken == []


async def test_what_serves_no_such_call_is_told_as_no_broker() -> None:
    async def never() -> AsyncIterator[Any]:
        yield event_service_pb2.WatchEventsRequest()

    async with serving() as url, connected(url) as channel, aclosing(channel.stream(WATCH, never())) as got:
        with pytest.raises(errors.Unimplemented, match="no broker, or one of another version"):
            await anext(got)


async def test_closing_the_answers_cancels_the_call_and_the_reading_of_requests() -> None:
    cancelled, closed = asyncio.Event(), asyncio.Event()

    async def hang(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[wire.AddJobStreamResponse, None]:
        try:
            async for _ in requests:
                yield wire.AddJobStreamResponse()
        finally:
            cancelled.set()

    async def endless() -> AsyncIterator[wire.AddJobStreamRequest]:
        try:
            yield wire.AddJobStreamRequest()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with serving(add=hang) as url, connected(url) as channel:
        got = channel.stream(ADD_STREAM, endless())
        await anext(got)
        await got.aclose()
        assert closed.is_set()
        await cancelled.wait()


async def test_a_stream_that_the_server_breaks_says_why() -> None:
    async def breaks(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[wire.AddJobStreamResponse, None]:
        async for _ in requests:
            yield wire.AddJobStreamResponse()
            await context.abort(grpc.StatusCode.UNAVAILABLE, "going away")

    async with (
        serving(add=breaks) as url,
        connected(url) as channel,
        aclosing(channel.stream(ADD_STREAM, frames(1, 2, 3))) as got,
    ):
        await anext(got)
        with pytest.raises(errors.Unavailable, match="going away"):
            await anext(got)


async def test_requests_that_fail_end_the_call_with_their_error() -> None:
    async def failing() -> AsyncIterator[wire.AddJobStreamRequest]:
        yield wire.AddJobStreamRequest()
        raise ZeroDivisionError

    async with serving() as url, connected(url) as channel, aclosing(channel.stream(ADD_STREAM, failing())) as got:
        with pytest.raises(ZeroDivisionError):
            async for _ in got:
                pass


def wants(token: str, seen: list[str]) -> Get:
    """Lets only that token in."""

    async def check(request: wire.GetJobRequest, context: Context) -> wire.GetJobResponse:
        given = dict(context.invocation_metadata())["authorization"].removeprefix("Bearer ")
        seen.append(given)
        if given != token:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
        return await answer_job(request, context)

    return check


async def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    file, seen = tmp_path / "token", list[str]()
    file.write_text("old\n")
    async with serving(get=wants("new", seen)) as url, connected(url, token_file=file) as channel:
        file.write_text("new\n")
        assert await get(channel) == "1"
        file.write_text("wrong")
        assert await get(channel) == "1"
    assert seen == ["old", "new", "new"]


async def test_a_token_that_is_still_the_same_is_not_tried_again(tmp_path: Path) -> None:
    file, seen = tmp_path / "token", list[str]()
    file.write_text("old")
    async with serving(get=wants("new", seen)) as url, connected(url, token_file=file) as channel:
        for _ in range(2):
            with pytest.raises(errors.Unauthenticated):
                await get(channel)
        file.unlink()
        with pytest.raises(errors.Unauthenticated):
            await get(channel)
    assert seen == ["old"] * 3


async def test_a_token_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.SettingInvalid, match="ANVILMQ_TOKEN_FILE: cannot be read"):
        Channel(_settings.read(token_file=tmp_path / "none", environ={}))


async def test_a_ca_file_that_went_away_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.touch()
    settings = _settings.read(url="anvilmqs://a:1", ca_file=file, environ={})
    file.unlink()
    with pytest.raises(errors.SettingInvalid, match="ANVILMQ_CA_FILE: cannot be read"):
        Channel(settings)


async def test_a_message_of_16_mebibytes_comes_through_both_ways() -> None:
    async def echo(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[wire.AddJobStreamResponse, None]:
        async for request in requests:
            yield wire.AddJobStreamResponse(job_ids=[request.jobs[0].data.decode()])

    async def large() -> AsyncIterator[wire.AddJobStreamRequest]:
        frame = wire.AddJobStreamRequest()
        frame.jobs.add().data = b"x" * (16 << 20)
        yield frame

    async with (
        serving(add=echo) as url,
        connected(url) as channel,
        aclosing(channel.stream(ADD_STREAM, large())) as got,
    ):
        assert [len(answer.job_ids[0]) async for answer in got] == [16 << 20]


async def test_a_closed_channel_says_so() -> None:
    async with serving() as url, connected(url) as channel:
        await channel.close()
        with pytest.raises(errors.Closed):
            await get(channel)


def certificate() -> tuple[bytes, bytes]:
    """A key and a certificate for localhost that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain), made.public_bytes(encoding)


async def test_tls_trusts_the_given_root_and_no_other(tmp_path: Path) -> None:
    key, chain = certificate()
    mine, other = tmp_path / "mine.crt", tmp_path / "other.crt"
    mine.write_bytes(chain)
    other.write_bytes(certificate()[1])
    async with serving(credentials=grpc.ssl_server_credentials([(key, chain)])) as url:
        there = f"anvilmqs://localhost:{url.rpartition(':')[2]}"
        async with connected(there, ca_file=mine) as channel:
            assert await get(channel) == "1"
        async with connected(there, ca_file=other) as channel:
            with pytest.raises(errors.Unavailable):
                await get(channel)


def test_a_method_is_what_the_descriptors_say() -> None:
    assert (ADD_STREAM.path, ADD_STREAM.client_streaming, ADD_STREAM.server_streaming) == (
        "/anvilmq.v1.JobService/AddJobStream",
        True,
        True,
    )
    assert (GET.client_streaming, GET.server_streaming) == (False, False)
    with pytest.raises(KeyError):
        method("JobService", "Nothing", wire.GetJobRequest, wire.GetJobResponse)
    with pytest.raises(TypeError, match="GetJob takes GetJobRequest"):
        method("JobService", "GetJob", job_service_pb2.AddJobRequest, wire.GetJobResponse)
