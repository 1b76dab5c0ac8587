"""Remove the operator's finalizer when no operator will be left, so that resources can be deleted; queues stay."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from penstock_operator.cluster.api import JSON_PATCH, MERGE, PATHS, Api, ApiError
from penstock_operator.cluster.resources import Kind, Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict, condition, status_of
from penstock_operator.documents.declared import FINALIZER

log = logging.getLogger(__name__)

KINDS = (Kind.QUEUE, Kind.PEER, Kind.REDRIVE)
CLOSED = (403, 404)  # a deleted namespace, and the operator's Role with it
POLL_S = 0.5
ENDS = (Reason.COMPLETE.value, Reason.FAILED.value, Reason.INVALID.value)
OURS_IN_STATUS = ("conditions", "observedGeneration")
NO_OPERATOR = (
    "the operator was uninstalled, the state in the store is unknown: install one that watches this namespace"
)
RELEASE_S = 10.0  # for removing finalizers; less than a pod's grace period


async def leave(api: Api, watched: tuple[str, ...], own_namespace: str) -> None:
    """Remove finalizers if the operator's own namespace is being deleted: no other operator will start there."""
    try:
        async with asyncio.timeout(RELEASE_S):
            namespace = await api.call("GET", f"/api/v1/namespaces/{own_namespace}")
            if namespace["metadata"].get("deletionTimestamp"):
                await FinalizerRelease(api, watched).take_finalizers_off()
    except (ApiError, TimeoutError) as error:
        text = (
            "finalizers were not removed; they block the deletion of namespace %s, if it is being deleted: %s"
        )
        fields = {"action": "leave_cut"}
        log.warning(text, own_namespace, str(error) or "timed out", extra=fields)


def _is_held(body: dict[str, Any]) -> bool:
    return FINALIZER in (body["metadata"].get("finalizers") or ())


class FinalizerRelease:
    """The resources in the watched namespaces. All methods raise ApiError."""

    def __init__(self, api: Api, watched: tuple[str, ...]) -> None:
        self._api = api
        self._watched = watched or ("",)
        self._closed: set[tuple[Kind, str]] = set()

    async def all(self) -> AsyncIterator[tuple[Kind, dict[str, Any]]]:
        """Yield every resource; skip namespaces that are not accessible, such as deleted ones."""
        for kind in KINDS:
            for namespace in self._watched:
                if (kind, namespace) in self._closed:
                    continue
                try:
                    async for body in self._api.list(kind, namespace):
                        yield kind, body
                except ApiError as error:
                    if error.status not in CLOSED:
                        raise
                    self._closed.add((kind, namespace))
                    text = "%s of %s were skipped: %s"
                    log.error(
                        text, kind, namespace or "all namespaces", error, extra={"action": "uninstall_cut"}
                    )

    async def take_finalizers_off(self) -> None:
        """Remove the finalizer from all resources; repeat for those that changed meanwhile."""
        while held := [(kind, body) async for kind, body in self.all() if _is_held(body)]:
            for kind, body in held:
                await self._release_one(kind, body)
            await asyncio.sleep(POLL_S)

    async def mark_unmanaged(self) -> None:
        """Set Ready to Unknown (NoOperator) in all statuses, which no operator updates any more.

        Redrives that have ended keep their status.
        """
        async for kind, body in self.all():
            resource = Resource.read(kind, body)
            before = condition(resource.status)
            if "status" not in before or (kind is Kind.REDRIVE and before.get("reason") in ENDS):
                continue
            counts = {name: value for name, value in resource.status.items() if name not in OURS_IN_STATUS}
            verdict = Verdict(Ready.UNKNOWN, Reason.NO_OPERATOR, NO_OPERATOR, counts)
            try:
                status = status_of(resource.status, verdict, resource.generation, datetime.now(UTC))
                await self._api.apply_status(resource, status)
            except ApiError as error:
                if error.status not in (404, 409):  # deleted or recreated
                    raise

    async def _release_one(self, kind: Kind, body: dict[str, Any]) -> None:
        metadata = body["metadata"]
        place = metadata["finalizers"].index(FINALIZER)
        path = f"/metadata/finalizers/{place}"
        patch = [
            {"op": "test", "path": path, "value": FINALIZER},
            {"op": "remove", "path": path},
        ]
        fields = {"action": "finalizer_released", "object": f"{metadata['namespace']}/{metadata['name']}"}
        log.warning(
            "the finalizer of %s %s was removed; its queue stays in the store",
            kind,
            fields["object"],
            extra=fields,
        )
        await self.call("PATCH", kind, body, patch, JSON_PATCH)

    async def call(
        self, method: str, kind: Kind, body: dict[str, Any], document: Any = None, content: str = MERGE
    ) -> None:
        """Call the API for one object; ignore that it was deleted or changed meanwhile."""
        metadata = body["metadata"]
        path = f"{PATHS[kind]}/namespaces/{metadata['namespace']}/{kind}/{metadata['name']}"
        try:
            await self._api.call(method, path, document, content=content)
        except ApiError as error:
            if error.status not in (404, 409, 422):  # deleted or changed: the caller repeats
                raise
