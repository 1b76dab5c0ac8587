"""What a Redrive's status says on its way and at its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.redrive_spec import RedriveSpec
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.redrives.redriving import Progress
from penstock_operator.status.statuses import Statuses
from services.store import StoreError

TELL_S = 2.0  # between two writings of how far it is


class Superseded(Exception):
    """It is gone, or another one has its name: nothing more is moved, and nobody is told."""


class Telling:
    """How far one is, as its status says it: no oftener than every TELL_S, but the end at once."""

    def __init__(
        self,
        statuses: Statuses,
        mirror: Mirror,
        resource: Resource,
        metrics: Metrics,
        spec: RedriveSpec,
        last: Progress | None,
    ) -> None:
        self._settle = partial(statuses.settle, counts_s=TELL_S)
        self._mirror = mirror
        self._resource = resource
        self._metrics = metrics
        self.last = last
        self._doing = (
            "dead letters are being counted; none is moved: dryRun"
            if spec.dry_run
            else "dead letters are being moved"
        )

    async def progress(self, progress: Progress) -> None:
        if self.last is not None:
            self._metrics.redriven.inc(max(0, progress.moved - self.last.moved))
        self.last = progress
        await self.verdict(_running(progress, self._doing))

    async def verdict(self, verdict: Callable[[Progress | None], Verdict]) -> None:
        """Raises ApiError, Superseded."""
        newest = self._mirror.get(self._resource.key)
        if newest is None or newest.uid != self._resource.uid:
            raise Superseded
        await self._settle(newest, verdict(self.last))


def _running(progress: Progress, doing: str) -> Callable[[Progress | None], Verdict]:
    reason = Reason.PENDING if progress.waits_for else Reason.RUNNING
    text = progress.waits_for or doing
    return lambda _: Verdict(Ready.NO, reason, text, progress.fields())


def complete(progress: Progress, spec: RedriveSpec) -> Callable[[Progress | None], Verdict]:
    if spec.dry_run:
        text = f"{progress.matched} dead letters match; nothing was moved: dryRun"
        return lambda _: Verdict(Ready.YES, Reason.COMPLETE, text, progress.fields())
    gone = progress.matched - progress.moved
    text = f"{progress.moved} dead letters are in {spec.target or spec.source}"
    text += f"; {gone} were gone before they could be moved" if gone > 0 else ""
    return lambda _: Verdict(Ready.YES, Reason.COMPLETE, text, progress.fields())


def stopped(reason: Reason, error: StoreError) -> Callable[[Progress | None], Verdict]:
    return lambda last: Verdict(Ready.NO, reason, str(error), last.fields() if last is not None else {})
