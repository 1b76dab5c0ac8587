"""The store tells when an empty queue gets its first message; a poll finds what was not told."""

import asyncio
import time

import pytest

from services.store import Queue
from services.store.model.errors import StoreUnavailable
from services.store.processes.queue_notifications import POLL_S, Wake
from tests.servers import Server
from tests.store.desk import Desk, encode, numbered
from tests.stores import every_server

SOON_S = POLL_S / 2  # quicker than any poll


async def noticed(desk: Desk, wake: Wake, queue: Queue, what: object) -> None:
    """While somebody waits, `what` is done; the wait ends long before the poll would."""
    waiting = asyncio.create_task(wake.wait(queue, 60))
    await asyncio.sleep(0)
    await what  # type: ignore[misc]
    async with asyncio.timeout(SOON_S):
        await waiting


@every_server
async def test_whoever_waits_is_told_of_the_first_message(desk: Desk) -> None:
    queue = await desk.queue()
    async with Wake(desk.store.connector, "main") as wake:
        await noticed(desk, wake, queue, desk.put(queue, b"a"))
        held = await desk.take(queue)
        await noticed(desk, wake, queue, desk.release(held))
        held = await desk.take(queue)
        await noticed(desk, wake, queue, desk.release(held, to_end=True))


async def test_redriven_and_committed_messages_wake_too(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.bury(queue, encode(b"x")[0], "injured")
    ids = [d.id async for d in desk.dead(queue).matching()]
    async with Wake(desk.store.connector, "main") as wake:
        await noticed(desk, wake, queue, desk.dead(queue).redrive(ids))
        await desk.drain(queue)
        from services.store import CommitPart

        await noticed(desk, wake, queue, desk.commit("t", CommitPart(queue, [], encode(b"y"), "t")))


async def test_other_queues_and_further_messages_wake_nobody(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    await desk.put(queue, b"a")
    async with Wake(desk.store.connector, "main") as wake:
        waiting = asyncio.create_task(wake.wait(queue, 60))
        await asyncio.sleep(0)
        await desk.put(other, b"b")
        await desk.put(queue, *numbered(50))
        await desk.count(queue)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_what_came_between_a_look_and_the_wait_is_not_missed(desk: Desk) -> None:
    queue = await desk.queue()
    async with Wake(desk.store.connector, "main") as wake:
        assert await desk.take(queue) == []
        await desk.put(queue, b"a")
        async with asyncio.timeout(SOON_S):
            await wake.wait(queue, 60)


async def test_a_wait_that_ran_out_does_not_end_the_listening(desk: Desk) -> None:
    """Consumers wait again and again; each time they are told at once."""
    queue = await desk.queue()
    async with Wake(desk.store.connector, "main") as wake:
        for _ in range(3):
            await wake.wait(queue, 0.01)
        await noticed(desk, wake, queue, desk.put(queue, b"a"))


async def test_the_poll_goes_on_when_the_store_is_away(own_server: Server) -> None:
    async with Desk(own_server) as mine:
        queue = await mine.queue()
        async with Wake(mine.store.connector, "main") as wake:
            own_server.kill9()
            start = time.monotonic()
            await wake.wait(queue, 60)
            assert time.monotonic() - start < POLL_S + SOON_S
            await wake.wait(queue, 0.05)
        with pytest.raises(StoreUnavailable):
            await Wake(mine.store.connector, "main").__aenter__()
        own_server.restart()
