"""Every vector on its dialect's port: the cut of the bytes does not matter (tmq.md 1.1), nor sending ahead (1.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest

from tests.tmq.live import LiveEdge
from tests.tmq.vectors import LONE_FIVE, NAME, VECTORS, Vector, every_vector

SHORT = 76  # bytes: all requests but one are no longer


@every_vector
async def test_as_given(edge: LiveEdge, vector: Vector) -> None:
    # each on one fresh connection to a server with an empty store (vectors/README.md)
    client = await edge.client(vector.dialect)
    for exchange in vector.conversation:
        await client.send(exchange.send)
        assert await client.read(len(exchange.expect)) == exchange.expect
    client.fin()
    assert await client.ended() == "fin"


@every_vector
async def test_each_request_cut_at_every_place(edge: LiveEdge, vector: Vector) -> None:
    # tmq.md 1.1: what the bytes mean does not depend on how they are cut
    for place in places(vector):
        await converse(edge, vector, lambda send, place=place: cut(send, [place]))


@every_vector
async def test_byte_by_byte(edge: LiveEdge, vector: Vector) -> None:
    # tmq.md 1.1
    await converse(edge, vector, lambda send: cut(send, range(1, len(send))))


@pytest.mark.parametrize("vector", [v for v in VECTORS if not v.has_lone_five], ids=lambda v: v.name)
async def test_the_whole_conversation_sent_ahead(edge: LiveEdge, vector: Vector) -> None:
    # tmq.md 1.2: replies come in the order of the requests, each as if the one before had been waited for
    sends = b"".join(exchange.send for exchange in vector.conversation)
    expected = b"".join(exchange.expect for exchange in vector.conversation)
    client = await edge.client(vector.dialect)
    await client.send(sends)
    assert await client.read(len(expected)) == expected


@pytest.mark.parametrize("vector", [v for v in VECTORS if not v.has_lone_five], ids=lambda v: v.name)
async def test_the_whole_conversation_and_fin_sent_ahead(edge: LiveEdge, vector: Vector) -> None:
    # tmq.md 1.2, 6.1: who half-closes still gets every answer, then the server's FIN
    client = await edge.client(vector.dialect)
    await client.send(*(exchange.send for exchange in vector.conversation))
    client.fin()
    assert await client.rest() == b"".join(exchange.expect for exchange in vector.conversation)


def places(vector: Vector) -> list[int]:
    """Every place where a short request can be cut; fewer in a long body, or where the lone five takes its grace."""
    if vector.has_lone_five:
        return [1, 2, 5, 64, 65, 68]
    return [place for place in range(1, vector.longest) if place < SHORT or place % 37 == 0]


async def converse(edge: LiveEdge, vector: Vector, cut_up: Callable[[bytes], list[bytes]]) -> None:
    """The vector on a fresh connection, each piece delivered alone; then its queue is removed again."""
    listener = vector.dialect
    if listener == "document" and not vector.has_lone_five:
        listener = "patient"
    client = await edge.client(listener)
    for exchange in vector.conversation:
        # with a short grace, a 5 cut from its MQID may come so late that it is a TS (3.1)
        is_whole = vector.has_lone_five and exchange.send.startswith(LONE_FIVE)
        pieces = [exchange.send] if is_whole else cut_up(exchange.send)
        await edge.deliver(listener, client, *pieces)
        assert await client.read(len(exchange.expect)) == exchange.expect, pieces
    await client.delete(NAME)
    client.close()


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """`data` cut at those of the places that are inside it."""
    edges = [0, *(place for place in places if place < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]
