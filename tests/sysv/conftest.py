"""The bridge on real kernel queues and a real store; and a program in C that knows nothing of either."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest
import uvloop

from services.sysv.journal import Journal
from tests.live import set_up
from tests.servers import Server
from tests.sysv.journals import ROOM
from tests.sysv.live import LiveBridge
from tests.sysv.local import Keys
from tests.sysv.namespace import own_namespace
from tests.sysv.program import Program


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def own_kernel() -> Iterator[None]:
    """The test may set limits of the kernel. To be asked for before whatever makes queues."""
    with own_namespace():
        yield


@pytest.fixture
def keys() -> Iterator[Keys]:
    """Keys that nobody has; what was made with them is removed after the bridges, which would make it anew."""
    keys = Keys()
    yield keys
    keys.remove_all()


@pytest.fixture
def key(keys: Keys) -> int:
    return keys.new()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program.compiled(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it whole."""
    server = Server("valkey", tmp_path_factory.mktemp("valkey")).start()
    yield server
    server.end()


@pytest.fixture
async def server(running: Server) -> Server:
    running.clear()
    await set_up(running)
    return running


@pytest.fixture
async def bridge(server: Server, keys: Keys, tmp_path: Path) -> AsyncIterator[LiveBridge]:
    """Not open yet: say which mappings with `open`."""
    bridge = LiveBridge(server.url, tmp_path / "journals")
    yield bridge
    await bridge.close()
    bridge.check_no_fault_of_ours()


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server, set up, that the test may kill."""
    server = Server("valkey", tmp_path / "data").start()
    await set_up(server)
    yield server
    server.end()


@pytest.fixture
async def own_bridge(own_server: Server, keys: Keys, tmp_path: Path) -> AsyncIterator[LiveBridge]:
    """One on a server that the test may kill."""
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
