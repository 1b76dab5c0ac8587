"""Resources that tests apply, and what is asked about them."""

from __future__ import annotations

import base64
import json
import ssl
from contextlib import closing
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
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


class Seen:
    """A namespace as tests look at it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def apply(self, *documents: dict[str, Any]) -> None:
        self.cluster.apply(documents, "--namespace", self.namespace)

    def delete(self, kind: str, name: str, *flags: str) -> None:
        self.cluster.kubectl("delete", kind, name, "--namespace", self.namespace, *flags)

    def renew(self, document: dict[str, Any]) -> None:
        """Deletes it and makes it anew while kopf sees to a change of it: the old one's end is heard of last."""
        base = f"/apis/{API_VERSION}/namespaces/{self.namespace}/{document['kind'].lower()}s"
        path = f"{base}/{document['metadata']['name']}"
        with closing(self._connection()) as connection:
            call = partial(self._call, connection)
            call("PATCH", path, {"metadata": {"labels": {"changed": "now"}}})
            call("DELETE", path)
            call("POST", base, document)

    def _call(
        self, connection: HTTPSConnection, method: str, path: str, document: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """kubectl takes too long."""
        (user,) = self._kubeconfig()["users"]
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {user['user']['token']}", "Content-Type": content}
        connection.request(method, path, json.dumps(document) if document else None, headers)
        answer = connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        assert answer.status < 300, told
        return told

    def _connection(self) -> HTTPSConnection:
        (found,) = self._kubeconfig()["clusters"]
        authority = base64.b64decode(found["cluster"]["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
        return HTTPSConnection(found["cluster"]["server"].removeprefix("https://"), context=trust, timeout=10)

    def _kubeconfig(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Path(self.cluster.environment["KUBECONFIG"]).read_text())
        return found

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
        return [each["reason"] for each in self._events(name)]

    def event(self, name: str, reason: str) -> str:
        """What the last of this reason says about it."""
        return [str(each["message"]) for each in self._events(name) if each["reason"] == reason][-1]

    def _events(self, name: str) -> list[dict[str, Any]]:
        found = self.cluster.items("events", self.namespace)
        mine = [each for each in found if each["involvedObject"]["name"] == name]
        return sorted(mine, key=lambda each: int(each["metadata"]["resourceVersion"]))
