"""Namespaces of tests on an API server without controllers: what these would do to them is done here."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from tests.kubernetes.cluster import Cluster
from tests.servers import PATIENCE_S, eventually

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}  # label of a namespace


def make_namespace(cluster: Cluster, labels: Mapping[str, str] | None = None) -> str:
    """A new one with the ServiceAccount without which no pod is admitted; its name."""
    name = f"test-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": dict(labels or {})}
    account = {"name": "default", "namespace": name}
    cluster.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        ]
    )
    return name


def remove_namespace(cluster: Cluster, name: str, patience_s: float = PATIENCE_S) -> None:
    """Empties it, then lets it go. Raises AssertionError if something stays, as its finalizer is removed by nobody."""
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    kinds = ",".join(
        cluster.kubectl("api-resources", "--namespaced", "--verbs=list,delete", "-o", "name").split()
    )
    cluster.kubectl("delete", kinds, "--all", "--namespace", name, "--wait=false")
    left: list[str] = []

    def is_empty() -> bool:
        left[:] = cluster.kubectl("get", kinds, "--namespace", name, "-o", "name").split()
        return not left

    try:
        eventually(is_empty, patience_s)
    except AssertionError as error:
        raise AssertionError(f"namespace {name} cannot go, as these stay: {', '.join(left)}") from error
    finalized = {**cluster.get("namespace", name), "spec": {"finalizers": []}}
    cluster.kubectl(
        "replace", "--raw", f"/api/v1/namespaces/{name}/finalize", "-f", "-", given=json.dumps(finalized)
    )
