"""Test a store that stops responding: replies, time-outs and limits (tmq.md 7.2, 7.3)."""

from __future__ import annotations

import asyncio

import pytest

from protos import tmq
from services.store.redis import link
from tests.live import until
from tests.servers import Server
from tests.tmq.client import Client, answer_or_none
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge

MIB = 1 << 20
CHUNK = 256 << 10  # octets delivered to a connection at a time, at most
Q, TARGET = tmq.mqid_of(b"q"), tmq.mqid_of(b"target")
BRISK = {"patience_s": 0.3, "reply_timeout_s": 0.5, "call_deadline_s": 1.0}


@pytest.fixture
async def edge(own_server: Server, make_edge: MakeEdge) -> LiveEdge:
    """Return an edge with short timeouts on a server of its own."""
    return await make_edge(own_server.url, request_timeout_s=1.5, eof_grace_s=0.1, store=BRISK)


async def test_stopped_and_continued(edge: LiveEdge, own_server: Server) -> None:
    """Check that each ENQ is answered with its known outcome or not at all, and stored at most once (7.2)."""
    clients = [await edge.client() for _ in range(8)]
    mqid = await clients[0].queue(b"q")
    for client in clients[1:]:
        await client.queue(b"q")
    own_server.stop()
    outcomes = asyncio.gather(
        *(answer_or_none(client.enq(mqid, b"%d" % n)) for n, client in enumerate(clients))
    )
    found_out = await outcomes
    own_server.cont()
    await until(edge.is_ready)
    reader = await edge.client()
    found = await reader.drain(await reader.queue(b"q"))
    assert len(set(found)) == len(found), "stored twice"
    for n, outcome in enumerate(found_out):
        assert outcome is not True, "an OK from a stopped store"
        if outcome is False:
            assert b"%d" % n not in found, "failed, but stored"
    assert None in found_out, "all requests were answered, although the store was stopped"


async def test_requests_fail_while_the_store_is_stopped(edge: LiveEdge, own_server: Server) -> None:
    """Check that requests are closed unanswered after the request timeout, and failed ones were not executed (7.2)."""
    dnq, te, create, delete, select, opener, witness = [await edge.client() for _ in range(7)]
    for client in (dnq, te, select, witness):
        await client.queue(b"q")
        await client.queue(b"target")
    await delete.create(b"old")
    await dnq.put(Q, b"1", b"2", b"3")
    assert await te.ts()
    assert await te.dnq(Q) == b"1"
    assert await te.enq(TARGET, b"moved")
    own_server.stop()
    changes = asyncio.gather(*map(answer_or_none, (te.te(), create.create(b"new"), delete.delete(b"old"))))
    reads = asyncio.gather(
        answer_or_none(dnq.dnq(Q)), answer_or_none(select.select(Q)), answer_or_none(opener.open(b"q"))
    )
    (done, made, removed), (body, number, mqid) = await changes, await reads
    own_server.cont()
    await until(edge.is_ready)
    assert True not in (done, made, removed), "an OK from a stopped store"
    assert (body, mqid) == (None, None)
    assert number in (None, tmq.UNUSABLE)
    for client in (dnq, te, create, delete, select, opener):
        client.close()
    await until(lambda: free(edge))
    found = await witness.drain(Q), await witness.drain(TARGET)
    assert found in (([b"1", b"2", b"3"], []), ([b"2", b"3"], [b"moved"])), "neither committed nor aborted"
    assert done is None or found[1] == []
    assert made is None or await witness.open(b"new") is None
    assert removed is None or await witness.open(b"old") is not None


async def free(edge: LiveEdge) -> bool:
    return bool((await edge.stats("q"))["in_flight"] == 0)


async def test_pending_requests_are_limited(own_server: Server, make_edge: MakeEdge) -> None:
    """Check that beyond the limit no client is read, and that all are answered once the store continues (7.3)."""
    # with the default, long timeouts: no request is given up meanwhile
    edge = await make_edge(own_server.url, store={"max_pending_bytes": 2 * MIB})
    clients = [await edge.client() for _ in range(4)]
    for client in clients:
        await client.queue(b"q")
    waiting = edge.service.store.open_domain().pipe.waiting
    traffic = edge.listeners["document"].traffic
    before = traffic.received
    own_server.stop()
    try:
        load = tmq.encode_enq(Q, bytes(16_000)) * 500  # 8 MB from each
        sends = [asyncio.ensure_future(client.send(load)) for client in clients]
        await until(lambda: waiting.congested)
        await clients[0].is_silent(0.3)
        read = traffic.received - before
        # each read up to the limit, and what had arrived before reading stopped
        most = waiting.max_bytes + len(clients) * 2 * CHUNK
        assert waiting.max_bytes < waiting.pending_bytes <= read <= most
        assert edge.budget.total <= len(clients) * 2 * CHUNK
        assert await clients[0].is_silent(0.3)
        assert traffic.received - before == read
    finally:
        own_server.cont()
    await asyncio.gather(*sends)
    for client in clients:
        assert await client.read(500) == b"\1" * 500
    assert await clients[0].select(Q) == 2_000
    assert waiting.pending_bytes == 0


async def test_opens_do_not_wait_for_each_other(
    own_server: Server, make_edge: MakeEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that each of many OPENs is answered within the time of one attempt and one wait (7.2)."""
    monkeypatch.setattr(link, "PATIENCE_S", 0.4)
    edge = await make_edge(own_server.url)
    edge.service.store.connector.reply_timeout_s = 0.8
    clients = [await edge.client() for _ in range(12)]
    own_server.stop()
    try:
        started = asyncio.get_running_loop().time()
        found = await asyncio.gather(*(client.open(b"q") for client in clients))
        took_s = asyncio.get_running_loop().time() - started
    finally:
        own_server.cont()
    assert found == [None] * len(clients)
    assert took_s < 3.0  # twelve attempts in sequence would take ten seconds
    await until(lambda: opens(clients[0]))


async def opens(client: Client) -> bool:
    await client.create(b"q")
    return await client.open(b"q") == Q
