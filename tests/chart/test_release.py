"""Objects that an installation creates and an uninstall keeps, on a real API server: docs/chart.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.chart.chart import CHART, NAME, RELEASE, Values, helm, nested, pod_of, render, together
from tests.chart.release import INSTANCE, Release, queue_of
from tests.chart.switches import EXECUTORS, NODES, SHARED
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.servers import eventually

ANALYTICS = ("analytics", "analytics-output", "executor")
EVERYTHING: Values = {
    "console": {"enabled": True, "ingress": {"enabled": True, "hosts": ["console.example.org"]}},
    # an existing claim: its finalizer would need a controller, which is absent here
    "analytics": {**EXECUTORS["analytics"], "output": {"existingClaim": "theirs"}},
    "edges": {"tmq": {"autoscaling": {"type": "hpa"}}},
    "monitoring": {"dashboards": {"enabled": True}},
}


def test_helm_lint_passes() -> None:
    helm(("lint", "--strict", str(CHART)))


def test_install_is_admitted_and_uninstall_keeps_crds_and_queues(cluster: Cluster, release: Release) -> None:
    """Check installation and uninstallation in a namespace for restricted pods, without warnings."""
    words = ("label", "namespace", release.namespace, "pod-security.kubernetes.io/warn=restricted")
    cluster.kubectl(*words)
    given = release.install(EVERYTHING)
    assert "Warning" not in given
    assert len(release.objects()) > 40
    _admits_every_pod(release)

    cluster.kubectl("apply", "--namespace", release.namespace, "--filename", "-", given=queue_of(given))
    release.uninstall("--no-hooks")
    assert release.objects() == []
    roles = cluster.items("clusterroles.rbac.authorization.k8s.io")
    assert [each for each in roles if RELEASE in str(each)] == []
    assert [each["metadata"]["name"] for each in cluster.items("queues", release.namespace)] == ["orders"]
    release.install()  # reinstall over its own CRDs
    assert cluster.items("queues", release.namespace)


def _admits_every_pod(release: Release) -> None:
    """Create a pod of each template, including hooks and tests; except those on the node's network."""
    own_claim = together(nested("analytics.output.existingClaim", ""), nested("analytics.output", SHARED))
    rendered = render(EVERYTHING, own_claim)  # bound by a Job
    executor = rendered.executor()
    executor["spec"]["containers"][0]["image"] = "as-spark-says"
    templates = {**dict(rendered.pods()), "Pod/executor": executor}
    tried = [
        re.sub(r"-[0-9a-f]{6,}$", "", place.rpartition("/")[2]).removeprefix(f"{NAME}-")
        for place in templates
    ]
    assert sorted(tried) == sorted(
        (*("tmq", "pubsub", "rqp", "ring", "operator", "redis", "uninstall", "console", "test"), *ANALYTICS)
    )
    where = ("--namespace", release.namespace)
    release.cluster.apply([_pod(place, template) for place, template in templates.items()], *where)
    on_node = render(NODES, nested("edges.rqp.hostNetwork", True))
    made = _pod("Pod/on-node", pod_of(on_node[f"Deployment/{NAME}-rqp"]))
    with pytest.raises(CommandFailed, match=r'violates PodSecurity "restricted.*host namespaces'):
        release.cluster.apply([made], *where)


