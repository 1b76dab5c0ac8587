"""Check that the tests' API server enforces what a real one does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.cluster import Cluster, CommandFailed
from tests.kubernetes.namespaces import make_namespace, remove_namespace
from tests.operator.rights import granted
from tests.servers import eventually
from tools.kubernetes.programs import HELM_VERSION, KUBERNETES_VERSION


def config_map(namespace: str, **data: str) -> dict[str, Any]:
    metadata = {"name": "found", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(namespace: str, **security: Any) -> dict[str, Any]:
    container = {"name": "only", "image": "none", "securityContext": security}
    metadata = {"name": "pod", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def test_versions_are_those_of_the_releases(cluster: Cluster) -> None:
    said = json.loads(cluster.kubectl("version", "-o", "json"))
    found = {said["clientVersion"]["gitVersion"], said["serverVersion"]["gitVersion"]}
    # any version may be there
    assert found == {f"v{KUBERNETES_VERSION}"} or "KUBEBUILDER_ASSETS" in os.environ
    assert cluster.helm("version", "--template", "{{.Version}}") == f"v{HELM_VERSION}"


def test_a_user_without_rights_is_refused_until_they_are_given(
    api_server: ApiServer, cluster: Cluster, namespace: str
) -> None:
    nobody = api_server.as_user("nobody")
    with pytest.raises(CommandFailed, match='"nobody" cannot list resource "configmaps"'):
        nobody.items("configmaps", namespace)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    cluster.apply(granted("nobody", rules), "--namespace", namespace)
    eventually(lambda: nobody.may("list", "configmaps", namespace))
    assert nobody.items("configmaps", namespace) == []
    with pytest.raises(CommandFailed, match='"nobody" cannot get resource "configmaps"'):
        nobody.apply([config_map(namespace)])


def test_a_restricted_namespace_refuses_a_privileged_pod(
    cluster: Cluster, namespace: str, restricted: str
) -> None:
    cluster.apply([pod(namespace, privileged=True)])
    with pytest.raises(CommandFailed, match='violates PodSecurity "restricted'):
        cluster.apply([pod(restricted, privileged=True)])
    modest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    cluster.apply([pod(restricted, **modest, seccompProfile={"type": "RuntimeDefault"})])


def test_namespace_deletion_removes_its_objects_or_names_what_blocks_it(cluster: Cluster) -> None:
    name = make_namespace(cluster)
    kept = config_map(name)
    kept["metadata"]["finalizers"] = ["test.penstock.dev/forgotten"]
    cluster.apply([kept, pod(name)])
    with pytest.raises(AssertionError, match="cannot go, as these stay: configmap/found"):
        remove_namespace(cluster, name, patience_s=0)
    cluster.patch("configmap", "found", {"metadata": {"finalizers": []}}, name)
    remove_namespace(cluster, name)
    with pytest.raises(CommandFailed, match="not found"):
        cluster.get("namespace", name)


def test_failed_start_gives_the_reason(tmp_path: Path) -> None:
    server = ApiServer(tmp_path, {}, {"authorization-mode": "Whim"})
    try:
        with pytest.raises(
            AssertionError, match=r'kube-apiserver: it ended with 1\n(?s:.*)"Whim.* is not a valid mode'
        ):
            server.start()
    finally:
        server.end()
