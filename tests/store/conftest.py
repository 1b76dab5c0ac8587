"""Run store tests on a real server: the embedded Valkey and, for `every_server`, Debian's Redis.

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
    """Return the shared server, empty."""
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
    """Return a plain connection to the server."""
    client = Client(server.port)
    yield client
    client.close()


@pytest.fixture
async def desk(server: Server) -> AsyncIterator[Desk]:
    """Return a desk with an initialised store on the shared server."""
    async with Desk(server) as desk:
        yield desk
