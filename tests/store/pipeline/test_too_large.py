"""A message over the limit of the peers is refused when it is put into a transmission queue (rqp_mca.md 3.1)."""

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


async def test_the_others_of_a_run_are_put_in(desk: Desk) -> None:
    """Whatever shares an entry with it: packing makes no difference."""
    queue = await transmission(desk)
    small = [b"%010d" % i for i in range(100)]
    run = [*small[:40], b"x" * 11, *small[40:], b"y" * 5000]
    assert await publish(desk, queue, *run) == {40: LARGE, 101: LARGE}
    assert await desk.drain(queue) == small
    assert desk.refusals == {"too_large_for_peers": 2}


async def test_runs_of_several_connections_have_each_their_own_answer(desk: Desk) -> None:
    queue = await transmission(desk)
    asked = [desk.publishing(queue, body, source=Source(INTERNAL_CLIENT)) for body in (b"a", b"x" * 11, b"b")]
    assert [[type(why) for _, why in await answer] for answer in asked] == [[], [LARGE], []]
    assert await desk.drain(queue) == [b"a", b"b"]


async def test_what_is_too_large_fills_no_queue(desk: Desk) -> None:
    queue = await transmission(desk, max_length=3)
    run = [b"1", b"x" * 11, b"2", b"3", b"4", b"y" * 11]
    assert await publish(desk, queue, *run) == {1: LARGE, 4: FULL, 5: LARGE}
    assert await desk.drain(queue) == [b"1", b"2", b"3"]
    assert desk.refusals == {"too_large_for_peers": 2, "queue_full": 1}


async def test_the_body_counts_and_not_what_is_said_beside_it(desk: Desk) -> None:
    queue = await transmission(desk)
    answers: list[Any] = []
    run = [records.encode(b"x" * size, {"key": "value" * 50}) for size in (10, 11)]
    desk.pipe.messages.publish(desk.source, queue, run, "test", answers.append)
    await desk.count(queue)
    assert [(index, type(why)) for index, why in answers[0]] == [(1, LARGE)]


async def test_a_commit_is_refused_whole(desk: Desk) -> None:
    queue, other = await transmission(desk), await desk.queue("other")
    parts = [CommitPart(other, [], encode(b"a"), "t"), CommitPart(queue, [], encode(b"b", b"x" * 11), "t")]
    with pytest.raises(MessageTooLarge):
        await desk.commit("t1", *parts)
    assert [await desk.count(one) for one in (queue, other)] == [0, 0]


async def test_a_send_with_a_copy_that_is_too_large_is_refused_whole(desk: Desk) -> None:
    remote = {"protocol": "rqp-cast", "key": 7, "maxMessageBytes": 3}
    async with logbook(desk) as book:
        queue = await book.bound("far", "t", remote=remote)
        await book.send(b"t abc", to=(queue,))
        with pytest.raises(MessageTooLarge):
            await book.send(b"t abcd", to=(queue,))
        assert await book.lines() == [b"t abc"]


async def test_redriving_stops_at_what_is_too_large(desk: Desk) -> None:
    queue = await desk.queue("orders")
    for body in (b"x", b"x" * 11):
        await desk.bury(queue, records.encode(body), "refused")
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 10}
    await desk.store.catalogue.declare("orders", QueueSpec(remote=remote), "test", replace=True)
    ids = [letter.id async for letter in desk.dead(queue).matching()]
    done = await desk.dead(queue).redrive(ids)
    assert (done.moved, type(done.stopped)) == (1, LARGE)
    assert await desk.dead(queue).count() == 1


async def test_messages_that_were_there_before_stay(desk: Desk) -> None:
    queue = await transmission(desk, 20)
    await desk.put(queue, b"x" * 20)
    remote = {"protocol": "rqp-mca", "queueId": 7, "maxMessageBytes": 10}
    await desk.store.catalogue.declare("orders", QueueSpec(remote=remote), "test", replace=True)
    got = await desk.take(queue)
    await desk.release(got, to_end=True)
    assert bodies(await desk.take(queue)) == [b"x" * 20]
