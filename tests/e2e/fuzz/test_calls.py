"""No request, however made, gives INTERNAL or UNKNOWN, and a refused one writes nothing (semantics 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, Final

import pytest
from google.protobuf.message import Message

from anvilmq_broker.app.inproc import Failure, Inproc
from anvilmq_broker.clock import SystemClock
from anvilmq_broker.engine.chance import SystemChance
from anvilmq_broker.engine.inproc import InprocEngine
from anvilmq_broker.gateway.methods import METHODS, Method
from anvilmq_broker.store.memory import MemoryStore
from anvilmq_proto.v1 import scheduler_service_pb2 as scheduler_pb
from anvilmq_proto.v1 import types_pb2
from anvilmq_proto.v1 import worker_service_pb2 as pb
from tests.e2e.fuzz.requests import Requests
from tests.support.rules import rule

SEEDS: Final = (1, 2, 3, 4)
ROUNDS: Final = 25
"""Calls of each RPC for a seed."""
EXPECTED: Final = frozenset({3, 5, 6, 7, 8, 9, 10, 12, 14, 16})
"""Codes of the contract that a request may be refused with."""


class Fuzzed:
    """A broker that is sent requests, and its store."""

    def __init__(self, seed: int) -> None:
        self.requests = Requests(seed)
        self._store = MemoryStore(chance=SystemChance())
        self.broker = Inproc(InprocEngine(self._store, SystemClock()))

    async def define(self) -> None:
        """Have a recurring definition of the name that good requests ask for; a random one is hardly ever right."""
        schedule, job = scheduler_pb.Schedule(cron="@yearly"), types_pb2.JobSpec(queue="q", name="n")
        spec = scheduler_pb.SchedulerSpec(schedule=schedule, job=job)
        request = scheduler_pb.UpsertSchedulerRequest(scheduler=scheduler_pb.Scheduler(name="n", spec=spec))
        await self.broker.unary("/anvilmq.v1.SchedulerService/UpsertScheduler", request, timeout_s=20)

    async def code(self, method: Method) -> int:
        """Call; the code it is refused with, 0 when it is not. A refused unary call must have written nothing."""
        if method.streams:
            return await code_of(self._stream(method))
        before = self._written()
        code = await code_of(self._unary(method))
        assert not code or self._written() == before, method.path
        return code

    def _written(self) -> dict[str, Any]:
        # The engine's own row keeps the time, which a refusal moves too.
        return {table: rows for table, rows in self._store.export().items() if table != "engine"}

    async def _unary(self, method: Method) -> None:
        self.requests.learn(await self.broker.unary(method.path, self.requests.make(method.request), timeout_s=20))

    async def _stream(self, method: Method) -> None:
        async with aclosing(self.broker.stream(method.path, self._frames(method))) as answers:
            async for answer in answers:
                self.requests.learn(answer)

    async def _frames(self, method: Method) -> AsyncIterator[Message]:
        if method.request is pb.WorkRequest:
            pools = [pb.Pool(id=1, queues=["q"])]
            yield pb.WorkRequest(open=pb.WorkRequest.Open(worker=pb.WorkerIdentity(worker_id="w"), pools=pools))
            yield pb.WorkRequest(credits=[pb.Credit(pool=1, jobs=3)])
        for _ in range(3):
            frame: Any = self.requests.make(method.request)
            if method.request is pb.WorkRequest:
                frame.ClearField("open")
            yield frame


@rule("7")
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_requests_get_an_answer_or_a_code_of_the_contract_and_write_nothing_when_refused(
    seed: int,
) -> None:
    fuzzed = Fuzzed(seed)
    await fuzzed.broker.start()
    try:
        codes: list[int] = []
        for _ in range(ROUNDS):
            await fuzzed.define()
            codes += [await fuzzed.code(method) for method in METHODS.values()]
    finally:
        await fuzzed.broker.stop()
    assert set(codes) <= EXPECTED | {0}
    assert {0, 3, 5, 12} <= set(codes), "some requests are good, some hit nothing, some are wrong"


@rule("7")
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_bytes_get_a_code_of_the_contract(seed: int) -> None:
    fuzzed = Fuzzed(seed)
    await fuzzed.broker.start()
    try:
        codes = [
            await code_of(fuzzed.broker.gateway.unary(path, fuzzed.requests.bytes(), {}, 20))
            for _ in range(ROUNDS)
            for path, method in METHODS.items()
            if not method.streams
        ]
    finally:
        await fuzzed.broker.stop()
    assert set(codes) <= EXPECTED | {0}


async def code_of(call: Coroutine[Any, Any, Any]) -> int:
    """The gRPC code that a call ends with."""
    try:
        await call
    except Failure as failure:
        return failure.code
    return 0
