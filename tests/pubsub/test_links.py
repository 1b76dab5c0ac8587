"""Stores joined by neighbour links in any graph (pubsub.md 4.3-4.5)."""

from __future__ import annotations

from itertools import combinations

import pytest

from services.store.model.intervals import Intervals
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import LiveEdge
from tests.pubsub.stores import (
    Neighbour,
    NewServer,
    entries,
    figure,
    hold_the_same,
    linked,
    links_at,
    messages,
    messages_in,
    numbered,
    send_all,
    store,
)
from tests.servers import free_port

GRAPHS = {  # (dialling end, dialled end)
    "both name each other": [(0, 1), (1, 0)],
    "chain": [(0, 1), (1, 2), (2, 3)],
    "mesh": list(combinations(range(4), 2)),
}


async def graph(links: list[tuple[int, int]], new_server: NewServer, start: Start) -> list[LiveEdge]:
    """Start an edge with its own store for each end, in the order of their numbers."""
    ports = {end: free_port() for end in sorted({end for link in links for end in link})}
    edges = []
    for end, port in ports.items():
        named = [f"127.0.0.1:{ports[b]}" for a, b in links if a == end]
        edges.append(await start(await store(new_server), listeners=links_at(port), neighbours=named))
    for end, edge in enumerate(edges):
        await linked(edge, len({other for link in links if end in link for other in link} - {end}))
    return edges


async def test_message_reaches_subscribers_at_a_linked_store(new_server: NewServer, start: Start) -> None:
    """Check that a message reaches subscribers at a linked store (4.3).

    One side names the other; both directions use one connection.
    """
    a = await start(await store(new_server))
    b = await start(await store(new_server), neighbours=[a.link_address])
    await linked(a)
    await linked(b)
    at_a, at_b = await a.client(), await b.client()
    await at_a.subscribe(b"1", b"x*")
    await at_b.subscribe(b"2", b"x*")
    await (await a.client()).publish(b"x1", b"from a")
    assert await at_b.line() == b"MESSAGE 2 from a\n"
    await (await b.client()).publish(b"x2", b"from b")
    assert await at_b.line() == b"MESSAGE 2 from b\n"
    assert await at_a.lines(2) == [b"MESSAGE 1 from a\n", b"MESSAGE 1 from b\n"]
    await at_a.nothing_more()
    await at_b.nothing_more()
    assert len(a.connections("link")) == 1


@pytest.mark.parametrize("name", ["both name each other", "mesh"])
async def test_cyclic_graph_causes_no_loops_or_duplicates(
    name: str, new_server: NewServer, start: Start
) -> None:
    """Check that a cyclic graph causes no loops or duplicates (4.3).

    Each message is once in each log, and all logs hold the same numbers.
    """
    edges = await graph(GRAPHS[name], new_server, start)
    readers = [await edge.client() for edge in edges]
    for reader in readers:
        await reader.subscribe(b"1", b"t*")
    for end, edge in enumerate(edges):
        await send_all(await edge.client(), b"t%d" % end, numbered(f"{end}:", 200))
    same = await hold_the_same(*edges)
    total = 200 * len(edges)
    assert messages_in(same) == total
    everything = sorted(message for end in range(len(edges)) for message in numbered(f"{end}:", 200))
    for edge, reader in zip(edges, readers, strict=True):
        assert sorted(await messages(edge)) == everything
        seen = [line.removeprefix(b"MESSAGE 1 ")[:-1] for line in await reader.lines(total)]
        assert seen == await messages(edge)
        for end in range(len(edges)):  # 4.5: messages of one origin in its order
            assert [m for m in seen if m.startswith(b"%d:" % end)] == numbered(f"{end}:", 200)
        await reader.nothing_more()
        assert await figure(edge, "accepted") == total - 200


async def test_origin_is_kept_on_every_path(new_server: NewServer, start: Start) -> None:
    """Check that the origin is kept on every path: store, incarnation and number (4.4)."""
    edges = await graph(GRAPHS["chain"], new_server, start)
    await send_all(await edges[0].client(), b"t", numbered("m", 50))
    await hold_the_same(*edges)
    sequences = [
        {
            (entry.origin, entry.first + i): line
            for entry in found
            for i, line in enumerate(entry.block.split(b"\n")[:-1])
        }
        for found in [await entries(edge) for edge in edges]
    ]
    assert all(each == sequences[0] for each in sequences)
    assert sorted(number for _, number in sequences[0]) == list(range(1, 51))


async def test_one_of_two_connections_to_a_neighbour_is_followed(new_server: NewServer, start: Start) -> None:
    """Check that one of two connections to a neighbour is followed (4.3).

    Neighbours that name each other connect twice; each message is requested on one connection.
    """
    one, two = await graph(GRAPHS["both name each other"], new_server, start)
    await until(lambda: len(one.connections("link")) == len(two.connections("link")) == 1)
    await send_all(await one.client(), b"t", numbered("m", 200))
    await hold_the_same(one, two)
    assert await figure(two, "skipped") == 0
    for edge in (one, two):
        await until(lambda edge=edge: edge.value("penstock_links_following") == 1)


async def test_messages_of_third_stores_are_forwarded(new_server: NewServer, start: Start) -> None:
    """Check that messages of third stores are forwarded: an ENTRY's origin need not be the sender (4.5)."""
    edge = await start(await store(new_server))
    source = await Neighbour.meet(edge, b"source")
    sink = await Neighbour.meet(edge, b"sink")
    await sink.follow()
    await source.say(b"ENTRY elsewhere inc9 7 t far away")
    assert await sink.hear(b"ENTRY") == b"ENTRY elsewhere inc9 7 t far away"
    assert (await hold_the_same(edge, number=1))[b"elsewhere", b"inc9"] == Intervals.of([(7, 7)])


async def test_messages_are_not_sent_back(new_server: NewServer, start: Start) -> None:
    """Check that messages are not sent back to a neighbour that holds them (4.3)."""
    edge = await start(await store(new_server))
    neighbour = await Neighbour.meet(edge)
    await neighbour.follow(b"elsewhere/inc9:1-5")
    await neighbour.say(b"ENTRY elsewhere inc9 4 t known", b"ENTRY elsewhere inc9 6 t new")
    await neighbour.entry(1, b"t", b"mine")
    await until(lambda: edge.value("penstock_link_messages_total") == 3)
    await (await edge.client()).publish(b"t", b"from the edge")
    assert (await neighbour.hear(b"ENTRY")).endswith(b" 1 t from the edge")
