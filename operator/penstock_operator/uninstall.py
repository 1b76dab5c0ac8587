"""Prepare the uninstallation of a release, so that no resource hangs without its operator.

Deletes the release's own resources, waits for resources that are being deleted, stops the operator, removes its
finalizer from the rest, and sets their statuses to `NoOperator`. Queues in the store stay as their deletionPolicy says
and are released. Always ends in time and with status 0, even after errors, so that the uninstallation is never blocked.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from penstock_operator.cluster.api import MERGE, Api, ApiError
from penstock_operator.kopf_handlers import log_in
from penstock_operator.peers.peers import discoverer
from penstock_operator.queues.orphan_release import release_all
from penstock_operator.settings import SettingsError, is_store_configured, load, store_url
from penstock_operator.uninstall_finalizers import POLL_S, RELEASE_S, FinalizerRelease
from services.store import Store, StoreError

log = logging.getLogger(__name__)

OWN_S = 5.0  # for deleting the release's own resources
STOP_S = 5.0  # for the operator's pod to end
STORE_S = 10.0  # for releasing queues and peers in the store
CLOSE_S = 1.0
RELEASE = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `uninstall`."""
    parser.add_argument("--release", required=True, help="Helm release that is uninstalled")
    parser.add_argument("--namespace", required=True, help="namespace of the release")
    parser.add_argument("--deployment", required=True, help="the operator's Deployment")
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds to wait for deletions in progress"
    )


async def run(arguments: argparse.Namespace) -> None:
    """Run all steps, each within its time limit."""
    api = Api(log_in)
    releasing = FinalizerRelease(api, load().watched)
    steps_of_release = UninstallSteps(
        api, releasing, arguments.release, arguments.namespace, arguments.deployment
    )
    steps = (
        (steps_of_release.delete_own, OWN_S),
        (steps_of_release.wait, arguments.timeout),
        (steps_of_release.stop_operator, STOP_S),
        (releasing.take_finalizers_off, RELEASE_S),
        (releasing.mark_unmanaged, RELEASE_S),
        (_release_in_store, STORE_S),
    )
    try:
        for step, patience_s in steps:
            await _try(step, patience_s)
    finally:
        await api.close()


async def _try(step: Callable[[], Awaitable[None]], patience_s: float) -> None:
    """Run one step; log its failure or timeout and continue."""
    try:
        async with asyncio.timeout(patience_s):
            await step()
    except (ApiError, StoreError, SettingsError, TimeoutError) as error:
        fields = {"action": "uninstall_cut"}
        log.error("a step of the uninstallation failed: %s", str(error) or "timed out", extra=fields)


async def _release_in_store() -> None:
    """Release queues and peers in the store, if one is configured. Raises StoreError, SettingsError."""
    if not is_store_configured():
        return
    settings, store = load(), Store(store_url(), "uninstall")
    try:
        await release_all(store, settings.watched, discoverer(settings.release))
    finally:
        await store.close(CLOSE_S)


class UninstallSteps:
    """The steps that concern the release itself. All raise ApiError."""

    def __init__(
        self, api: Api, releasing: FinalizerRelease, release: str, namespace: str, deployment: str
    ) -> None:
        self._api = api
        self._releasing = releasing
        self._release = release
        self._namespace = namespace
        self._deployment = deployment

    async def delete_own(self) -> None:
        """Delete the release's own resources, as Helm would a moment later."""
        async for kind, body in self._releasing.all():
            if self._is_of_the_release(body):
                await self._releasing.call("DELETE", kind, body)

    def _is_of_the_release(self, body: dict[str, Any]) -> bool:
        notes = body["metadata"].get("annotations") or {}
        return (notes.get(RELEASE), notes.get(RELEASE_NAMESPACE)) == (self._release, self._namespace)

    async def wait(self) -> None:
        """Wait until no resource is being deleted."""
        while any([body["metadata"].get("deletionTimestamp") async for _, body in self._releasing.all()]):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)

    async def stop_operator(self) -> None:
        """Scale the operator to zero, since it would add its finalizer again."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{self._deployment}"
        await self._api.call("PATCH", f"{path}/scale", {"spec": {"replicas": 0}}, content=MERGE)
        while ((await self._api.call("GET", path)).get("status") or {}).get("replicas"):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
