"""All Redrives: each that is not done is on its way, in a task of its own."""

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
from penstock_operator.redrives.redrive_status import Superseded, Telling, complete, stopped
from penstock_operator.redrives.redriving import (
    Foreign,
    Illegible,
    MadeAnew,
    Missing,
    Progress,
    Redriving,
    Tell,
    progress_of,
)
from penstock_operator.status.statuses import Statuses
from services.store import Store, StoreError
from services.store.model import DomainMismatch, MessageTooLarge, QueueUnknown, ReasonUnknown

log = logging.getLogger(__name__)

FOR_QUEUES_S = (
    60.0  # for queues that are not there yet and that no Queue declares, once the store can be asked
)
ENDED_BY = (QueueUnknown, DomainMismatch, MessageTooLarge, Foreign, MadeAnew, ReasonUnknown)
ENDS = (Reason.COMPLETE, Reason.FAILED, Reason.INVALID)


def is_done(resource: Resource) -> bool:
    found = condition(resource.status)
    return (
        found.get("reason") in list(ENDS) and resource.status.get("observedGeneration") == resource.generation
    )


@dataclass(frozen=True, slots=True)
class _Going:
    """One that is on its way."""

    resource: Resource
    task: asyncio.Task[None]


class Redrives:
    """`again` is called with the key of one that could not go on, and is to be looked at later."""

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
        self._asked: dict[str, float] = {}  # when the store could first be asked for its queues, by uid
        self._going: dict[Key, _Going] = {}
        self._errands: set[asyncio.Task[None]] = set()

    async def look(self, resource: Resource) -> None:
        """Begins it, or goes on with it, unless it is done or on its way. Raises ApiError."""
        self._stop_another(resource)
        if resource.deleting:  # though somebody's finalizer may hold it
            self.stop(resource)
            return
        if is_done(resource):
            self._statuses.note(resource.key, condition(resource.status)["reason"])
            return
        document, fault = read(resource, RedriveDocument)
        if document is None:
            await self._statuses.settle(resource, Verdict(Ready.NO, Reason.INVALID, fault))
            return
        if resource.key not in self._going:
            await self._begin(resource, document.spec)

    async def _begin(self, resource: Resource, spec: RedriveSpec) -> None:
        """Or where it was. Raises ApiError."""
        try:
            before = progress_of(resource.status)
        except Illegible as error:
            await self._statuses.settle(resource, Verdict(Ready.NO, Reason.FAILED, str(error)))
            self.stop(resource)
            return
        telling = Telling(self._statuses, self._mirror, resource, self._metrics, spec, before)
        task = asyncio.create_task(self._run(resource, spec, telling), name=str(resource.key))
        self._going[resource.key] = _Going(resource, task)

    def stop(self, resource: Resource) -> None:
        """It is gone, or going: what it has moved stays moved."""
        going = self._going.get(resource.key)
        if going is not None and going.resource.uid == resource.uid:
            going.task.cancel()
            del self._going[resource.key]
        self._asked.pop(resource.uid, None)
        document, _ = read(resource, RedriveDocument)
        if document is not None:
            errand = asyncio.create_task(_forget(self._redriving(resource, document.spec)))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)

    def _stop_another(self, resource: Resource) -> None:
        """Who had the name before may end without a word, or later than the next begins."""
        going = self._going.get(resource.key)
        if going is not None and going.resource.uid != resource.uid:
            self.stop(going.resource)

    @property
    def is_idle(self) -> bool:
        """None is on its way."""
        return not self._going

    async def close(self) -> None:
        tasks = [going.task for going in self._going.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _redriving(self, resource: Resource, spec: RedriveSpec, tell: Tell | None = None) -> Redriving:
        return Redriving(self._store, spec, resource.key.namespace, resource.uid, tell or _tell_nobody)

    async def _run(self, resource: Resource, spec: RedriveSpec, telling: Telling) -> None:
        async def tell(progress: Progress) -> None:
            self._asked.setdefault(resource.uid, self._clock())
            await telling.progress(progress)

        redriving = self._redriving(resource, spec, tell)
        try:
            if not await self._go(resource, spec, redriving, telling):
                self._again(resource.key)
        except Superseded:
            return
        except ApiError as error:
            fields = {"action": "redrive_untold", "object": str(resource.key)}
            log.warning("%s goes on later: %s", resource.key, error, extra=fields)
            self._again(resource.key)
        except Exception:
            log.exception("%s failed", resource.key, extra={"action": "redrive_fault"})
            self._again(resource.key)
        finally:
            self._end(resource)

    def _end(self, resource: Resource) -> None:
        going = self._going.get(resource.key)
        if going is not None and going.task is asyncio.current_task():
            del self._going[resource.key]

    async def _go(
        self, resource: Resource, spec: RedriveSpec, redriving: Redriving, telling: Telling
    ) -> bool:
        """Whether it is over. The store counts until that has been told: whoever goes on knows by it."""
        try:
            progress = await redriving.go(telling.last)
            await telling.verdict(complete(progress, spec))
        except ENDED_BY as error:
            if isinstance(error, Missing) and self._may_come(resource, error.name):
                await telling.verdict(stopped(Reason.PENDING, error))
                return False
            await telling.verdict(stopped(Reason.FAILED, error))
        except StoreError as error:
            await telling.verdict(stopped(Reason.PENDING, error))
            return False
        await _forget(redriving)
        self._asked.pop(resource.uid, None)
        return True

    def _may_come(self, resource: Resource, name: str) -> bool:
        """A queue that was applied together with it, or that a Queue declares and the store has lost or not yet."""
        now = self._clock()
        if now - self._asked.setdefault(resource.uid, now) < FOR_QUEUES_S:
            return True
        namespace = resource.key.namespace
        queues = (each for each in self._mirror.of(Kind.QUEUE) if each.key.namespace == namespace)
        return any(queue_name(each) == name for each in queues if not each.deleting)


async def _tell_nobody(_: Progress) -> None:
    return None


async def _forget(redriving: Redriving) -> None:
    with contextlib.suppress(StoreError):  # a number in a queue's hash stays
        await redriving.forget()
