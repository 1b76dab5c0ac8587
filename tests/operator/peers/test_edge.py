"""Test that a running edge follows a Peer, through the operator and the store (docs/kubernetes.md, "Peer").

Benchmarks measure how fast; here it must be faster than the full pass after a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.resource_documents import Seen, peer, queue
from tests.rqp.program import EdgeProgram
from tests.servers import Server

PATIENCE_S = 20.0


@contextlib.contextmanager
def machine() -> Iterator[socket.socket]:
    """Yield a machine that waits for a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        yield listener


def place(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


async def dialled(listener: socket.socket) -> None:
    connection, _ = await asyncio.to_thread(listener.accept)
    connection.close()


@pytest.fixture
def waiting(new_operator: NewOperator, seen: Seen, keeper: Keeper) -> None:
    """Put a message for a peer that does not exist."""
    new_operator(sweep_s=60).ready()
    seen.apply(queue("away", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["shop"]}))
    seen.becomes("queue", "away", "False", "UnknownPeer")
    keeper.put("away", b"waits")


async def test_edge_follows_an_applied_and_changed_peer(
    waiting: None, seen: Seen, store: Server, tmp_path: Path
) -> None:
    with machine() as first, machine() as second:
        async with EdgeProgram(store.url, tmp_path, {}):
            seen.apply(peer("shop", "rqp-mca", place(first)))
            await dialled(first)
            seen.apply(peer("shop", "rqp-mca", place(second)))
            await dialled(second)
