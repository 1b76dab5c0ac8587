"""Access rules for messages from the ring (docs/operations.md; ring.md 5.3, 5.5)."""

from __future__ import annotations

from typing import Any

import pytest

from protos.ring import NO_ID, Frame, Operation
from services.ring.node.counts import UserOutcome
from services.store.model.spec import QueueSpec
from tests.live import until
from tests.ring.users.conftest import Start
from tests.ring.users.members import Member
from tests.ring.users.test_requests import OK, Successor, answer
from tests.servers import Server

DENIED = ("ERROR", b"access denied: ask the operator of this queue")


@pytest.fixture
async def node(start: Start, server: Server) -> Member:
    return await start(server, b"node")


@pytest.fixture
async def ring(node: Member) -> Successor:
    return Successor(node)


def refused(node: Member) -> float | None:
    return node.metrics.registry.get_sample_value(
        "penstock_refusals_total", {"edge": "ring", "reason": "access_denied"}
    )


@pytest.mark.parametrize(
    "access", [{"edges": ["tmq"]}, {"peers": ["0.0.0.0/0", "::/0"]}, {"certificates": ["shop"]}]
)
async def test_remote_request_without_access_is_refused(
    node: Member, ring: Successor, access: dict[str, Any]
) -> None:
    """Check that a remote request without access is answered ERROR and not forwarded.

    The client is unknown: a queue that names clients allows none of them.
    """
    await node.declare("orders", access=access)
    assert answer(await ring.asks(Operation.PUSH, b"orders", 1, b"x")) == DENIED
    assert answer(await ring.asks(Operation.PULL, b"orders", 2)) == DENIED
    await ring.sends(Frame(Operation.PUSH, b"client", b"orders", b"y", NO_ID))
    await until(lambda: len(ring.got) == 3)
    assert answer(ring.got[2]) == DENIED
    assert refused(node) == 3
    assert (await node.stats("orders"))["added"] == 0


async def test_remote_request_with_access_is_served(node: Member, ring: Successor) -> None:
    await node.declare("orders", access={"edges": ["ring"]})
    assert answer(await ring.asks(Operation.PUSH, b"orders", 1, b"x")) == OK
    assert answer(await ring.asks(Operation.PULL, b"orders", 2)) == ("OK", b"x")


async def test_inbox_with_access_for_the_ring_is_filled(node: Member, ring: Successor) -> None:
    await node.declare("in", bindings={"ring": {"inbox": 1}}, access={"edges": ["ring", "tmq"]})
    await until(lambda: node.users.bindings.inbox)
    safe: list[bool] = []
    node.users.user_sink.received(b"hello", lambda: safe.append(True))
    await until(lambda: safe)
    assert await node.bodies("in") == [b"hello"]


async def test_message_refused_by_the_inbox_access_is_a_dead_letter(node: Member, ring: Successor) -> None:
    """Check that a message refused by the inbox's access rules becomes a dead letter.

    Documents cannot contain such a rule; if one did, nothing would be lost.
    """
    await node.declare("in", bindings={"ring": {"inbox": 1}})
    await until(lambda: node.users.bindings.inbox)
    inbox = node.users.bindings.inbox
    assert inbox is not None
    access = QueueSpec(access={"edges": ["tmq"]}).access
    inbox.follow(QueueSpec.model_construct(ack_level="fsync", access=access), "test")
    safe: list[bool] = []
    node.users.user_sink.received(b"hello", lambda: safe.append(True))
    await until(lambda: safe)
    assert [(letter.reason, letter.body) for letter in await node.dead("in")] == [("access_denied", b"hello")]
    assert node.count(UserOutcome.BURIED) == 1


async def test_outbox_sends_messages_of_any_client(start: Start, server: Server) -> None:
    """Check that the outbox sends messages of any client: sending is not a client's pull."""
    node = await start(server, b"sender", group=9)
    ring = []
    node.users.user_source.on_ready(
        lambda: ring.extend(outgoing_message.payload for outgoing_message in node.users.user_source.take(64))
    )
    await node.declare("out", bindings={"ring": {"outbox": 9}}, access={"edges": ["tmq"]})
    await node.put("out", b"hello")
    await until(lambda: b"hello" in ring)
