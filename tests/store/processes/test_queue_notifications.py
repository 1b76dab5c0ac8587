"""Queues that get their first message set their events at once; a poll finds what was not notified (docs/store.md)."""

import asyncio
from collections.abc import Awaitable

from services.store import CommitPart, Queue
from services.store.processes import POLL_S
from tests.servers import Server
from tests.store.desk import Desk, encode, numbered, until
from tests.stores import every_server

SOON_S = POLL_S / 2  # sooner than the next poll


async def after_a_poll(*events: asyncio.Event) -> None:
    """Return right after a poll, with the events cleared."""
    for event in events:
        event.clear()
    async with asyncio.timeout(2 * POLL_S):
        await events[0].wait()
    for event in events:
        event.clear()


async def notified(change: Awaitable[object], *events: asyncio.Event) -> None:
    """Check that the events are set by the change, not by a poll."""
    await after_a_poll(*events)
    async with asyncio.timeout(SOON_S):
        await change
        for event in events:
            await event.wait()


@every_server
async def test_first_message_sets_the_event(desk: Desk) -> None:
    queue = await desk.queue()
    event = desk.store.wakes().event(queue)
    await notified(desk.put(queue, b"a"), event)
    held = await desk.take(queue)
    await notified(desk.release(held), event)
    held = await desk.take(queue)
    await notified(desk.release(held, to_end=True), event)


async def test_redriven_and_committed_messages_set_the_event(desk: Desk) -> None:
    queue = await desk.queue()
    event = desk.store.wakes().event(queue)
    await desk.bury(queue, encode(b"x")[0], "injured")
    ids = [d.id async for d in desk.dead(queue).matching()]
    await notified(desk.dead(queue).redrive(ids), event)
    await desk.drain(queue)
    await notified(desk.commit("t", CommitPart(queue, [], encode(b"y"), "t")), event)


async def test_each_queue_has_its_own_events(desk: Desk) -> None:
    queues = [await desk.queue(name) for name in ("a", "b")]
    wakes = desk.store.wakes()
    assert desk.store.wakes() is wakes
    first, second = (wakes.event(queue) for queue in queues)
    twin = wakes.event(queues[0])
    assert first.is_set(), "the queue may have messages already"
    await notified(desk.put(queues[0], b"x"), first, twin)
    await notified(desk.put(queues[1], b"x"), second)


async def test_other_queues_and_further_messages_do_not_set_the_event(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    await desk.put(queue, b"a")
    event = desk.store.wakes().event(queue)
    await after_a_poll(event)
    await desk.put(other, b"b")
    await desk.put(queue, *numbered(50))
    await desk.count(queue)
    assert not event.is_set()


async def test_message_between_take_and_wait_sets_the_event(desk: Desk) -> None:
    queue = await desk.queue()
    event = desk.store.wakes().event(queue)
    await after_a_poll(event)
    assert await desk.take(queue) == []
    async with asyncio.timeout(SOON_S):
        await desk.put(queue, b"a")
        await event.wait()


async def test_event_is_set_by_every_poll(desk: Desk) -> None:
    event = desk.store.wakes().event(await desk.queue())
    for _ in range(2):
        await after_a_poll(event)


async def test_polls_and_notifications_survive_a_store_failure(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        queue = await desk.queue()
        event = desk.store.wakes().event(queue)
        own_server.kill9()
        await after_a_poll(event)
        own_server.restart()
        await until(lambda: desk.store.fault_of() is None)
        await until(lambda: subscribers(desk))
        await notified(put_again(desk, queue), event)


async def put_again(desk: Desk, queue: Queue) -> None:
    await desk.put(await desk.store.catalogue.find(queue.name), b"x")


async def subscribers(desk: Desk) -> int:
    """Return how many connections are subscribed to the domain's notifications."""
    _, number = await desk.domain.link.call("PUBSUB", "NUMSUB", desk.domain.keys.wake_channel)
    return int(number)
