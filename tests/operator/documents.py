"""Resources that tests apply, and what is asked about them."""

from __future__ import annotations

from typing import Any

from services.store.document import API_VERSION
from tests.kubernetes.cluster import Cluster
from tests.servers import eventually

PATIENCE_S = 20.0


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def peer(name: str, protocol: str = "rqp-mca", *addresses: str, **spec: Any) -> dict[str, Any]:
    spec = {"protocol": protocol, "addresses": list(addresses or ("10.0.0.7",)), **spec}
    return {"apiVersion": API_VERSION, "kind": "Peer", "metadata": {"name": name}, "spec": spec}


def redrive(name: str, source: str, **spec: Any) -> dict[str, Any]:
    spec = {"source": source, **spec}
    return {"apiVersion": API_VERSION, "kind": "Redrive", "metadata": {"name": name}, "spec": spec}


class Seen:
    """A namespace as tests look at it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def apply(self, *documents: dict[str, Any]) -> None:
        self.cluster.apply(documents, "--namespace", self.namespace)

    def delete(self, kind: str, name: str, *flags: str) -> None:
        self.cluster.kubectl("delete", kind, name, "--namespace", self.namespace, *flags)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.cluster.get(kind, name, self.namespace)

    def ready(self, kind: str, name: str) -> tuple[str, str]:
        """Status and reason of Ready; ('', '') before the first."""
        found = self.condition(kind, name)
        return found.get("status", ""), found.get("reason", "")

    def condition(self, kind: str, name: str) -> dict[str, Any]:
        resource = self.get(kind, name)
        conditions = resource.get("status", {}).get("conditions", [])
        found: dict[str, Any] = next((one for one in conditions if one["type"] == "Ready"), {})
        return found

    def becomes(
        self, kind: str, name: str, status: str, reason: str, patience_s: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Returns the condition once it is so, and about the newest generation."""
        last: dict[str, Any] = {}

        def is_so() -> bool:
            last.update(self.condition(kind, name))
            newest = self.get(kind, name)["metadata"]["generation"]
            return (last.get("status"), last.get("reason"), last.get("observedGeneration")) == (
                status,
                reason,
                newest,
            )

        try:
            eventually(is_so, patience_s)
        except AssertionError as error:
            raise AssertionError(f"{kind} {name} is not {status} {reason}: {last}") from error
        return last

    def events(self, name: str) -> list[str]:
        """Reasons of the events about it, in their order."""
        found = self.cluster.items("events", self.namespace)
        mine = [each for each in found if each["involvedObject"]["name"] == name]
        return [
            each["reason"] for each in sorted(mine, key=lambda each: int(each["metadata"]["resourceVersion"]))
        ]
