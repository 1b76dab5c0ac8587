"""Namespaces of tests on a cluster with nodes. As pods end slowly, deletion overlaps with the next tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.kubernetes.cluster import Cluster
from tests.servers import eventually

GONE_S = 120
_leaving: list[str] = []


@contextmanager
def own_namespace(cluster: Cluster, labels: Mapping[str, str]) -> Iterator[str]:
    """Create a namespace that admits pods and yield its name; start its deletion afterwards."""
    name = f"e2e-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": dict(labels)}
    _leaving.append(name)  # it may exist even if kubectl fails
    try:
        cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
        # a controller creates this account, without which no pod is admitted
        eventually(lambda: "default" in cluster.kubectl("get", "serviceaccounts", "-o", "name", "-n", name))
        yield name
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def wait_until_gone(cluster: Cluster) -> None:
    """Wait until all namespaces are deleted. Raise CommandFailed if one is not deleted in time."""
    if _leaving:
        cluster.kubectl("delete", "namespace", *_leaving, f"--timeout={GONE_S}s", "--ignore-not-found")
        _leaving.clear()
