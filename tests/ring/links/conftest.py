"""Nodes on real servers: one for all tests that leave it whole, one of its own for each that may be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.live import set_up, until
from tests.ring.links.live import LiveNode, free_udp_port
from tests.servers import PROGRAMS, Server

Start = Callable[..., Awaitable[LiveNode]]
NewServer = Callable[[], Awaitable[Server]]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it whole."""
    server = Server(next(iter(PROGRAMS)), tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()


@pytest.fixture
async def server(running: Server) -> Server:
    """The shared server, set up and empty."""
    running.clear()
    await set_up(running)
    return running


@pytest.fixture
async def new_server(tmp_path: Path) -> AsyncIterator[NewServer]:
    """Makes servers, set up, that the test may stop."""
    made: list[Server] = []

    async def make() -> Server:
        made.append(Server(next(iter(PROGRAMS)), tmp_path / f"store{len(made)}").start())
        await set_up(made[-1])
        return made[-1]

    yield make
    for server in made:
        server.end()


@pytest.fixture
def port() -> int:
    """For beacons of this test: nobody else's nodes hear them."""
    return free_udp_port()


@pytest.fixture
async def start(server: Server, new_server: NewServer, port: int) -> AsyncIterator[Start]:
    """Starts nodes: `await start(**settings)`. None may stumble, and they end before the servers do."""
    nodes: list[LiveNode] = []

    async def start_one(url: str = "", beacon_port: int = 0, **settings: Any) -> LiveNode:
        """Returns once it takes part, or could."""
        nodes.append(node := LiveNode(url or server.url, beacon_port or port, **settings))
        await node.begin()
        await until(lambda: not node.station.node.is_away)
        return node

    yield start_one
    for node in nodes:
        await node.close()
    for node in nodes:
        node.check_no_fault_of_ours()
