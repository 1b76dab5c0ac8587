"""Store tests run on a real server: the embedded Valkey and, where they say `every_server`, Debian's Redis.

Edges run on uvloop, so do these.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.servers import Client, Server
from tests.store.desk import Desk
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
def server(running: Server) -> Server:
    """The shared server, empty."""
    running.clear()
    return running


@pytest.fixture
def own_server(server_program: str, tmp_path: Path) -> Iterator[Server]:
    """Start a server that the test may kill."""
    server = Server(server_program, tmp_path / "data").start()
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
