"""Call the Kubernetes API from this process: the same as kubectl, for a hundredth of its processor time."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from threading import Lock
from typing import Any

Document = Mapping[str, Any]

TIMEOUT_S = 60.0  # for each call
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
DISCOVERY = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"


class CommandFailed(Exception):
    """A failed command or call, with its exit status or HTTP status and its message."""

    def __init__(self, command: Sequence[str], status: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {status}: {said}")
        self.status = status
        self.said = said


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects that the API server serves."""

    group: str  # '' = core
    version: str
    kind: str
    plural: str
    words: frozenset[str]  # names of the kind in kubectl
    verbs: frozenset[str]
    is_namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of objects; without a namespace, of those in all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return f"{root}{within}/{self.plural}" + (f"/{name}" if name else "")


class Client:
    """A user's connection to an API server. The kubeconfig contains a token and the authority."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text("utf-8"))
        server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        self._address = server["server"].removeprefix("https://")
        self._trust = ssl.create_default_context(cadata=authority)
        self._headers = {"Authorization": f"Bearer {user['token']}"}
        self._lock = Lock()  # tests call from several threads
        self._kept: HTTPSConnection | None = None
        self._resources: list[Resource] = []

    def call(
        self, method: str, path: str, document: Any = None, content: str = JSON, accept: str = JSON
    ) -> dict[str, Any]:
        """Return the response. Raises CommandFailed, or OSError without a response."""
        data = None if document is None else json.dumps(document).encode()
        headers = {**self._headers, "Accept": accept, "Content-Type": content}
        with self._lock:
            status, text = self._exchange(method, path, data, headers)
        try:
            response: dict[str, Any] = json.loads(text)
        except ValueError:
            raise CommandFailed([method, path], status, text.decode().strip()) from None
        if status >= 400:
            raise CommandFailed([method, path], status, response.get("message", ""))
        return response

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        if self._kept is not None:
            try:
                return _ask(self._kept, method, path, data, headers)
            except (HTTPException, OSError):  # the connection was closed meanwhile, as by a restart
                self._kept.close()
        self._kept = HTTPSConnection(self._address, context=self._trust, timeout=TIMEOUT_S)
        return _ask(self._kept, method, path, data, headers)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    # Kinds of objects

    def resource(self, word: str) -> Resource:
        """Return the kind that kubectl finds by a plural, a singular or a short name. Raises CommandFailed."""
        return self._first(lambda each: word.lower() in each.words, word)

    def resource_of(self, document: Document) -> Resource:
        """Return the kind of a document. Raises CommandFailed if it is not defined."""
        group, _, version = document["apiVersion"].rpartition("/")
        found = self._first(
            lambda each: (each.group, each.kind) == (group, document["kind"]), document["kind"]
        )
        return replace(found, version=version)

    def names(self, resource: Resource, namespace: str = "") -> set[str]:
        """Return the names of all objects of that kind. Raises CommandFailed."""
        found = self.call("GET", resource.path(namespace), accept=METADATA)["items"] or ()
        return {each["metadata"]["name"] for each in found}

    def resources(self) -> list[Resource]:
        """Return all kinds that the API server serves now."""
        self._resources = [
            each
            for path in ("/api", "/apis")
            for each in _described(self.call("GET", path, accept=DISCOVERY))
        ]
        return self._resources

    def _first(self, is_meant: Callable[[Resource], bool], word: str) -> Resource:
        known = next(filter(is_meant, self._resources), None) or next(
            filter(is_meant, self.resources()), None
        )
        if known is None:
            raise CommandFailed(["GET", "/apis"], 404, f"the server doesn't have a resource type {word!r}")
        return known


def _ask(
    connection: HTTPSConnection, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    connection.request(method, path, data, dict(headers))
    answer = connection.getresponse()
    return answer.status, answer.read()


def _described(discovery: Document) -> Iterator[Resource]:
    """Yield the kinds of each group in its preferred version, which is listed first."""
    for group in discovery["items"]:
        name, version = group["metadata"].get("name", ""), group["versions"][0]
        for each in version["resources"]:
            plural, kind = each["resource"], each["responseKind"]["kind"]
            words = {plural, each["singularResource"], kind.lower(), *each.get("shortNames", ())}
            yield Resource(
                name,
                version["version"],
                kind,
                plural,
                frozenset(words | {f"{plural}.{name}"}),
                frozenset(each["verbs"]),
                each["scope"] == "Namespaced",
            )


def three_way(before: Document, after: Document) -> dict[str, Any]:
    """Return a merge patch that also removes fields that were applied before and are left out now."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        former = before.get(name)
        if isinstance(value, Mapping):
            value = three_way(former if isinstance(former, Mapping) else {}, value)
        patch[name] = value
    return patch
