"""Provide the bridge on real kernel queues and a real store, and a C program that knows neither."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from services.sysv.journal import Journal
from tests.servers import Server
from tests.stores import own_server, pytest_asyncio_loop_factories, running, server
from tests.sysv.journals import ROOM
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys
from tests.sysv.namespace import own_namespace
from tests.sysv.program import Program

__all__ = ["own_server", "pytest_asyncio_loop_factories", "running", "server"]


@pytest.fixture
def own_kernel() -> Iterator[None]:
    """Let the test set limits of the kernel. Request this fixture before those that create queues."""
    with own_namespace():
        yield


@pytest.fixture
def keys() -> Iterator[Keys]:
    """Yield unused keys; their queues are removed after the bridges have stopped, which would recreate them."""
    keys = Keys()
    yield keys
    keys.remove_all()


@pytest.fixture
def key(keys: Keys) -> int:
    return keys.new()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program.compiled(tmp_path_factory.mktemp("program"))


@pytest.fixture
async def bridge(server: Server, keys: Keys, tmp_path: Path) -> AsyncIterator[LiveBridge]:
    """Yield a bridge that is not open yet: `open` takes its mappings."""
    bridge = LiveBridge(server.url, tmp_path / "journals")
    yield bridge
    await bridge.close()
    bridge.check_no_fault_of_ours()


@pytest.fixture
async def own_bridge(own_server: Server, keys: Keys, tmp_path: Path) -> AsyncIterator[LiveBridge]:
    """Yield a bridge on a server that the test may kill."""
    bridge = LiveBridge(own_server.url, tmp_path / "journals")
    yield bridge
    await bridge.close()
    bridge.check_no_fault_of_ours()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals" / "0x0000002a.journal"


@pytest.fixture
def open_journal(path: Path) -> Iterator[Callable[..., Journal]]:
    opened: list[Journal] = []

    def make(room: int = ROOM) -> Journal:
        journal = Journal(path)
        opened.append(journal)
        journal.open(room)
        return journal

    yield make
    for journal in opened:
        journal.close()
