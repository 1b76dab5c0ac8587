"""The operator's heart: what is heard of the cluster and of the store becomes work, and work becomes verdicts.

    watches, lists ─► Mirror ─► Work ─► Queues, Peers, Redrives ─► store, statuses
    store          ─► StoreWatch ─┘
          └────────► keep_telling ─► metrics

Everything depends on how things are now, never on what happened: a look may be made at any time, and twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial

from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Key, Kind, Resource, is_same
from penstock_operator.cluster.work import Work
from penstock_operator.documents.conditions import Ready
from penstock_operator.documents.declared import is_held, is_removed_with_its_resource
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.peers.peers import ALL, Peers
from penstock_operator.peers.rqprc import Rqprc
from penstock_operator.queues.claiming import Claiming
from penstock_operator.queues.finalizer import Farewells
from penstock_operator.queues.orphan_release import RETAINED, Retained
from penstock_operator.queues.queues import Queues
from penstock_operator.queues.removing import Farewell, Removing
from penstock_operator.queues.unheld import Unheld
from penstock_operator.redrives.redrives import Redrives
from penstock_operator.settings import OperatorSettings
from penstock_operator.status.events import Recorder
from penstock_operator.status.statuses import Statuses
from penstock_operator.store.datasets import Datasets
from penstock_operator.store.reporting import keep_telling
from penstock_operator.store.store_watch import StoreWatch
from services.store import Store

log = logging.getLogger(__name__)

MAX_ERROR = 1000  # characters in the log
AGAIN_S = 5.0  # a redrive that could not go on


class Control:
    def __init__(self, settings: OperatorSettings, store: Store, api: Api, metrics: Metrics) -> None:
        self.mirror = Mirror()
        self.metrics = metrics
        self.watched = settings.watched
        self.discovered = settings.discovered
        self.work = Work(self._look, self._failed, first=ALL)
        self._claiming = Claiming()
        self._recorder = Recorder(api, metrics)
        self.statuses = Statuses(api, self._recorder, self.mirror, metrics)
        self._unheld = Unheld(self.statuses, self.work.add_after)
        self._datasets = Datasets.kept_in(api, settings.own_namespace, settings.dataset_configmap, metrics)
        self.store_watch = StoreWatch(
            store, self.look_at_all, self._datasets.holds, metrics, accept_loss=settings.accept_loss
        )
        self._peers = Peers(
            store,
            self.mirror,
            self.statuses,
            Rqprc(api, settings.own_namespace, settings.rqprc_configmap),
            metrics,
            own=settings.release,
            knows=self.mirror.knows,
            looks_into=self._looks_into,
            on_change=self._peers_changed,
            tell=self._add,
        )
        self._queues = Queues(
            store,
            self._claiming.claimants,
            self._peers.lacking,
            partial(self.mirror.knows, Kind.QUEUE),
            self.work.add,
        )
        self._retained = Retained(store, self.mirror, partial(self.mirror.knows, Kind.QUEUE), self.work.alone)
        self._keep_telling = partial(keep_telling, store, metrics, settings.sweep_s)
        removing = Removing(store, settings.delete_timeout_s)
        self._farewells = Farewells(removing, self._recorder, self.statuses, self.mirror, metrics)
        self._redrives = Redrives(
            store, self.statuses, self.mirror, metrics, lambda key: self.work.add_after(key, AGAIN_S)
        )

    async def run(self) -> None:
        """Until it is cancelled. `first` list must be there: a Queue that is not known yet may be the oldest.

        The store is asked before anybody is told that it cannot be.
        """
        await self.store_watch.look()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.store_watch.run())
                group.create_task(self._datasets.run())
                group.create_task(self.work.run())
                group.create_task(self._keep_telling())
        finally:
            await self._redrives.close()

    # what is heard

    def heard(self, resource: Resource) -> None:
        """It is there, or another one than before."""
        self.mirror.is_there(resource)
        known = self.mirror.get(resource.key)
        if known is None:
            return
        if resource.key.kind is Kind.QUEUE:
            self._claiming.hear(known)
        self.work.add(_work_of(resource.key))

    def seen(self, resource: Resource) -> None:
        """Something of it is another: the document itself, its status, or it is held by a finalizer now.

        kopf tells no change of a document that was saved with what it remembers, and is applied again.
        """
        before = self.mirror.get(resource.key)
        if before is None or not is_same(before, resource):
            self.heard(resource)
            return
        self.mirror.is_there(resource)
        if before.finalizers != resource.finalizers:
            self.work.add(_work_of(resource.key))

    def gone(self, resource: Resource) -> None:
        self.mirror.is_gone(resource)
        key = resource.key
        if key.kind is Kind.REDRIVE:
            self._redrives.stop(resource)
        if key.kind is Kind.QUEUE:
            self._farewells.forget(resource)
            self._unheld.forget(resource)
        if self.mirror.get(key) is not None:  # another one has its name already
            return
        self.store_watch.forget(key)
        if key.kind is Kind.QUEUE:
            self._add(self._claiming.gone(key))
            self.metrics.depth.forget(key.namespace, key.name)
            self.work.add(RETAINED)
        if key.kind in (Kind.PEER, Kind.SLICE):
            self.work.add(ALL)
        self.work.forget(key)
        self.statuses.forget(key)

    def listed(self, kind: Kind, namespace: str, found: list[Resource], since: float) -> None:
        """These are all there are in the namespace, '' = in all of them."""
        for lost in self.mirror.is_all(kind, namespace, found, since):
            self.gone(lost)
        for resource in found:
            known = self.mirror.get(resource.key)
            if known is not None and known.key.kind is Kind.QUEUE:
                self._claiming.hear(known)

    def look_at_all(self) -> None:
        self._add({ALL, RETAINED})
        for resource in self.mirror:
            self.work.add(_work_of(resource.key))

    def _peers_changed(self) -> None:
        """Queues that lead to peers may have got theirs, or lost them."""
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

    def _looks_into(self, namespace: str) -> bool:
        """Return whether EndpointSlices of the namespace are listed."""
        return not self.watched or namespace in (*self.watched, *self.discovered)

    # what is done

    async def _look(self, key: Key) -> bool:
        """Whether all could be done that was to be."""
        began, refused = time.monotonic(), ""
        if key == ALL:
            refused = await self._peers.look()
        elif key == RETAINED:
            return await self._retained.look()
        elif (resource := self.mirror.get(key)) is None:
            return True
        elif key.kind is Kind.PEER:
            await self._peers.settle(resource)
            return True
        elif key.kind is Kind.QUEUE:
            refused = await self._look_at_queue(resource)
        else:
            await self._redrives.look(resource)
        self.metrics.looks.labels(key.kind, "done").inc()
        self.metrics.look_s.labels(key.kind).observe(time.monotonic() - began)
        self._add(self.store_watch.note(key, refused))
        return not refused

    async def _look_at_queue(self, resource: Resource) -> str:
        """Only while it is held, if it has to be: nothing is made for it that nobody would remove.

        What the store could not do, '' = nothing, or all is looked at anyway once it can be used.
        """
        if resource.deleting:
            if not is_removed_with_its_resource(dict(resource.spec)):
                await self._farewells.tell_whoever_holds(resource)
            return ""
        if not is_held(resource):
            await self._unheld.wait(resource)
            return ""
        self._unheld.forget(resource)
        declared = self._claiming.hear(resource)  # what was only `seen` may be newer than what was heard
        if declared is None:
            return ""
        away = self.store_watch.verdict_at(declared.spec.domain if declared.spec is not None else "")
        verdict = away or await self._queues.look(declared)
        if verdict is None:
            return ""
        self._add(self._claiming.seen_to(resource.key))
        newest = self.mirror.get(resource.key)
        if newest is not None and is_same(newest, resource):
            if "depth" in verdict.counts:
                self.metrics.depth.set(*resource.key[1:], verdict.counts["depth"])
            await self.statuses.settle(newest, verdict)  # else it is looked at again, as another one
        return verdict.message if away is None and verdict.ready is Ready.UNKNOWN else ""

    def _failed(self, key: Key, error: Exception) -> None:
        self.metrics.looks.labels(key.kind, "failed").inc()
        known = isinstance(error, ApiError)
        fields = {"action": "look_failed", "object": str(key)}
        log.log(
            logging.WARNING if known else logging.ERROR,
            "%s is looked at again later: %s",
            key,
            str(error)[:MAX_ERROR],
            extra=fields,
            exc_info=None if known else error,
        )

    async def remove(self, resource: Resource) -> Farewell | None:
        """What its resource's end means for the queue. Raises StoreError: to be tried again."""
        async with self.work.alone(resource.key):
            return await self._farewells.say(resource)


def _work_of(key: Key) -> Key:
    """All peers are looked at together."""
    return ALL if key.kind in (Kind.PEER, Kind.SLICE) else key
