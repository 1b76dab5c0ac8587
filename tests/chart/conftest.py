"""A `penstock up` shared by all tests that use real edges, and releases on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.console.settings import ConsoleSettings
from services.kit.config.settings import GlobalSettings, load
from services.kit.edge import edges
from tests.chart.chart import NAME, Rendered, Shared, workload
from tests.chart.release import Release
from tests.cli.shell import Shell, Up, running
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.namespaces import RESTRICTED, make_namespace, remove_namespace

NewNamespace = Callable[..., str]
Read = Callable[[Rendered, str], tuple[GlobalSettings, Any]]


@pytest.fixture(scope="session", autouse=True)
def _rendered_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    Shared.folder = (base.parent if hasattr(request.config, "workerinput") else base) / "charts"
    Shared.folder.mkdir(exist_ok=True)


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Read the settings of an edge or the console as its pod does: from the file and the environment."""

    def reading(rendered: Rendered, who: str) -> tuple[GlobalSettings, Any]:
        path = tmp_path / "penstock.yaml"
        path.write_text(rendered[f"ConfigMap/{NAME}-{who}"]["data"]["penstock.yaml"])
        pod = {"POD_NAME": f"{NAME}-{who}-0", "POD_NAMESPACE": "shop", "POD_IP": "10.1.2.3"}
        pod |= {"STORE_PASSWORD": "s", "PENSTOCK_CONFIG": str(path)}
        for name, value in rendered.env(workload(who)).items():
            if value and name not in pod:
                for known, its in pod.items():
                    value = value.replace(f"$({known})", its)
                pod[name] = value
        with monkeypatch.context() as environment:
            for name, value in pod.items():
                environment.setenv(name, value)
            settings = load()
            if who == "console":
                return settings, settings.section(ConsoleSettings, "console", {})
            return settings, settings.edge(edges()[who])

    return reading


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    # one of them with several workers, which export more metrics
    with running(Shell(tmp_path_factory.mktemp("up")), "--set", "edges.tmq.workers=2") as up:
        yield up


@pytest.fixture
def release(cluster: Cluster, new_namespace: NewNamespace) -> Iterator[Release]:
    """Yield a release that the test installs; delete its remaining objects afterwards."""
    released = Release(cluster, new_namespace(**RESTRICTED))
    yield released
    released.remove()


@pytest.fixture(scope="module")
def installed(api_server: ApiServer) -> Iterator[Release]:
    """Install a release that the tests of a file share; each upgrades it as needed."""
    cluster = api_server.as_user()
    released = Release(cluster, make_namespace(cluster, RESTRICTED))
    released.install()
    yield released
    released.remove()
    remove_namespace(cluster, released.namespace)
