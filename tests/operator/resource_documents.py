"""Build the resources that tests apply, and query their state."""

from __future__ import annotations

from typing import Any

from services.store.model.document import API_VERSION
from tests.kubernetes.cluster import Cluster
from tests.servers import eventually

PATIENCE_S = 60.0


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def peer(name: str, protocol: str = "rqp-mca", *addresses: str, **spec: Any) -> dict[str, Any]:
    spec = {"protocol": protocol, "addresses": list(addresses or ("10.0.0.7",)), **spec}
    return {"apiVersion": API_VERSION, "kind": "Peer", "metadata": {"name": name}, "spec": spec}


def redrive(name: str, source: str, **spec: Any) -> dict[str, Any]:
    spec = {"source": source, **spec}
    return {"apiVersion": API_VERSION, "kind": "Redrive", "metadata": {"name": name}, "spec": spec}


def ready_of(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a resource's condition Ready; {} before the first."""
    conditions = resource.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "Ready"), {})


class Seen:
    """A namespace as tests see it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def apply(self, *documents: dict[str, Any]) -> None:
        self.cluster.apply(documents, "--namespace", self.namespace)

    def declared(self, *documents: dict[str, Any]) -> None:
        """Apply documents, and wait until each is declared."""
        self.apply(*documents)
        for each in documents:
            self.becomes(each["kind"].lower(), each["metadata"]["name"], "True", "Declared")

    def delete(self, kind: str, name: str, patience_s: float = PATIENCE_S) -> None:
        """Delete an object and return once it is gone; with patience_s = 0, return at once."""
        self.cluster.delete(kind, name, self.namespace, patience_s)

    def renew(self, document: dict[str, Any]) -> None:
        """Delete and recreate an object while kopf handles a change: the old object's end is reported last."""
        kind, name = document["kind"].lower(), document["metadata"]["name"]
        self.cluster.patch(kind, name, {"metadata": {"labels": {"changed": "now"}}}, self.namespace)
        self.delete(kind, name, patience_s=0)
        self.cluster.create(document, self.namespace)

    def finalizers(self, kind: str, name: str, *held_by: str) -> None:
        """Replace the finalizers."""
        self.cluster.patch(kind, name, {"metadata": {"finalizers": [*held_by]}}, self.namespace)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.cluster.get(kind, name, self.namespace)

    def ready(self, kind: str, name: str) -> tuple[str, str]:
        """Return status and reason of Ready; ('', '') before the first."""
        found = self.condition(kind, name)
        return found.get("status", ""), found.get("reason", "")

    def condition(self, kind: str, name: str) -> dict[str, Any]:
        return ready_of(self.get(kind, name))

    def becomes(
        self, kind: str, name: str, status: str, reason: str, patience_s: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Wait for the condition at the newest generation, and return it."""
        last: dict[str, Any] = {}

        def is_so() -> bool:
            resource = self.get(kind, name)
            last.update(ready_of(resource))
            values = (last.get("status"), last.get("reason"), last.get("observedGeneration"))
            return values == (status, reason, resource["metadata"]["generation"])

        try:
            eventually(is_so, patience_s)
        except AssertionError as error:
            raise AssertionError(f"{kind} {name} is not {status} {reason}: {last}") from error
        return last

    def events(self, name: str) -> list[str]:
        """Return the reasons of an object's events, in order."""
        return [each["reason"] for each in self._events(name)]

    def event(self, name: str, reason: str) -> str:
        """Return the note of the last event with this reason."""
        return [str(each["message"]) for each in self._events(name) if each["reason"] == reason][-1]

    def _events(self, name: str) -> list[dict[str, Any]]:
        found = self.cluster.items("events", self.namespace)
        mine = [each for each in found if each["involvedObject"]["name"] == name]
        return sorted(mine, key=lambda each: int(each["metadata"]["resourceVersion"]))
