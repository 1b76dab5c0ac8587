"""Before a release goes: what would hang without the operator is let go while it is still there.

Resources that belong to the release are deleted, as helm would a moment later; those that are going are waited for
while the operator sees to them; then the operator is stopped, and its finalizer taken off whatever is left. Queues in
the store stay, as their deletionPolicy says. It ends in time and with 0, whatever fails: nothing here may keep a
release from going.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from penstock_operator.api import JSON_PATCH, MERGE, PATHS, Api, ApiError
from penstock_operator.handlers import FINALIZER, OURS, log_in
from penstock_operator.resources import Kind
from penstock_operator.settings import load

log = logging.getLogger(__name__)

LOOK_S = 0.5
OWN_S = 5.0  # for what the release itself declared to be deleted
STOP_S = 5.0  # for the operator's pod to go
RELEASE_S = 10.0  # for the finalizers
RELEASE = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", required=True, help="the helm release that goes")
    parser.add_argument("--namespace", required=True, help="its namespace")
    parser.add_argument("--deployment", required=True, help="the operator's Deployment")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for what is going")


async def run(told: argparse.Namespace) -> None:
    api = Api(log_in)
    leaving = Leaving(api, load().watched, told.release, told.namespace, told.deployment)
    steps = (
        (leaving.delete_own, OWN_S),
        (leaving.wait, told.timeout),
        (leaving.stop_operator, STOP_S),
        (leaving.take_finalizers_off, RELEASE_S),
    )
    try:
        for step, patience_s in steps:
            await _try(step, patience_s)
    finally:
        await api.close()


async def _try(step: Callable[[], Awaitable[None]], patience_s: float) -> None:
    """What cannot be done, or not in time, keeps no other step from being tried."""
    try:
        async with asyncio.timeout(patience_s):
            await step()
    except (ApiError, TimeoutError) as error:
        fields = {"action": "uninstall_cut"}
        log.error("not all could be let go: %s", str(error) or "no time left", extra=fields)


def _is_held(body: dict[str, Any]) -> bool:
    return FINALIZER in (body["metadata"].get("finalizers") or ())


class Leaving:
    def __init__(
        self, api: Api, watched: tuple[str, ...], release: str, namespace: str, deployment: str
    ) -> None:
        self._api = api
        self._watched = watched or ("",)
        self._release = release
        self._namespace = namespace
        self._deployment = deployment

    async def delete_own(self) -> None:
        """Raises ApiError, as all of these do."""
        async for kind, body in self._all():
            if self._is_of_the_release(body):
                await self._call("DELETE", kind, body)

    async def take_finalizers_off(self) -> None:
        """Until none is left: one that was changed meanwhile is looked at again."""
        while held := [(kind, body) async for kind, body in self._all() if _is_held(body)]:
            for kind, body in held:
                await self._release_one(kind, body)
            await asyncio.sleep(LOOK_S)

    async def _all(self) -> AsyncIterator[tuple[Kind, dict[str, Any]]]:
        for kind in OURS:
            for namespace in self._watched:
                async for body in self._api.list(kind, namespace):
                    yield kind, body

    def _is_of_the_release(self, body: dict[str, Any]) -> bool:
        notes = body["metadata"].get("annotations") or {}
        return (notes.get(RELEASE), notes.get(RELEASE_NAMESPACE)) == (self._release, self._namespace)

    async def wait(self) -> None:
        """Until nothing is going any more."""
        while any([body["metadata"].get("deletionTimestamp") async for _, body in self._all()]):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

    async def stop_operator(self) -> None:
        """It would put its finalizer back."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{self._deployment}"
        await self._api.call("PATCH", f"{path}/scale", {"spec": {"replicas": 0}}, content=MERGE)
        while ((await self._api.call("GET", path)).get("status") or {}).get("replicas"):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

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
        await self._call("PATCH", kind, body, patch, JSON_PATCH)

    async def _call(
        self, method: str, kind: Kind, body: dict[str, Any], document: Any = None, content: str = MERGE
    ) -> None:
        metadata = body["metadata"]
        path = f"{PATHS[kind]}/namespaces/{metadata['namespace']}/{kind}/{metadata['name']}"
        try:
            await self._api.call(method, path, document, content=content)
        except ApiError as error:
            if error.status not in (404, 409, 422):  # gone, or changed meanwhile: there is another look
                raise
