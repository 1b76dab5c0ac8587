"""All Redrives: each that is not done is on its way, in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from penstock_operator.api import ApiError
from penstock_operator.conditions import Ready, Reason, Verdict, condition
from penstock_operator.declared import read
from penstock_operator.metrics import Metrics
from penstock_operator.mirror import Mirror
from penstock_operator.redrive_spec import RedriveDocument, RedriveSpec
from penstock_operator.redriving import Foreign, Progress, Redriving, Tell, progress_of
from penstock_operator.resources import Key, Resource
from penstock_operator.statuses import Statuses
from services.store import Store, StoreError
from services.store.errors import DomainMismatch, MessageTooLarge, QueueUnknown

log = logging.getLogger(__name__)

TELL_S = 2.0  # between two writings of how far it is
FOR_QUEUES_S = 60.0  # for queues that are not there yet when it begins
ENDED_BY = (QueueUnknown, DomainMismatch, MessageTooLarge, Foreign)
ENDS = (Reason.COMPLETE, Reason.FAILED, Reason.INVALID)


def is_done(resource: Resource) -> bool:
    found = condition(resource.status)
    return (
        found.get("reason") in list(ENDS) and resource.status.get("observedGeneration") == resource.generation
    )


class Redrives:
    """`again` is called with the key of one that could not go on, and is to be looked at later."""

    def __init__(
        self,
        store: Store,
        statuses: Statuses,
        mirror: Mirror,
        metrics: Metrics,
        again: Callable[[Key], None],
    ) -> None:
        self._store = store
        self._statuses = statuses
        self._mirror = mirror
        self._metrics = metrics
        self._again = again
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by uid
        self._errands: set[asyncio.Task[None]] = set()

    async def look(self, resource: Resource) -> None:
        """Begins it, or goes on with it, unless it is done or on its way. Raises ApiError."""
        if is_done(resource):
            self._statuses.note(resource.key, condition(resource.status)["reason"])
            return
        document, fault = read(resource, RedriveDocument)
        if document is None:
            await self._statuses.settle(resource, Verdict(Ready.NO, Reason.INVALID, fault))
            return
        running = self._tasks.get(resource.uid)
        if running is None or running.done():
            self._tasks[resource.uid] = asyncio.create_task(
                self._run(resource, document.spec), name=str(resource.key)
            )

    def stop(self, resource: Resource) -> None:
        """It is gone: what it has moved stays moved."""
        task = self._tasks.pop(resource.uid, None)
        if task is not None:
            task.cancel()
        document, _ = read(resource, RedriveDocument)
        if document is not None:
            errand = asyncio.create_task(_forget(self._redriving(resource, document.spec)))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _redriving(self, resource: Resource, spec: RedriveSpec, tell: Tell | None = None) -> Redriving:
        return Redriving(self._store, spec, resource.key.namespace, resource.uid, tell or _tell_nobody)

    async def _run(self, resource: Resource, spec: RedriveSpec) -> None:
        telling = _Telling(self._statuses, self._mirror, resource, self._metrics)
        redriving = self._redriving(resource, spec, telling.progress)
        try:
            if not await self._go(resource, spec, redriving, telling):
                self._again(resource.key)
        except ApiError as error:
            fields = {"action": "redrive_untold", "object": str(resource.key)}
            log.warning("%s goes on later: %s", resource.key, error, extra=fields)
            self._again(resource.key)
        except Exception:
            log.exception("%s failed", resource.key, extra={"action": "redrive_fault"})
            self._again(resource.key)
        finally:
            self._tasks.pop(resource.uid, None)

    async def _go(
        self, resource: Resource, spec: RedriveSpec, redriving: Redriving, telling: _Telling
    ) -> bool:
        """Whether it is over. The store counts until that has been told: whoever goes on knows by it."""
        try:
            progress = await redriving.go(progress_of(resource.status))
            await telling.verdict(_complete(progress, spec))
        except ENDED_BY as error:
            if isinstance(error, QueueUnknown) and _age_s(resource) < FOR_QUEUES_S:
                await telling.verdict(_stopped(Reason.PENDING, error))  # applied together with it
                return False
            await telling.verdict(_stopped(Reason.FAILED, error))
        except StoreError as error:
            await telling.verdict(_stopped(Reason.PENDING, error))
            return False
        await _forget(redriving)
        return True


async def _tell_nobody(_: Progress) -> None:
    return None


async def _forget(redriving: Redriving) -> None:
    with contextlib.suppress(StoreError):  # a number in a queue's hash stays
        await redriving.forget()


def _age_s(resource: Resource) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(resource.created)).total_seconds()


class _Telling:
    """How far one is, as its status says it: no oftener than every TELL_S, but the end at once."""

    def __init__(self, statuses: Statuses, mirror: Mirror, resource: Resource, metrics: Metrics) -> None:
        self._settle = partial(statuses.settle, counts_s=TELL_S)
        self._mirror = mirror
        self._resource = resource
        self._metrics = metrics
        self._last = progress_of(resource.status)

    async def progress(self, progress: Progress) -> None:
        if self._last is not None:
            self._metrics.redriven.inc(max(0, progress.moved - self._last.moved))
        self._last = progress
        await self.verdict(_running(progress))

    async def verdict(self, verdict: Callable[[Progress | None], Verdict]) -> None:
        await self._settle(self._mirror.get(self._resource.key) or self._resource, verdict(self._last))


def _running(progress: Progress) -> Callable[[Progress | None], Verdict]:
    reason = Reason.PENDING if progress.waits_for else Reason.RUNNING
    text = progress.waits_for or "dead letters are being moved"
    return lambda _: Verdict(Ready.NO, reason, text, progress.fields())


def _complete(progress: Progress, spec: RedriveSpec) -> Callable[[Progress | None], Verdict]:
    if spec.dry_run:
        text = f"{progress.matched} dead letters match; nothing was moved: dryRun"
        return lambda _: Verdict(Ready.YES, Reason.COMPLETE, text, progress.fields())
    gone = progress.matched - progress.moved
    text = f"{progress.moved} dead letters are in {spec.target or spec.source}"
    text += f"; {gone} were gone before they could be moved" if gone > 0 else ""
    return lambda _: Verdict(Ready.YES, Reason.COMPLETE, text, progress.fields())


def _stopped(reason: Reason, error: StoreError) -> Callable[[Progress | None], Verdict]:
    return lambda last: Verdict(Ready.NO, reason, str(error), last.fields() if last is not None else {})
