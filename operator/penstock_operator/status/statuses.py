"""Writing what was found out about a resource: only what differs, counts no more often than every 30 s."""

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
    counts_other,
    says_other,
    status_of,
)
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.status.events import Recorder, Severity

COUNTS_S = 30.0  # between two writings of counts alone
TURNS_S = 10.0  # between two writings that one runs again or waits, and nothing else
BETWEEN_S = 60.0  # between two events about that
ON_ITS_WAY = (Reason.RUNNING, Reason.PENDING)

Said = tuple[str | None, str | None]  # status and reason of Ready; None before the first

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
        self._turned: dict[Key, float] = {}  # when it was written that it runs again, or waits
        self._turns_told: dict[Key, float] = {}  # when an event said so
        self._reasons: dict[Key, str] = {}
        self._known: dict[
            Key, tuple[str, Said]
        ] = {}  # uid, and what was said before the store could not be asked

    async def settle(
        self, resource: Resource, verdict: Verdict, counts_s: float = COUNTS_S, *, quiet: bool = False
    ) -> None:
        """Writes it if it says anything new. quiet: without an event. Raises ApiError."""
        self._reasons[resource.key] = verdict.reason
        now = self._clock()
        new = status_of(resource.status, verdict, resource.generation, datetime.now(UTC))
        says = says_other(resource.status, new)
        is_due = now - self._written.get(resource.key, -counts_s) >= counts_s
        turns = _turns(resource, verdict)
        if turns:  # a target that is nearly full makes it run and wait all the time
            says = says and (is_due or now - self._turned.get(resource.key, -TURNS_S) >= TURNS_S)
        if not says and not (is_due and counts_other(resource.status, new)):
            return
        try:
            told = await self._api.apply_status(resource, new)
        except ApiError as error:
            if error.status not in GONE or isinstance(error, Contended):
                raise
            return
        if verdict.ready is Ready.UNKNOWN and _said(resource)[0] != Ready.UNKNOWN:
            self._known[resource.key] = (resource.uid, _said(resource))
        self._written[resource.key] = now
        if turns and says:
            self._turned[resource.key] = now
        self._metrics.statuses.labels(resource.key.kind).inc()
        known = self._mirror.get(resource.key)
        if known is None or is_same(known, told):  # another document of it is to be heard of first
            self._mirror.is_there(told)
        if not quiet:
            await self._tell(resource, verdict)

    async def _tell(self, resource: Resource, verdict: Verdict) -> None:
        """An event where the verdict is another one. Of a store that is away the log tells once, not each resource."""
        if verdict.ready is Ready.UNKNOWN or not self._is_news(resource, verdict):
            return
        if _turns(resource, verdict):
            now = self._clock()
            if now - self._turns_told.get(resource.key, -BETWEEN_S) < BETWEEN_S:
                return
            self._turns_told[resource.key] = now
        well = verdict.ready is not Ready.NO or verdict.reason is Reason.REMOVED
        well = well or _is_on_its_way(resource.key, verdict.reason)
        severity = Severity.NORMAL if well else Severity.WARNING
        await self._recorder.tell(resource, severity, verdict.reason, verdict.message)

    def _is_news(self, resource: Resource, verdict: Verdict) -> bool:
        """Against what was said when the store could last be asked; if nobody here knows that, what is well is not."""
        was = _said(resource)
        if was[0] == Ready.UNKNOWN:
            uid, was = self._known.pop(resource.key, ("", was))
            if uid != resource.uid:
                return verdict.ready is not Ready.YES
        return was != (verdict.ready, verdict.reason)

    def note(self, key: Key, reason: str) -> None:
        """What its status says already."""
        self._reasons[key] = reason

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)
        self._turned.pop(key, None)
        self._turns_told.pop(key, None)
        self._reasons.pop(key, None)
        self._known.pop(key, None)

    def reason(self, key: Key) -> str:
        """Of the last verdict; '' before the first."""
        return self._reasons.get(key, "")

    def count(self) -> None:
        """Brings the gauge up to date. One that went while something was found out about it is no more counted."""
        self._reasons = {key: reason for key, reason in self._reasons.items() if self._mirror.get(key)}
        self._metrics.resources.clear()
        for (kind, reason), number in Counter(
            (key.kind, reason) for key, reason in self._reasons.items()
        ).items():
            self._metrics.resources.labels(kind, reason).set(number)


def _is_on_its_way(key: Key, reason: object) -> bool:
    return key.kind is Kind.REDRIVE and reason in ON_ITS_WAY


def _said(resource: Resource) -> Said:
    before = condition(resource.status)
    return before.get("status"), before.get("reason")


def _turns(resource: Resource, verdict: Verdict) -> bool:
    """A Redrive that was on its way, and is."""
    before = condition(resource.status).get("reason")
    return _is_on_its_way(resource.key, before) and _is_on_its_way(resource.key, verdict.reason)
