"""A request that comes again while its first copy is being stored, or something is before it (ring.md 4.5, 5.4).

It goes on once: what has left may have been carried out by the node behind, with another store.
"""

from __future__ import annotations

from protos.ring import Frame, Operation, encode_frame
from services.ring.node import counts
from tests.live import until
from tests.ring.users.members import Hand, Member, Start
from tests.ring.users.test_without_id import keep_replies
from tests.servers import Server

PUSH = encode_frame(Frame(Operation.PUSH, b"asker", b"orders", b"x", b"1" * 16))


async def test_it_waits_for_the_first_though_its_queue_was_made_meanwhile(
    start: Start, server: Server
) -> None:
    """4.5, 5.4: the store refused what goes on until the predecessor's patience ended"""
    node = await start(server, b"node")
    hand = Hand(node)
    await keep_replies(node)
    hand.sends(PUSH)
    await until(lambda: node.users.readiness.unready() == "storing: the queue is paused")
    await node.declare("orders")
    hand.sends(PUSH)
    await keep_replies(node, False)
    await until(lambda: hand.safe == [PUSH, PUSH])
    assert node.count(counts.PASSED_ON) == 1
    assert await node.bodies("orders") == []


async def test_what_waited_is_looked_at_anew(server: Server) -> None:
    """5.4, 5.5: it stood behind something that waited for the inbox to be known when the first one went on"""
    node = Member(server.url, b"node")
    node.store.start_serving()
    hand = Hand(node)
    hand.sends(PUSH, b"plain")
    await until(lambda: len(node.users.storing) == 1)
    await node.declare("orders")
    hand.sends(PUSH)
    node.users.ownership.start()
    await until(lambda: node.count(counts.PASSED_ON) == 1)
    node.users.bindings.start()
    await until(lambda: len(hand.safe) == 3)
    assert (node.count(counts.PASSED_ON), node.count("seen")) == (2, 1)
    assert await node.bodies("orders") == []
    await node.close()
