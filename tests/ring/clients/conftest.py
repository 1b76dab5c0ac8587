"""Fixtures of the client port's live tests: real sockets and a real store, nothing replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.live_queues import checked
from tests.ring.clients.client import Client
from tests.ring.clients.live import LiveClients
from tests.servers import Server
from tests.stores import chance, own_server, pytest_asyncio_loop_factories, running, server

__all__ = ["chance", "own_server", "pytest_asyncio_loop_factories", "running", "server"]

MakeEdge = Callable[..., Awaitable[LiveClients]]


@pytest.fixture
async def make_edge(server: Server) -> AsyncIterator[MakeEdge]:
    """Start edges, on the shared store by default; each is checked at the end of the test."""
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
    """Start an edge with default settings, except a short wait after FIN."""
    return await make_edge(clients={"eof_grace_s": 0.1})


@pytest.fixture
async def client(edge: LiveClients) -> Client:
    return await edge.client()


@pytest.fixture
async def other(edge: LiveClients) -> Client:
    """Return a second connection."""
    return await edge.client()
