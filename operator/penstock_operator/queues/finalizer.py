"""The end of a Queue resource: what becomes of its queue is done, counted and told."""

from __future__ import annotations

import logging

from penstock_operator.cluster.api import ApiError
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.conditions import NOTHING, Ready, Reason, Verdict, condition
from penstock_operator.documents.declared import FINALIZER, is_removed_with_its_resource, read_queue
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.queues.removing import Farewell, Outcome, Removing
from penstock_operator.status.events import Recorder
from penstock_operator.status.statuses import Statuses

log = logging.getLogger(__name__)


class Farewells:
    def __init__(
        self, removing: Removing, recorder: Recorder, statuses: Statuses, mirror: Mirror, metrics: Metrics
    ) -> None:
        self._removing = removing
        self._recorder = recorder
        self._statuses = statuses
        self._mirror = mirror
        self._metrics = metrics

    def forget(self, resource: Resource) -> None:
        """It is gone."""
        self._removing.forget(resource)

    async def say(self, resource: Resource) -> Farewell | None:
        """What its end means for the queue. Raises StoreError: to be tried again."""
        farewell = await self._removing.remove(read_queue(resource))
        if farewell is not None:
            self._metrics.removed.labels(farewell.outcome).inc()
            await self._recorder.tell(resource, farewell.severity, farewell.outcome, farewell.message)
        if farewell is None or farewell.outcome is Outcome.REMOVED:
            await self.tell_whoever_holds(resource)
        return farewell

    async def tell_whoever_holds(self, resource: Resource) -> None:
        """Somebody else's finalizer may be there for long, and `True` would be said of what is gone, or goes."""
        newest = self._mirror.get(resource.key)
        newest = newest if newest is not None and newest.uid == resource.uid else resource
        others = sorted({*newest.finalizers} - {FINALIZER})
        was_there = condition(newest.status).get("status") == Ready.YES
        if not others or not was_there:
            return
        self._metrics.depth.forget(newest.key.namespace, newest.key.name)
        is_gone = is_removed_with_its_resource(dict(newest.spec))
        what = "the queue is gone" if is_gone else "the queue stays in the store, as deletionPolicy says"
        text = f"{what}; the resource is held by {', '.join(others)}"
        try:
            verdict = Verdict(Ready.NO, Reason.REMOVED, text, NOTHING)
            await self._statuses.settle(newest, verdict, quiet=True)
        except ApiError as error:
            fields = {"action": "status_failed", "object": str(newest.key)}
            log.warning("the status of %s cannot be written: %s", newest.key, error, extra=fields)
