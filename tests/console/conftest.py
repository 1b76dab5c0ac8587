"""Provide fixtures of the console's tests, which use a real store and real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.console.live_console import LiveConsole
from tests.servers import Server
from tests.stores import (
    chance,
    new_server,
    own_cluster,
    own_server,
    pytest_asyncio_loop_factories,
    replicated,
    running,
    server,
)

__all__ = [
    "chance",
    "new_server",
    "own_cluster",
    "own_server",
    "pytest_asyncio_loop_factories",
    "replicated",
    "running",
    "server",
]


@pytest.fixture
async def console(server: Server) -> AsyncIterator[LiveConsole]:
    """Yield a console with default settings."""
    async with LiveConsole(server.url) as console:
        yield console
