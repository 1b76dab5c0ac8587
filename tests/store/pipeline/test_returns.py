"""Returns and rejections: places, counts, dead letters (docs/store.md)."""

import asyncio
import random

import pytest

from services.store import Delivery, Queue
from services.store.model.errors import StoreFault
from tests.store.desk import Desk, bodies, numbered


async def ready(desk: Desk, queue: Queue) -> list[bytes]:
    return bodies(await desk.domain.peek(queue, 1000))


def singles(deliveries: list[Delivery]) -> list[Delivery]:
    found = []
    for d in deliveries:
        while d.count > 1:
            one, d = d.cut(1)
            found.append(one)
        found.append(d)
    return found


async def test_returned_messages_keep_their_places(desk: Desk) -> None:
    """Check that returned messages keep their places, over several entries and holders (tmq.md 5.4)."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(100))
    async with desk.another() as other:
        held = [(desk, d) for d in singles(await desk.take(queue, 40))]
        held += [(other, d) for d in singles(await other.take(queue, 40))]
        random.Random(7).shuffle(held)
        for holder, delivery in held:
            await holder.release([delivery])
    assert await ready(desk, queue) == numbered(100)
    assert (await desk.stats(queue))["returned"] == 80


async def test_returned_message_precedes_new_ones_with_its_count(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(10))
    got = singles(await desk.take(queue, 6))
    await desk.release([got[4]])
    await desk.release([got[1]], failed=True)
    again = await desk.take(queue, 4)
    assert bodies(again) == [b"m00001", b"m00004", b"m00006", b"m00007"]
    assert [(d.acquired, d.failed) for d in singles(again)] == [(2, 1), (2, 0), (1, 0), (1, 0)]
    await desk.release(again[:1], failed=True)
    (third,) = await desk.take(queue, 1)
    assert (third.acquired, third.failed, bodies([third])) == (3, 2, [b"m00001"])


async def test_removed_stream_entry_blocks_no_other(desk: Desk) -> None:
    """Check that an entry removed by hand blocks no other returned message."""
    queue = await desk.queue()
    for body in numbered(3):
        await desk.put(queue, body)
    taken = await desk.take(queue)
    await desk.release(taken)
    link = desk.domain.link
    assert await link.call("XDEL", queue.keys[0], taken[1].entry) == 1
    again = await desk.take(queue)
    assert bodies(again) == [*numbered(1), *numbered(1, 2)]
    await desk.settle(again)
    assert await link.call("EXISTS", queue.keys[3]) == await link.call("EXISTS", queue.keys[4]) == 0


async def test_foreign_stream_entry_loses_no_other(desk: Desk) -> None:
    """Check that takes fail until an entry written by hand is removed, and lose nothing."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    await desk.release(await desk.take(queue))
    await desk.put(queue, b"taken away")
    link = desk.domain.link
    (last,) = await link.call("XREVRANGE", queue.keys[0], "+", "-", "COUNT", 1)
    await link.call("XDEL", queue.keys[0], last[0])
    entry = await link.call("XADD", queue.keys[0], "*", "foreign", "entry")
    with pytest.raises(StoreFault):
        await desk.take(queue)
    assert await link.call("XDEL", queue.keys[0], entry) == 1
    assert bodies(await desk.take(queue)) == numbered(3)


