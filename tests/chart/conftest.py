"""A `penstock up` for all tests of the chart that speak to real edges, and releases on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.chart.release import Release
from tests.cli.shell import Shell, Up, running
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace

NewNamespace = Callable[..., str]


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    # one of them with several workers, who tell more
    with running(Shell(tmp_path_factory.mktemp("up")), "--set", "edges.tmq.workers=2") as up:
        yield up


@pytest.fixture
def release(cluster: Cluster, new_namespace: NewNamespace) -> Iterator[Release]:
    """A release that the test installs; whatever it leaves of it goes."""
    released = Release(cluster, new_namespace(**RESTRICTED))
    yield released
    released.remove()


@pytest.fixture(scope="module")
def installed(api_server: ApiServer) -> Iterator[Release]:
    """A release that the tests of a file share; each upgrades it as it needs it."""
    cluster = api_server.as_user()
    released = Release(cluster, make_namespace(cluster, RESTRICTED))
    released.install()
    yield released
    released.remove()
    remove_namespace(cluster, released.namespace)
