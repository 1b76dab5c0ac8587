"""Wait for the finalizer of new Queues: without it a queue with a deletionPolicy would never be removed."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock_operator.cluster.resources import Key, Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.declared import FINALIZER
from penstock_operator.status.statuses import Statuses

HELD_S = 10.0  # how long to wait for the finalizer before reporting it


class FinalizerWait:
    """The Queues without finalizer. again: queues a key after so many seconds."""

    def __init__(self, statuses: Statuses, again: Callable[[Key, float], None]) -> None:
        self._statuses = statuses
        self._again = again
        self._since: dict[str, float] = {}  # by uid

    async def wait(self, resource: Resource) -> None:
        """Wait for kopf to add the finalizer; report after HELD_S that it is missing."""
        now = time.monotonic()
        left_s = self._since.setdefault(resource.uid, now) + HELD_S - now
        if left_s > 0:
            self._again(resource.key, left_s)
            return
        text = f"waiting for the finalizer {FINALIZER} (deletionPolicy): check that the operator may patch queues"
        await self._statuses.settle(resource, Verdict(Ready.NO, Reason.PENDING, text))

    def forget(self, resource: Resource) -> None:
        """Drop a Queue that has its finalizer or was deleted."""
        self._since.pop(resource.uid, None)
