"""One subscription tells of many queues; a poll finds what was not told (docs/store.md)."""

import asyncio

from services.store.processes.queue_notifications import POLL_S, Wakes
from tests.servers import Server
from tests.store.desk import Desk, until

SOON_S = POLL_S / 2  # quicker than any poll


async def test_each_queue_is_told_of_its_first_message(desk: Desk) -> None:
    queues = [await desk.queue(name) for name in ("a", "b")]
    wakes = desk.store.wakes()
    assert desk.store.wakes() is wakes
    first, second = (wakes.event(queue) for queue in queues)
    twin = wakes.event(queues[0])
    assert first.is_set(), "it may have something from before"
    await told_at_once(desk, wakes, queues[0].name, first, twin)
    await told_at_once(desk, wakes, queues[1].name, second)


async def told_at_once(desk: Desk, wakes: Wakes, name: str, *events: asyncio.Event) -> None:
    """Right after a poll, so that the next one is far away."""
    for event in events:
        event.clear()
    async with asyncio.timeout(2 * POLL_S):
        await events[0].wait()
    for event in events:
        event.clear()
    queue = await desk.store.catalogue.find(name)
    async with asyncio.timeout(SOON_S):
        await desk.put(queue, b"x")
        for event in events:
            await event.wait()
    await desk.drain(queue)


async def test_whoever_was_not_told_looks_again_soon(desk: Desk) -> None:
    event = desk.store.wakes().event(await desk.queue())
    for _ in range(2):
        event.clear()
        async with asyncio.timeout(2 * POLL_S):
            await event.wait()


async def test_it_goes_on_when_the_store_comes_back(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        queue = await desk.queue()
        event = desk.store.wakes().event(queue)
        own_server.kill9()
        event.clear()
        async with asyncio.timeout(2 * POLL_S):
            await event.wait()
        own_server.restart()
        await until(lambda: desk.store.fault_of() is None)
        await until(lambda: subscribers(desk))
        await told_at_once(desk, desk.store.wakes(), queue.name, event)


async def subscribers(desk: Desk) -> int:
    _, number = await desk.domain.link.call("PUBSUB", "NUMSUB", desk.domain.keys.wake_channel)
    return int(number)
