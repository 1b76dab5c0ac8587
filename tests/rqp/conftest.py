"""RQP edges on real servers: one for all tests that leave it whole, one of its own for each that may be killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.live import set_up
from tests.rqp.cast_hands import HandReceiver, HandSender
from tests.rqp.cast_machines import Machines
from tests.rqp.live import LiveEdge
from tests.rqp.mca_client import Client
from tests.rqp.mca_peer import McaPeer
from tests.servers import PROGRAMS, Server

Start = Callable[..., Awaitable[LiveEdge]]
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
    """Makes servers, set up, that the test may kill."""
    made: list[Server] = []

    async def make() -> Server:
        made.append(Server(next(iter(PROGRAMS)), tmp_path / f"store{len(made)}").start())
        await set_up(made[-1])
        return made[-1]

    yield make
    for server in made:
        server.end()


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts edges: `await start(server, **settings)`. No test may make one of them stumble."""
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
async def edge(server: Server, start: Start) -> AsyncIterator[LiveEdge]:
    """One that must have given everything back in the end."""
    edge = await start(server)
    yield edge
    await edge.check_nothing_is_left()


@pytest.fixture
async def client(edge: LiveEdge) -> Client:
    return await edge.client()


@pytest.fixture
async def peer() -> AsyncIterator[McaPeer]:
    async with McaPeer() as peer:
        yield peer


@pytest.fixture
async def other_peer() -> AsyncIterator[McaPeer]:
    async with McaPeer() as peer:
        yield peer


@pytest.fixture
def machines(start: Start, server: Server) -> Machines:
    """Edges that speak RQP/cast, on addresses of their own."""
    return Machines(start, server)


@pytest.fixture
def hands(machines: Machines) -> Iterator[HandSender]:
    """A sending agent by hand."""
    with HandSender(machines.net) as hands:
        yield hands


@pytest.fixture
def receiver(machines: Machines) -> Iterator[HandReceiver]:
    """A receiving agent by hand."""
    with HandReceiver(machines.net) as receiver:
        yield receiver
