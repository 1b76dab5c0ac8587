"""Before a release goes: what would hang without the operator is let go while it is still there.

Resources that belong to the release are deleted, as helm would a moment later; those that are going are waited for
while the operator sees to them; then the operator is stopped, its finalizer taken off whatever is left, and statuses of
what stays say that no operator keeps it (`NoOperator`). Queues in
the store stay, as their deletionPolicy says, and are nobody's then. It ends in time and with 0, whatever fails: nothing
here may keep a release from going.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from penstock_operator.cluster.api import MERGE, Api, ApiError
from penstock_operator.handlers import log_in
from penstock_operator.peers.peers import discoverer
from penstock_operator.queues.orphan_release import let_go_of_all
from penstock_operator.releasing import LOOK_S, RELEASE_S, Releasing
from penstock_operator.settings import SettingsError, is_store_told, load, store_url
from services.store import Store, StoreError

log = logging.getLogger(__name__)

OWN_S = 5.0  # for what the release itself declared to be deleted
STOP_S = 5.0  # for the operator's pod to go
STORE_S = 10.0  # for what stays in the store
CLOSE_S = 1.0
RELEASE = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", required=True, help="the helm release that goes")
    parser.add_argument("--namespace", required=True, help="its namespace")
    parser.add_argument("--deployment", required=True, help="the operator's Deployment")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for what is going")


async def run(told: argparse.Namespace) -> None:
    api = Api(log_in)
    releasing = Releasing(api, load().watched)
    leaving = Leaving(api, releasing, told.release, told.namespace, told.deployment)
    steps = (
        (leaving.delete_own, OWN_S),
        (leaving.wait, told.timeout),
        (leaving.stop_operator, STOP_S),
        (releasing.take_finalizers_off, RELEASE_S),
        (releasing.leave_word, RELEASE_S),
        (_let_go_of_the_store, STORE_S),
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
    except (ApiError, StoreError, SettingsError, TimeoutError) as error:
        fields = {"action": "uninstall_cut"}
        log.error("not all could be let go: %s", str(error) or "no time left", extra=fields)


async def _let_go_of_the_store() -> None:
    """Where it is told which: other releases on it may have what is left there. Raises StoreError, SettingsError."""
    if not is_store_told():
        return
    settings, store = load(), Store(store_url(), "uninstall")
    try:
        await let_go_of_all(store, settings.watched, discoverer(settings.release))
    finally:
        await store.close(CLOSE_S)


class Leaving:
    def __init__(self, api: Api, releasing: Releasing, release: str, namespace: str, deployment: str) -> None:
        self._api = api
        self._releasing = releasing
        self._release = release
        self._namespace = namespace
        self._deployment = deployment

    async def delete_own(self) -> None:
        """Raises ApiError, as all of these do."""
        async for kind, body in self._releasing.all():
            if self._is_of_the_release(body):
                await self._releasing.call("DELETE", kind, body)

    def _is_of_the_release(self, body: dict[str, Any]) -> bool:
        notes = body["metadata"].get("annotations") or {}
        return (notes.get(RELEASE), notes.get(RELEASE_NAMESPACE)) == (self._release, self._namespace)

    async def wait(self) -> None:
        """Until nothing is going any more."""
        while any([body["metadata"].get("deletionTimestamp") async for _, body in self._releasing.all()]):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

    async def stop_operator(self) -> None:
        """It would put its finalizer back."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{self._deployment}"
        await self._api.call("PATCH", f"{path}/scale", {"spec": {"replicas": 0}}, content=MERGE)
        while ((await self._api.call("GET", path)).get("status") or {}).get("replicas"):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
