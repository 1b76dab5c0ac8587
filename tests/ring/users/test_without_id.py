"""A pull without a request id: it cannot be repeated or settled, so its reply decides (ring.md 5.3, 5.4)."""

from __future__ import annotations

import asyncio

import pytest

from protos.ring import NO_ID, Frame, Operation, encode_frame
from services.ring.node.counts import UserOutcome
from services.ring.node.outgoing import writer as writer
from services.ring.service import OWNER
from services.store import QueueSpec
from tests.live import until
from tests.ring.users.members import Member, Start
from tests.ring.users.test_requests import Successor, answer
from tests.servers import Server

PULL = Frame(Operation.PULL, b"original", b"orders", b"", NO_ID)


async def keep_replies(node: Member, is_kept: bool = True) -> None:
    """Pause the outgoing queue, or resume it: while it is paused, no reply is safe."""
    spec = QueueSpec(max_deliveries=0, paused=is_kept)
    await node.store.catalogue.declare(node.users.queue_name, spec, OWNER, replace=True, internal=True)


async def standing(node: Member) -> tuple[int, int, int]:
    stats = await node.stats("orders")
    return stats["ready"], stats["in_flight"], stats["acked"]


async def test_pull_without_id_is_settled_once_its_reply_is_stored(start: Start, server: Server) -> None:
    """Check that a pull without id is settled once its reply is stored; earlier, it could be lost (5.4)."""
    node = await start(server, b"node")
    await node.declare("orders")
    await node.put("orders", b"a")
    await keep_replies(node)
    ring = Successor(node)
    asked = asyncio.ensure_future(ring.sends(PULL))
    await until(lambda: node.users.readiness.unready() == "storing: the queue is paused")
    assert await standing(node) == (0, 1, 0)
    await keep_replies(node, False)
    await asked
    await until(lambda: len(node.users.user_sink) == 0)
    assert answer(ring.got[-1]) == ("OK", b"a")

    async def is_settled() -> bool:
        return await standing(node) == (0, 0, 1)

    await until(is_settled)


async def test_pull_without_id_returns_if_its_reply_is_not_stored(
    start: Start, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a pull without id returns if its reply is not stored, without a failed delivery (5.4).

    It is not settled, and no live process loses a lease.
    """
    node = await start(server, b"node")
    await node.declare("orders", maxDeliveries=1)
    await node.put("orders", b"a")
    await keep_replies(node)
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    safe: list[bool] = []
    node.users.user_sink.received(encode_frame(PULL), lambda: safe.append(True))
    await until(lambda: node.count(UserOutcome.UNSAFE) == 1)

    async def is_back() -> bool:
        return await standing(node) == (1, 0, 0)

    await until(is_back)
    assert safe == []
    assert await node.dead("orders") == []


async def test_pull_without_id_from_an_at_most_once_queue(start: Start, server: Server) -> None:
    """Check that a pull without id from an at-most-once queue is settled before it is sent.

    docs/ring.md, What to count on: a lost lease would matter.
    """
    node = await start(server, b"node")
    await node.declare("orders", delivery="at-most-once")
    await node.put("orders", b"a")
    ring = Successor(node)
    await ring.sends(PULL)
    await ring.sends(PULL)  # earlier store requests of the node are answered by now
    await until(lambda: len(ring.got) == 2)
    assert [answer(frame) for frame in ring.got] == [("OK", b"a"), ("ERROR", b"empty")]
    assert await standing(node) == (0, 0, 1)
    assert node.store_events("lease_lost") == 0
