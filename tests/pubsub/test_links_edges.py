"""Several edges on one store: one of them follows a neighbour, and another when it ends (pubsub.md 4.2, 4.3).

Edges that are killed are separate processes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.text.edges import TextEdge
from tests.live import until
from tests.pubsub.conftest import Start
from tests.pubsub.live import QUICK_LINKS, LiveEdge
from tests.pubsub.stores import NewServer, hold_the_same, linked, messages, numbered, send_all, store

Program = Callable[..., TextEdge]
FOLLOWING = "penstock_links_following"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Start edges: `program(server, neighbours, **settings of links)`."""
    made: list[TextEdge] = []

    def start_one(server: Any, neighbours: list[str], **link: Any) -> TextEdge:
        made.append(TextEdge(f"edge-{len(made)}", tmp_path, server.url, neighbours, link))
        made[-1].spawn()
        return made[-1]

    yield start_one
    for edge in made:
        edge.end()
        assert [event for event in edge.log() if event["level"] in ("ERROR", "CRITICAL")] == []


async def follows(edge: TextEdge) -> None:
    """Wait until the edge follows."""

    async def one() -> bool:
        return await asyncio.to_thread(edge.sample, FOLLOWING) == 1.0

    await until(one)


async def met(edge: LiveEdge, number: int) -> None:
    """Wait until so many connections are set up."""
    await until(lambda: len(edge.connections("link")) == number)


async def test_another_edge_takes_over_a_killed_follower(
    new_server: NewServer, start: Start, program: Program
) -> None:
    """Check that another edge takes over from a killed follower (4.3).

    No message is lost or duplicated; messages sent meanwhile are caught up.
    """
    one = await start(await store(new_server))
    server = await store(new_server)
    watching = await start(server)  # without a link of its own: it reads messages from the store
    reader = await watching.client()
    await reader.subscribe(b"1", b"t")
    first = program(server, [one.link_address])
    await follows(first)
    second = program(server, [one.link_address])
    await met(one, 2)
    sender = await one.client()
    await send_all(sender, b"t", numbered("m", 100))
    assert await reader.lines(100) == [b"MESSAGE 1 %b\n" % m for m in numbered("m", 100)]
    assert await asyncio.to_thread(second.sample, FOLLOWING) == 0.0
    assert one.value("penstock_links_serving") == 1.0
    first.kill9()
    await send_all(sender, b"t", numbered("m", 100, 100))
    assert await reader.lines(100) == [b"MESSAGE 1 %b\n" % m for m in numbered("m", 100, 100)]
    await follows(second)
    await hold_the_same(one, watching)
    assert await messages(watching) == numbered("m", 200)


async def test_graceful_stop_hands_over_at_once(new_server: NewServer, start: Start) -> None:
    """Check that a graceful stop hands over at once, before the lease of ten minutes expires (4.3)."""
    one, server = await start(await store(new_server)), await store(new_server)
    first = LiveEdge(server.url, neighbours=[one.link_address], link={**QUICK_LINKS, "lease_s": 600.0})
    await first.start()
    await linked(first)
    second = await start(server, neighbours=[one.link_address])
    await met(one, 2)
    assert second.value(FOLLOWING) == 0
    await first.close()
    await linked(second)


async def test_edges_on_one_store_close_their_link(
    new_server: NewServer, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Check that edges on one store detect the same id, log it once and close their link (4.5).

    It is not dialled again at once.
    """
    caplog.set_level(logging.INFO)
    server = await store(new_server)
    one = await start(server)
    two = await start(server, neighbours=[one.link_address, f"localhost:{one.places['link'][1]}"])
    await until(lambda: len(two.log.events("link_to_itself")) >= 1)
    await until(lambda: not one.connections("link"))
    # both directions were tried, and neither again: `opened` counts
    await until(lambda: opened(one, "link") == 2)
    reader = await one.client()
    await reader.subscribe(b"1", b"t")
    await (await two.client()).publish(b"t", b"through the store")
    assert await reader.line() == b"MESSAGE 1 through the store\n"
    await asyncio.sleep(1.0)  # five times the delay after a broken link
    assert opened(one, "link") == 2
    warned = [r for r in caplog.records if vars(r).get("action") == "link_to_itself"]
    assert len(warned) == 2  # once on each side, although there were two connections
    assert all("the same store, no link is needed" in record.getMessage() for record in warned)
    assert one.value("penstock_links_serving") == two.value("penstock_links_following") == 0


def opened(edge: LiveEdge, listener: str) -> float:
    return edge.value("penstock_connections_opened_total", listener=listener)
