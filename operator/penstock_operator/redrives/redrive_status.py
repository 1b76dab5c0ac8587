"""Write the status of a Redrive while it runs and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict
from penstock_operator.documents.redrive_spec import RedriveSpec
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.redrives.redrive_run import Progress
from penstock_operator.status.statuses import Statuses
from services.store import StoreError

REPORT_S = 2.0  # between two updates of the progress


class Superseded(Exception):
    """The Redrive was deleted or recreated: stop without a report."""


class RedriveStatus:
    """The status of one Redrive: progress is written at most every REPORT_S, the end at once."""

    def __init__(
        self,
        statuses: Statuses,
        mirror: Mirror,
        resource: Resource,
        metrics: Metrics,
        spec: RedriveSpec,
        last: Progress | None,
    ) -> None:
        self._settle = partial(statuses.settle, counts_s=REPORT_S)
        self._mirror = mirror
        self._resource = resource
        self._metrics = metrics
        self.last = last
        self._doing = (
            "counting dead letters; none are moved (dryRun)" if spec.dry_run else "moving dead letters"
        )

    async def progress(self, progress: Progress) -> None:
        """Count and report the progress. Raises ApiError, Superseded."""
        if self.last is not None:
            self._metrics.redriven.inc(max(0, progress.moved - self.last.moved))
        self.last = progress
        await self.verdict(_running(progress, self._doing))

    async def verdict(self, verdict: Callable[[Progress | None], Verdict]) -> None:
        """Write the verdict. Raises ApiError, Superseded."""
        newest = self._mirror.get(self._resource.key)
        if newest is None or newest.uid != self._resource.uid:
            raise Superseded
        await self._settle(newest, verdict(self.last))


def _running(progress: Progress, doing: str) -> Callable[[Progress | None], Verdict]:
    reason = Reason.PENDING if progress.waits_for else Reason.RUNNING
    text = progress.waits_for or doing
    return lambda _: Verdict(Ready.NO, reason, text, progress.fields())


def complete(progress: Progress, spec: RedriveSpec) -> Callable[[Progress | None], Verdict]:
    """Return the verdict for a complete Redrive."""
    if spec.dry_run:
        text = f"{progress.matched} dead letters match; none were moved (dryRun)"
        return lambda _: Verdict(Ready.YES, Reason.COMPLETE, text, progress.fields())
    missing = progress.matched - progress.moved
    text = f"moved {progress.moved} dead letters to {spec.target or spec.source}"
    text += f"; {missing} were gone before they could be moved" if missing > 0 else ""
    return lambda _: Verdict(Ready.YES, Reason.COMPLETE, text, progress.fields())


def stopped(reason: Reason, error: StoreError) -> Callable[[Progress | None], Verdict]:
    """Return the verdict for a Redrive that an error has stopped."""
    return lambda last: Verdict(Ready.NO, reason, str(error), last.fields() if last is not None else {})
