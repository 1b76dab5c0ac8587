"""Check every vector on its dialect's port, with bytes cut anywhere (tmq.md 1.1) and requests sent ahead (1.2).

The codec's tests check that a request may be cut at any single place (tests/protos).
"""

from __future__ import annotations

import pytest

from tests.tmq.live import LiveEdge
from tests.tmq.vectors import LONE_FIVE, VECTORS, Vector, every_vector


@every_vector
async def test_as_given(edge: LiveEdge, vector: Vector) -> None:
    # each on a new connection to a server with an empty store (vectors/README.md)
    client = await edge.client(vector.dialect)
    for exchange in vector.conversation:
        await client.send(exchange.send)
        assert await client.read(len(exchange.expect)) == exchange.expect
    client.fin()
    assert await client.ended() == "fin"


@every_vector
async def test_byte_by_byte(edge: LiveEdge, vector: Vector) -> None:
    # tmq.md 1.1
    is_patient = vector.dialect == "document" and not vector.has_lone_five
    listener = "patient" if is_patient else vector.dialect
    client = await edge.client(listener)
    for exchange in vector.conversation:
        # with a short grace, a 5 cut from its MQID may arrive so late that it is a TS (3.1)
        is_whole = vector.has_lone_five and exchange.send.startswith(LONE_FIVE)
        pieces = [exchange.send] if is_whole else [bytes((byte,)) for byte in exchange.send]
        await edge.deliver(listener, client, *pieces)
        assert await client.read(len(exchange.expect)) == exchange.expect


@pytest.mark.parametrize("vector", [v for v in VECTORS if not v.has_lone_five], ids=lambda v: v.name)
async def test_pipelined_conversation_with_fin(edge: LiveEdge, vector: Vector) -> None:
    # tmq.md 1.2, 6.1: replies come in the order of the requests; after a half-close all of them, then the server's FIN
    client = await edge.client(vector.dialect)
    await client.send(*(exchange.send for exchange in vector.conversation))
    client.fin()
    assert await client.rest() == b"".join(exchange.expect for exchange in vector.conversation)
