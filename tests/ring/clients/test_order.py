"""Requests sent ahead: replies in their order, however they were cut and whatever they ask (ring.md 5.2)."""

from __future__ import annotations

import asyncio
from random import Random

from services.store import QueueSpec
from tests.live import until
from tests.ring.clients.client import ERROR, OK, Client, Reply, create, destroy, pull, push
from tests.ring.clients.live import CLIENTS, LiveClients

DONE = Reply(OK, b"")
EMPTY = Reply(ERROR, b"empty")
UNSERVED = Reply(ERROR, b"no node serves this queue")
EXISTS = Reply(ERROR, b"queue exists already")
TALK = [
    (push(b"q", b"to nobody"), UNSERVED),
    (pull(b"q"), UNSERVED),
    (create(b"q"), DONE),
    (create(b"q"), EXISTS),
    (pull(b"q"), EMPTY),
    (push(b"q", b"1"), DONE),
    (push(b"q", b"2"), DONE),
    (pull(b"q"), Reply(OK, b"1")),
    (push(b"q", b"3"), DONE),
    (pull(b"q"), Reply(OK, b"2")),
    (pull(b"q"), Reply(OK, b"3")),
    (pull(b"q"), EMPTY),
    (push(b"q", b"lost with it"), DONE),
    (destroy(b"q"), DONE),
    (destroy(b"q"), UNSERVED),
    (push(b"q", b"to nobody"), UNSERVED),
]
WIRE = b"".join(request for request, _ in TALK)
ANSWERS = [answer for _, answer in TALK]


async def test_each_is_done_as_if_the_one_before_had_been_waited_for(client: Client) -> None:
    await client.send(WIRE * 5)
    for _ in range(5):
        assert await client.replies(b"q", len(TALK)) == ANSWERS


async def test_octet_by_octet(edge: LiveClients, client: Client) -> None:
    """The same as at once"""
    await edge.deliver(CLIENTS, client, *(bytes([octet]) for octet in WIRE))
    assert await client.replies(b"q", len(TALK)) == ANSWERS


async def test_cut_anywhere(edge: LiveClients, client: Client, chance: Random) -> None:
    for _ in range(20):
        cuts = sorted(chance.sample(range(1, len(WIRE)), 12))
        pieces = [WIRE[a:b] for a, b in zip([0, *cuts], [*cuts, len(WIRE)], strict=True)]
        await edge.deliver(CLIENTS, client, *pieces)
        assert await client.replies(b"q", len(TALK)) == ANSWERS


async def test_long_runs_are_answered_one_by_one(client: Client) -> None:
    """5.2: more than are handled together"""
    await client.create(b"q")
    bodies = [b"%d" % n for n in range(2_500)]
    await client.send(push(b"q", *bodies))
    assert await client.replies(b"q", 2_500) == [DONE] * 2_500
    assert await client.messages(b"q", 2_600) == [*bodies, *[None] * 100]


async def test_other_fields_end_a_run_and_not_the_order(client: Client) -> None:
    """5.2: of one sender and queue"""
    await client.create(b"q")
    await client.send(*(push(b"q", b"%d" % n, sender=b"till %d" % (n % 3)) for n in range(300)))
    for n in range(300):
        assert await client.reply(b"q", b"till %d" % (n % 3)) == DONE
    assert await client.drain(b"q") == [b"%d" % n for n in range(300)]


async def test_many_queues_at_once_keep_the_order_of_each(client: Client) -> None:
    """5.2: 64 runs may wait for the store at a time; here are more"""
    names = [b"q%d" % n for n in range(3)]
    for name in names:
        await client.create(name)
    await client.send(*(push(names[n % 3], b"%d" % n) for n in range(600)))
    for n in range(600):
        assert await client.reply(names[n % 3]) == DONE
    for number, name in enumerate(names):
        assert await client.messages(name, 201) == [*(b"%d" % n for n in range(number, 600, 3)), None]


async def test_a_push_is_done_before_the_destroy_behind_it(edge: LiveClients, client: Client) -> None:
    """5.2: also when the way to the store is full of others' messages"""
    await client.create(b"busy")
    await client.create(b"q")
    busy = [await edge.client() for _ in range(6)]
    load = push(b"busy", *[bytes(400_000)] * 5)
    sends = [asyncio.ensure_future(each.send(load)) for each in busy]
    await until(lambda: edge.service.store.open_domain().pipe.waiting.pending_bytes > 4 << 20)
    await client.send(push(b"q", b"1", b"2") + destroy(b"q"))
    assert await client.replies(b"q", 3) == [DONE] * 3
    await asyncio.gather(*sends)
    for each in busy:
        assert await each.replies(b"busy", 5) == [DONE] * 5


async def test_a_queue_that_somebody_else_made_anew(edge: LiveClients, client: Client) -> None:
    """5.2: the edge has not heard yet that the queue it knows is gone; nothing passes anything on that account"""
    bodies = [b"%d" % n for n in range(40)]
    await edge.declare("q")
    await client.push(b"q", b"old")
    for _ in range(5):
        with edge.untold():
            async for queue in edge.tools.listing.queues():
                await edge.tools.catalogue.delete(queue)
            await edge.declare("q")
        # single requests, of two senders, so that each is a run: many are under way with the old queue at once
        await client.send(
            *(push(b"q", body, sender=b"till %d" % (n % 2)) for n, body in enumerate(bodies)),
            pull(b"q", 5),
            push(b"q", b"last"),
        )
        for n in range(len(bodies)):
            assert await client.reply(b"q", b"till %d" % (n % 2)) == DONE
        assert await client.replies(b"q", 5) == [Reply(OK, body) for body in bodies[:5]]
        assert await client.reply(b"q") == DONE
        assert await client.drain(b"q") == [*bodies[5:], b"last"]


async def test_a_queue_that_somebody_else_removed(edge: LiveClients, client: Client) -> None:
    """5.8: not heard of yet, and found out"""
    old = await edge.declare("q")
    await client.push(b"q", b"old")
    with edge.untold():
        await edge.tools.catalogue.delete(old)
    await client.send(push(b"q", b"1") + pull(b"q", 2) + push(b"q", b"2", b"3") + destroy(b"q"))
    assert await client.replies(b"q", 6) == [UNSERVED] * 6


async def test_a_document_that_changed_is_followed(edge: LiveClients, client: Client) -> None:
    """5.8"""
    await edge.declare("q")
    await client.push(b"q", b"1")
    await edge.tools.catalogue.declare("q", QueueSpec(max_length=1), "test", replace=True)
    await client.send(push(b"q", b"2"))
    assert (await client.reply(b"q")).operation is ERROR
