"""Provide one API server for all tests below this folder, and objects of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.definitions import define, forget
from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace
from tools.cache import NotBuilt

USERS = {  # besides the administrator; they have only rights that a test grants
    "operator": (),
    "developer": ("developers",),
    "nobody": (),
}
NewNamespace = Callable[..., str]
LEFT: list[Cluster] = []  # clusters with definitions that no test uses


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Yield the API server; tests fail if it is not available."""
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
    """Return the cluster as seen by its administrator."""
    return api_server.as_user()


@pytest.fixture(scope="module")
def defined(api_server: ApiServer) -> Iterator[Cluster]:
    """Yield the cluster as seen by its administrator, with CRDs, which stay until a test does not want them."""
    LEFT.clear()
    administrator = api_server.as_user()
    define(administrator)
    yield administrator
    LEFT.append(administrator)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remove the CRDs that other modules left before a test that does not request them."""
    names = getattr(item, "fixturenames", ())
    if LEFT and "api_server" in names and "defined" not in names:
        forget(LEFT.pop())


@pytest.fixture
def new_namespace(cluster: Cluster) -> Iterator[NewNamespace]:
    """Yield a function that creates namespaces with labels, which are deleted after the test."""
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
    """Return a namespace in which Pod Security admits only `restricted` pods."""
    return new_namespace(**RESTRICTED)
