"""Purge ready messages of a queue in batches (lua/empty.lua)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from services.store.model.errors import QueueUnknown
from services.store.model.queues import Queue
from services.store.pipeline.domain import Domain


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """The messages that a purge would remove now."""

    until: str  # opaque position of the last message; later messages are not removed
    messages: int
    in_flight: int  # leased messages, which would stay


async def preview_purge(domain: Domain, queue: Queue) -> PurgePreview:
    """Return what a purge would remove.

    Raises NameReserved for the queue of a running ring node, QueueUnknown and other StoreErrors.
    """
    await domain.claims.check_unserved(queue)
    reply = await domain.link.function("ready", list(queue.keys))
    if reply == b"GONE":
        raise QueueUnknown
    until, messages, in_flight = reply
    return PurgePreview(until.decode(), messages, in_flight)


@dataclass(frozen=True, slots=True)
class PurgeProgress:
    """The messages that a purge has removed so far."""

    messages: int
    octets: int  # of bodies and attributes
    is_done: bool


class QueuePurge:
    """One purge of the messages that were ready at its preview or start; later messages stay.

    Leased messages stay, unless they return to their place before the purge ends. Expired messages become dead letters
    as usual. The store counts the removed messages, even if an answer is lost, and forgets a purge an hour after its
    last step. This object knows the last message to remove, so use the same one to continue after a store failure.
    """

    def __init__(self, domain: Domain, queue: Queue, run: str, until: str = "") -> None:
        """run: unique identifier; reuse it to continue a purge. until: of `preview_purge`, '' = all ready messages."""
        self._domain = domain
        self._queue = queue
        self._run = domain.keys.emptied(run)
        self._until = until

    async def step(self) -> PurgeProgress:
        """Remove up to 1,000 messages; may be repeated. Raises the errors of `preview_purge`."""
        await self._domain.claims.check_unserved(self._queue)
        reply = await self._domain.function("empty", [*self._queue.keys, self._run], self._until)
        if reply == b"GONE":
            raise QueueUnknown
        messages, octets, more, until = reply
        self._until = until.decode()
        return PurgeProgress(messages, octets, not more)

    async def removed(self) -> int:
        """Return how many messages were removed so far; 0 for an unknown purge. Raises StoreError."""
        return int(await self._domain.link.call("HGET", self._run, "messages") or 0)

    async def forget(self) -> None:
        """Remove the counters of the purge from the store. Raises StoreError."""
        await self._domain.link.call("DEL", self._run)

    async def steps(self) -> AsyncIterator[PurgeProgress]:
        """Yield the progress of each step until the purge is done. Raises StoreError."""
        done = False
        while not done:
            progress = await self.step()
            yield progress
            done = progress.is_done