async def test_message_without_history_counts_as_new(desk: Desk) -> None:
    """Check that a message whose history was removed by hand is still delivered."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(2))
    await desk.release(await desk.take(queue))
    await desk.domain.link.call("DEL", queue.keys[4])
    assert await ready(desk, queue) == numbered(2)
    assert bodies(await desk.take(queue)) == numbered(2)


async def test_message_returned_to_the_end_keeps_its_counts(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(4))
    got = singles(await desk.take(queue, 3))
    await desk.release([got[0]], to_end=True, failed=True)
    await desk.release([got[2]], to_end=True)
    await desk.release([got[1]])
    assert await ready(desk, queue) == [b"m00001", b"m00003", b"m00000", b"m00002"]
    again = singles(await desk.take(queue))
    assert [(d.acquired, d.failed) for d in again] == [(2, 0), (1, 0), (2, 1), (2, 0)]
    await desk.release([again[2]], to_end=True, failed=True)
    (third,) = await desk.take(queue)
    assert (third.acquired, third.failed) == (3, 2)
    await desk.settle([*again[:2], again[3], third])
    stats = await desk.stats(queue)
    assert (stats["acked"], stats["bytes"], stats["ready"], stats["in_flight"]) == (4, 0, 0, 0)


async def test_peek_shows_delivery_counts(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(3))
    got = singles(await desk.take(queue))
    await desk.release([got[0]], failed=True)
    await desk.release([got[1]], failed=True, to_end=True)
    peeked = await desk.domain.peek(queue, 10)
    assert [(bodies([d]), d.acquired, d.failed) for d in peeked] == [([b"m00000"], 1, 1), ([b"m00001"], 1, 1)]
    assert (await desk.stats(queue))["ready"] == 2


async def test_failed_deliveries_count_towards_the_limit(desk: Desk) -> None:
    queue = await desk.queue(max_deliveries=3)
    await desk.put(queue, b"poison")
    for _ in range(5):
        await desk.release(await desk.take(queue), failed=False)
    for _ in range(3):
        await desk.release(await desk.take(queue), failed=True, error="cannot parse")
    assert await desk.take(queue) == []
    (letter,) = [d async for d in desk.dead(queue).matching()]
    assert (letter.reason, letter.error, letter.body) == ("max_deliveries", "cannot parse", b"poison")
    assert (letter.acquired, letter.failed) == (8, 3)
    assert letter.enqueued_ms <= letter.first_ms <= letter.last_ms <= letter.died_ms
    stats = await desk.stats(queue)
    assert (stats["dead"], stats["returned"], stats["ready"], stats["in_flight"]) == (1, 7, 0, 0)


async def test_delivery_limit_holds_after_return_to_the_end(desk: Desk) -> None:
    queue = await desk.queue(max_deliveries=2)
    await desk.put(queue, b"poison", b"good")
    poison, good = singles(await desk.take(queue))
    await desk.release([poison], failed=True, to_end=True)
    await desk.release(await desk.take(queue), failed=True, to_end=True)
    await desk.settle([good])
    assert await desk.take(queue) == []
    assert (await desk.stats(queue))["dead"] == 1


async def test_no_delivery_limit_by_default(desk: Desk) -> None:
    queue = await desk.queue(max_deliveries=0)
    await desk.put(queue, b"poison")
    for _ in range(25):
        await desk.release(await desk.take(queue), failed=True)
    (got,) = await desk.take(queue)
    assert (got.acquired, got.failed) == (26, 25)


@pytest.mark.parametrize("reason", ["injured", "refused", "unencodable"])
async def test_rejected_message_becomes_a_dead_letter(desk: Desk, reason: str) -> None:
    queue = await desk.queue()
    await desk.publish(queue, b"a", b"b", b"c", origin="tmq 10.0.0.1")
    got = singles(await desk.take(queue))
    await desk.reject(got[1:2], reason, "why not")
    (letter,) = [d async for d in desk.dead(queue).matching()]
    assert (letter.reason, letter.error, letter.body) == (reason, "why not", b"b")
    assert (letter.origin, letter.acquired, letter.failed) == ("tmq 10.0.0.1", 1, 0)
    await desk.settle([got[0], got[2]])
    stats = await desk.stats(queue)
    assert (stats["dead"], stats["acked"], stats["bytes"], stats["leases"]) == (1, 2, 0, 0)


async def test_whole_delivery_is_returned_or_rejected(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, *numbered(64))
    first, second = await desk.take(queue)
    await asyncio.gather(desk.releasing([first]), desk.rejecting([second], "refused"))
    assert await ready(desk, queue) == numbered(32)
    assert [d.body async for d in desk.dead(queue).matching()] == numbered(32, 32)


async def test_many_messages_are_returned_at_once(desk: Desk) -> None:
    """Check that a return of very many messages does not block the store in one call."""
    queue = await desk.queue()
    await desk.put(queue, *numbered(5000))
    held: list[Delivery] = []
    while got := await desk.take(queue):
        held += got
    before = desk.pipe.calls
    await asyncio.gather(*(desk.releasing([d]) for d in held))
    assert desk.pipe.calls - before >= 5
    assert bodies(await desk.take(queue)) == numbered(1000)
    assert (await desk.stats(queue))["returned"] == 5000
