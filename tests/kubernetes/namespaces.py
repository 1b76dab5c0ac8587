"""Create and remove namespaces on an API server without controllers, whose work is done here."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Mapping

from tests.kubernetes.client import CommandFailed, Resource
from tests.kubernetes.cluster import Cluster
from tests.servers import PATIENCE_S, eventually

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}  # label of a namespace


def make_namespace(cluster: Cluster, labels: Mapping[str, str] | None = None) -> str:
    """Create a namespace with the ServiceAccount that pods need, and return its name."""
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
    """Empty and delete a namespace. Raises AssertionError if an object stays because of its finalizer."""
    cluster.delete("namespaces", name, patience_s=0)
    kinds = [
        each for each in cluster.api.resources() if each.is_namespaced and "deletecollection" in each.verbs
    ]
    kinds = [each for each in kinds if _objects(cluster, each, name)]
    for kind in kinds:
        cluster.api.call("DELETE", kind.path(name))

    def left() -> list[str]:
        return [f"{kind.kind.lower()}/{there}" for kind in kinds for there in _objects(cluster, kind, name)]

    try:
        eventually(left, patience_s, until=operator.not_)
    except AssertionError as error:
        raise AssertionError(f"namespace {name} cannot go, as these stay: {', '.join(left())}") from error
    finalized = {**cluster.get("namespaces", name), "spec": {"finalizers": []}}
    cluster.api.call("PUT", f"/api/v1/namespaces/{name}/finalize", finalized)


def _objects(cluster: Cluster, kind: Resource, namespace: str) -> list[str]:
    """Return the names of objects; none if their kind is not served any more."""
    try:
        return sorted(cluster.api.names(kind, namespace))
    except CommandFailed as error:
        if error.status != 404:
            raise
        return []
