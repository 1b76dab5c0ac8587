"""Repeated requests while the first copy is being stored or waits behind others (ring.md 4.5, 5.4).

A request goes on once: a sent copy may have been carried out by the next node, with another store.
"""

from __future__ import annotations

from protos.ring import Frame, Operation, encode_frame
from services.ring.node.counts import UserOutcome
from tests.live import until
from tests.ring.users.members import Hand, Member, Start
from tests.ring.users.test_without_id import keep_replies
from tests.servers import Server

PUSH = encode_frame(Frame(Operation.PUSH, b"client", b"orders", b"x", b"1" * 16))


async def test_repeat_waits_for_the_first_copy_even_if_the_queue_now_exists(
    start: Start, server: Server
) -> None:
    """Check that a repeat waits for the first copy, even if the queue now exists (4.5, 5.4).

    The store refused the first copy until the predecessor's timeout ended.
    """
    node = await start(server, b"node")
    hand = Hand(node)
    await keep_replies(node)
    hand.sends(PUSH)
    await until(lambda: node.users.readiness.unready() == "storing: the queue is paused")
    await node.declare("orders")
    hand.sends(PUSH)
    await keep_replies(node, False)
    await until(lambda: hand.safe == [PUSH, PUSH])
    assert node.count(UserOutcome.PASSED_ON) == 1
    assert await node.bodies("orders") == []


async def test_waiting_request_is_routed_again(server: Server) -> None:
    """Check that a waiting request is routed again (5.4, 5.5).

    It stood behind a message that waited for the inbox to be known when the first copy went on.
    """
    node = Member(server.url, b"node")
    node.store.start_serving()
    hand = Hand(node)
    hand.sends(PUSH, b"plain")
    await until(lambda: len(node.users.writer) == 1)
    await node.declare("orders")
    hand.sends(PUSH)
    node.users.ownership.start()
    await until(lambda: node.count(UserOutcome.PASSED_ON) == 1)
    node.users.bindings.start()
    await until(lambda: len(hand.safe) == 3)
    assert (node.count(UserOutcome.PASSED_ON), node.count("seen")) == (2, 1)
    assert await node.bodies("orders") == []
    await node.close()
