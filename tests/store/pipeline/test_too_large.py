"""A message over the peers' limit is refused by a transmission queue (rqp_mca.md 3.1)."""

from typing import Any

import pytest

from services.store import INTERNAL_CLIENT, CommitPart, Queue, QueueSpec, Source
from services.store.model import records
from services.store.model.errors import MessageTooLarge, QueueFull
from tests.store.desk import Desk, bodies, encode
from tests.store.logbook import logbook

LARGE, FULL = MessageTooLarge, QueueFull


async def transmission(desk: Desk, largest: int = 10, **spec: Any) -> Queue:
    return await desk.queue(remote={"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": largest}, **spec)


async def publish(desk: Desk, queue: Queue, *messages: bytes) -> dict[int, type[Exception]]:
    return {index: type(why) for index, why in await desk.publish(queue, *messages)}


async def test_other_messages_of_the_run_are_stored(desk: Desk) -> None:
    """Check that other messages of the run are stored, independently of packing."""
    queue = await transmission(desk)
    small = [b"%010d" % i for i in range(100)]
    run = [*small[:40], b"x" * 11, *small[40:], b"y" * 5000]
    assert await publish(desk, queue, *run) == {40: LARGE, 101: LARGE}
    assert await desk.drain(queue) == small
    assert desk.refusals == {"too_large_for_peers": 2}


async def test_each_run_gets_its_own_refusals(desk: Desk) -> None:
    queue = await transmission(desk)
    asked = [desk.publishing(queue, body, source=Source(INTERNAL_CLIENT)) for body in (b"a", b"x" * 11, b"b")]
    assert [[type(why) for _, why in await answer] for answer in asked] == [[], [LARGE], []]
    assert await desk.drain(queue) == [b"a", b"b"]


async def test_too_large_message_uses_no_space(desk: Desk) -> None:
    queue = await transmission(desk, max_length=3)
    run = [b"1", b"x" * 11, b"2", b"3", b"4", b"y" * 11]
    assert await publish(desk, queue, *run) == {1: LARGE, 4: FULL, 5: LARGE}
    assert await desk.drain(queue) == [b"1", b"2", b"3"]
    assert desk.refusals == {"too_large_for_peers": 2, "queue_full": 1}


async def test_limit_counts_the_body_without_attributes(desk: Desk) -> None:
    queue = await transmission(desk)
    answers: list[Any] = []
    run = [records.encode(b"x" * size, {"key": "value" * 50}) for size in (10, 11)]
    desk.pipe.messages.publish(desk.source, queue, run, "test", answers.append)
    await desk.count(queue)
    assert [(index, type(why)) for index, why in answers[0]] == [(1, LARGE)]


async def test_commit_with_too_large_message_is_refused_whole(desk: Desk) -> None:
    queue, other = await transmission(desk), await desk.queue("other")
    parts = [CommitPart(other, [], encode(b"a"), "t"), CommitPart(queue, [], encode(b"b", b"x" * 11), "t")]
    with pytest.raises(MessageTooLarge):
        await desk.commit("t1", *parts)
    assert [await desk.count(one) for one in (queue, other)] == [0, 0]


async def test_send_with_too_large_copy_is_refused_whole(desk: Desk) -> None:
    remote = {"protocol": "rqp-cast", "key": 7, "maxMessageBytes": 3}
    async with logbook(desk) as book:
        queue = await book.bound("far", "t", remote=remote)
        await book.send(b"t abc", to=(queue,))
        with pytest.raises(MessageTooLarge):
            await book.send(b"t abcd", to=(queue,))
        assert await book.lines() == [b"t abc"]


async def test_redrive_stops_at_too_large_message(desk: Desk) -> None:
    queue = await desk.queue("orders")
    for body in (b"x", b"x" * 11):
        await desk.bury(queue, records.encode(body), "refused")
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 10}
    await desk.store.catalogue.declare("orders", QueueSpec(remote=remote), "test", replace=True)
    ids = [letter.id async for letter in desk.dead(queue).matching()]
    done = await desk.dead(queue).redrive(ids)
    assert (done.moved, type(done.stopped)) == (1, LARGE)
    assert await desk.dead(queue).count() == 1


async def test_existing_large_messages_stay(desk: Desk) -> None:
    queue = await transmission(desk, 20)
    await desk.put(queue, b"x" * 20)
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 10}
    await desk.store.catalogue.declare("orders", QueueSpec(remote=remote), "test", replace=True)
    got = await desk.take(queue)
    await desk.release(got, to_end=True)
    assert bodies(await desk.take(queue)) == [b"x" * 20]
