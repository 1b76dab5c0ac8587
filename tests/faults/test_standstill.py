"""Other edges take over the messages of an edge that is stopped for longer than its session time-out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from protos.tmq import Dialect, Operation
from services.store import QueueSpec, Store
from tests.faults.client import Client, Gone
from tests.faults.edges import EdgeServer
from tests.faults.history import History, Request
from tests.servers import PATIENCE_S, Server

QUEUE = "orders"
POLL_S = 0.02


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server("valkey", tmp_path / "store").start()
    yield server
    server.end()


@pytest.fixture
async def edges(server: Server, tmp_path: Path) -> AsyncIterator[list[EdgeServer]]:
    """Start two edges on one store with one queue."""
    store = Store(server.url, "test")
    await store.initialise()
    await store.catalogue.declare(QUEUE, QueueSpec(visibility_timeout="1s"), "test")
    edges = [EdgeServer(index, tmp_path / "edges", server.url) for index in range(2)]
    for edge in edges:
        edge.spawn()
    yield edges
    for edge in edges:
        edge.end()
    await store.close()


@pytest.fixture
async def clients(edges: list[EdgeServer]) -> AsyncIterator[list[Client]]:
    """Connect one client to each edge and open the queue."""
    clients = [await connect(edge) for edge in edges]
    yield clients
    for client in clients:
        client.reset()


async def connect(edge: EdgeServer) -> Client:
    """Connect a client, once the edge serves."""
    async with asyncio.timeout(PATIENCE_S):
        while (client := await try_to_connect(edge)) is None:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
    return client


async def try_to_connect(edge: EdgeServer) -> Client | None:
    try:
        record = History().connection("test", edge.index)
        client = await Client.connect(record, edge.ports[Dialect.DOCUMENT], Dialect.DOCUMENT)
        if await client.open(QUEUE):
            return client
        client.reset()
    except Gone:
        pass
    return None


async def ask(client: Client, operation: Operation, body: bytes = b"") -> Request:
    request = Request(operation, QUEUE, body)
    await client.ask(request)
    return request


async def take(client: Client) -> bytes:
    """Take the next message, once there is one."""
    async with asyncio.timeout(PATIENCE_S):
        while not (request := await ask(client, Operation.DNQ)).ok:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
    return request.body


async def test_6_1_a_lost_lease_resets_the_connection(edges: list[EdgeServer], clients: list[Client]) -> None:
    first, second = clients
    assert (await ask(second, Operation.ENQ, b"one")).ok
    assert await take(first) == b"one"
    edges[0].stop()
    assert await take(second) == b"one"  # swept
    edges[0].cont()
    with pytest.raises(Gone):  # an answer would mean that this request settled "one"
        await ask(first, Operation.DNQ)
    assert not (await ask(second, Operation.DNQ)).ok


async def test_5_3_a_lost_lease_dooms_the_transaction(edges: list[EdgeServer], clients: list[Client]) -> None:
    first, second = clients
    assert (await ask(second, Operation.ENQ, b"one")).ok
    assert (await ask(first, Operation.TS)).ok
    assert await take(first) == b"one"
    assert (await ask(first, Operation.ENQ, b"two")).ok
    edges[0].stop()
    assert await take(second) == b"one"
    edges[0].cont()
    assert not (await ask(first, Operation.TE)).ok
    assert not (await ask(second, Operation.DNQ)).ok  # neither "one" nor "two" is delivered
