"""Edges on real servers: one embedded Valkey for all tests, and separate servers for tests that kill them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pubsub.live import LiveEdge
from tests.servers import PROGRAMS, Server
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]

Start = Callable[..., Awaitable[LiveEdge]]


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[[], Server]]:
    """Return a function that starts servers, which the test may kill."""
    made: list[Server] = []

    def make() -> Server:
        made.append(Server(next(iter(PROGRAMS)), tmp_path / f"store{len(made)}").start())
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start edges: `await start(server, **settings)`. Internal errors in their logs fail the test."""
    edges: list[LiveEdge] = []

    async def start_one(server: Server, **settings: Any) -> LiveEdge:
        edges.append(LiveEdge(server.url, **settings))
        return await edges[-1].start()

    yield start_one
    for edge in edges:
        await edge.close()
    for edge in edges:
        edge.check_no_fault_of_ours()


@pytest.fixture
async def edge(server: Server, start: Start) -> LiveEdge:
    return await start(server)
