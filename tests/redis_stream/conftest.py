"""Servers for tests without an event loop; a store is filled in a loop that ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import PROGRAMS, Server
from tests.stores import chance

__all__ = ["chance"]


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it intact."""
    server = Server(next(iter(PROGRAMS)), tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()


@pytest.fixture
def server(running: Server) -> Server:
    """The shared server, empty."""
    running.clear()
    return running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may kill."""
    server = Server(next(iter(PROGRAMS)), tmp_path / "data").start()
    yield server
    server.end()