def _pod(place: str, template: Any) -> dict[str, Any]:
    """Return a pod as its controller would create it; the ServiceAccount of a hook may not exist yet."""
    name = place.rpartition("/")[2].lower() + "-tried"
    spec = {**template["spec"]}
    if place.endswith("-uninstall"):
        spec["serviceAccountName"] = "default"
    if place.startswith("StatefulSet/") and place.endswith("-redis"):
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}
        spec["volumes"] = [*spec["volumes"], claim]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_uninstall_without_a_working_hook(cluster: Cluster, release: Release) -> None:
    """Check an uninstall whose hook cannot run, as no controller runs pods here (docs/chart.md, "Uninstall")."""
    release.install()
    with pytest.raises(CommandFailed, match="context deadline exceeded"):
        release.uninstall("--timeout", "3s")
    with pytest.raises(CommandFailed, match="still in use"):
        release.install()
    release.scale("operator", 0)  # as the hook's Job does
    with pytest.raises(CommandFailed, match="has no deployed releases"):
        release.upgrade(flags=("--force-conflicts",))
    release.scale("operator", 1)
    cluster.helm("rollback", RELEASE, "1", "--namespace", release.namespace)
    _makes_anew_what_nobody_may_change(release)
    assert release.get("deployment", f"{NAME}-operator")["spec"]["replicas"] == 1

    with pytest.raises(CommandFailed, match="context deadline exceeded"):
        release.uninstall("--timeout", "3s")
    release.uninstall("--no-hooks")
    assert set(release.objects()) <= {f"job.batch/{NAME}-uninstall"}
    of_the_hook = f"{INSTANCE},app.kubernetes.io/component=uninstall"
    where = ("--namespace", release.namespace, "--ignore-not-found")
    cluster.kubectl("delete", "job", *where, "--selector", of_the_hook)
    assert release.objects() == []


def _makes_anew_what_nobody_may_change(release: Release) -> None:
    """Check that immutable objects are replaced (docs/chart.md, "Upgrade")."""
    larger = nested("redis.persistence.size", "16Gi")
    with pytest.raises(CommandFailed, match="Forbidden"):
        release.upgrade(larger)
    words = ("statefulset", f"{NAME}-redis", "--namespace", release.namespace)
    release.cluster.kubectl("delete", *words, "--cascade=orphan", "--wait=false")
    # as the garbage collector: it deletes an owner after its pods
    no_finalizers = json.dumps({"metadata": {"finalizers": None}})
    release.cluster.kubectl("patch", *words, "--type=merge", "--patch", no_finalizers)
    release.upgrade(larger)
    (claim,) = release.get("statefulset", f"{NAME}-redis")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "16Gi"


def test_crds_belong_to_one_release_and_precede_queues(
    cluster: Cluster, release: Release, new_namespace: Callable[..., str]
) -> None:
    """Check that CRDs precede queues, as helm looks up kinds first, and belong to one release (docs/chart.md)."""
    queue = {"apiVersion": "penstock.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "orders"}}
    own, everywhere = {"extraObjects": [queue]}, nested("operator.watch.allNamespaces", True)
    with pytest.raises(CommandFailed, match="ensure CRDs are installed first"):
        release.install(own)
    release.uninstall("--no-hooks", "--ignore-not-found")
    release.install(everywhere)
    other = Release(cluster, new_namespace())
    with pytest.raises(CommandFailed, match="cannot be imported into the current release"):
        other.install(everywhere)
    other.install(everywhere, nested("crds.enabled", False))
    assert len(other.objects()) > 20
    other.uninstall("--no-hooks")

    release.upgrade(own)
    assert release.get("queue", "orders")["metadata"]["annotations"]["meta.helm.sh/release-name"] == RELEASE
    release.upgrade(nested("crds.keep", False))
    assert cluster.items("queues", release.namespace) == []
    release.uninstall("--no-hooks")

    def are_gone() -> bool:
        found = cluster.items("customresourcedefinitions")
        return not [each for each in found if each["spec"]["group"] == "penstock.dev"]

    eventually(are_gone)


def test_scaled_edge_keeps_its_pods_without_server_side_apply(release: Release) -> None:
    """Check this without server-side apply, where helm removes fields that the new manifest lacks."""
    by_client = ("--server-side=false",)
    five = {"crds": {"enabled": False}, **nested("edges.tmq.replicas", 5)}
    scaled = nested("edges.tmq.autoscaling.type", "hpa")

    def replicas() -> Any:
        return release.get("deployment", f"{NAME}-tmq")["spec"]["replicas"]

    release.install(five, flags=by_client)
    release.scale("tmq", 8)
    release.upgrade(five, scaled, flags=by_client)
    assert replicas() == 8
    release.upgrade(five, flags=by_client)
    assert replicas() == 5
