"""Write verdicts to statuses: only changes, and counts at most every 30 s."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from penstock_operator.cluster.api import Api, ApiError, Contended
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Key, Kind, Resource, is_same
from penstock_operator.documents.conditions import (
    Ready,
    Reason,
    Verdict,
    condition,
    counts_differ,
    differs,
    status_of,
)
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.status.events import Recorder, Severity

COUNTS_S = 30.0  # between two writes that only change counts
TURNS_S = 10.0  # between two writes that a Redrive runs again or waits
BETWEEN_S = 60.0  # between two events about that
ON_ITS_WAY = (Reason.RUNNING, Reason.PENDING)

ReadyState = tuple[str | None, str | None]  # status and reason of Ready; None if there is none

GONE = (404, 409)  # deleted or recreated: the verdict is obsolete


class Statuses:
    """Writes statuses and the events that go with them."""

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
        self._turned: dict[Key, float] = {}  # last write that a Redrive runs again or waits
        self._turns_recorded: dict[Key, float] = {}  # last event about that
        self._reasons: dict[Key, str] = {}
        self._known: dict[
            Key, tuple[str, ReadyState]
        ] = {}  # uid, and the condition from before an outage of the store

    async def settle(
        self, resource: Resource, verdict: Verdict, counts_s: float = COUNTS_S, *, quiet: bool = False
    ) -> None:
        """Write the verdict if it says anything new. quiet: without an event. Raises ApiError."""
        self._reasons[resource.key] = verdict.reason
        now = self._clock()
        new = status_of(resource.status, verdict, resource.generation, datetime.now(UTC))
        is_new = differs(resource.status, new)
        is_due = now - self._written.get(resource.key, -counts_s) >= counts_s
        turns = _turns(resource, verdict)
        if turns:  # with a nearly full target it alternates all the time
            is_new = is_new and (is_due or now - self._turned.get(resource.key, -TURNS_S) >= TURNS_S)
        if not is_new and not (is_due and counts_differ(resource.status, new)):
            return
        try:
            written = await self._api.apply_status(resource, new)
        except ApiError as error:
            if error.status not in GONE or isinstance(error, Contended):
                raise
            return
        if verdict.ready is Ready.UNKNOWN and _ready_state(resource)[0] != Ready.UNKNOWN:
            self._known[resource.key] = (resource.uid, _ready_state(resource))
        self._written[resource.key] = now
        if turns and is_new:
            self._turned[resource.key] = now
        self._metrics.statuses.labels(resource.key.kind).inc()
        known = self._mirror.get(resource.key)
        if known is None or is_same(known, written):  # else a watch will report the newer document
            self._mirror.put(written)
        if not quiet:
            await self._record_event(resource, verdict)

    async def _record_event(self, resource: Resource, verdict: Verdict) -> None:
        """Write an event if the verdict has changed; outages of the store are logged once instead."""
        if verdict.ready is Ready.UNKNOWN or not self._is_news(resource, verdict):
            return
        if _turns(resource, verdict):
            now = self._clock()
            if now - self._turns_recorded.get(resource.key, -BETWEEN_S) < BETWEEN_S:
                return
            self._turns_recorded[resource.key] = now
        well = verdict.ready is not Ready.NO or verdict.reason is Reason.REMOVED
        well = well or _is_on_its_way(resource.key, verdict.reason)
        severity = Severity.NORMAL if well else Severity.WARNING
        await self._recorder.record(resource, severity, verdict.reason, verdict.message)

    def _is_news(self, resource: Resource, verdict: Verdict) -> bool:
        """Return whether the verdict differs from the one before an outage; if that is unknown, only failures count."""
        was = _ready_state(resource)
        if was[0] == Ready.UNKNOWN:
            uid, was = self._known.pop(resource.key, ("", was))
            if uid != resource.uid:
                return verdict.ready is not Ready.YES
        return was != (verdict.ready, verdict.reason)

    def note(self, key: Key, reason: str) -> None:
        """Record the reason that the status already has, for the metric."""
        self._reasons[key] = reason

    def forget(self, key: Key) -> None:
        """Drop what is known of a deleted resource."""
        self._written.pop(key, None)
        self._turned.pop(key, None)
        self._turns_recorded.pop(key, None)
        self._reasons.pop(key, None)
        self._known.pop(key, None)

    def reason(self, key: Key) -> str:
        """Return the reason of the last verdict; '' before the first."""
        return self._reasons.get(key, "")

    def count(self) -> None:
        """Update the gauge of resources by reason, without those deleted meanwhile."""
        self._reasons = {key: reason for key, reason in self._reasons.items() if self._mirror.get(key)}
        self._metrics.resources.clear()
        for (kind, reason), number in Counter(
            (key.kind, reason) for key, reason in self._reasons.items()
        ).items():
            self._metrics.resources.labels(kind, reason).set(number)


def _is_on_its_way(key: Key, reason: object) -> bool:
    return key.kind is Kind.REDRIVE and reason in ON_ITS_WAY


def _ready_state(resource: Resource) -> ReadyState:
    before = condition(resource.status)
    return before.get("status"), before.get("reason")


def _turns(resource: Resource, verdict: Verdict) -> bool:
    """Return whether a Redrive that runs or waits will still do so."""
    before = condition(resource.status).get("reason")
    return _is_on_its_way(resource.key, before) and _is_on_its_way(resource.key, verdict.reason)
