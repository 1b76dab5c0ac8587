"""Every store test runs on real servers: the embedded Valkey and Debian's Redis. Edges run on uvloop, so do these."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest
import uvloop

from tests.servers import PROGRAMS, Client, Server
from tests.store.desk import Desk
from tests.stores import chance, replicated

__all__ = ["chance", "replicated"]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session", params=list(PROGRAMS))
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server of each kind for all tests that leave it whole."""
    server = Server(request.param, tmp_path_factory.mktemp(request.param)).start()
    yield server
    server.end()


@pytest.fixture
def server(running: Server) -> Server:
    """The shared server, empty."""
    running.clear()
    return running


@pytest.fixture(params=list(PROGRAMS))
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server that the test may kill."""
    server = Server(request.param, tmp_path / "data").start()
    yield server
    server.end()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """One plain connection to the server."""
    client = Client(server.port)
    yield client
    client.close()


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """A store that is set up on the shared server, and a place to work with it."""
    async with Desk(server) as desk:
        yield desk
