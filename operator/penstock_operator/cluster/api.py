"""The Kubernetes API calls that the operator makes itself; kopf only watches.

Statuses use server-side apply: conditions of other managers stay, and repeated writes change nothing. Each write names
the resource version, since the server does not check the uid: an object recreated under the same name is left alone.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from penstock_operator.cluster.resources import SINGULAR, Key, Kind, Resource
from services.outside.document import BadDocument, read_json
from services.store.model import API_VERSION

FIELD_MANAGER = "penstock-operator"
TIMEOUT_S = 30.0
CONNECTIONS = 16
PAGE = 500  # objects per response of a list
CONFLICT_PAUSES_S = (0.0, 0.1, 0.4, 1.0)  # between attempts to write a status after a conflict
MAX_LINE = 200  # characters of a response that is not JSON
REMEDY = "apply the CRDs (crds.enabled)"

PATHS = {
    Kind.QUEUE: f"/apis/{API_VERSION}",
    Kind.PEER: f"/apis/{API_VERSION}",
    Kind.REDRIVE: f"/apis/{API_VERSION}",
    Kind.SLICE: "/apis/discovery.k8s.io/v1",
}
APPLY = "application/apply-patch+yaml"  # JSON is valid YAML except for SURROGATES
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
SURROGATES = re.compile(r"\\ud[89ab]..\\ud[c-f]..")  # JSON's escapes beyond U+FFFF, which YAML rejects


@dataclass(frozen=True, slots=True)
class Access:
    """The address of the API server and the operator's credentials."""

    server: str  # URL
    headers: Mapping[str, str]
    trust: ssl.SSLContext


class ApiError(Exception):
    """The API server rejected a request, or did not answer (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Contended(ApiError):
    """Other clients keep changing the object."""


def _path(key: Key) -> str:
    return f"{PATHS[key.kind]}/namespaces/{key.namespace}/{key.kind}/{key.name}"


def _written(document: Any) -> str:
    """Encode as JSON that is valid YAML, too: characters beyond U+FFFF are not escaped."""
    return SURROGATES.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), json.dumps(document))


def _read(text: str) -> dict[str, Any] | None:
    """Parse a JSON object; None for anything else, such as the response of a proxy."""
    try:
        body = read_json(text)
    except BadDocument:
        return None
    return body if isinstance(body, dict) else None


def _complaint(status: int, text: str, body: dict[str, Any] | None, path: str) -> str:
    """Return the error message of a response; undefined kinds are answered with plain text."""
    if body is not None:
        return str(body.get("message") or f"the API server answered {status}")
    line = next(iter(text.strip().splitlines()), "")[:MAX_LINE]
    message = f"the API server answered {status}" + (f": {line}" if line else "")
    undefined = status == 404 and path.startswith(f"/apis/{API_VERSION}")
    return f"{message}; {REMEDY}" if undefined else message


class Api:
    """A client of the API server."""

    def __init__(self, log_in: Callable[[], Access]) -> None:
        """Log in. log_in is called again after a 401, since tokens of pods expire. Raises ApiError, as log_in does."""
        self._log_in = log_in
        self._access = log_in()
        self._session: aiohttp.ClientSession | None = None

    async def apply_status(self, resource: Resource, status: Mapping[str, Any]) -> Resource:
        """Write the status and return the resource as it is then.

        Raises ApiError: 404 if it was deleted, 409 if it was recreated. Raises Contended after repeated conflicts.
        """
        known = resource
        for pause_s in CONFLICT_PAUSES_S:
            try:
                return await self._apply_status(known, status)
            except ApiError as error:
                if error.status != 409:
                    raise
            known = await self._get(resource.key)  # with its new version
            if known.uid != resource.uid:
                raise ApiError(409, f"{resource.key} was recreated")
            await asyncio.sleep(pause_s)
        raise Contended(
            409, f"the status of {resource.key} cannot be written: other clients keep changing it"
        )

    async def _apply_status(self, known: Resource, status: Mapping[str, Any]) -> Resource:
        kind, namespace, name = known.key
        document = {
            "apiVersion": API_VERSION,
            "kind": SINGULAR[kind],
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": str(known.version)},
            "status": status,
        }
        return Resource.read(kind, await self.apply(f"{_path(known.key)}/status", document))

    async def _get(self, key: Key) -> Resource:
        return Resource.read(key.kind, await self.call("GET", _path(key)))

    async def apply(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create or change an object by server-side apply, taking over conflicting fields. Raises ApiError."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self.call("PATCH", path, document, query, APPLY)

    async def list(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield every object of the namespace, or of the cluster. Raises ApiError."""
        path = PATHS[kind] + (f"/namespaces/{namespace}" if namespace else "") + f"/{kind}"
        query = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
        while True:
            page = await self.call("GET", path, query=query)
            for item in page["items"]:
                yield item
            if not page["metadata"].get("continue"):
                return
            query["continue"] = page["metadata"]["continue"]

    async def call(
        self,
        method: str,
        path: str,
        document: Any = None,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> dict[str, Any]:
        """Send a request and return the response; log in again after a 401. Raises ApiError."""
        try:
            return await self._call(method, path, document, query, content)
        except ApiError as error:
            if error.status != 401:
                raise
            self._access = self._log_in()
            return await self._call(method, path, document, query, content)

    async def _call(
        self, method: str, path: str, document: Any, query: Mapping[str, str] | None, content: str
    ) -> dict[str, Any]:
        headers = {**self._access.headers, "Accept": "application/json", "Content-Type": content}
        data = None if document is None else _written(document)
        url = self._access.server.rstrip("/") + path
        try:
            async with self._client().request(
                method, url, data=data, params=query, headers=headers, ssl=self._access.trust
            ) as answer:
                status, text = answer.status, await answer.text("utf-8", "replace")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(0, f"the API server is not responding: {error!r}") from error
        body = _read(text)
        if status >= 400 or body is None:
            raise ApiError(status, _complaint(status, text, body, path))
        return body

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # TLS transports close in the next iteration of the loop
