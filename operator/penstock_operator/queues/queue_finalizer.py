"""Handle the deletion of Queue resources: apply the deletionPolicy, count and report the outcome."""

from __future__ import annotations

import logging

from penstock_operator.cluster.api import ApiError
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.conditions import NOTHING, Ready, Reason, Verdict, condition
from penstock_operator.documents.declared import FINALIZER, is_removed_with_its_resource, read_queue
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.queues.queue_removal import Outcome, QueueRemoval, RemovalResult
from penstock_operator.status.events import Recorder
from penstock_operator.status.statuses import Statuses

log = logging.getLogger(__name__)


class QueueFinalizer:
    """Runs the operator's finalizer on Queues."""

    def __init__(
        self, removing: QueueRemoval, recorder: Recorder, statuses: Statuses, mirror: Mirror, metrics: Metrics
    ) -> None:
        self._removing = removing
        self._recorder = recorder
        self._statuses = statuses
        self._mirror = mirror
        self._metrics = metrics

    def forget(self, resource: Resource) -> None:
        """Drop what is known of a deleted resource."""
        self._removing.forget(resource)

    async def run(self, resource: Resource) -> RemovalResult | None:
        """Apply the deletionPolicy and report the outcome. Raises StoreError: try again."""
        result = await self._removing.remove(read_queue(resource))
        if result is not None:
            self._metrics.removed.labels(result.outcome).inc()
            await self._recorder.record(resource, result.severity, result.outcome, result.message)
        if result is None or result.outcome is Outcome.REMOVED:
            await self.report_foreign_finalizers(resource)
        return result

    async def report_foreign_finalizers(self, resource: Resource) -> None:
        """Set Ready to False if other finalizers keep the resource: its queue is no longer managed."""
        newest = self._mirror.get(resource.key)
        newest = newest if newest is not None and newest.uid == resource.uid else resource
        others = sorted({*newest.finalizers} - {FINALIZER})
        was_there = condition(newest.status).get("status") == Ready.YES
        if not others or not was_there:
            return
        self._metrics.depth.forget(newest.key.namespace, newest.key.name)
        is_gone = is_removed_with_its_resource(dict(newest.spec))
        what = "the queue was deleted" if is_gone else "the queue stays in the store (deletionPolicy)"
        text = f"{what}; the resource waits for the finalizers {', '.join(others)}"
        try:
            verdict = Verdict(Ready.NO, Reason.REMOVED, text, NOTHING)
            await self._statuses.settle(newest, verdict, quiet=True)
        except ApiError as error:
            fields = {"action": "status_failed", "object": str(newest.key)}
            log.warning("the status of %s cannot be written: %s", newest.key, error, extra=fields)
