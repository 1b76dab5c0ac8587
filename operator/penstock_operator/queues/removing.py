"""What becomes of a queue whose resource goes: by its deletionPolicy, and never so that the resource hangs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from penstock_operator.cluster.resources import Resource
from penstock_operator.documents.declared import DeclaredQueue, owner_of
from penstock_operator.status.events import Severity
from services.store import Queue, Store
from services.store.model import DeletionPolicy, QueueNotEmpty, QueueUnknown, StoreError, StoreFault


class Outcome(StrEnum):
    """The reason of the event."""

    REMOVED = "Removed"  # with all that was in it
    KEPT = "Retained"  # it is not empty, and may only go empty
    ABANDONED = "Abandoned"  # the store could not be asked in time: the queue stays there


@dataclass(frozen=True, slots=True)
class Farewell:
    outcome: Outcome
    severity: Severity
    message: str


class Removing:
    def __init__(self, store: Store, patience_s: float) -> None:
        """patience_s: of a resource with a store that cannot be reached."""
        self._store = store
        self._patience_s = patience_s
        self._tried: dict[str, float] = {}  # when first, by uid: while we were away nobody asked

    async def remove(self, declared: DeclaredQueue) -> Farewell | None:
        """What became of it; None if it was not this resource's queue. Raises StoreError: it is to be tried again."""
        try:
            return await self._remove(declared)
        except StoreError as error:
            first = self._tried.setdefault(declared.resource.uid, time.monotonic())
            if time.monotonic() - first < self._patience_s:
                raise
            text = f"the queue {declared.name!r} stays in the store, which could not be asked: {error}"
            return Farewell(Outcome.ABANDONED, Severity.WARNING, text)

    def forget(self, resource: Resource) -> None:
        """It is gone."""
        self._tried.pop(resource.uid, None)

    async def _remove(self, declared: DeclaredQueue) -> Farewell | None:
        queue = await self._own(declared)
        if queue is None:
            return None
        policy = declared.resource.spec.get("deletionPolicy", DeletionPolicy.RETAIN)
        if policy == DeletionPolicy.RETAIN:
            return None
        try:
            dead = await self._dead_letters(queue)
            gone = await self._store.catalogue.delete(
                queue, if_empty=policy == DeletionPolicy.DELETE_IF_EMPTY
            )
        except QueueNotEmpty as error:
            text = f"{error}: it stays in the store; a new Queue of this name has it again"
            return Farewell(Outcome.KEPT, Severity.WARNING, text)
        except QueueUnknown:
            return None
        text = f"the queue is gone, and with it {gone} messages and {dead} dead letters"
        return Farewell(Outcome.REMOVED, Severity.NORMAL, text)

    async def _dead_letters(self, queue: Queue) -> int:
        try:
            return int((await self._store.listing.stats(queue))["dead_letters"])
        except StoreFault:  # it is damaged: nobody can count what goes
            return 0

    async def _own(self, declared: DeclaredQueue) -> Queue | None:
        try:
            queue = await self._store.catalogue.find(declared.name)
        except QueueUnknown:
            return None
        return queue if queue.owner == owner_of(declared.resource.key) else None
