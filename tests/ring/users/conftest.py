"""Nodes on real stores: one shared server, and others for tests that need several."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.live import Log
from tests.ring.users.members import Member, Start
from tests.servers import Server
from tests.stores import NewServer, chance, new_server, pytest_asyncio_loop_factories, running, server

__all__ = ["chance", "new_server", "pytest_asyncio_loop_factories", "running", "server"]


@pytest.fixture
async def start(server: Server, new_server: NewServer) -> AsyncIterator[Start]:
    """Start nodes by `await start(server, b"a:1", forward_user=True)`; internal errors fail the test.

    Nodes end before their servers, as each would wait for replies that cannot arrive.
    """
    members: list[Member] = []
    log = Log()
    logging.getLogger().addHandler(log)
    errors: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: errors.append(f"{context.get('message')}: {context.get('exception')!r}")
    )

    async def start_one(server: Server, name: bytes, **how: Any) -> Member:
        members.append(Member(server.url, name, **how))
        return await members[-1].start()

    yield start_one
    for member in members:
        await member.close()
    logging.getLogger().removeHandler(log)
    assert log.tracebacks() == []
    assert errors == []
