"""Create and delete the chart's CRDs on an API server that tests use with and without them."""

from __future__ import annotations

from functools import cache

import yaml

from tests.kubernetes.client import Document
from tests.kubernetes.cluster import DEFINITIONS, Cluster
from tests.servers import eventually

KIND = "customresourcedefinitions"


@cache
def definitions() -> dict[str, Document]:
    """Return each CRD by its name."""
    read = [yaml.safe_load(path.read_text("utf-8")) for path in sorted(DEFINITIONS.iterdir())]
    return {each["metadata"]["name"]: each for each in read}


def define(cluster: Cluster) -> None:
    """Create the CRDs, and return once objects of these kinds can be created."""
    if missing := definitions().keys() - _there(cluster):
        cluster.apply([definitions()[name] for name in missing])
        eventually(lambda: all(_is_established(cluster, name) for name in missing))
        eventually(lambda: {f"{each.plural}.{each.group}" for each in cluster.api.resources()} > missing)


def forget(cluster: Cluster) -> None:
    """Delete the CRDs, and return once they and all their objects are gone."""
    for name in definitions().keys() & _there(cluster):
        cluster.delete(KIND, name)


def _there(cluster: Cluster) -> set[str]:
    return cluster.api.names(cluster.api.resource(KIND))


def _is_established(cluster: Cluster, name: str) -> bool:
    conditions = cluster.get(KIND, name).get("status", {}).get("conditions") or []
    return ("Established", "True") in [(each["type"], each["status"]) for each in conditions]
