"""RQP edges on real servers: one shared server, and separate ones for tests that kill them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.rqp.cast.hands import HandReceiver, HandSender
from tests.rqp.cast.machines import Machines
from tests.rqp.live import LiveEdge
from tests.rqp.mca.client import Client
from tests.rqp.mca.peer import McaPeer
from tests.servers import Server
from tests.stores import NewServer, new_server, pytest_asyncio_loop_factories, running, server

__all__ = ["NewServer", "new_server", "pytest_asyncio_loop_factories", "running", "server"]

Start = Callable[..., Awaitable[LiveEdge]]


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
async def edge(server: Server, start: Start) -> AsyncIterator[LiveEdge]:
    """Start an edge; check at the end that it released everything."""
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
    """Start RQP/cast edges on separate addresses."""
    return Machines(start, server)


@pytest.fixture
def hands(machines: Machines) -> Iterator[HandSender]:
    """Return a sending agent operated by the test."""
    with HandSender(machines.net) as hands:
        yield hands


@pytest.fixture
def receiver(machines: Machines) -> Iterator[HandReceiver]:
    """Return a receiving agent operated by the test."""
    with HandReceiver(machines.net) as receiver:
        yield receiver
