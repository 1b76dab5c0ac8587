"""Live tests of the client port: real sockets, a real store, nothing replaced."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.live import set_up
from tests.live_queues import checked
from tests.ring.clients.client import Client
from tests.ring.clients.live import LiveClients
from tests.servers import Server

MakeEdge = Callable[..., Awaitable[LiveClients]]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def chance() -> random.Random:
    """Randomness that can be repeated."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED") or secrets.randbits(32))
    print(f"PENSTOCK_TEST_SEED={seed} repeats this")
    return random.Random(seed)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it whole."""
    server = Server("valkey", tmp_path_factory.mktemp("valkey")).start()
    yield server
    server.end()


@pytest.fixture
async def server(running: Server) -> Server:
    """The shared server, with nothing in it but what `penstock up` puts there."""
    running.clear()
    await set_up(running)
    return running


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server, set up, that the test may kill."""
    server = Server("valkey", tmp_path / "data").start()
    await set_up(server)
    yield server
    server.end()


@pytest.fixture
async def make_edge(server: Server) -> AsyncIterator[MakeEdge]:
    """Makes edges, on the shared store unless told otherwise; each is checked when the test is over."""
    made: list[LiveClients] = []
    async with AsyncExitStack() as stack:

        async def make(url: str = "", **settings: Any) -> LiveClients:
            edge = LiveClients(url or server.url, **settings)
            made.append(await stack.enter_async_context(checked(edge)))
            return made[-1]

        yield make
        for edge in made:
            await edge.disconnect()


@pytest.fixture
async def edge(make_edge: MakeEdge) -> LiveClients:
    """An edge with its default settings, but for a short wait after FIN."""
    return await make_edge(clients={"eof_grace_s": 0.1})


@pytest.fixture
async def client(edge: LiveClients) -> Client:
    return await edge.client()


@pytest.fixture
async def other(edge: LiveClients) -> Client:
    """A second connection."""
    return await edge.client()
