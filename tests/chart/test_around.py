"""A chart around this one: docs/chart.md, "Install"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chart.around import Around
from tests.chart.chart import RELEASE
from tests.kubernetes.cluster import DEFINITIONS, Cluster, CommandFailed
from tests.kubernetes.namespaces import RESTRICTED

TWICE = {"outer": {"crds": {"enabled": False}}}


@pytest.mark.parametrize("enabled", [True, False])
def test_it_switches_it_on_and_off(tmp_path: Path, enabled: bool) -> None:
    rendered = Around(tmp_path, {"penstock": {"enabled": enabled}}).render()
    assert bool(rendered.of("Deployment")) == enabled


@pytest.fixture
def namespace(cluster: Cluster, new_namespace: Callable[..., str]) -> Iterator[str]:
    made = new_namespace(**RESTRICTED)
    yield made
    cluster.helm("uninstall", RELEASE, "--namespace", made, "--no-hooks", "--ignore-not-found")
    for path in DEFINITIONS.glob("*.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "--filename", str(path))


def test_a_release_that_has_it_twice_can_be_upgraded(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """By aliases, each with a store of its own; the name of neither may change unseen."""
    chart = Around(tmp_path, TWICE, "inner", "outer")
    said = (RELEASE, str(chart.path), "--namespace", namespace)
    cluster.helm("install", *said, "--set", "outer.enabled=false")
    cluster.helm("upgrade", *said, "--reset-values")  # one more beside it
    notes = cluster.helm("upgrade", *said, "--render-subchart-notes")
    for one, other in (("inner", "outer"), ("outer", "inner")):
        assert cluster.get("statefulset", f"{RELEASE}-{one}-redis", namespace)
        assert f"WARNING: {RELEASE}-{other} has an operator in this namespace, too" in notes
    with pytest.raises(
        CommandFailed, match=f"the release's store is {RELEASE}-inner-redis, and under the new"
    ):
        cluster.helm("upgrade", *said, "--set", "inner.fullnameOverride=q")
