"""Provide fixtures for live tests of the TMQ edge: real sockets and a real store, without mocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.servers import Server
from tests.stores import pytest_asyncio_loop_factories
from tests.tmq.client import Client
from tests.tmq.live import LiveEdge, live_edge

__all__ = ["pytest_asyncio_loop_factories"]

MakeEdge = Callable[..., Awaitable[LiveEdge]]


@pytest.fixture
async def make_edge(server: Server) -> AsyncIterator[MakeEdge]:
    """Yield a function that makes edges, by default on the shared store; each is checked at the end of the test."""
    made: list[LiveEdge] = []
    async with AsyncExitStack() as stack:

        async def make(url: str = "", **settings: Any) -> LiveEdge:
            made.append(await stack.enter_async_context(live_edge(url or server.url, **settings)))
            return made[-1]

        yield make
        for edge in made:
            await edge.disconnect()


@pytest.fixture
async def edge(make_edge: MakeEdge) -> LiveEdge:
    """Return an edge with default settings, except for a short wait after FIN."""
    return await make_edge(eof_grace_s=0.1)


@pytest.fixture
async def client(edge: LiveEdge) -> Client:
    return await edge.client()


@pytest.fixture
async def other(edge: LiveEdge) -> Client:
    """Return a second connection."""
    return await edge.client()
