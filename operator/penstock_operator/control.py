"""The operator's control loop: events of the cluster and the store become work, and work becomes verdicts.

    watches, lists ─► Mirror ─► WorkQueue ─► Queues, Peers, Redrives ─► store, statuses
    store          ─► StoreWatch ─┘
          └────────► report_metrics ─► metrics

Reconciling is level-triggered: it depends on the present state only, and may be repeated at any time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial

from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Key, Kind, Resource, is_same
from penstock_operator.cluster.work_queue import WorkQueue
from penstock_operator.documents.conditions import Ready
from penstock_operator.documents.declared import is_held, is_removed_with_its_resource
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.peers.peers import ALL, Peers
from penstock_operator.peers.rqprc import Rqprc
from penstock_operator.queues.claim_tracker import ClaimTracker
from penstock_operator.queues.finalizer_wait import FinalizerWait
from penstock_operator.queues.orphan_release import ORPHANS, OrphanRelease
from penstock_operator.queues.queue_finalizer import QueueFinalizer
from penstock_operator.queues.queue_removal import QueueRemoval, RemovalResult
from penstock_operator.queues.queues import Queues
from penstock_operator.redrives.redrives import Redrives
from penstock_operator.settings import OperatorSettings
from penstock_operator.status.events import Recorder
from penstock_operator.status.statuses import Statuses
from penstock_operator.store.datasets import Datasets
from penstock_operator.store.reporting import report_metrics
from penstock_operator.store.store_watch import StoreWatch
from services.store import Store

log = logging.getLogger(__name__)

MAX_ERROR = 1000  # characters in the log
AGAIN_S = 5.0  # until a redrive that could not go on is tried again


class Control:
    """Connects the mirror, the work queue, the reconcilers and the status writer."""

    def __init__(self, settings: OperatorSettings, store: Store, api: Api, metrics: Metrics) -> None:
        self.mirror = Mirror()
        self.metrics = metrics
        self.watched = settings.watched
        self.discovered = settings.discovered
        self.work = WorkQueue(self._reconcile, self._failed, first=ALL)
        self._claims = ClaimTracker()
        self._recorder = Recorder(api, metrics)
        self.statuses = Statuses(api, self._recorder, self.mirror, metrics)
        self._finalizer_wait = FinalizerWait(self.statuses, self.work.add_after)
        self._datasets = Datasets.kept_in(api, settings.own_namespace, settings.dataset_configmap, metrics)
        self.store_watch = StoreWatch(
            store, self.reconcile_all, self._datasets.holds, metrics, accept_loss=settings.accept_loss
        )
        self._peers = Peers(
            store,
            self.mirror,
            self.statuses,
            Rqprc(api, settings.own_namespace, settings.rqprc_configmap),
            metrics,
            own=settings.release,
            knows=self.mirror.knows,
            lists_slices_of=self._lists_slices_of,
            on_change=self._peers_changed,
            enqueue=self._add,
        )
        self._queues = Queues(
            store,
            self._claims.claimants,
            self._peers.lacking,
            partial(self.mirror.knows, Kind.QUEUE),
            self.work.add,
        )
        self._orphan_release = OrphanRelease(
            store, self.mirror, partial(self.mirror.knows, Kind.QUEUE), self.work.alone
        )
        self._report_metrics = partial(report_metrics, store, metrics, settings.sweep_s)
        removing = QueueRemoval(store, settings.delete_timeout_s)
        self._finalizer = QueueFinalizer(removing, self._recorder, self.statuses, self.mirror, metrics)
        self._redrives = Redrives(
            store, self.statuses, self.mirror, metrics, lambda key: self.work.add_after(key, AGAIN_S)
        )

    async def run(self) -> None:
        """Run until cancelled. The resources must have been listed: an unknown Queue may be the oldest.

        The store is polled first, so that no status says that it is unavailable before that.
        """
        await self.store_watch.poll()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.store_watch.run())
                group.create_task(self._datasets.run())
                group.create_task(self.work.run())
                group.create_task(self._report_metrics())
        finally:
            await self._redrives.close()

    # Events

    def on_change(self, resource: Resource) -> None:
        """Handle a new or changed resource."""
        self.mirror.put(resource)
        known = self.mirror.get(resource.key)
        if known is None:
            return
        if resource.key.kind is Kind.QUEUE:
            self._claims.update(known)
        self.work.add(_work_key(resource.key))

    def on_event(self, resource: Resource) -> None:
        """Handle an event of a known resource: a change of its document, its status or its finalizers.

        kopf reports no change for a document that was exported with kopf's annotations and applied again.
        """
        before = self.mirror.get(resource.key)
        if before is None or not is_same(before, resource):
            self.on_change(resource)
            return
        self.mirror.put(resource)
        if before.finalizers != resource.finalizers:
            self.work.add(_work_key(resource.key))

    def on_delete(self, resource: Resource) -> None:
        """Handle the deletion of a resource."""
        self.mirror.delete(resource)
        key = resource.key
        if key.kind is Kind.REDRIVE:
            self._redrives.stop(resource)
        if key.kind is Kind.QUEUE:
            self._finalizer.forget(resource)
            self._finalizer_wait.forget(resource)
        if self.mirror.get(key) is not None:  # already recreated
            return
        self.store_watch.forget(key)
        if key.kind is Kind.QUEUE:
            self._add(self._claims.remove(key))
            self.metrics.depth.forget(key.namespace, key.name)
            self.work.add(ORPHANS)
        if key.kind in (Kind.PEER, Kind.SLICE):
            self.work.add(ALL)
        self.work.forget(key)
        self.statuses.forget(key)

    def on_list(self, kind: Kind, namespace: str, found: list[Resource], since: float) -> None:
        """Handle a complete list of a namespace ('' = all namespaces)."""
        for lost in self.mirror.replace(kind, namespace, found, since):
            self.on_delete(lost)
        for resource in found:
            known = self.mirror.get(resource.key)
            if known is not None and known.key.kind is Kind.QUEUE:
                self._claims.update(known)

    def reconcile_all(self) -> None:
        """Queue every resource."""
        self._add({ALL, ORPHANS})
        for resource in self.mirror:
            self.work.add(_work_key(resource.key))

    def _peers_changed(self) -> None:
        """Queue the Queues that lead to peers, after a change of the peers."""
        self._add(
            {
                resource.key
                for resource in self.mirror.of(Kind.QUEUE)
                if (resource.spec.get("remote") or {}).get("peers")
            }
        )

    def _add(self, keys: set[Key]) -> None:
        for key in keys:
            self.work.add(key)

    def _lists_slices_of(self, namespace: str) -> bool:
        """Return whether EndpointSlices of the namespace are listed."""
        return not self.watched or namespace in (*self.watched, *self.discovered)

    # Work

    async def _reconcile(self, key: Key) -> bool:
        """Reconcile one key; return whether everything could be done."""
        began, refused = time.monotonic(), ""
        if key == ALL:
            refused = await self._peers.reconcile()
        elif key == ORPHANS:
            return await self._orphan_release.reconcile()
        elif (resource := self.mirror.get(key)) is None:
            return True
        elif key.kind is Kind.PEER:
            await self._peers.settle(resource)
            return True
        elif key.kind is Kind.QUEUE:
            refused = await self._reconcile_queue(resource)
        else:
            await self._redrives.reconcile(resource)
        self.metrics.reconciled.labels(key.kind, "done").inc()
        self.metrics.reconcile_s.labels(key.kind).observe(time.monotonic() - began)
        self._add(self.store_watch.note(key, refused))
        return not refused

    async def _reconcile_queue(self, resource: Resource) -> str:
        """Reconcile a Queue, once it has its finalizer if it needs one: else its queue would never be removed.

        Returns what the store could not do; '' if nothing, or if everything is queued again once the store is back.
        """
        if resource.deleting:
            if not is_removed_with_its_resource(dict(resource.spec)):
                await self._finalizer.report_foreign_finalizers(resource)
            return ""
        if not is_held(resource):
            await self._finalizer_wait.wait(resource)
            return ""
        self._finalizer_wait.forget(resource)
        declared = self._claims.update(resource)  # an event may have brought a newer document
        if declared is None:
            return ""
        away = self.store_watch.verdict_at(declared.spec.domain if declared.spec is not None else "")
        verdict = away or await self._queues.reconcile(declared)
        if verdict is None:
            return ""
        self._add(self._claims.take_affected(resource.key))
        newest = self.mirror.get(resource.key)
        if newest is not None and is_same(newest, resource):
            if "depth" in verdict.counts:
                self.metrics.depth.set(*resource.key[1:], verdict.counts["depth"])
            await self.statuses.settle(newest, verdict)  # else the newer document is queued already
        return verdict.message if away is None and verdict.ready is Ready.UNKNOWN else ""

    def _failed(self, key: Key, error: Exception) -> None:
        self.metrics.reconciled.labels(key.kind, "failed").inc()
        known = isinstance(error, ApiError)
        fields = {"action": "look_failed", "object": str(key)}
        log.log(
            logging.WARNING if known else logging.ERROR,
            "%s could not be reconciled; retrying: %s",
            key,
            str(error)[:MAX_ERROR],
            extra=fields,
            exc_info=None if known else error,
        )

    async def remove(self, resource: Resource) -> RemovalResult | None:
        """Apply the deletionPolicy of a Queue that is being deleted. Raises StoreError: try again."""
        async with self.work.alone(resource.key):
            return await self._finalizer.run(resource)


def _work_key(key: Key) -> Key:
    """Return the key to reconcile: all peers are reconciled together."""
    return ALL if key.kind in (Kind.PEER, Kind.SLICE) else key
