"""Stores joined by neighbour links (pubsub.md 4.3-4.6)."""

from __future__ import annotations

from collections.abc import Callable

from tests.pubsub.conftest import Start, initialise
from tests.pubsub.live import LiveEdge
from tests.servers import Server
from tests.tmq.live import until

NewServer = Callable[[], Server]


async def linked(edge: LiveEdge, number: int = 1) -> None:
    """The edge follows so many neighbours."""
    await until(lambda: edge.value("penstock_links_following") == number)


async def test_what_is_sent_at_one_store_reaches_subscribers_at_another(
    new_server: NewServer, start: Start
) -> None:
    """4.3: it is enough that one side names the other; both directions over one connection."""
    one, two = new_server(), new_server()
    await initialise(one)
    await initialise(two)
    a = await start(one)
    b = await start(two, neighbours=[a.link_address])
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
