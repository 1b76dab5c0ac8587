"""Servers that start alone, with an empty list of neighbours, and as several that act as one (pubsub.md 4.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.text.edges import TextEdge
from tests.live import until
from tests.pubsub.client import Client
from tests.pubsub.conftest import Start
from tests.pubsub.stores import NewServer, linked, store
from tests.servers import Server, free_port

Program = Callable[..., TextEdge]


@pytest.fixture
def program(tmp_path: Path, server: Server) -> Iterator[Program]:
    """Starts a server as a program of its own, whose file lists these neighbours."""
    made: list[TextEdge] = []

    def start_one(*neighbours: str) -> TextEdge:
        made.append(TextEdge(f"edge-{len(made)}", tmp_path, server.url, neighbours))
        made[-1].spawn()
        return made[-1]

    yield start_one
    for edge in made:
        edge.end()


async def events(edge: TextEdge) -> list[str]:
    """What it has done, once a client of it has been served, by itself."""
    await until(lambda: asyncio.to_thread(edge.is_ready))
    client = await Client.connect(("127.0.0.1", edge.port))
    await client.subscribe(b"1", b"t")
    await client.send(b"SEND t to myself\n")
    assert sorted(await client.lines(2)) == [b"MESSAGE 1 to myself\n", b"OK\n"]
    client.close()
    return [event.get("action", "") for event in edge.log()]


async def test_alone_with_an_empty_list_in_the_file(program: Program) -> None:
    edge = program()
    assert "link_down" not in await events(edge)


@pytest.mark.parametrize("empty", ["", "[]"])
async def test_alone_with_an_empty_list_in_the_environment(
    program: Program, monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    """It counts more than the file's, whose neighbour is not dialled then."""
    monkeypatch.setenv("PENSTOCK_EDGES__PUBSUB__NEIGHBOURS", empty)
    edge = program(f"127.0.0.1:{free_port()}")
    assert "link_down" not in await events(edge)


async def test_with_neighbours_that_are_not_there(program: Program) -> None:
    """It begins all the same, and says that it dials them."""
    edge = program(f"127.0.0.1:{free_port()}")
    await until(lambda: "link_down" in [event.get("action") for event in edge.log()])
    assert "link_down" in await events(edge)


async def test_a_subscription_at_any_receives_what_is_sent_to_any(
    new_server: NewServer, start: Start
) -> None:
    """On one store and on others; a list may name whoever it likes, also a server that has an empty one itself."""
    first_store = await store(new_server)
    first = await start(first_store, neighbours=[])
    beside = await start(first_store, neighbours=[])
    far = await start(await store(new_server), neighbours=[first.link_address])
    await linked(far)
    await linked(first)
    edges = [first, beside, far]
    subscribers = [await edge.client() for edge in edges]
    for client in subscribers:
        await client.subscribe(b"1", b"t*")
    for number, edge in enumerate(edges):
        await (await edge.client()).publish(b"t%d" % number, b"from %d" % number)
        for client in subscribers:
            assert await client.line() == b"MESSAGE 1 from %d\n" % number
