"""Install, upgrade and uninstall on a real API server: docs/chart.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.chart.chart import CHART, NAME, RELEASE, Values, nested, pod_of, render, together
from tests.chart.full import FULL
from tests.chart.release import INSTANCE, Release, queue_of
from tests.chart.switches import EXECUTORS, NODES, SHARED, SWITCHES
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.namespaces import make_namespace, remove_namespace
from tests.servers import eventually

ANALYTICS = ("analytics", "analytics-output", "executor")
NewNamespace = Callable[..., str]
WARNS = "pod-security.kubernetes.io/warn"
EVERYTHING: Values = {
    "console": {"enabled": True, "ingress": {"enabled": True, "hosts": ["console.example.org"]}},
    # of somebody else: what protects a claim is taken off it by a controller, and none runs
    "analytics": {**EXECUTORS["analytics"], "output": {"existingClaim": "theirs"}},
    "edges": {"tmq": {"autoscaling": {"type": "hpa"}}},
    "monitoring": {"dashboards": {"enabled": True}},
}


def test_helm_finds_nothing_wrong(cluster: Cluster) -> None:
    cluster.helm("lint", "--strict", str(CHART))


@pytest.fixture(scope="module")
def dry(api_server: ApiServer) -> Iterator[Release]:
    """Where nothing is ever installed."""
    administrator = api_server.as_user()
    namespace = make_namespace(administrator)
    yield Release(administrator, namespace)
    remove_namespace(administrator, namespace)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.path)
def test_the_api_server_takes_whatever_a_switch_makes(dry: Release, switch: Any) -> None:
    """But for custom resources of others, which it does not know. helm's own --dry-run=server sends nothing."""
    values = nested(switch.path, [dry.namespace]) if "namespaces" in switch.path else switch.values_on
    dry.would_take(switch.beside, values)


def test_it_takes_whatever_else_may_be_said(dry: Release) -> None:
    dry.would_take(FULL)


def test_what_it_does_not_take_is_found(dry: Release) -> None:
    """So that the two before could fail: a manifest of somebody's own that no Service can be."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "theirs"}}
    wrong = {**service, "spec": {"clusterIP": "nonsense", "ports": [{"port": 80}]}}
    with pytest.raises(CommandFailed, match=r"nonsense.*must be a valid IP address"):
        dry.would_take({"extraObjects": [wrong]})


def test_every_pod_is_admitted_where_only_restricted_ones_are(release: Release) -> None:
    """The API server's own admission, for a pod of each template, hooks and the test among them."""
    release.install(EVERYTHING)
    own_claim = together(nested("analytics.output.existingClaim", ""), nested("analytics.output", SHARED))
    rendered = render(EVERYTHING, own_claim)  # which a Job binds
    executor = yaml.safe_load(rendered[f"ConfigMap/{NAME}-analytics"]["data"]["executor.yaml"])
    executor["spec"]["containers"][0]["image"] = "as-spark-says"
    tried = []
    for place, template in [*rendered.pods(), ("Pod/executor", executor)]:
        made = _pod(place, template, release.namespace)
        release.cluster.kubectl("create", "--filename", "-", given=json.dumps(made))
        tried.append(re.sub(r"-[0-9a-f]{6,}$", "", place.rpartition("/")[2]).removeprefix(f"{NAME}-"))
    assert sorted(tried) == sorted(
        (*("tmq", "pubsub", "rqp", "ring", "operator", "redis", "uninstall", "console", "test"), *ANALYTICS)
    )


def test_what_the_nodes_network_gives_up_is_refused_there(release: Release) -> None:
    """So that the test before could fail."""
    release.install()
    rendered = render(NODES, nested("edges.rqp.hostNetwork", True))
    made = _pod("rqp", pod_of(rendered[f"Deployment/{NAME}-rqp"]), release.namespace)
    with pytest.raises(CommandFailed, match=r'violates PodSecurity "restricted.*host namespaces'):
        release.cluster.kubectl("create", "--filename", "-", given=json.dumps(made))


