"""The chart as a dependency of another chart: docs/chart.md, "Install"."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.around import Around
from tests.chart.chart import RELEASE
from tests.chart.release import Release
from tests.kubernetes.cluster import Cluster, CommandFailed

TWICE = {"outer": {"crds": {"enabled": False}}}


def test_condition_enables_and_disables_the_chart(tmp_path: Path) -> None:
    around = Around(tmp_path, {"penstock": {"enabled": False}})
    assert around.render().objects == {}
    assert around.render("--set", "penstock.enabled=true").of("Deployment")


def test_release_with_two_aliases_can_be_upgraded(cluster: Cluster, release: Release, tmp_path: Path) -> None:
    """Check that two aliases have separate stores, whose names stay in an upgrade."""
    chart = Around(tmp_path, TWICE, "inner", "outer")
    values = (RELEASE, str(chart.path), "--namespace", release.namespace)
    cluster.helm("install", *values, "--set", "outer.enabled=false")
    cluster.helm("upgrade", *values, "--reset-values")  # one additional edge
    notes = cluster.helm("upgrade", *values, "--render-subchart-notes")
    for one, other in (("inner", "outer"), ("outer", "inner")):
        assert cluster.get("statefulset", f"{RELEASE}-{one}-redis", release.namespace)
        assert f"WARNING: {RELEASE}-{other} also has an operator in this namespace" in notes
    with pytest.raises(CommandFailed, match=f"the release's store is {RELEASE}-inner-redis, and the new"):
        cluster.helm("upgrade", *values, "--set", "inner.fullnameOverride=q")
