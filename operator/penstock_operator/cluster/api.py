"""The few calls of the Kubernetes API that the operator makes itself; kopf watches, and has no client for others.

Statuses are applied by the server (server-side apply): conditions of others stay, and what says the same again changes
nothing. Whoever has the name meanwhile is another object, and gets no status that is not about it: the version is told
along, as the server looks at no uid where a status is written.
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
PAGE = 500  # objects of a list in one answer
CONFLICT_PAUSES_S = (0.0, 0.1, 0.4, 1.0)  # before a status is written again that somebody was quicker with
MAX_LINE = 200  # characters of an answer that is no JSON
REMEDY = "apply the CRDs (crds.enabled)"

PATHS = {
    Kind.QUEUE: f"/apis/{API_VERSION}",
    Kind.PEER: f"/apis/{API_VERSION}",
    Kind.REDRIVE: f"/apis/{API_VERSION}",
    Kind.SLICE: "/apis/discovery.k8s.io/v1",
}
APPLY = "application/apply-patch+yaml"  # JSON is YAML but for SURROGATES
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
SURROGATES = re.compile(r"\\ud[89ab]..\\ud[c-f]..")  # a letter as JSON writes it, and YAML refuses it


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is, and how it knows us."""

    server: str  # URL
    headers: Mapping[str, str]
    trust: ssl.SSLContext


class ApiError(Exception):
    """The API server refused, or did not answer (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Contended(ApiError):
    """Somebody else changes it all the time."""


def _path(key: Key) -> str:
    return f"{PATHS[key.kind]}/namespaces/{key.namespace}/{key.kind}/{key.name}"


def _written(document: Any) -> str:
    """As JSON that is YAML, too: letters beyond U+FFFF stand for themselves."""
    return SURROGATES.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), json.dumps(document))


def _read(text: str) -> dict[str, Any] | None:
    """None: it is no object of JSON, as where a proxy answers or nobody serves the path."""
    try:
        told = read_json(text)
    except BadDocument:
        return None
    return told if isinstance(told, dict) else None


def _complaint(status: int, text: str, told: dict[str, Any] | None, path: str) -> str:
    """A kind that nobody has defined is answered by a line of text."""
    if told is not None:
        return str(told.get("message") or f"the API server answered {status}")
    line = next(iter(text.strip().splitlines()), "")[:MAX_LINE]
    said = f"the API server answered {status}" + (f": {line}" if line else "")
    undefined = status == 404 and path.startswith(f"/apis/{API_VERSION}")
    return f"{said}; {REMEDY}" if undefined else said


class Api:
    def __init__(self, log_in: Callable[[], Access]) -> None:
        """log_in is asked again when the server does not know us any more: tokens of pods are renewed.

        It raises ApiError where nothing tells how, as this does.
        """
        self._log_in = log_in
        self._access = log_in()
        self._session: aiohttp.ClientSession | None = None

    async def apply_status(self, resource: Resource, status: Mapping[str, Any]) -> Resource:
        """The resource as it is then. Raises ApiError: 404 if it is gone, 409 if another one has its name.

        Raises Contended if somebody else is always quicker.
        """
        known = resource
        for pause_s in CONFLICT_PAUSES_S:
            try:
                return await self._apply_status(known, status)
            except ApiError as error:
                if error.status != 409:
                    raise
            known = await self._get(resource.key)  # it is of another version now
            if known.uid != resource.uid:
                raise ApiError(409, f"another {resource.key} is there")
            await asyncio.sleep(pause_s)
        raise Contended(409, f"the status of {resource.key} cannot be written: it is changed all the time")

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
        """Makes it or changes it, whoever else wrote its fields. Raises ApiError."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self.call("PATCH", path, document, query, APPLY)

    async def list(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        """Every object of the namespace, or of the cluster. Raises ApiError."""
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
        """What is answered. Raises ApiError."""
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
            raise ApiError(0, f"the API server does not answer: {error!r}") from error
        told = _read(text)
        if status >= 400 or told is None:
            raise ApiError(status, _complaint(status, text, told, path))
        return told

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # transports of TLS close in the next turn of the loop
