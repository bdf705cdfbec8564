"""The clock that tests move."""

import asyncio

from anvilmq._clock import ManualClock, SystemClock


async def test_a_sleep_ends_when_its_time_has_come_and_not_before() -> None:
    clock = ManualClock()
    sleeping = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    clock.advance(4.9)
    await asyncio.sleep(0)
    assert not sleeping.done()
    clock.advance(0.1)
    await sleeping


async def test_a_cancelled_sleep_leaves_no_timer() -> None:
    clock = ManualClock()
    sleeping = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)
    assert clock.next_due_at() is None


def test_timers_are_called_in_order_each_at_its_own_time() -> None:
    clock, seen = ManualClock(now=0), []
    for seconds in (3, 1, 2):
        clock.call_later(seconds, lambda: seen.append(clock.monotonic()))
    dropped = clock.call_later(2.5, lambda: seen.append(-1.0))
    dropped.cancel()
    clock.advance(10)
    assert seen == [1, 2, 3]
    assert clock.monotonic() == 10


def test_the_time_of_day_goes_along() -> None:
    clock = ManualClock(start_ms=5_000)
    clock.advance(1.5)
    assert clock.now_ms() == 6_500


async def test_the_clock_of_the_machine_goes_forward() -> None:
    clock, called = SystemClock(), asyncio.Event()
    before = clock.monotonic()
    clock.call_later(0, called.set)
    await called.wait()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.now_ms() > 1_700_000_000_000
