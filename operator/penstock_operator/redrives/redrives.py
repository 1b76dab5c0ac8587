"""Run all Redrives that are not done, each in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock_operator.cluster.api import ApiError
from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Key, Kind, Resource
from penstock_operator.documents.conditions import Ready, Reason, Verdict, condition
from penstock_operator.documents.declared import queue_name, read
from penstock_operator.documents.redrive_spec import RedriveDocument, RedriveSpec
from penstock_operator.metrics.metrics import Metrics
from penstock_operator.redrives.redrive_run import (
    Foreign,
    Missing,
    Progress,
    RedriveRun,
    Report,
    SourceRecreated,
    UnreadableStatus,
    progress_of,
)
from penstock_operator.redrives.redrive_status import RedriveStatus, Superseded, complete, stopped
from penstock_operator.status.statuses import Statuses
from services.store import Store, StoreError
from services.store.model import DomainMismatch, MessageTooLarge, QueueUnknown, ReasonUnknown

log = logging.getLogger(__name__)

FOR_QUEUES_S = 60.0  # how long to wait for queues that do not exist and that no Queue declares
ENDED_BY = (QueueUnknown, DomainMismatch, MessageTooLarge, Foreign, SourceRecreated, ReasonUnknown)
ENDS = (Reason.COMPLETE, Reason.FAILED, Reason.INVALID)


def is_done(resource: Resource) -> bool:
    """Return whether the status says that this generation has ended."""
    found = condition(resource.status)
    return (
        found.get("reason") in list(ENDS) and resource.status.get("observedGeneration") == resource.generation
    )


@dataclass(frozen=True, slots=True)
class _Running:
    """A running Redrive."""

    resource: Resource
    task: asyncio.Task[None]


class Redrives:
    """The running Redrives. again: called with the key of one to be tried again later."""

    def __init__(
        self,
        store: Store,
        statuses: Statuses,
        mirror: Mirror,
        metrics: Metrics,
        again: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._statuses = statuses
        self._mirror = mirror
        self._metrics = metrics
        self._again = again
        self._clock = clock
        self._asked: dict[str, float] = {}  # uid -> when its queues were first looked up
        self._running: dict[Key, _Running] = {}
        self._cleanups: set[asyncio.Task[None]] = set()

    async def reconcile(self, resource: Resource) -> None:
        """Start or resume a Redrive unless it is done or running. Raises ApiError."""
        self._stop_another(resource)
        if resource.deleting:  # also while a foreign finalizer keeps it
            self.stop(resource)
            return
        if is_done(resource):
            self._statuses.note(resource.key, condition(resource.status)["reason"])
            return
        document, fault = read(resource, RedriveDocument)
        if document is None:
            await self._statuses.settle(resource, Verdict(Ready.NO, Reason.INVALID, fault))
            return
        if resource.key not in self._running:
            await self._begin(resource, document.spec)

    async def _begin(self, resource: Resource, spec: RedriveSpec) -> None:
        """Start a Redrive, or resume it from its status. Raises ApiError."""
        try:
            before = progress_of(resource.status)
        except UnreadableStatus as error:
            await self._statuses.settle(resource, Verdict(Ready.NO, Reason.FAILED, str(error)))
            self.stop(resource)
            return
        status = RedriveStatus(self._statuses, self._mirror, resource, self._metrics, spec, before)
        task = asyncio.create_task(self._run(resource, spec, status), name=str(resource.key))
        self._running[resource.key] = _Running(resource, task)

    def stop(self, resource: Resource) -> None:
        """Stop a Redrive that is deleted; letters already moved stay moved."""
        running = self._running.get(resource.key)
        if running is not None and running.resource.uid == resource.uid:
            running.task.cancel()
            del self._running[resource.key]
        self._asked.pop(resource.uid, None)
        document, _ = read(resource, RedriveDocument)
        if document is not None:
            cleanup = asyncio.create_task(_forget(self._run_of(resource, document.spec)))
            self._cleanups.add(cleanup)
            cleanup.add_done_callback(self._cleanups.discard)

    def _stop_another(self, resource: Resource) -> None:
        """Stop an earlier Redrive of the same name, whose deletion may have been missed."""
        running = self._running.get(resource.key)
        if running is not None and running.resource.uid != resource.uid:
            self.stop(running.resource)

    @property
    def is_idle(self) -> bool:
        """Return whether no Redrive is running."""
        return not self._running

    async def close(self) -> None:
        """Cancel all running Redrives; they resume after a restart."""
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run_of(self, resource: Resource, spec: RedriveSpec, report: Report | None = None) -> RedriveRun:
        return RedriveRun(self._store, spec, resource.key.namespace, resource.uid, report or _ignore_progress)

    async def _run(self, resource: Resource, spec: RedriveSpec, status: RedriveStatus) -> None:
        async def report(progress: Progress) -> None:
            self._asked.setdefault(resource.uid, self._clock())
            await status.progress(progress)

        run = self._run_of(resource, spec, report)
        try:
            if not await self._go(resource, spec, run, status):
                self._again(resource.key)
        except Superseded:
            return
        except ApiError as error:
            fields = {"action": "redrive_untold", "object": str(resource.key)}
            log.warning(
                "%s could not report its progress; retrying later: %s", resource.key, error, extra=fields
            )
            self._again(resource.key)
        except Exception:
            log.exception(
                "%s failed after an internal error; retrying later",
                resource.key,
                extra={"action": "redrive_fault"},
            )
            self._again(resource.key)
        finally:
            self._end(resource)

    def _end(self, resource: Resource) -> None:
        running = self._running.get(resource.key)
        if running is not None and running.task is asyncio.current_task():
            del self._running[resource.key]

    async def _go(
        self, resource: Resource, spec: RedriveSpec, run: RedriveRun, status: RedriveStatus
    ) -> bool:
        """Run a Redrive; return whether it has ended. The store's count is kept until the end has been written."""
        try:
            progress = await run.go(status.last)
            await status.verdict(complete(progress, spec))
        except ENDED_BY as error:
            if isinstance(error, Missing) and self._may_come(resource, error.name):
                await status.verdict(stopped(Reason.PENDING, error))
                return False
            await status.verdict(stopped(Reason.FAILED, error))
        except StoreError as error:
            await status.verdict(stopped(Reason.PENDING, error))
            return False
        await _forget(run)
        self._asked.pop(resource.uid, None)
        return True

    def _may_come(self, resource: Resource, name: str) -> bool:
        """Return whether a missing queue may still appear: just applied, or declared by a Queue."""
        now = self._clock()
        if now - self._asked.setdefault(resource.uid, now) < FOR_QUEUES_S:
            return True
        namespace = resource.key.namespace
        queues = (each for each in self._mirror.of(Kind.QUEUE) if each.key.namespace == namespace)
        return any(queue_name(each) == name for each in queues if not each.deleting)


async def _ignore_progress(_: Progress) -> None:
    return None


async def _forget(run: RedriveRun) -> None:
    with contextlib.suppress(StoreError):  # leaves one number in the queue's hash
        await run.forget()
