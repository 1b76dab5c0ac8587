"""Fixtures of live tests: real servers, and reproducible randomness. tests/conftest.py exports them."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop
from redis.exceptions import RedisError

from tests.live import set_up
from tests.servers import PROGRAMS, Server, eventually
from tests.topologies import Cluster, Replicated

NewServer = Callable[[], Awaitable[Server]]

# For tests whose outcome may depend on the kind of server: they run on each. Others run on the embedded Valkey.
every_server = pytest.mark.parametrize("server_program", list(PROGRAMS), indirect=True)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def server_program(request: pytest.FixtureRequest) -> str:
    """Return the kind of server that the test runs on (`every_server`)."""
    return str(getattr(request, "param", next(iter(PROGRAMS))))


@pytest.fixture
def chance() -> random.Random:
    """Return a random generator with a printed seed."""
    return random_generator()


def random_generator() -> random.Random:
    """Return a random generator with a printed seed."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED") or secrets.randbits(32))
    print(f"PENSTOCK_TEST_SEED={seed} repeats this")
    return random.Random(seed)


@pytest.fixture(scope="session")
def running(server_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start one server for all tests of the session that do not break it."""
    server = Server(server_program, tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()


@pytest.fixture
async def server(running: Server) -> Server:
    """Return the shared server, set up as by `penstock up`, without other data."""
    running.empty()
    await set_up(running)
    return running


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[Server]:
    """Start and set up a server that the test may kill."""
    server = Server(next(iter(PROGRAMS)), tmp_path / "data").start()
    await set_up(server)
    yield server
    server.end()


class Spares:
    """Servers that tests left unchanged, for reuse by later tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spare: list[Server] = []
        self._settings: dict[Server, list[Any]] = {}  # of all running servers

    def get(self) -> Server:
        """Return an empty, running server."""
        if self._spare:
            return self._spare.pop()
        server = Server(next(iter(PROGRAMS)), self._folder / f"store{len(self._settings)}").start()
        self._settings[server] = _settings(server)
        return server

    def give_back(self, server: Server) -> None:
        if self._is_as_it_was(server):
            self._spare.append(server)
        else:
            server.end()

    def _is_as_it_was(self, server: Server) -> bool:
        if not server.runs():
            return False
        try:
            server.empty()
            return _settings(server) == self._settings[server]
        except (RedisError, OSError):
            return False

    def end(self) -> None:
        for server in self._settings:
            server.end()


def _settings(server: Server) -> list[Any]:
    return [server.call("CONFIG", "GET", "*"), server.call("ACL", "LIST")]


@pytest.fixture(scope="session")
def spares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spares]:
    made = Spares(tmp_path_factory.mktemp("spares"))
    yield made
    made.end()


@pytest.fixture
async def new_server(spares: Spares) -> AsyncIterator[NewServer]:
    """Yield a function that starts and sets up servers that the test may kill."""
    made: list[Server] = []

    async def make() -> Server:
        made.append(spares.get())
        await set_up(made[-1])
        return made[-1]

    yield make
    for server in made:
        spares.give_back(server)


@pytest.fixture(scope="session")
def standing(server_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """Start a primary with replicas under Sentinels for all tests of the session that do not break it."""
    topology = Replicated(server_program, tmp_path_factory.mktemp("replicated"))
    try:
        yield topology.start()
    finally:
        topology.end()


@pytest.fixture
def whole_replicated(standing: Replicated) -> Replicated:
    """Return the shared primary with its replicas, empty; the test must leave all of them running."""
    primary = standing.primary()
    eventually(lambda: standing.replicas(primary) == 2)
    primary.clear()
    return standing


@pytest.fixture
def replicated(server_program: str, tmp_path: Path) -> Iterator[Replicated]:
    """Start a primary with replicas under Sentinels, which the test may break."""
    topology = Replicated(server_program, tmp_path)
    try:
        yield topology.start()
    finally:
        topology.end()


@pytest.fixture
def own_cluster(server_program: str, tmp_path: Path) -> Iterator[Cluster]:
    """Start a Cluster, which the test may break."""
    cluster = Cluster(server_program, tmp_path)
    try:
        yield cluster.start()
    finally:
        cluster.end()
