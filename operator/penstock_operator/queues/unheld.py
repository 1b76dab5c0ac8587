"""Queues that wait for their finalizer: nothing is made for one that nobody would remove."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock_operator.cluster.resources import Key, Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.declared import FINALIZER
from penstock_operator.status.statuses import Statuses

HELD_S = 10.0  # for the finalizer, before anybody is told


class Unheld:
    """again: the Queue is to be looked at again after so many seconds."""

    def __init__(self, statuses: Statuses, again: Callable[[Key, float], None]) -> None:
        self._statuses = statuses
        self._again = again
        self._since: dict[str, float] = {}  # by uid

    async def wait(self, resource: Resource) -> None:
        """kopf puts it on, if it may."""
        now = time.monotonic()
        left_s = self._since.setdefault(resource.uid, now) + HELD_S - now
        if left_s > 0:
            self._again(resource.key, left_s)
            return
        text = f"it waits for the finalizer {FINALIZER}, which its deletionPolicy needs: may the operator patch queues?"
        await self._statuses.settle(resource, Verdict(Ready.NO, Reason.PENDING, text))

    def forget(self, resource: Resource) -> None:
        """It is held, or gone."""
        self._since.pop(resource.uid, None)
