"""Test an edge whose leases expired because its heartbeats were too late (tmq.md 5.3, 6.1)."""

from __future__ import annotations

import pytest

from protos import tmq
from services.store import Store
from services.store.pipeline.domain import Timing
from tests.live import until
from tests.tmq.client import Client
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

Q, KEPT = tmq.mqid_of(b"q"), tmq.mqid_of(b"kept")


@pytest.fixture
async def edge(make_edge: MakeEdge) -> LiveEdge:
    """Return an edge whose heartbeats are too infrequent."""
    edge = await make_edge(eof_grace_s=0.1)
    for name in ("q", "kept"):
        await edge.declare(name, visibility_timeout="1ms")
    return edge


@pytest.fixture
async def client(edge: LiveEdge) -> Client:
    client = await edge.client()
    for name in (b"q", b"kept"):
        assert await client.open(name) is not None
    await client.put(Q, b"1", b"2")
    return client


async def sweep(edge: LiveEdge, ready: int) -> None:
    """Return the edge's leases from another edge with short timeouts."""
    impatient = Timing(session_timeout_ms=100, beat_s=0.03, sweep_s=0.05)
    other = Store(edge.url, "impatient", timing=impatient)
    other.open_domain()
    other.start_serving()
    await until(lambda: has_ready(edge, ready))
    await other.close()


async def has_ready(edge: LiveEdge, count: int) -> bool:
    return bool((await edge.stats("q"))["ready"] == count)


async def test_te_fails(edge: LiveEdge, client: Client) -> None:
    # 5.3: one lost lease fails the whole transaction
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    assert await client.enq(KEPT, b"never")
    await sweep(edge, ready=2)
    assert not await client.te()
    assert await client.drain(KEPT) == []
    assert await client.drain(Q) == [b"1", b"2"]


async def test_te_fails_after_a_restart_of_the_edge(edge: LiveEdge, client: Client) -> None:
    # 5.3: the new session does not hold the leases of the old one
    busy = await edge.client()
    await busy.open(b"kept")
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    assert await client.enq(KEPT, b"never")
    await sweep(edge, ready=2)
    await until(lambda: puts(busy))
    assert not await client.te()
    assert edge.refusals()["lease_lost"] == 1
    assert b"never" not in await client.drain(KEPT)
    assert await client.drain(Q) == [b"1", b"2"]


async def puts(client: Client) -> bool:
    return await client.enq(KEPT, b"of another")


async def test_failing_te_on_an_original_listener_is_not_answered(edge: LiveEdge, client: Client) -> None:
    # 5.7, 6.1: a reply of 0 would be wrong, and there is no other
    reference = await edge.client("reference")
    assert await reference.open(b"q") is not None
    assert await reference.ts()
    assert await reference.dnq(Q) == b"1"
    await sweep(edge, ready=2)
    await reference.send(tmq.encode_te(reference.dialect))
    with pytest.raises((ConnectionResetError, EOFError)):
        await reference.read(1)
    assert await client.drain(Q) == [b"1", b"2"]


async def test_ta_does_not_return_messages_taken_by_others(edge: LiveEdge, client: Client) -> None:
    # 5.4, 5.6: a late return is fenced
    other = await edge.client()
    await other.open(b"q")
    assert await client.ts()
    assert await client.dnq(Q) == b"1"
    await sweep(edge, ready=2)
    await until(lambda: takes(other, b"1"))
    assert await client.ta()
    assert await client.dnq(Q) == b"2"
    assert await other.select(Q) == 0


async def takes(client: Client, body: bytes) -> bool:
    return await client.dnq(Q) == body


NEXT = {
    "DNQ": tmq.encode_dnq(Q),
    "ENQ to another queue": tmq.encode_enq(KEPT, b"a"),
    "SELECT of another queue": tmq.encode_select(KEPT),
    "TS, which the edge itself answers": tmq.encode_ts(tmq.Dialect.DOCUMENT),
    "CLOSE, which the edge itself answers": tmq.encode_close(KEPT),
}


@pytest.mark.parametrize("next_request", NEXT.values(), ids=NEXT)
async def test_client_with_lost_lease_is_reset(edge: LiveEdge, client: Client, next_request: bytes) -> None:
    # 6.1: the message will be redelivered, so the next request is not answered
    assert await client.dnq(Q) == b"1"
    await sweep(edge, ready=2)
    await client.send(next_request)
    with pytest.raises((ConnectionResetError, EOFError)):
        await client.read(1)
    other = await edge.client()
    await other.open(b"q")
    await until(lambda: has_ready(edge, 2))
    assert await other.drain(Q) == [b"1", b"2"]
