"""What end-to-end tests stand on: a cluster, its images, namespaces that go with the test.

The cluster is one node of our own, on whose network the tests run; with KUBECONFIG it is that one, and tests of the
node itself are left out.
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
    """The kubeconfig that was given, if one was."""
    return os.environ.get("KUBECONFIG", "")


@pytest.fixture(scope="session")
def images() -> Images:
    if _somebodys_own():
        if not os.environ.get("PENSTOCK_E2E_IMAGES"):
            pytest.fail(PREREQUISITES, pytrace=False)  # nor is a cluster changed that nobody meant
        return given()
    return _or_fail(built)


@pytest.fixture(scope="session")
def node(images: Images) -> Iterator[Node]:
    """Of our own, with the images. When it has ended the machine is as it was."""
    first = _or_fail(pause)
    clear_away()
    before = host.look()
    with running(first, images.all) as node:
        yield node
    host.check_it_is_as(before)
    assert host.processes(node.place.folder.name) == []


@pytest.fixture
def own_node(request: pytest.FixtureRequest) -> Node | None:
    """For tests that can do without."""
    return None if _somebodys_own() else request.getfixturevalue("node")


@pytest.fixture(scope="session")
def cluster(images: Images, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """As its administrator. Its commands may wait for pods."""
    found = _cluster(request)
    found.timeout_s = COMMAND_TIMEOUT_S
    yield found
    wait_until_gone(found)


def _cluster(request: pytest.FixtureRequest) -> Cluster:
    if path := _somebodys_own():
        found = GivenCluster(Path(path).absolute(), Path.home())
        found.environment = dict(os.environ)  # with what its ways to log in need
        return found
    return request.getfixturevalue("node").cluster  # type: ignore[no-any-return]


@pytest.fixture
def new_namespace(cluster: Cluster) -> Iterator[NewNamespace]:
    """Makes namespaces, with labels if there are any. They begin to go when the test has ended."""
    with ExitStack() as stack:
        yield lambda **labels: stack.enter_context(own_namespace(cluster, labels))


@pytest.fixture
def restricted(new_namespace: NewNamespace) -> str:
    """A namespace in which Pod Security admits only `restricted` pods."""
    return new_namespace(**RESTRICTED)


def _or_fail(make: Callable[[], T]) -> T:
    """Where it cannot be had the tests fail: they are about nothing else."""
    try:
        return make()
    except NotBuilt as error:
        pytest.fail(str(error), pytrace=False)


# what ends it


def pytest_configure() -> None:
    """SIGTERM ends a run as Ctrl-C does, so that what it made on somebody's cluster goes."""
    signal.signal(signal.SIGTERM, _end_once)


def _end_once(*_: object) -> None:
    """`timeout` and make each send one: those after the first would break off what takes things away."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


# what cannot run on it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselected and not skipped: a skip is something that is missing, which `.ci/run` refuses."""
    if not _somebodys_own():
        return
    left_out = [item for item in items if HERE in item.path.parents and _wants_our_node(item)]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)
    items[:] = [item for item in items if item not in left_out]


def _wants_our_node(item: pytest.Item) -> bool:
    return "node" in getattr(item, "fixturenames", ()) or item.get_closest_marker("own_node") is not None


# what is told of it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A test that failed shows how the cluster stood."""
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
    for line in steps.told():
        terminalreporter.write_line(line)
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    for report in reports:
        if report.when == "call":
            terminalreporter.write_line(f"{report.duration:7.1f} s  {report.nodeid}")
