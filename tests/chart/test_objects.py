"""Objects that the chart creates besides settings of edges: docs/chart.md."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from services.store.redis.url import StoreUrl
from tests.chart.chart import NAME, nested, render
from tests.chart.switches import OPERATOR, TMQ, secret_of
from tests.kubernetes.cluster import DEFINITIONS


def test_scaled_edges_have_no_replicas() -> None:
    by_cpu = render(nested("edges.tmq.autoscaling", {"type": "hpa", "maxReplicas": 7}))
    assert "replicas" not in by_cpu[TMQ]["spec"]
    scaler = by_cpu[f"HorizontalPodAutoscaler/{NAME}-tmq"]["spec"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"{NAME}-tmq"}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 7)
    keda = {"type": "keda", "keda": {"serverAddress": "http://p:9090"}}
    scaled = render(nested("edges.tmq.autoscaling", keda))[f"ScaledObject/{NAME}-tmq"]["spec"]
    (trigger,) = scaled["triggers"]
    assert trigger["type"] == "prometheus"
    assert trigger["metadata"]["query"] == 'sum(penstock_operator_queue_depth{namespace="shop"})'


def test_only_settings_and_passwords_restart_pods() -> None:
    def annotations(*values: Any) -> Any:
        return render(nested("redis.auth", {"adminPassword": "a", "edgePassword": "b"}), *values)[TMQ][
            "spec"
        ]["template"]["metadata"]["annotations"]

    before = annotations()
    assert annotations(nested("edges.tmq.replicas", 5)) == before
    assert annotations(nested("edges.tmq.settings.workers", 2)) != before
    assert annotations(nested("redis.auth.edgePassword", "c")) != before
    assert annotations(nested("log.level", "DEBUG")) != before


def test_global_registry_and_labels_apply_everywhere() -> None:
    """Check global registry and labels, and pull secrets in both forms, as in other charts that share `global`."""
    values = {
        "global": {"imageRegistry": "registry.example/mirror/", "imagePullSecrets": ["one", {"name": "two"}]},
        "commonLabels": {"team": "queues"},
        "commonAnnotations": {"note": "1"},
        "console": {"enabled": True},
        "analytics": {"enabled": True},
    }
    rendered = render(values)
    for place, pod in rendered.pods():
        for container in pod["spec"]["containers"]:
            assert container["image"].startswith("registry.example/mirror/"), place
        assert pod["spec"]["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}], place
    for place, each in rendered.objects.items():
        assert each["metadata"]["labels"]["team"] == "queues", place
        assert each["metadata"]["annotations"]["note"] == "1", place


def test_names() -> None:
    assert render({"fullnameOverride": "queues"}).container("Deployment/queues-tmq")
    assert render({"nameOverride": "demo"}).container("Deployment/demo-tmq")
    long = render({"fullnameOverride": "a" * 40})
    assert all(len(each["metadata"]["name"]) <= 63 for each in long.objects.values())


def test_extra_objects_are_templates() -> None:
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Release.Name }}-text'}}"
    as_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-map"}}
    rendered = render({"extraObjects": [text, as_map]})
    assert "ConfigMap/demo-text" in rendered
    assert "ConfigMap/demo-map" in rendered


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("rediss://edge:s@store.example:6380/0?ssl_ca_certs=/etc/penstock/store-tls/ca.crt", "single"),
        ("redis+sentinel://edge:s@s-0:26379,s-1:26379/mymaster", "sentinel"),
        ("rediss+cluster://edge:s@c-0:6379,c-1:6379", "cluster"),
    ],
)
def test_external_store(url: str, mode: str) -> None:
    """Check the settings for an external store (docs/operations.md, "A store of your own")."""
    admin = url.replace("edge:s", "admin:t")
    rendered = render({"redis": {"enabled": False}, "externalRedis": {"url": url, "adminUrl": admin}})
    secret = rendered[f"Secret/{NAME}-store"]["stringData"]
    assert secret == {"edge-url": url, "admin-url": admin}
    assert StoreUrl.parse(secret["edge-url"]).mode == mode
    secrets = {place: secret_of(rendered, place, "REDIS_URL") for place in (TMQ, OPERATOR)}
    assert secrets[TMQ] == {"name": f"{NAME}-store", "key": "edge-url"}
    assert secrets[OPERATOR] == {"name": f"{NAME}-store", "key": "admin-url"}


def test_crds_are_unchanged() -> None:
    rendered = render()
    for path in DEFINITIONS.glob("*.yaml"):
        written = yaml.safe_load(path.read_text())
        found = rendered[f"CustomResourceDefinition/{written['metadata']['name']}"]
        assert found["spec"] == written["spec"]


def test_rights_are_minimal() -> None:
    """Check that rights are minimal (docs/chart.md, "Namespaces and rights"); test_rights.py checks they suffice."""
    rendered = render()
    rules = {place: each["rules"] for place, each in rendered.objects.items() if place.startswith("Role/")}
    assert set(rules) == {
        f"Role/{NAME}-{name}" for name in ("operator", "operator-own", "uninstall", "uninstall-own")
    }
    for place, listed in rules.items():
        for rule in listed:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], place
            assert "secrets" not in rule["resources"], place
    everywhere = render(nested("operator.watch.allNamespaces", True)).of("ClusterRole")
    assert not any("secrets" in rule["resources"] for each in everywhere for rule in each["rules"])
    views = [each for each in everywhere if each["metadata"]["name"].endswith("-view")]
    assert [rule["verbs"] for each in views for rule in each["rules"]] == [["get", "list", "watch"]]


def test_new_version_restarts_changed_images_only() -> None:
    """Check that a new version leaves the store, which all edges would wait for (docs/chart.md, "Upgrade")."""
    for place, pod in render({"console": {"enabled": True}, "analytics": {"enabled": True}}).pods():
        if not place.startswith("Pod/"):
            assert {"helm.sh/chart", "app.kubernetes.io/version"} & pod["metadata"][
                "labels"
            ].keys() == set(), place
            assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "penstock", place


def test_object_labels_override_common_labels() -> None:
    rendered = render({"commonLabels": {"team": "a"}, "edgeDefaults": {"podLabels": {"team": "b"}}})
    assert rendered[TMQ]["metadata"]["labels"]["team"] == "a"
    assert rendered[TMQ]["spec"]["template"]["metadata"]["labels"]["team"] == "b"


def test_same_release_name_in_two_namespaces() -> None:
    """Check that releases with one name in two namespaces have separate stores (docs/kubernetes.md, "Discovery")."""
    for one, other in ((("demo", "shop"), ("demo", "yard")), (("demo", "s" * 63), ("demo", "s" * 62))):
        first, second = (_store(release, namespace) for release, namespace in (one, other))
        assert first != second
        assert max(len(first), len(second)) <= 63


def _store(release: str, namespace: str) -> str:
    """Return the label of Services, as the operator compares it."""
    rendered = render(release=release, namespace=namespace)
    (label,) = {
        each["metadata"]["labels"]["penstock.dev/store"]
        for each in rendered.of("Service")
        if "penstock.dev/store" in each["metadata"]["labels"]
    }
    assert rendered.env(OPERATOR)["PENSTOCK_OPERATOR_STORE"] == label
    return str(label)


def test_cluster_wide_names_are_unique_per_release() -> None:
    """Check that cluster-wide names are unique for any combination of namespace and name."""
    first = render(release="prod-penstock", namespace="team")
    second = render(release="penstock", namespace="team-prod")
    roles = [{each["metadata"]["name"] for each in some.of("ClusterRole")} for some in (first, second)]
    assert all(roles)
    assert roles[0] & roles[1] == set()


def test_helm_test_pod_is_scheduled_as_configured() -> None:
    place = {
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "low",
        "affinity": {"nodeAffinity": {}},
    }
    resources = {"requests": {"cpu": "10m"}, "limits": {"memory": "99Mi"}}
    values = {
        **place,
        "podLabels": {"team": "queues"},
        "podAnnotations": {"note": "1"},
        "resources": resources,
    }
    rendered = render({"helmTest": values})
    pod = rendered[f"Pod/{NAME}-test"]
    assert pod["metadata"]["labels"]["team"] == "queues"
    assert pod["metadata"]["annotations"]["note"] == "1"
    assert {name: pod["spec"][name] for name in place} == place
    assert rendered.container(f"Pod/{NAME}-test")["resources"]["limits"] == {"memory": "99Mi"}
