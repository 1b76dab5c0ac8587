"""The number of redrives is kept in a message's entry, and in its dead letter."""

from __future__ import annotations

import pytest

from services.store import Queue, QueueSpec
from tests.servers import Client
from tests.store.desk import Desk, bodies, encode, numbered
from tests.store.lane import Lane, begin
from tests.store.pipeline.test_replays import Answers
from tests.store.pipeline.test_returns import singles


async def bring_back(desk: Desk, queue: Queue, target: Queue | None = None) -> None:
    ids = [letter.id async for letter in desk.dead(queue).matching()]
    assert (await desk.dead(queue).redrive(ids, target)).moved == len(ids)


async def redriven(desk: Desk, queue: Queue) -> list[tuple[bytes, int]]:
    return [(letter.body, letter.redriven) async for letter in desk.dead(queue).matching()]


async def test_redrives_are_counted_by_message(desk: Desk) -> None:
    queue, other = await desk.queue(), await desk.queue("other")
    await desk.put(queue, *numbered(2))
    for time in range(3):
        await desk.reject(await desk.take(queue))
        assert await redriven(desk, queue) == [(b"m00000", time), (b"m00001", time)]
        await bring_back(desk, queue)
    await desk.put(queue, b"new")
    await desk.reject(await desk.take(queue))
    assert await redriven(desk, queue) == [(b"m00000", 3), (b"m00001", 3), (b"new", 0)]
    await bring_back(desk, queue, other)
    await desk.reject(await desk.take(other))
    assert [times for _, times in await redriven(desk, other)] == [4, 4, 1]


async def test_dead_letter_of_an_older_version_has_no_redrives(desk: Desk) -> None:
    queue = await desk.queue()
    await desk.put(queue, b"x")
    await desk.reject(await desk.take(queue))
    (entry,) = await desk.domain.link.call("XRANGE", queue.keys[6], "-", "+")
    assert b"redriven" not in entry[1]


async def test_redrive_count_survives_returns(desk: Desk) -> None:
    queue = await desk.queue(max_deliveries=2)
    await desk.put(queue, *numbered(3))
    await desk.reject(await desk.take(queue))
    await bring_back(desk, queue)
    front, end, again = singles(await desk.take(queue))
    await desk.release([front], failed=True)
    await desk.release([end], failed=True, to_end=True)
    await desk.release([again], to_end=True)
    got = singles(await desk.take(queue))
    assert bodies(got) == [b"m00000", b"m00001", b"m00002"]
    assert [d.acquired for d in got] == [2, 2, 2]
    await desk.release(got[2:], to_end=True)
    await desk.release(got[:2], failed=True)  # the second failure
    await desk.reject(await desk.take(queue))
    assert await redriven(desk, queue) == [(b"m00000", 1), (b"m00001", 1), (b"m00002", 1)]


@pytest.mark.parametrize("where", ["front", "end"])
async def test_redrive_count_survives_eviction_expiry_and_failures(desk: Desk, where: str) -> None:
    full = await desk.queue("full", max_length=1, overflow="dead_letter_oldest")
    await desk.put(full, b"first")
    await desk.reject(await desk.take(full))
    await bring_back(desk, full)
    await desk.release(await desk.take(full), to_end=where == "end")
    await desk.put(full, b"second")
    assert await redriven(desk, full) == [(b"first", 1)]


def test_repeated_take_of_a_redriven_message_has_the_same_reply(client: Client) -> None:
    """Check repeated takes of redriven entries, which use the field of a return to the end (lua/queues.lua)."""
    queue = Queue("orders", "q1", "main", "test", QueueSpec(ack_level="fsync"))
    begin(client, queue)
    lane, got = Lane(client, "one"), Answers()
    lane.messages.bury(lane.source, queue, *encode(b"x"), "t", "refused", "", Answers())
    lane.send()
    (letter,) = client.call("XRANGE", queue.keys[6], "-", "+")
    assert lane.function("redrive", [*queue.keys, *queue.keys], "", letter[0]) == [1, 0, b""]
    lane.messages.take(lane.source, queue, 1, got)
    first = lane.send()
    assert lane.again() == first
    ((delivery,),) = got
    assert delivery.history == b""
    lane.messages.release(lane.source, [delivery], failed=False, to_end=True)
    lane.messages.take(lane.source, queue, 1, got)
    second = lane.send()
    assert lane.again() == second
    assert got[1][0].acquired == 2
    (entry,) = client.call("XRANGE", queue.keys[0], "-", "+")
    assert entry[1][8:] == [b"c", b"1", b"r", b"1"]
