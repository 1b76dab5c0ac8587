"""Namespaces of tests on a cluster with nodes. They go while the next tests run: pods take their time to end."""

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
    """Yield the name of a new one that admits pods, and begin to delete it afterwards."""
    name = f"e2e-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": dict(labels)}
    _leaving.append(name)  # it may be there before kubectl says so
    try:
        cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
        # made by a controller; without it no pod is admitted
        eventually(lambda: "default" in cluster.kubectl("get", "serviceaccounts", "-o", "name", "-n", name))
        yield name
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def wait_until_gone(cluster: Cluster) -> None:
    """Return once none of them is left. Raises CommandFailed if one cannot go."""
    if _leaving:
        cluster.kubectl("delete", "namespace", *_leaving, f"--timeout={GONE_S}s", "--ignore-not-found")
        _leaving.clear()
