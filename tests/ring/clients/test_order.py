"""Order of replies to requests sent ahead, however they are cut and mixed (ring.md 5.2)."""

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
    (push(b"q", b"unserved"), UNSERVED),
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
    (push(b"q", b"unserved"), UNSERVED),
]
WIRE = b"".join(request for request, _ in TALK)
ANSWERS = [answer for _, answer in TALK]


async def test_pipelined_requests_behave_like_sequential_ones(client: Client) -> None:
    await client.send(WIRE * 5)
    for _ in range(5):
        assert await client.replies(b"q", len(TALK)) == ANSWERS


async def test_requests_sent_octet_by_octet_are_served(edge: LiveClients, client: Client) -> None:
    """Check that requests sent octet by octet are served as if sent at once."""
    await edge.deliver(CLIENTS, client, *(bytes([octet]) for octet in WIRE))
    assert await client.replies(b"q", len(TALK)) == ANSWERS


async def test_requests_cut_anywhere_are_served(edge: LiveClients, client: Client, chance: Random) -> None:
    for _ in range(20):
        cuts = sorted(chance.sample(range(1, len(WIRE)), 12))
        pieces = [WIRE[a:b] for a, b in zip([0, *cuts], [*cuts, len(WIRE)], strict=True)]
        await edge.deliver(CLIENTS, client, *pieces)
        assert await client.replies(b"q", len(TALK)) == ANSWERS


async def test_long_runs_are_answered_one_by_one(client: Client) -> None:
    """Check that runs longer than one batch are answered one by one (5.2)."""
    await client.create(b"q")
    bodies = [b"%d" % n for n in range(2_500)]
    await client.send(push(b"q", *bodies))
    assert await client.replies(b"q", 2_500) == [DONE] * 2_500
    assert await client.messages(b"q", 2_600) == [*bodies, *[None] * 100]


async def test_different_fields_end_a_run_but_keep_the_order(client: Client) -> None:
    """Check that a run has one sender and queue, and that order is kept across runs (5.2)."""
    await client.create(b"q")
    await client.send(*(push(b"q", b"%d" % n, sender=b"till %d" % (n % 3)) for n in range(300)))
    for n in range(300):
        assert await client.reply(b"q", b"till %d" % (n % 3)) == DONE
    assert await client.drain(b"q") == [b"%d" % n for n in range(300)]


async def test_order_is_kept_per_queue(client: Client) -> None:
    """Check that order is kept per queue with more runs than the 64 that may wait for the store (5.2)."""
    names = [b"q%d" % n for n in range(3)]
    for name in names:
        await client.create(name)
    await client.send(*(push(names[n % 3], b"%d" % n) for n in range(600)))
    for n in range(600):
        assert await client.reply(names[n % 3]) == DONE
    for number, name in enumerate(names):
        assert await client.messages(name, 201) == [*(b"%d" % n for n in range(number, 600, 3)), None]


async def test_push_is_done_before_a_following_destroy(edge: LiveClients, client: Client) -> None:
    """Check that a push is done before a following destroy, also when the store connection is congested (5.2)."""
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


async def test_queue_recreated_by_another_client_is_used(edge: LiveClients, client: Client) -> None:
    """Check that a queue recreated by another client is used, and order is kept.

    5.2: the edge has not been notified that the queue it knows was deleted.
    """
    bodies = [b"%d" % n for n in range(40)]
    await edge.declare("q")
    await client.push(b"q", b"old")
    for _ in range(5):
        with edge.changes_not_published():
            async for queue in edge.tools.listing.queues():
                await edge.tools.catalogue.delete(queue)
            await edge.declare("q")
        # single requests of two senders, so that each is a run: many are under way with the old queue at once
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


async def test_queue_removed_by_another_client_is_unknown(edge: LiveClients, client: Client) -> None:
    """Check that a queue deleted by another client is reported as unknown before the edge was notified (5.8)."""
    old = await edge.declare("q")
    await client.push(b"q", b"old")
    with edge.changes_not_published():
        await edge.tools.catalogue.delete(old)
    await client.send(push(b"q", b"1") + pull(b"q", 2) + push(b"q", b"2", b"3") + destroy(b"q"))
    assert await client.replies(b"q", 6) == [UNSERVED] * 6


async def test_changed_queue_settings_are_followed(edge: LiveClients, client: Client) -> None:
    """Check that changed queue settings take effect (5.8)."""
    await edge.declare("q")
    await client.push(b"q", b"1")
    await edge.tools.catalogue.declare("q", QueueSpec(max_length=1), "test", replace=True)
    await client.send(push(b"q", b"2"))
    assert (await client.reply(b"q")).operation is ERROR
