"""Test the drain: pending requests are answered, and new ones are refused (tmq.md 1.2, 5.4, 6.1)."""

from __future__ import annotations

import pytest

from protos import tmq
from tests.live import until
from tests.servers import Server
from tests.tmq.conftest import MakeEdge
from tests.tmq.live import LiveEdge
from tests.tmq.states import (
    RACES,
    STATES,
    Q,
    State,
    by_name,
    nothing_leased,
    prepared,
)


@pytest.mark.parametrize("state", [*STATES, *RACES], ids=by_name)
async def test_drain_is_answered(edge: LiveEdge, state: State) -> None:
    # 5.4, 6.1: every connection ends; no lease remains, and no delivery counts as failed
    client, witness = await prepared(edge)
    witness.close()
    await until(lambda: len(edge.connections()) == 1)
    await state(client)
    (listener,) = (listener for listener in edge.listeners.values() if listener.connections)
    await listener.drain(0.0)
    await client.rest()
    client.close()
    assert await listener.closed(10)
    await until(lambda: nothing_leased(edge))
    stats = await edge.stats("q")
    assert stats["dead_letters"] == 0
    assert stats["ready"] + stats["acked"] == 3


async def test_drain_during_a_request_to_the_store(own_server: Server, make_edge: MakeEdge) -> None:
    # 1.2: received requests are answered, then the connection is closed
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.queue(b"q")
    own_server.stop()
    try:
        await edge.deliver("document", client, tmq.encode_enq(Q, b"x"))
        await edge.listeners["document"].drain(0.0)
    finally:
        own_server.cont()
    assert await client.rest() == b"\1"


async def test_no_transaction_begins_during_a_drain(own_server: Server, make_edge: MakeEdge) -> None:
    # 5.1, 5.4: a new transaction could only be aborted; requests outside a transaction still succeed
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.queue(b"q")
    requests = tmq.encode_select(Q), b"\x08", tmq.encode_enq(Q, b"alone"), b"\6"
    own_server.stop()
    try:
        await edge.deliver("document", client, b"".join(requests))
        await edge.listeners["document"].drain(0.0)
    finally:
        own_server.cont()
    assert await client.rest() == bytes(8) + b"\1" + b"\1" + b"\1"
    assert edge.refusals()["draining"] == edge.refusals()["no_transaction"] == 1
    assert (await edge.stats("q"))["ready"] == 1


async def test_message_on_its_way_to_an_aborted_transaction_is_returned(
    own_server: Server, make_edge: MakeEdge
) -> None:
    # 5.4: the transaction has ended, so its DNQ finds nothing; the message was leased for a moment
    edge = await make_edge(own_server.url)
    client = await edge.client()
    await client.queue(b"q")
    await client.put(Q, b"a")
    own_server.stop()
    try:
        await edge.deliver("document", client, b"\x08" + tmq.encode_dnq(Q))
        await edge.listeners["document"].drain(0.0)
    finally:
        own_server.cont()
    assert await client.rest() == b"\0" + tmq.EMPTY
    await until(lambda: nothing_leased(edge))
    stats = await edge.stats("q")
    assert (stats["ready"], stats["delivered"]) == (1, 1)
