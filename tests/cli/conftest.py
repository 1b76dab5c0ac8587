"""One `penstock up` serves all tests of commands; tests of `up` itself run their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.store import QueueSpec
from tests.cli.commands.sending import declare
from tests.cli.shell import Shell, Up, running
from tests.servers import Server


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A folder in which `penstock up` runs."""
    shell = Shell(tmp_path_factory.mktemp("cli"))
    with running(shell):
        yield shell


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """A folder in which nothing runs."""
    return Shell(tmp_path)


@pytest.fixture
def up(alone: Shell) -> Iterator[Up]:
    with running(alone) as up:
        yield up


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A store of the test's own, which it may stop or kill."""
    server = Server("valkey", tmp_path / "store").start()
    yield server
    server.end()


@pytest.fixture
def ready(alone: Shell, server: Server) -> Shell:
    """A folder whose commands find `orders` in that store."""
    alone.environment["REDIS_URL"] = server.url
    alone.run("store", "init")
    alone.run("queue", "create", "orders")
    return alone


@pytest.fixture
def quiet(ready: Shell) -> Shell:
    """Nobody carries anything away here."""
    declare(ready)
    return ready


_numbers = itertools.count()


@pytest.fixture
def queue(shell: Shell) -> str:
    """A queue of this test's own, empty."""
    name = f"q{next(_numbers)}"
    shell.with_store(lambda store: store.catalogue.declare(name, QueueSpec(), "test"))
    return name


@pytest.fixture
def new_queue(shell: Shell) -> Callable[..., str]:
    """Makes queues with options of `queue create`."""

    def make(*options: str) -> str:
        name = f"q{next(_numbers)}"
        shell.run("queue", "create", name, *options)
        return name

    return make
