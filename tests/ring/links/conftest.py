"""Fixtures with nodes on real servers: one shared server, and separate ones for tests that stop them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.live import until
from tests.ring.links.live import LiveNode, free_udp_port
from tests.servers import Server
from tests.stores import NewServer, new_server, pytest_asyncio_loop_factories, running, server

__all__ = ["NewServer", "new_server", "pytest_asyncio_loop_factories", "running", "server"]

Start = Callable[..., Awaitable[LiveNode]]


@pytest.fixture
def port() -> int:
    """Return a beacon port that no other test's nodes use."""
    return free_udp_port()


@pytest.fixture
async def start(server: Server, new_server: NewServer, port: int) -> AsyncIterator[Start]:
    """Start nodes by `await start(**settings)`; internal errors fail the test, and nodes end before the servers."""
    nodes: list[LiveNode] = []

    async def start_one(url: str = "", beacon_port: int = 0, **settings: Any) -> LiveNode:
        """Return the node once it takes part, or is able to."""
        nodes.append(node := LiveNode(url or server.url, beacon_port or port, **settings))
        await node.begin()
        await until(lambda: not node.station.node.is_away)
        return node

    yield start_one
    for node in nodes:
        await node.close()
    for node in nodes:
        node.check_no_fault_of_ours()
