"""Our finalizer is taken off where nobody will be left who would: resources can go then, and their queues stay."""

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

OURS = (Kind.QUEUE, Kind.PEER, Kind.REDRIVE)
CLOSED = (403, 404)  # for a namespace that is gone, with our Role in it
LOOK_S = 0.5
ENDS = (Reason.COMPLETE.value, Reason.FAILED.value, Reason.INVALID.value)
OURS_IN_STATUS = ("conditions", "observedGeneration")
NO_OPERATOR = (
    "the operator was uninstalled: what is in the store is not known any more; install one that watches here"
)
RELEASE_S = 10.0  # for the finalizers; less than a pod is given to end


async def leave(api: Api, watched: tuple[str, ...], own_namespace: str) -> None:
    """At the end of the operator: if its namespace goes, and its pod so before all else, there is no next one."""
    try:
        async with asyncio.timeout(RELEASE_S):
            namespace = await api.call("GET", f"/api/v1/namespaces/{own_namespace}")
            if namespace["metadata"].get("deletionTimestamp"):
                await Releasing(api, watched).take_finalizers_off()
    except (ApiError, TimeoutError) as error:
        text = "if namespace %s is going, finalizers may hold it: %s"
        fields = {"action": "leave_cut"}
        log.warning(text, own_namespace, str(error) or "no time left", extra=fields)


def _is_held(body: dict[str, Any]) -> bool:
    return FINALIZER in (body["metadata"].get("finalizers") or ())


class Releasing:
    """Every resource of ours in the namespaces that are watched. All of these raise ApiError."""

    def __init__(self, api: Api, watched: tuple[str, ...]) -> None:
        self._api = api
        self._watched = watched or ("",)
        self._closed: set[tuple[Kind, str]] = set()

    async def all(self) -> AsyncIterator[tuple[Kind, dict[str, Any]]]:
        """A namespace that was deleted took our rights there with it: it keeps nobody from the others."""
        for kind in OURS:
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
                    text = "%s of %s are left as they are: %s"
                    log.error(
                        text, kind, namespace or "all namespaces", error, extra={"action": "uninstall_cut"}
                    )

    async def take_finalizers_off(self) -> None:
        """Until none is left: one that was changed meanwhile is looked at again."""
        while held := [(kind, body) async for kind, body in self.all() if _is_held(body)]:
            for kind, body in held:
                await self._release_one(kind, body)
            await asyncio.sleep(LOOK_S)

    async def leave_word(self) -> None:
        """Statuses say that nobody keeps them any more: else a Queue that stays would be Ready for ever.

        A Redrive that is over stays as it ended.
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
                if error.status not in (404, 409):  # gone, or another one by now
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
        log.warning("%s %s is let go: its queue stays", kind, fields["object"], extra=fields)
        await self.call("PATCH", kind, body, patch, JSON_PATCH)

    async def call(
        self, method: str, kind: Kind, body: dict[str, Any], document: Any = None, content: str = MERGE
    ) -> None:
        metadata = body["metadata"]
        path = f"{PATHS[kind]}/namespaces/{metadata['namespace']}/{kind}/{metadata['name']}"
        try:
            await self._api.call(method, path, document, content=content)
        except ApiError as error:
            if error.status not in (404, 409, 422):  # gone, or changed meanwhile: there is another look
                raise
