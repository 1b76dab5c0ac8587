"""The harness is real: what an API server refuses, it refuses here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.namespaces import make_namespace, remove_namespace
from tests.servers import eventually
from tools.kubernetes.programs import HELM_VERSION, KUBERNETES_VERSION

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kettles.test.penstock.dev"},
    "spec": {
        "group": "test.penstock.dev",
        "scope": "Namespaced",
        "names": {"kind": "Kettle", "plural": "kettles", "singular": "kettle"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "litres": {"type": "integer", "default": 2},
                                    "filled": {"type": "integer", "default": 0},
                                },
                                "x-kubernetes-validations": [
                                    {"rule": "self.filled <= self.litres", "message": "it would run over"}
                                ],
                            }
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def kettles(cluster: Cluster) -> Iterator[None]:
    cluster.apply([CRD])
    cluster.kubectl("wait", "--for=condition=Established", "crd/kettles.test.penstock.dev")
    yield
    cluster.kubectl("delete", "crd", "kettles.test.penstock.dev")


def config_map(namespace: str, **data: str) -> dict[str, Any]:
    metadata = {"name": "found", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(namespace: str, **security: Any) -> dict[str, Any]:
    container = {"name": "only", "image": "none", "securityContext": security}
    metadata = {"name": "pod", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def kettle(namespace: str, **spec: int) -> dict[str, Any]:
    metadata = {"name": "kettle", "namespace": namespace}
    return {"apiVersion": "test.penstock.dev/v1", "kind": "Kettle", "metadata": metadata, "spec": spec}


def test_versions_are_those_of_the_releases(cluster: Cluster) -> None:
    said = json.loads(cluster.kubectl("version", "-o", "json"))
    found = {said["clientVersion"]["gitVersion"], said["serverVersion"]["gitVersion"]}
    assert found == {f"v{KUBERNETES_VERSION}"} or "KUBEBUILDER_ASSETS" in os.environ  # has whatever it has
    assert cluster.helm("version", "--template", "{{.Version}}") == f"v{HELM_VERSION}"


def test_a_user_without_rights_is_refused_until_they_are_given(
    api_server: ApiServer, cluster: Cluster, namespace: str
) -> None:
    nobody = api_server.as_user("nobody")
    with pytest.raises(CommandFailed, match='"nobody" cannot list resource "configmaps"'):
        nobody.items("configmaps", namespace)
    made = ("--namespace", namespace)
    cluster.kubectl("create", "role", "look", "--verb=list", "--resource=configmaps", *made)
    cluster.kubectl("create", "rolebinding", "look", "--role=look", "--user=nobody", *made)
    eventually(lambda: nobody.may("list", "configmaps", namespace))
    assert nobody.items("configmaps", namespace) == []
    with pytest.raises(CommandFailed, match='"nobody" cannot get resource "configmaps"'):
        nobody.apply([config_map(namespace)])


def test_a_service_account_is_known_by_its_token(
    api_server: ApiServer, cluster: Cluster, namespace: str
) -> None:
    account = api_server.as_service_account(namespace, "default")
    said = json.loads(account.kubectl("auth", "whoami", "-o", "json"))
    assert said["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


@pytest.mark.usefixtures("kettles")
def test_a_custom_resource_has_defaults_and_its_cel_rule_refuses(cluster: Cluster, namespace: str) -> None:
    cluster.apply([kettle(namespace, filled=2)])
    assert cluster.get("kettle", "kettle", namespace)["spec"] == {"filled": 2, "litres": 2}
    with pytest.raises(CommandFailed, match="it would run over"):
        cluster.apply([kettle(namespace, filled=3)])


def test_a_restricted_namespace_refuses_a_privileged_pod(
    cluster: Cluster, namespace: str, restricted: str
) -> None:
    cluster.apply([pod(namespace, privileged=True)])
    with pytest.raises(CommandFailed, match='violates PodSecurity "restricted'):
        cluster.apply([pod(restricted, privileged=True)])
    modest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    cluster.apply([pod(restricted, **modest, seccompProfile={"type": "RuntimeDefault"})])


def test_helm_installs_and_uninstalls_a_chart(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    chart = tmp_path / "tiny"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    template = config_map("{{ .Release.Namespace }}", by="{{ .Release.Service }} for {{ .Values.whom }}")
    (chart / "templates" / "found.yaml").write_text(json.dumps(template))
    cluster.helm("install", "tiny", str(chart), "--namespace", namespace, "--set", "whom=tests")
    assert cluster.get("configmap", "found", namespace)["data"] == {"by": "Helm for tests"}
    cluster.helm("uninstall", "tiny", "--namespace", namespace)
    assert cluster.items("configmaps", namespace) == []


def test_a_namespace_goes_with_all_that_is_in_it(cluster: Cluster) -> None:
    name = make_namespace(cluster)
    cluster.apply([config_map(name), pod(name)])
    remove_namespace(cluster, name)
    with pytest.raises(CommandFailed, match="not found"):
        cluster.get("namespace", name)


def test_a_namespace_says_what_keeps_it(cluster: Cluster) -> None:
    name = make_namespace(cluster)
    kept = config_map(name)
    kept["metadata"]["finalizers"] = ["test.penstock.dev/forgotten"]
    cluster.apply([kept])
    with pytest.raises(AssertionError, match="cannot go, as these stay: configmap/found"):
        remove_namespace(cluster, name, patience_s=0)
    freed = '[{"op": "remove", "path": "/metadata/finalizers"}]'
    cluster.kubectl("patch", "configmap", "found", "--namespace", name, "--type=json", "--patch", freed)
    remove_namespace(cluster, name)


def test_a_server_that_is_killed_comes_back_with_what_it_had(tmp_path: Path) -> None:
    server = ApiServer(tmp_path, {})
    try:
        cluster = server.start().as_user()
        cluster.apply([config_map("default", kept="yes")])
        server.restart()
        assert cluster.get("configmap", "found", "default")["data"] == {"kept": "yes"}
    finally:
        server.end()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = ApiServer(tmp_path, {}, {"authorization-mode": "Whim"})
    try:
        with pytest.raises(
            AssertionError, match=r'kube-apiserver: it ended with 1\n(?s:.*)"Whim.* is not a valid mode'
        ):
            server.start()
    finally:
        server.end()