def _pod(place: str, template: Any, namespace: str) -> dict[str, Any]:
    """As a controller would make it; of hooks the ServiceAccount may not be there yet."""
    name = place.rpartition("/")[2].lower() + "-tried"
    spec = {**template["spec"]}
    if place.endswith("-uninstall"):
        spec["serviceAccountName"] = "default"
    if place.startswith("StatefulSet/") and place.endswith("-redis"):
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}
        spec["volumes"] = [*spec["volumes"], claim]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def test_templates_are_admitted_without_a_warning(cluster: Cluster, release: Release) -> None:
    """helm tells what the API server warns of."""
    cluster.kubectl("label", "namespace", release.namespace, f"{WARNS}=restricted")
    assert "Warning" not in release.install(EVERYTHING)


def test_an_uninstall_keeps_definitions_and_queues_and_removes_the_rest(
    cluster: Cluster, release: Release
) -> None:
    notes = release.install(EVERYTHING)
    assert len(release.objects()) > 40
    cluster.kubectl("apply", "--namespace", release.namespace, "--filename", "-", given=queue_of(notes))
    release.uninstall("--no-hooks")
    assert release.objects() == []
    assert cluster.items("clusterroles.rbac.authorization.k8s.io") == [
        each for each in cluster.items("clusterroles.rbac.authorization.k8s.io") if RELEASE not in str(each)
    ]
    assert [each["metadata"]["name"] for each in cluster.items("queues", release.namespace)] == ["orders"]
    release.install()  # finds its own definitions again
    assert cluster.items("queues", release.namespace)


def test_a_release_whose_hook_cannot_run_goes_without_it(cluster: Cluster, release: Release) -> None:
    """docs/chart.md, "Uninstall": nothing runs pods here, as where the image cannot be pulled."""
    release.install()
    with pytest.raises(CommandFailed, match="context deadline exceeded"):
        release.uninstall("--timeout", "3s")
    with pytest.raises(CommandFailed, match="still in use"):
        release.install()
    release.uninstall("--no-hooks")
    assert set(release.objects()) <= {f"job.batch/{NAME}-uninstall"}
    of_the_hook = f"{INSTANCE},app.kubernetes.io/component=uninstall"
    where = ("--namespace", release.namespace, "--ignore-not-found")
    cluster.kubectl("delete", "job", *where, "--selector", of_the_hook)
    assert release.objects() == []
    release.install()


def test_an_uninstall_that_was_broken_off_is_taken_back(cluster: Cluster, release: Release) -> None:
    """docs/runbooks/PenstockOperatorGone.md: the Job has stopped the operator, and did not come to its end."""
    release.install()
    with pytest.raises(CommandFailed, match="context deadline exceeded"):
        release.uninstall("--timeout", "3s")
    scale = ("scale", f"deployment/{NAME}-operator", "--namespace", release.namespace)
    cluster.kubectl(*scale, "--replicas=0")
    with pytest.raises(CommandFailed, match="has no deployed releases"):
        release.upgrade(flags=("--force-conflicts",))
    cluster.kubectl(*scale, "--replicas=1")
    cluster.helm("rollback", RELEASE, "1", "--namespace", release.namespace)
    release.upgrade(nested("edges.tmq.replicas", 3))
    assert release.get("deployment", f"{NAME}-operator")["spec"]["replicas"] == 1


def test_definitions_go_with_the_release_where_that_is_said(cluster: Cluster, release: Release) -> None:
    release.install(nested("crds.keep", False))
    release.uninstall("--no-hooks")

    def are_gone() -> bool:
        found = cluster.items("customresourcedefinitions")
        return not [each for each in found if each["spec"]["group"] == "penstock.dev"]

    eventually(are_gone)


def test_a_second_release_leaves_the_definitions_to_the_first(
    release: Release, new_namespace: NewNamespace
) -> None:
    everywhere = nested("operator.watch.allNamespaces", True)
    release.install(everywhere)
    other = Release(release.cluster, new_namespace())
    with pytest.raises(CommandFailed, match="cannot be imported into the current release"):
        other.install(everywhere)
    other.install(everywhere, nested("crds.enabled", False))
    assert len(other.objects()) > 20
    other.uninstall("--no-hooks")
