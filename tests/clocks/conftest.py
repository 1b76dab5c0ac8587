from collections.abc import Iterator

import pytest

from tests.clocks.clocks import Clocks
from tests.servers import PROGRAMS, Server
from tests.stores import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Clocks:
    """Of the store's server."""
    return Clocks(tmp_path_factory.mktemp("clocks"))


@pytest.fixture(scope="module", params=list(PROGRAMS))
def stepped(
    request: pytest.FixtureRequest, clocks: Clocks, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One server of each kind whose wall clock the tests of a module step."""
    folder = tmp_path_factory.mktemp(request.param)
    server = Server(request.param, folder, environment=clocks.environment).start()
    yield server
    server.end()
