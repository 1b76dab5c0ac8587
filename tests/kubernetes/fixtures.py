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
def cluster(api_server: ApiServer, request: pytest.FixtureRequest) -> Cluster:
    """As its administrator; without the chart's definitions, unless the test asks for `defined`, too."""
    administrator = api_server.as_user()
    if "defined" not in request.fixturenames:
        forget(administrator)
    return administrator


@pytest.fixture
def defined(api_server: ApiServer) -> Cluster:
    """As its administrator, with the chart's definitions; they stay for the next test that asks for them."""
    administrator = api_server.as_user()
    define(administrator)
    return administrator


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
