"""Access rules of queues at the ring's client port (docs/operations.md, Who may use a queue; ring.md 5.8)."""

from __future__ import annotations

from typing import Any

import pytest

from services.store import QueueSpec
from tests.live import until
from tests.ring.clients.client import Client, Refused, pull, push
from tests.ring.clients.live import LiveClients

ELSEWHERE = {"peers": ["127.0.0.9"]}
WORDS = "access denied: ask the operator of this queue"


@pytest.mark.parametrize("access", [ELSEWHERE, {"edges": ["tmq"]}, {"certificates": ["shop"]}])
async def test_queue_without_access_is_refused(
    edge: LiveClients, client: Client, access: dict[str, Any]
) -> None:
    """Check that push and pull without access are answered ERROR with its text, counted and logged."""
    queue = await edge.declare("orders", access=access)
    with pytest.raises(Refused, match=WORDS):
        await client.push(b"orders", b"1")
    with pytest.raises(Refused, match=WORDS):
        await client.pull(b"orders")
    assert edge.refusals()["access_denied"] == 2
    (line,) = edge.log.events("refused", reason="access_denied")
    assert "queue 'orders' is not for this client: access." in line.detail  # type: ignore[attr-defined]
    assert (await edge.tools.listing.stats(queue))["added"] == 0


async def test_client_with_access_is_served(edge: LiveClients, client: Client) -> None:
    await edge.declare("orders", access={"edges": ["ring"], "peers": ["127.0.0.0/8"]})
    await client.push(b"orders", b"1")
    assert await client.pull(b"orders") == b"1"


async def test_changed_access_applies_at_once(edge: LiveClients, client: Client) -> None:
    """Check that changed access rules apply at once, and each request of a run is answered in order."""
    await edge.declare("orders")
    await client.push(b"orders", b"1", b"2")
    assert await client.pull(b"orders") == b"1"
    handle = edge.service.store.catalogue.held("orders")
    assert handle is not None
    shut = QueueSpec.model_validate({"access": ELSEWHERE})
    await edge.tools.catalogue.declare("orders", shut, "test", replace=True)
    await until(lambda: handle.admission is not None)
    await client.send(push(b"orders", b"3", b"4"), pull(b"orders", 2))
    replies = await client.replies(b"orders", 4)
    assert [reply.message for reply in replies] == [WORDS.encode()] * 4
    await edge.tools.catalogue.declare("orders", QueueSpec(), "test", replace=True)
    await until(lambda: handle.admission is None)
    assert await client.pull(b"orders") == b"2"
    assert await client.pull(b"orders") is None
