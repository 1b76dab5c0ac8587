"""Live tests of the TMQ edge: real sockets, a real store, nothing replaced."""

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
    """Makes edges, on the shared store unless told otherwise; each is checked when the test is over."""
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
    """An edge with its default settings, but for a short wait after FIN."""
    return await make_edge(eof_grace_s=0.1)


@pytest.fixture
async def client(edge: LiveEdge) -> Client:
    return await edge.client()


@pytest.fixture
async def other(edge: LiveEdge) -> Client:
    """A second connection."""
    return await edge.client()
