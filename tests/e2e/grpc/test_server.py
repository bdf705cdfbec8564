"""What clients see of the server: bytes that are wrong, sizes, health, streams that break, leaving."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import msgspec
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from anvilmq_broker.gateway.methods import METHODS, SERVICES, Method
from anvilmq_broker.gateway.server import BindFailed, Binding, Server
from anvilmq_proto.v1 import job_service_pb2, types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb
from tests.e2e.grpc.serving import call, reason_of, serving, stream
from tests.support.rules import rule

MIB = 1 << 20
SPEC = types_pb2.JobSpec(queue="q", name="n")
ADD = job_service_pb2.AddJobRequest(job=SPEC)
NO_SUCH_CALL = msgspec.structs.replace(METHODS["/anvilmq.v1.JobService/AddJob"], path="/anvilmq.v1.JobService/None")


def opening(worker_id: str = "w") -> pb.WorkRequest:
    pools = [pb.Pool(id=1, queues=["q"])]
    return pb.WorkRequest(open=pb.WorkRequest.Open(worker=pb.WorkerIdentity(worker_id=worker_id), pools=pools))


@rule("7")
async def test_bytes_that_are_no_message_get_a_code_and_a_reason_from_every_call() -> None:
    async with serving() as broker, broker.channel() as channel:
        for path, method in METHODS.items():
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await send_garbage(channel, method)
            assert reason_of(caught.value) == "MALFORMED_MESSAGE", path


@rule("7")
@pytest.mark.parametrize("method", ["Check", "Watch"])
async def test_bytes_that_are_no_question_after_health_get_a_code_and_a_reason(method: str) -> None:
    async with serving() as broker, broker.channel() as channel:
        asked: Any = channel.unary_stream(f"/grpc.health.v1.Health/{method}")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asked(b"\xff\xff", timeout=20).read()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert reason_of(caught.value) == "MALFORMED_MESSAGE"


async def send_garbage(channel: Any, method: Method) -> None:
    """Call the method with bytes that are no message of it."""
    if method.client_streaming:
        streaming = channel.stream_stream(method.path)(timeout=20)
        await streaming.write(b"\xff\xff")
        await streaming.read()
    elif method.server_streaming:
        await channel.unary_stream(method.path)(b"\xff\xff", timeout=20).read()
    else:
        await channel.unary_unary(method.path)(b"\xff\xff", timeout=20)


async def test_a_call_outside_the_contract_is_unimplemented() -> None:
    async with serving() as broker, broker.channel() as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await send_garbage(channel, NO_SUCH_CALL)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_refusal_may_speak_of_any_text() -> None:
    async with serving() as broker, broker.channel() as channel:
        request = job_service_pb2.AddJobRequest(job=types_pb2.JobSpec(queue="q", name="n", headers={"Ü\n": ""}))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, "JobService/AddJob", request)
        assert reason_of(caught.value) == "INVALID_FIELD"
        assert "Ü\n" in (caught.value.details() or "")


@rule("1.10")
async def test_a_message_above_20_mib_is_refused_and_the_connection_lives() -> None:
    async with serving() as broker, broker.channel() as channel:
        request = job_service_pb2.AddJobBulkRequest(jobs=[types_pb2.JobSpec(data=b"x" * MIB)] * 21)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, "JobService/AddJobBulk", request)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await call(channel, "JobService/AddJob", ADD)).job_id


async def test_health_tells_that_the_broker_lives_and_whether_its_services_are_ready() -> None:
    async with serving() as broker, broker.channel() as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)

        async def check(service: str) -> int:
            request = health_pb2.HealthCheckRequest(service=service)
            return int((await stub.Check(request, timeout=20)).status)

        for ready in (True, False):
            await broker.server.serving(ready)
            expected = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
            assert {await check(service) for service in SERVICES} == {expected}
            assert await check("") == health_pb2.HealthCheckResponse.SERVING


async def test_a_job_goes_through_both_streams() -> None:
    async with serving() as broker, broker.channel() as channel:
        adds, work = stream(channel, "JobService/AddJobStream"), stream(channel, "WorkerService/Work")
        await work.write(opening())
        assert (await work.read()).HasField("opened")
        await work.write(pb.WorkRequest(credits=[pb.Credit(pool=1, jobs=5)]))
        await adds.write(job_service_pb2.AddJobStreamRequest(jobs=[SPEC, SPEC], producer_id="p", seq=1))
        job_ids = list((await adds.read()).job_ids)
        deliveries = list((await work.read()).deliveries)
        assert [each.job_id for each in deliveries] == job_ids
        settlements = [
            pb.Settlement(job_id=each.job_id, lease_token=each.lease_token, outcome="SETTLE_OUTCOME_COMPLETE")
            for each in deliveries
        ]
        await work.write(pb.WorkRequest(settle=pb.SettleJobsRequest(seq=9, settlements=settlements)))
        (settled,) = (await work.read()).settled
        assert (settled.seq, list(settled.states)) == (9, [types_pb2.JOB_STATE_COMPLETED] * 2)
        for each in (adds, work):
            await each.done_writing()
            assert await each.read() is grpc.aio.EOF
            assert await each.code() is grpc.StatusCode.OK


@rule("1.4")
async def test_a_worker_whose_stream_breaks_finds_its_lease_when_it_resumes() -> None:
    async with serving() as broker, broker.channel() as channel:
        work = stream(channel, "WorkerService/Work")
        await work.write(opening())
        await work.read()
        await work.write(pb.WorkRequest(credits=[pb.Credit(pool=1, jobs=1)]))
        await call(channel, "JobService/AddJob", ADD)
        (delivery,) = (await work.read()).deliveries
        work.cancel()
        again = stream(channel, "WorkerService/Work")
        resuming = opening()
        resuming.open.resume.add(job_id=delivery.job_id, lease_token=delivery.lease_token)
        await again.write(resuming)
        assert list((await again.read()).opened.interrupts) == []
        settlement = pb.Settlement(
            job_id=delivery.job_id, lease_token=delivery.lease_token, outcome="SETTLE_OUTCOME_COMPLETE"
        )
        await again.write(pb.WorkRequest(settle=pb.SettleJobsRequest(settlements=[settlement])))
        assert list((await again.read()).settled[0].errors) == []
        again.cancel()


async def test_a_second_session_of_a_worker_ends_the_first() -> None:
    async with serving() as broker, broker.channel() as channel:
        first, second = stream(channel, "WorkerService/Work"), stream(channel, "WorkerService/Work")
        for each in (first, second):
            await each.write(opening())
            assert (await each.read()).HasField("opened")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await first.read()
        assert caught.value.code() is grpc.StatusCode.ABORTED
        assert reason_of(caught.value) == "SESSION_REPLACED"
        second.cancel()


async def test_a_server_that_stops_ends_its_streams_and_long_polls_and_closes_its_port() -> None:
    async with serving() as broker, broker.channel() as channel:
        work, adds = stream(channel, "WorkerService/Work"), stream(channel, "JobService/AddJobStream")
        await work.write(opening())
        await work.read()
        await adds.write(job_service_pb2.AddJobStreamRequest(jobs=[SPEC]))
        await adds.read()
        claim = pb.ClaimJobsRequest(worker=pb.WorkerIdentity(worker_id="c"), queues=["other"], max_jobs=1)
        claim.wait_ms = 15_000
        claiming = asyncio.ensure_future(call(channel, "WorkerService/ClaimJobs", claim))
        await _until_claimed(channel)
        stopping = asyncio.ensure_future(broker.server.stop(10))
        assert (await work.read()).HasField("go_away")
        for ending in (claiming, adds.read(), work.read()):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ending
            assert reason_of(caught.value) == "DRAINING"
        await stopping
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, "JobService/AddJob", ADD)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def _until_claimed(channel: grpc.aio.Channel) -> None:
    """Until the caller of ClaimJobs is listed: its claim has reached the engine."""
    workers = 1
    while workers < 2:
        workers = len((await call(channel, "WorkerService/ListWorkers", pb.ListWorkersRequest())).workers)


async def test_two_servers_share_a_port() -> None:
    async with serving() as broker:
        port = int(broker.address.rpartition(":")[2])
        other = Server(broker.broker.gateway, Binding("127.0.0.1", port))
        assert await other.start() == port
        await other.stop(0)


async def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    async with serving() as broker:
        with pytest.raises(BindFailed, match=r"203\.0\.113\.1:1"):
            await Server(broker.broker.gateway, Binding("203.0.113.1", 1)).start()


def test_an_ipv6_host_is_put_in_brackets() -> None:
    assert Binding("::", 5).address == "[::]:5"
    assert Binding("[::1]", 5).address == "[::1]:5"
    assert Binding("127.0.0.1", 5).address == "127.0.0.1:5"
