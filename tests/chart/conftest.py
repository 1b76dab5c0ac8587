"""A `penstock up` for all tests of the chart that speak to real edges; a release for each that needs one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.chart.chart import RELEASE
from tests.chart.release import Release
from tests.cli.shell import Shell, Up, running
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tests.kubernetes.namespaces import RESTRICTED

NewNamespace = Callable[..., str]


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    # one of them with several workers, who tell more
    with running(Shell(tmp_path_factory.mktemp("up")), "--set", "edges.tmq.workers=2") as up:
        yield up


@pytest.fixture
def release(cluster: Cluster, new_namespace: NewNamespace) -> Iterator[Release]:
    """To be installed by the test; whatever it leaves of it goes."""
    released = Release(cluster, new_namespace(**RESTRICTED))
    yield released
    cluster.helm("uninstall", RELEASE, "--namespace", released.namespace, "--no-hooks", "--ignore-not-found")
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))
