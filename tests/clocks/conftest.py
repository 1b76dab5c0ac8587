from collections.abc import Iterator

import pytest

from tests.clocks.clocks import Clocks
from tests.servers import Server
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Clocks:
    """Clocks of the store's server."""
    return Clocks(tmp_path_factory.mktemp("clocks"))


@pytest.fixture(scope="module")
def stepped(
    server_program: str, clocks: Clocks, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Start a server whose wall clock is stepped by the tests of a module."""
    folder = tmp_path_factory.mktemp(server_program)
    server = Server(server_program, folder, environment=clocks.environment).start()
    yield server
    server.end()
