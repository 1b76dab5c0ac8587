"""One API server for all tests below this folder, which share it, and for each what belongs to it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.definitions import define, forget
from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace
from tools.cache import NotBuilt

USERS = {  # beside the administrator; none has any right that a test does not give
    "operator": (),
    "developer": ("developers",),
    "nobody": (),
}
NewNamespace = Callable[..., str]
LEFT: list[Cluster] = []  # on which there are definitions that no test uses


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Where it cannot be had the tests fail: they are about nothing else."""
    try:
        server = ApiServer(tmp_path_factory.mktemp("apiserver"), USERS)
    except NotBuilt as error:
        pytest.fail(str(error), pytrace=False)
    try:
        yield server.start()
    finally:
        server.end()


@pytest.fixture
def cluster(api_server: ApiServer) -> Cluster:
    """As its administrator."""
    return api_server.as_user()


@pytest.fixture(scope="module")
def defined(api_server: ApiServer) -> Iterator[Cluster]:
    """As its administrator, with the chart's definitions, which stay until a test wants none."""
    LEFT.clear()
    administrator = api_server.as_user()
    define(administrator)
    yield administrator
    LEFT.append(administrator)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remove the definitions that other modules left before a test that does not ask for them."""
    names = getattr(item, "fixturenames", ())
    if LEFT and "api_server" in names and "defined" not in names:
        forget(LEFT.pop())


@pytest.fixture
def new_namespace(cluster: Cluster) -> Iterator[NewNamespace]:
    """Makes namespaces, with labels if there are any, that go with the test."""
    made: list[str] = []

    def make(**labels: str) -> str:
        made.append(make_namespace(cluster, labels))
        return made[-1]

    yield make
    for name in made:
        remove_namespace(cluster, name)


@pytest.fixture
def namespace(new_namespace: NewNamespace) -> str:
    return new_namespace()


@pytest.fixture
def restricted(new_namespace: NewNamespace) -> str:
    """A namespace in which Pod Security admits only `restricted` pods."""
    return new_namespace(**RESTRICTED)
