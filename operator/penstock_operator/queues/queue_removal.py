"""Apply the deletionPolicy to the queue of a deleted resource, within a time limit so that the resource never hangs."""

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

    REMOVED = "Removed"  # with its contents
    KEPT = "Retained"  # DeleteIfEmpty, and the queue is not empty
    ABANDONED = "Abandoned"  # the store was unavailable: the queue stays


@dataclass(frozen=True, slots=True)
class RemovalResult:
    """The outcome for a queue, to be reported as an event."""

    outcome: Outcome
    severity: Severity
    message: str


class QueueRemoval:
    """Removes queues whose resources are deleted."""

    def __init__(self, store: Store, patience_s: float) -> None:
        """Set the time limit. patience_s: how long a resource waits for an unreachable store."""
        self._store = store
        self._patience_s = patience_s
        self._tried: dict[str, float] = {}  # uid -> time of the first attempt of this process

    async def remove(self, declared: DeclaredQueue) -> RemovalResult | None:
        """Remove the queue; return the outcome, or None if it is not this resource's. Raises StoreError: try again."""
        try:
            return await self._remove(declared)
        except StoreError as error:
            first = self._tried.setdefault(declared.resource.uid, time.monotonic())
            if time.monotonic() - first < self._patience_s:
                raise
            text = f"queue {declared.name!r} stays in the store, which is unavailable: {error}"
            return RemovalResult(Outcome.ABANDONED, Severity.WARNING, text)

    def forget(self, resource: Resource) -> None:
        """Drop what is known of a deleted resource."""
        self._tried.pop(resource.uid, None)

    async def _remove(self, declared: DeclaredQueue) -> RemovalResult | None:
        queue = await self._own(declared)
        if queue is None:
            return None
        policy = declared.resource.spec.get("deletionPolicy", DeletionPolicy.RETAIN)
        if policy == DeletionPolicy.RETAIN:
            return None
        try:
            dead = await self._dead_letters(queue)
            messages = await self._store.catalogue.delete(
                queue, if_empty=policy == DeletionPolicy.DELETE_IF_EMPTY
            )
        except QueueNotEmpty as error:
            text = f"{error}: it stays in the store; a new Queue of this name adopts it"
            return RemovalResult(Outcome.KEPT, Severity.WARNING, text)
        except QueueUnknown:
            return None
        text = f"the queue was deleted with {messages} messages and {dead} dead letters"
        return RemovalResult(Outcome.REMOVED, Severity.NORMAL, text)

    async def _dead_letters(self, queue: Queue) -> int:
        try:
            return int((await self._store.listing.stats(queue))["dead_letters"])
        except StoreFault:  # the queue is damaged
            return 0

    async def _own(self, declared: DeclaredQueue) -> Queue | None:
        try:
            queue = await self._store.catalogue.find(declared.name)
        except QueueUnknown:
            return None
        return queue if queue.owner == owner_of(declared.resource.key) else None
