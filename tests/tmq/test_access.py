"""Test queues with restricted access (docs/operations.md, Who may use a queue; tmq.md 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from protos import tmq
from protos.tmq import Operation
from services.store import Queue, QueueSpec
from services.store.model.records import encode
from services.store.pipeline.async_client import AsyncClient
from tests.kit.authority import Authority
from tests.live import until
from tests.tmq.client import Client, SecureClient
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

ELSEWHERE = {"peers": ["127.0.0.9"]}
HERE = {"peers": ["127.0.0.9", "127.0.0.0/30"]}
OTHER_EDGES = {"edges": ["rqp", "ring"]}


async def put_by_administrator(edge: LiveEdge, queue: Queue, *bodies: bytes) -> None:
    async_client = AsyncClient(edge.tools.open_domain(queue.domain).pipe)
    assert await async_client.publish(queue, [encode(body) for body in bodies], "test") == []


async def change(edge: LiveEdge, name: str, **access: Any) -> None:
    """Change a queue's access, and return once the edge applies it."""
    spec = QueueSpec.model_validate({"access": access, "ackLevel": "fsync"})
    await edge.tools.catalogue.declare(name, spec, "test", replace=True)
    await until(lambda: (found := edge.service.store.catalogue.held(name)) is None or found.spec == spec)


@pytest.mark.parametrize("access", [ELSEWHERE, OTHER_EDGES, {"certificates": ["shop"]}])
async def test_open_of_a_forbidden_queue_is_refused(
    edge: LiveEdge, client: Client, access: dict[str, Any]
) -> None:
    """Check that OPEN returns the nil MQID as for a missing queue, and that the refusal is counted and logged."""
    await edge.declare("orders", access=access)
    assert await client.open(b"orders") is None
    assert edge.refusals()["access_denied"] == 1
    (line,) = edge.log.events("refused", reason="access_denied")
    assert "queue 'orders' is not for this client: access." in line.detail  # type: ignore[attr-defined]


async def test_allowed_client_is_admitted(edge: LiveEdge, client: Client) -> None:
    await edge.declare("orders", access={**HERE, "edges": ["tmq"]})
    mqid = await client.queue(b"orders")
    await client.put(mqid, b"1")
    assert await client.dnq(mqid) == b"1"
    assert not edge.refusals()["access_denied"]


async def test_changed_document_applies_to_open_queues(edge: LiveEdge, client: Client) -> None:
    """Check that ENQ, DNQ and SELECT fail after access was removed, messages stay, and access can be restored."""
    queue = await edge.declare("orders")
    mqid = await client.queue(b"orders")
    await client.put(mqid, b"1", b"2")
    assert await client.dnq(mqid) == b"1"
    await change(edge, "orders", **ELSEWHERE)
    assert not await client.enq(mqid, b"3")  # this request settles 1, which was delivered before the change
    assert await client.dnq(mqid) is None
    assert await client.select(mqid) == tmq.UNUSABLE
    assert edge.refusals()["access_denied"] == 3
    await change(edge, "orders")
    assert await client.drain(mqid) == [b"2"]
    assert (await edge.tools.listing.stats(queue))["dead"] == 0


async def test_transaction_with_a_forbidden_queue_fails(edge: LiveEdge, client: Client) -> None:
    """Check that TE fails as a whole if one queue is forbidden (tmq.md 5.3)."""
    await edge.declare("orders")
    await edge.declare("quotes")
    orders, quotes = await client.queue(b"orders"), await client.queue(b"quotes")
    await client.ts()
    await client.put(orders, b"1")
    await client.put(quotes, b"2")
    await change(edge, "orders", **ELSEWHERE)
    assert not await client.te()
    assert edge.refusals()["access_denied"] == 1
    assert await client.select(quotes) == 0


async def test_run_of_requests_is_refused_completely(edge: LiveEdge, client: Client) -> None:
    queue = await edge.declare("orders")
    mqid = await client.queue(b"orders")
    await change(edge, "orders", **ELSEWHERE)
    await put_by_administrator(edge, queue, b"0")
    await client.send(*(tmq.encode_enq(mqid, b"%d" % number) for number in range(100)))
    failed = tmq.encode_status(client.dialect, Operation.ENQ, False)
    assert await client.read(100) == failed * 100
    assert await client.messages(mqid, 100) == [None] * 100
    assert (await edge.tools.listing.stats(queue))["ready"] == 1
    assert len(edge.log.events("refused", reason="access_denied")) == 1  # logged once for each connection


async def test_access_depends_on_the_certificate(make_edge: MakeEdge, tmp_path: Path) -> None:
    """Check access by mutual TLS: the subject's common name and DNS names count."""
    authority = Authority.create(tmp_path)
    edge = await make_edge(listeners={"document": {"port": 0, "tls": authority.mutual()}}, eof_grace_s=0.1)
    queue = await edge.declare("orders", access={"certificates": ["shop 7", "depot.example.org"]})

    async def comes(*names: str) -> SecureClient:
        client = await SecureClient.reach(edge.places["document"], authority.client(*names))
        edge.adopt(client.close)
        return client

    by_common_name = await comes("till.example.org", "shop 7")
    by_dns_name = await comes("depot.example.org", "any name")
    unknown = await comes("shop.example.org", "shop 8")
    assert await unknown.open(b"orders") is None
    mqid = await by_common_name.open(b"orders")
    assert mqid is not None
    await by_common_name.put(mqid, b"1")
    assert await by_dns_name.open(b"orders") == mqid
    assert await by_dns_name.dnq(mqid) == b"1"
    (line,) = edge.log.events("refused", reason="access_denied")
    assert "does not name shop 8, shop.example.org" in line.detail  # type: ignore[attr-defined]
    assert (await edge.tools.listing.stats(queue))["added"] == 1


@pytest.mark.parametrize("listener", ["document", "reference"])
async def test_internal_queue_cannot_be_opened(edge: LiveEdge, listener: str) -> None:
    """Check that clients can neither open, create nor delete a ring node's internal queue (docs/store.md)."""
    name = b"ring/1/127.0.0.1:8085"
    await edge.declare(name.decode(), "edge:ring")
    client = await edge.client(listener)
    assert await client.open(name) is None
    assert not await client.create(name)
    assert not await client.create(b"ring/1/another:8085")
    assert not await client.delete(name)
    assert dict(edge.refusals()) == {"access_denied": 1, "reserved_name": 2, "not_owner": 1}
