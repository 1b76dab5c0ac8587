"""Provide one store for all tests of commands; tests of `penstock up` use their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.store import QueueSpec, Store
from tests.cli.commands.sending import declare
from tests.cli.shell import Shell
from tests.servers import Server


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Yield a shell whose commands use a store that is set up; no edge runs."""
    folder = tmp_path_factory.mktemp("cli")
    server = Server("valkey", folder / "store").start()
    shell = Shell(folder, {"REDIS_URL": server.url})
    shell.with_store(lambda store: store.initialise())
    yield shell
    server.end()


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """Return a shell in a folder in which nothing runs."""
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def server_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server("valkey", tmp_path_factory.mktemp("store")).start()
    yield server
    server.end()


@pytest.fixture
def server(server_of_module: Server) -> Server:
    """Return an unused store, which the test may stop or kill."""
    if not server_of_module.is_running():
        server_of_module.restart()
    server_of_module.clear()
    return server_of_module


@pytest.fixture
def ready(alone: Shell, server: Server) -> Shell:
    """Return a shell whose commands use that store, which has the queue `orders`."""
    alone.environment["REDIS_URL"] = server.url

    async def set_up(store: Store) -> None:
        await store.initialise()
        await store.catalogue.declare("orders", QueueSpec(), "cli")

    alone.with_store(set_up)
    return alone


@pytest.fixture
def quiet(ready: Shell) -> Shell:
    """Return a shell with a store on which no edge runs."""
    declare(ready)
    return ready


_numbers = itertools.count()


@pytest.fixture
def queue(shell: Shell) -> str:
    """Return a new empty queue."""
    name = f"q{next(_numbers)}"
    shell.with_store(lambda store: store.catalogue.declare(name, QueueSpec(), "test"))
    return name


@pytest.fixture
def new_queue(shell: Shell) -> Callable[..., str]:
    """Return a function that creates queues with options of `queue create`."""

    def make(*options: str) -> str:
        name = f"q{next(_numbers)}"
        shell.run("queue", "create", name, *options)
        return name

    return make
