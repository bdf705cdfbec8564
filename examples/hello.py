"""A first program: three kinds of job, a producer, a schedule and a worker. `make run` runs it beside a broker of its own."""

from __future__ import annotations

import asyncio
import itertools

import msgspec

from anvilmq import Anvil, Job, fixed

app = Anvil()  # finds the broker by ANVILMQ_URL, by default at localhost:50051; nothing is connected yet


class Order(msgspec.Struct):
    """What the jobs of a shop are about: their payload, sent as JSON."""

    number: int
    item: str
    quantity: int = 1


@app.job(queue="orders", max_attempts=3, backoff=fixed("500ms"))
async def pack(job: Job, order: Order) -> str:
    """An attempt that raises is tried again: here every seventh order, once, half a second later."""
    if order.number % 7 == 0 and job.attempt == 1:
        print(f"order {order.number}: the box was too small, trying again")
        raise RuntimeError("the box was too small")
    print(f"order {order.number}: packed {order.quantity} × {order.item} (attempt {job.attempt})")
    return f"box-{order.number}"


@app.job(queue="mail")
def thank(_job: Job, order: Order) -> None:
    """A plain function runs in a thread, so it may block."""
    print(f"order {order.number}: sent a thank-you mail, two seconds after the order")


@app.job(queue="mail")
async def tally(job: Job, _args: None) -> None:
    """Made by the broker itself, every five seconds; it knows which tick it stands for."""
    print(f"tally of {job.tick_at:%H:%M:%S}, by the schedule {job.scheduler}")


async def produce() -> None:
    """Take an order every half a second. The key makes it safe to add the same order twice."""
    goods = itertools.cycle(["anvil", "hammer", "pair of tongs"])
    for number in itertools.count(1):
        order = Order(number, next(goods), quantity=1 + number % 3)
        await pack.add(order, idempotency_key=f"order-{number}")
        await thank.add(order, delay="2s")
        await asyncio.sleep(0.5)


async def main() -> None:
    """Produce and work in one process; usually these are two. Leaving the worker lets running jobs finish."""
    async with app, app.worker(queues=["orders", "mail"], concurrency=8):
        await app.schedule("tally", tally.spec(None), every="5s")
        await produce()


if __name__ == "__main__":
    from examples import _broker

    _broker.run_beside(main)
