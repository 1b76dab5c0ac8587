"""Fixtures of the end-to-end tests: a cluster, its images, and namespaces that are deleted with the test.

The cluster is a single node made by the tests, which run on its network. With KUBECONFIG it is that cluster, and tests
of the node itself are deselected.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.e2e import host, steps
from tests.e2e.diagnosis import diagnosis
from tests.e2e.given_cluster import GivenCluster
from tests.e2e.images import Images, built, given, pause
from tests.e2e.namespaces import own_namespace, wait_until_gone
from tests.e2e.node.node import Node, running
from tests.e2e.node.place import clear_away
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.namespaces import RESTRICTED
from tools.cache import NotBuilt

T = TypeVar("T")
NewNamespace = Callable[..., str]
HERE = Path(__file__).parent
LEFT_OUT = pytest.StashKey[int]()
COMMAND_TIMEOUT_S = 600.0
PREREQUISITES = (
    "with KUBECONFIG the images must come from a registry: set PENSTOCK_E2E_IMAGES (CONTRIBUTING.md)"
)


def _somebodys_own() -> str:
    """Return the path in KUBECONFIG, or an empty string."""
    return os.environ.get("KUBECONFIG", "")


@pytest.fixture(scope="session")
def images() -> Images:
    if _somebodys_own():
        if not os.environ.get("PENSTOCK_E2E_IMAGES"):
            # fail early, so that a KUBECONFIG set by accident changes nothing
            pytest.fail(PREREQUISITES, pytrace=False)
        return given()
    return _or_fail(built)


@pytest.fixture(scope="session")
def node(images: Images) -> Iterator[Node]:
    """Run a node with the images; check afterwards that it left nothing on the host."""
    first = _or_fail(pause)
    clear_away()
    before = host.state()
    with running(first, images.all) as node:
        yield node
    host.check_it_is_as(before)
    assert host.processes(node.place.folder.name) == []


@pytest.fixture
def own_node(request: pytest.FixtureRequest) -> Node | None:
    """Return the tests' own node, or None with KUBECONFIG."""
    return None if _somebodys_own() else request.getfixturevalue("node")


@pytest.fixture(scope="session")
def cluster(images: Images, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Return the cluster as seen by its administrator, with time-outs long enough to wait for pods."""
    found = _cluster(request)
    found.timeout_s = COMMAND_TIMEOUT_S
    yield found
    wait_until_gone(found)


def _cluster(request: pytest.FixtureRequest) -> Cluster:
    if path := _somebodys_own():
        found = GivenCluster(Path(path).absolute(), Path.home())
        found.environment = dict(os.environ)  # its login plugins may need any variable
        return found
    return request.getfixturevalue("node").cluster  # type: ignore[no-any-return]


@pytest.fixture
def new_namespace(cluster: Cluster) -> Iterator[NewNamespace]:
    """Return a function that creates namespaces with labels; their deletion starts when the test ends."""
    with ExitStack() as stack:
        yield lambda **labels: stack.enter_context(own_namespace(cluster, labels))


@pytest.fixture
def restricted(new_namespace: NewNamespace) -> str:
    """Create a namespace in which Pod Security admits only `restricted` pods."""
    return new_namespace(**RESTRICTED)


def _or_fail(make: Callable[[], T]) -> T:
    """Return what `make` returns; if it cannot be built, fail the test instead of skipping it."""
    try:
        return make()
    except NotBuilt as error:
        pytest.fail(str(error), pytrace=False)


# termination


def pytest_configure() -> None:
    """Let SIGTERM end a run like Ctrl-C does, so that its objects on a given cluster are deleted."""
    signal.signal(signal.SIGTERM, _end_once)


def _end_once(*_: object) -> None:
    """Interrupt the run and ignore further SIGTERMs: `timeout` and make send one each, which would stop the cleanup."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


# selection


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of the own node with KUBECONFIG; skips would count as missing prerequisites in `.ci/run`."""
    if not _somebodys_own():
        return
    left_out = [item for item in items if HERE in item.path.parents and _wants_our_node(item)]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)
    items[:] = [item for item in items if item not in left_out]


def _wants_our_node(item: pytest.Item) -> bool:
    return "node" in getattr(item, "fixturenames", ()) or item.get_closest_marker("own_node") is not None


# reports


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the state of the cluster to the report of a failed test."""
    report = yield
    if report.when == "call" and report.failed and (found := getattr(item, "funcargs", {}).get("cluster")):
        report.sections.append(("the cluster", diagnosis(found)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if number := terminalreporter.config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{number} tests of a node of our own are left out: the cluster is KUBECONFIG's"
        )
    terminalreporter.section("how long it took")
    for line in steps.lines():
        terminalreporter.write_line(line)
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    for report in reports:
        if report.when == "call":
            terminalreporter.write_line(f"{report.duration:7.1f} s  {report.nodeid}")
