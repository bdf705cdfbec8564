"""The I/O thread, and adds from other loops and threads."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from anvilmq import Anvil, errors
from anvilmq._client import Client
from anvilmq._iothread import Io, IoThread, Mailbox, SharedIo
from anvilmq._settings import Settings
from tests.unit.sdk.fake_broker import FakeBroker


class Program:
    """An app whose I/O has a thread of its own, as in a program, on a fake broker."""

    def __init__(self) -> None:
        self.io = IoThread()
        self.broker = FakeBroker()
        self.app = Anvil()
        self.client = Client(Settings(address="fake:1"), self.io, lambda: self.broker)
        self.app.use_client(self.client)
        self.job = self.app.ref("images", "resize", bytes, bytes)

    def on_io(self, call: Callable[[], object]) -> None:
        """Call on the I/O loop, and return when that is done."""

        async def called() -> None:
            call()

        self.io.run(called).result()

    def until_frames(self, count: int) -> None:
        """Return when the broker has that many frames."""
        self.io.run(lambda: self.broker.until_frames(count)).result()


@pytest.fixture
def program() -> Iterator[Program]:
    """Its thread ends with the test."""
    made = Program()
    yield made
    if made.io._thread.is_alive():
        made.on_io(made.broker.release)
        made.app.close_sync()
    assert not made.io._thread.is_alive()


def test_adds_from_threads_share_a_frame(program: Program) -> None:
    program.on_io(program.broker.hold)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        first = threads.submit(program.job.add_sync, b"a")
        program.until_frames(1)
        others = [threads.submit(program.job.add_sync, b"b") for _ in range(3)]
        while program.client.adds.pending < 4:
            program.on_io(lambda: None)
        program.on_io(program.broker.release)
        assert {future.result(10).id for future in [first, *others]} == {"job-1", "job-2", "job-3", "job-4"}
    assert [len(frame.jobs) for frame in program.broker.frames] == [1, 3]


def test_the_answers_of_a_frame_come_to_a_loop_in_one_callback(program: Program) -> None:
    async def add_many() -> tuple[list[str], list[Any]]:
        loop, callbacks = asyncio.get_running_loop(), []
        original = loop.call_soon_threadsafe

        def counted(callback: Any, *args: Any, **kwargs: Any) -> asyncio.Handle:
            if threading.current_thread() is not threading.main_thread():
                callbacks.append(callback)
            return original(callback, *args, **kwargs)

        loop.call_soon_threadsafe = counted  # type: ignore[assignment, method-assign]
        handles = await asyncio.gather(*(program.job.add(b"x") for _ in range(64)))
        return [handle.id for handle in handles], callbacks

    ids, callbacks = asyncio.run(add_many())
    assert len(set(ids)) == 64
    assert len(callbacks) == len(program.broker.frames)


def count_wakes(program: Program) -> list[int]:
    """Grows with each wake-up of the I/O loop."""
    wakes: list[int] = []
    original = program.io.loop.call_soon_threadsafe

    def counted(*args: Any, **kwargs: Any) -> asyncio.Handle:
        wakes.append(1)
        return original(*args, **kwargs)

    program.io.loop.call_soon_threadsafe = counted  # type: ignore[assignment, method-assign]
    return wakes


def test_a_burst_of_adds_wakes_the_io_once(program: Program) -> None:
    async def add_many() -> None:
        await asyncio.gather(*(program.job.add(b"x") for _ in range(64)))

    wakes = count_wakes(program)
    asyncio.run(add_many())
    assert (len(wakes), len(program.broker.stored)) == (1, 64)


def test_adds_behind_a_frame_that_is_out_wake_nobody(program: Program) -> None:
    async def add_behind() -> int:
        adding = [asyncio.create_task(program.job.add(b"x"))]
        await asyncio.sleep(0)
        await asyncio.to_thread(program.until_frames, 1)
        wakes = count_wakes(program)
        for _ in range(10):
            adding.append(asyncio.create_task(program.job.add(b"x")))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        woken = len(wakes)
        await asyncio.to_thread(program.on_io, program.broker.release)
        await asyncio.gather(*adding)
        return woken

    program.on_io(program.broker.hold)
    assert asyncio.run(add_behind()) == 0


def test_a_loop_that_ended_before_it_woke_the_io_does_not_keep_others_waiting(program: Program) -> None:
    loop = asyncio.new_event_loop()
    adding = program.job.add(b"a")

    def add_and_stop() -> None:
        adding.send(None)
        loop.stop()

    loop.call_soon(add_and_stop)
    loop.run_forever()
    loop.close()
    adding.close()
    assert asyncio.run(program.job.add(b"b")).id


def test_two_loops_get_their_own_answers(program: Program) -> None:
    async def add(payload: bytes) -> str:
        return (await program.job.add(payload)).id

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        ids = list(threads.map(lambda payload: asyncio.run(add(payload)), [b"a", b"b"]))
    assert sorted(ids) == ["job-1", "job-2"]


def test_a_loop_that_closed_before_its_answer_disturbs_nobody(program: Program) -> None:
    async def leave() -> None:
        task = asyncio.create_task(program.job.add(b"a"))
        await asyncio.sleep(0)
        await asyncio.to_thread(program.until_frames, 1)
        task.cancel()

    program.on_io(program.broker.hold)
    asyncio.run(leave())
    program.on_io(program.broker.release)
    assert program.job.add_sync(b"b").id == "job-2"


def test_a_bulk_can_be_added_without_a_loop(program: Program) -> None:
    program.broker.then(lambda broker, request: (_ for _ in ()).throw(errors.Unavailable("broke")))
    done = program.app.add_bulk_sync([program.job.spec(b"a"), program.job.spec(b"b")])
    assert done.ids == ["job-1", "job-2"]


def test_the_end_of_a_program_sends_what_is_on_its_way(program: Program) -> None:
    program.on_io(program.broker.hold)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        adding = threads.submit(program.job.add_sync, b"a")
        program.until_frames(1)
        leaving = threads.submit(program.client.exit)
        program.on_io(program.broker.release)
        leaving.result(10)
        assert adding.result(10).id == "job-1"
    assert program.broker.closed


def test_closing_twice_gives_the_io_back_once() -> None:
    io, given_back = IoThread(), list[Io]()
    client = Client(Settings(address="fake:1"), io, FakeBroker, release=given_back.append)
    closing = [threading.Thread(target=client.close_sync) for _ in range(4)]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()
    client.close_sync()
    client.exit()
    assert given_back == [io]
    io.stop()


def test_after_a_fork_the_reason_is_told(program: Program) -> None:
    program.job.add_sync(b"a")
    pid, program.io._pid = program.io._pid, -1
    for use in (
        lambda: program.job.add_sync(b"b"),
        lambda: program.job.handle("1").state_sync(),
        program.app.close_sync,
    ):
        with pytest.raises(errors.UsedAfterFork, match="fork"):
            use()
    program.io._pid = pid
    program.app.use_client(program.client)
    assert program.job.add_sync(b"c").id == "job-2"


async def test_a_sync_add_refuses_to_stop_a_loop_and_names_the_async_one() -> None:
    app = Anvil()
    for use, text in (
        (lambda: app.ref("a", "b").add_sync(1), r"add_sync\(\) blocks.*await add\(\)"),
        (app.flush_sync, r"await flush\(\)"),
        (app.close_sync, r"await close\(\)"),
    ):
        with pytest.raises(RuntimeError, match=text):
            use()


def test_an_app_that_was_not_used_starts_no_thread() -> None:
    before = threading.active_count()
    app = Anvil()
    app.ref("a", "b").spec(1)
    app.flush_sync()
    app.close_sync()
    assert threading.active_count() == before


def test_the_thread_is_shared_and_ends_with_its_last_user() -> None:
    shared = SharedIo()
    first, second = shared.acquire(), shared.acquire()
    assert first is second
    shared.release(first)
    assert first._thread.is_alive()
    shared.release(second)
    assert not first._thread.is_alive()
    shared.release(second)
    third = shared.acquire()
    assert third is not first
    shared.release(third)


def test_what_runs_when_the_thread_stops_is_cancelled() -> None:
    io, started = IoThread(), threading.Event()

    async def for_ever() -> None:
        started.set()
        await asyncio.Event().wait()

    reply = io.run(for_ever)
    assert started.wait(10)
    io.stop()
    io.stop()
    with pytest.raises(concurrent.futures.CancelledError):
        reply.result()


def test_work_for_a_thread_that_has_ended_is_refused() -> None:
    io = IoThread()
    io.stop()
    with pytest.raises(errors.Closed):
        io.run(asyncio.Event().wait)


async def test_a_reply_that_is_no_longer_awaited_cancels_its_work() -> None:
    io, ended = IoThread(), threading.Event()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(io.run(for_ever))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert await asyncio.to_thread(ended.wait, 10)
    await asyncio.to_thread(io.stop)


async def test_a_mailbox_makes_calls_in_order_and_survives_one_that_fails() -> None:
    loop, seen, told = asyncio.get_running_loop(), [], []
    loop.set_exception_handler(lambda loop, context: told.append(context["exception"]))
    box = Mailbox(loop)
    box.post(lambda: seen.append(1))
    box.post(lambda: 1 // 0)
    box.post(lambda: box.post(lambda: seen.append(3)))
    box.post(lambda: seen.append(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert seen == [1, 2, 3]
    assert [type(error) for error in told] == [ZeroDivisionError]
