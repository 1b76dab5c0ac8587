"""Upgrades on a real API server: docs/chart.md, "Upgrade"."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import pytest

from tests.chart.chart import CHART, NAME, RELEASE, Values, nested
from tests.chart.release import Release
from tests.kubernetes.cluster import Cluster, CommandFailed

SCALED: Values = nested("edges.tmq.autoscaling.type", "hpa")


def _passwords(release: Release) -> dict[str, str]:
    data = release.get("secret", f"{NAME}-redis")["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _annotations(release: Release) -> Mapping[str, str]:
    found: Mapping[str, str] = release.get("deployment", f"{NAME}-tmq")["spec"]["template"]["metadata"][
        "annotations"
    ]
    return found


def test_an_upgrade_keeps_passwords_and_restarts_nothing(release: Release) -> None:
    release.install()
    made, before = _passwords(release), _annotations(release)
    assert {len(password) for password in made.values()} == {32}
    assert len(set(made.values())) == 2
    release.upgrade(nested("edges.tmq.replicas", 3))
    assert release.get("deployment", f"{NAME}-tmq")["spec"]["replicas"] == 3
    assert _passwords(release) == made
    assert _annotations(release) == before


def test_a_password_that_is_said_counts_and_restarts_pods(release: Release) -> None:
    release.install()
    made, before = _passwords(release), _annotations(release)
    release.upgrade(nested("redis.auth.edgePassword", "another"))
    assert _passwords(release) == {"admin-password": made["admin-password"], "edge-password": "another"}
    assert _annotations(release)["checksum/store"] != before["checksum/store"]


def test_replicas_of_a_scaled_edge_are_the_scalers(release: Release) -> None:
    """As one would scale it, so that an upgrade does not undo it."""
    release.install(SCALED)
    _scale(release, 7)
    release.upgrade(SCALED, nested("edges.tmq.settings.workers", 2))
    assert _replicas(release) == 7


def _replicas(release: Release) -> int:
    found: int = release.get("deployment", f"{NAME}-tmq")["spec"]["replicas"]
    return found


def _scale(release: Release, replicas: int) -> None:
    """As a HorizontalPodAutoscaler does: by the subresource, as somebody else than helm."""
    words = ("scale", f"deployment/{NAME}-tmq", f"--replicas={replicas}", "--namespace", release.namespace)
    release.cluster.kubectl(*words)


def test_an_edge_keeps_its_pods_when_a_scaler_comes_and_goes(release: Release) -> None:
    """docs/chart.md, "Upgrade": until the scaler has its say there are as many as before."""
    five = nested("edges.tmq.replicas", 5)
    release.install(five)
    release.upgrade(five, SCALED)
    assert _replicas(release) == 5
    release.upgrade(five, SCALED, nested("log.level", "DEBUG"))
    assert _replicas(release) == 5
    _scale(release, 8)
    release.upgrade(five, SCALED)
    assert _replicas(release) == 8
    with pytest.raises(CommandFailed, match=r"conflict.*\.spec\.replicas"):
        release.upgrade(five)
    release.upgrade(five, flags=("--force-conflicts",))
    assert _replicas(release) == 5
    release.upgrade(nested("edges.tmq.replicas", 4))
    assert _replicas(release) == 4


def test_without_server_side_apply_a_scaled_edge_keeps_its_pods_too(release: Release) -> None:
    """As Helm 3 does it: what the last manifest said and the new one does not is taken out, whoever set it last."""
    five, by_client = nested("edges.tmq.replicas", 5), ("--server-side=false",)
    release.install(five, flags=by_client)
    for replicas in (5, 8, 3):
        if replicas != 5:
            _scale(release, replicas)
        release.upgrade(five, SCALED, flags=by_client)
        assert _replicas(release) == replicas
    release.upgrade(five, flags=by_client)
    assert _replicas(release) == 5


def test_what_nobody_may_change_can_be_made_anew(cluster: Cluster, release: Release) -> None:
    """docs/chart.md, "Upgrade"."""
    release.install()
    larger = nested("redis.persistence.size", "16Gi")
    with pytest.raises(CommandFailed, match="Forbidden"):
        release.upgrade(larger)
    where = ("--namespace", release.namespace)
    cluster.kubectl("delete", "statefulset", f"{NAME}-redis", "--cascade=orphan", "--wait=false", *where)
    _collect_orphans(cluster, release)
    release.upgrade(larger)
    (claim,) = release.get("statefulset", f"{NAME}-redis")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "16Gi"


def _collect_orphans(cluster: Cluster, release: Release) -> None:
    """What the garbage collector would do: it lets an owner go once its pods are nobody's."""
    no_finalizers = json.dumps({"metadata": {"finalizers": None}})
    cluster.kubectl(
        *("patch", "statefulset", f"{NAME}-redis", "--namespace", release.namespace),
        *("--type=merge", "--patch", no_finalizers),
    )


def test_passwords_stand_in_the_secret_alone(release: Release) -> None:
    """Not among the release's values, whatever is said beside them, so that these can be used again."""
    release.install(nested("redis.auth.edgePassword", "said"))
    values = release.cluster.helm("get", "values", RELEASE, "--namespace", release.namespace, "-o", "json")
    assert json.loads(values) == nested("redis.auth.edgePassword", "said")
    made = _passwords(release)
    release.upgrade(flags=("--reuse-values",))
    assert _passwords(release) == made
    assert made["edge-password"] == "said"


def test_queues_may_belong_to_the_release_once_their_definition_is_there(release: Release) -> None:
    """docs/chart.md, "Upgrade": helm looks kinds up before it makes anything."""
    queue = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "orders"}}
    with pytest.raises(CommandFailed, match="ensure CRDs are installed first"):
        release.install({"extraObjects": [queue]})
    release.uninstall("--no-hooks", "--ignore-not-found")
    release.install()
    release.upgrade({"extraObjects": [queue]})
    made = release.get("queue", "orders")["metadata"]
    assert made["annotations"]["meta.helm.sh/release-name"] == RELEASE
    release.upgrade({"extraObjects": []})
    assert release.cluster.items("queues", release.namespace) == []


def test_another_name_does_not_leave_the_store_behind(release: Release) -> None:
    """docs/chart.md, "Upgrade": it would be an empty one."""
    release.install()
    with pytest.raises(
        CommandFailed, match=f"the release's store is {NAME}-redis, and under the new name q-redis"
    ):
        release.upgrade({"fullnameOverride": "q"})
    with pytest.raises(CommandFailed, match=f"say fullnameOverride={NAME}"):
        release.upgrade({"nameOverride": "q"})
    release.upgrade({"fullnameOverride": NAME, "nameOverride": "penstock"})
    outside = {"redis": {"enabled": False}, "externalRedis": {"existingSecret": "s"}}
    release.upgrade(outside, {"fullnameOverride": "q"})


def test_a_release_beside_another_is_warned(release: Release) -> None:
    """docs/chart.md, "Namespaces and rights"."""
    assert "WARNING" not in release.install()
    assert "WARNING" not in release.upgrade()
    beside = ("install", "beside", str(CHART), "--namespace", release.namespace)
    sets = ("--set", "crds.enabled=false")
    try:
        said = release.cluster.helm(*beside, *sets)
        assert f"WARNING: {RELEASE} has an operator in this namespace, too" in said
    finally:
        release.cluster.helm("uninstall", "beside", "--namespace", release.namespace, "--no-hooks")
