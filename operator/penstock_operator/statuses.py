"""Writing what was found out about a resource: only what differs, counts no more often than every 30 s."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from penstock_operator.api import Api, ApiError
from penstock_operator.conditions import Ready, Verdict, condition, counts_other, says_other, status_of
from penstock_operator.events import Recorder, Severity
from penstock_operator.metrics import Metrics
from penstock_operator.mirror import Mirror
from penstock_operator.resources import Key, Resource

COUNTS_S = 30.0  # between two writings of counts alone

GONE = (404, 409)  # it is gone, or another one has its name: nobody is left to be told


class Statuses:
    def __init__(
        self,
        api: Api,
        recorder: Recorder,
        mirror: Mirror,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._recorder = recorder
        self._mirror = mirror
        self._metrics = metrics
        self._clock = clock
        self._written: dict[Key, float] = {}
        self._reasons: dict[Key, str] = {}

    async def settle(self, resource: Resource, verdict: Verdict, counts_s: float = COUNTS_S) -> None:
        """Writes it if it says anything new. Raises ApiError."""
        self._reasons[resource.key] = verdict.reason
        now = self._clock()
        new = status_of(resource.status, verdict, resource.generation, datetime.now(UTC))
        says = says_other(resource.status, new)
        is_due = now - self._written.get(resource.key, -counts_s) >= counts_s
        if not says and not (is_due and counts_other(resource.status, new)):
            return
        try:
            told = await self._api.apply_status(resource, new)
        except ApiError as error:
            if error.status not in GONE:
                raise
            return
        self._written[resource.key] = now
        self._metrics.statuses.labels(resource.key.kind).inc()
        self._mirror.is_there(told)
        await self._tell(resource, verdict)

    async def _tell(self, resource: Resource, verdict: Verdict) -> None:
        """An event where the verdict is another one. Of a store that is away the log tells once, not each resource."""
        before = condition(resource.status)
        was, why = before.get("status"), before.get("reason")
        if Ready.UNKNOWN in (was, verdict.ready) or (was, why) == (verdict.ready, verdict.reason):
            return
        severity = Severity.WARNING if verdict.ready is Ready.NO else Severity.NORMAL
        await self._recorder.tell(resource, severity, verdict.reason, verdict.message)

    def note(self, key: Key, reason: str) -> None:
        """What its status says already."""
        self._reasons[key] = reason

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)
        self._reasons.pop(key, None)

    def reason(self, key: Key) -> str:
        """Of the last verdict; '' before the first."""
        return self._reasons.get(key, "")

    def count(self) -> None:
        """Brings the gauge up to date."""
        self._metrics.resources.clear()
        for (kind, reason), number in Counter(
            (key.kind, reason) for key, reason in self._reasons.items()
        ).items():
            self._metrics.resources.labels(kind, reason).set(number)
