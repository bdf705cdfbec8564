"""kill -9 of the broker's processes under load: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.e2e.processes.load import SLOTS, Load
from tests.support.broker_process import BrokerProcess
from tests.support.rules import rule

ROUNDS = 7
KILLS = (("engine",), ("gateway",), ("engine", "gateway"))
"""One round. More deaths within a minute and the supervisor rightly waits longer, then gives up."""
ADDS_BETWEEN_KILLS = 30
SEED = 20_260
SERVING_AGAIN_S = 20.0
"""Generous, since the machine may be busy; the figure is printed."""


@pytest.mark.timeout(400)
@rule("8")
@rule("1.4")
async def test_twenty_one_kills_under_load_lose_no_acknowledged_job_and_start_no_attempt_twice(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    broker = BrokerProcess(tmp_path)
    load = Load(broker.url)
    back_s: list[float] = []
    broker.start()
    async with load.app, load.app.worker(queues=["load"], concurrency=SLOTS):
        producing = asyncio.create_task(load.produce(per_producer=1_000_000))
        for _ in range(ROUNDS):
            back_s += [await _kill(broker, load, chance, parts) for parts in KILLS]
            # Between the rounds the whole broker leaves by SIGTERM and comes back, still under load.
            assert await asyncio.to_thread(broker.stop) == 0
            await asyncio.to_thread(broker.start)
        load.stop_producing()
        await producing
        await load.drained()
    assert await asyncio.to_thread(broker.stop) == 0
    print(f"seed {SEED}: {len(load.history.adds)} adds, serving again after at most {max(back_s):.2f} s")
    assert load.history.violations() == []
    assert max(back_s) <= SERVING_AGAIN_S


async def _kill(broker: BrokerProcess, load: Load, chance: random.Random, parts: tuple[str, ...]) -> float:
    """Kill at a random moment of the load; seconds until it serves again."""
    await load.acknowledged(ADDS_BETWEEN_KILLS)
    await asyncio.sleep(chance.uniform(0, 0.2))
    for part in parts:
        broker.kill(part)
    return await asyncio.to_thread(broker.wait_gone_and_back, parts)


@rule("8")
async def test_a_broker_killed_whole_comes_back_with_every_acknowledged_job(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.start()
    load = Load(broker.url)
    async with load.app:
        producing = asyncio.create_task(load.produce(per_producer=1_000_000))
        for _ in range(3):
            await load.acknowledged(ADDS_BETWEEN_KILLS)
            broker.kill_all()
            await asyncio.to_thread(broker.start)
        load.stop_producing()
        await producing
        async with load.app.worker(queues=["load"], concurrency=SLOTS):
            await load.drained()
    assert broker.stop() == 0
    assert load.history.violations() == []


@pytest.mark.parametrize("part", ["engine", "gateway"])
@rule("8")
async def test_an_add_whose_answer_is_lost_is_there_once_without_a_key(tmp_path: Path, part: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        load = Load(broker.url)
        async with load.app:
            await load.note.add("warm")
            adding = [asyncio.create_task(load.note.add(f"job-{n}")) for n in range(200)]
            await asyncio.sleep(0)
            broker.kill(part)
            handles = await asyncio.gather(*adding)
            async with load.app.worker(queues=["load"], concurrency=SLOTS):
                await load.drained()
        assert len({handle.id for handle in handles}) == 200
        assert len(load.history.finals) == 201
