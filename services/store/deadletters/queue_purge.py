"""A queue is emptied: what is ready goes for good, a stretch a call (lua/empty.lua)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from services.store.model.errors import QueueUnknown
from services.store.model.queues import Queue
from services.store.pipeline.domain import Domain


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """What an emptying would mean now."""

    until: str  # the last message's place, as the store names it; what comes later stands behind it
    messages: int
    in_flight: int  # that are given out, and would stay


async def preview_purge(domain: Domain, queue: Queue) -> PurgePreview:
    """Return what an emptying would remove.

    Raises NameReserved for the queue of a ring node that runs, QueueUnknown and any other StoreError.
    """
    await domain.claims.check_unserved(queue)
    reply = await domain.link.function("ready", list(queue.keys))
    if reply == b"GONE":
        raise QueueUnknown
    until, messages, in_flight = reply
    return PurgePreview(until.decode(), messages, in_flight)


@dataclass(frozen=True, slots=True)
class PurgeProgress:
    """What a run has removed until now."""

    messages: int
    octets: int  # of their bodies and attributes
    is_done: bool  # nothing that it means is ready any more


class QueuePurge:
    """One run. It means what was in the queue when it was counted, or is as it begins: what is put in later, or goes to
    the end, stays.

    What somebody has leased is left alone, unless it comes back to its place before the run ends. What is over its
    time goes to the dead letters, as it would have. The store counts, whatever becomes of its answers, and forgets a
    run after an hour in which nobody went on with it. What was meant is known here, too: whoever asks again asks the
    same object, however long the store was away.
    """

    def __init__(self, domain: Domain, queue: Queue, run: str, until: str = "") -> None:
        """Remember the run; one named again goes on. until: from `preview_purge`, or "" for everything there is."""
        self._domain = domain
        self._queue = queue
        self._run = domain.keys.emptied(run)
        self._until = until

    async def step(self) -> PurgeProgress:
        """Some more, 1,000 messages at most; may be asked again. Raises as `preview_purge` does."""
        await self._domain.claims.check_unserved(self._queue)
        reply = await self._domain.function("empty", [*self._queue.keys, self._run], self._until)
        if reply == b"GONE":
            raise QueueUnknown
        messages, octets, more, until = reply
        self._until = until.decode()
        return PurgeProgress(messages, octets, not more)

    async def removed(self) -> int:
        """How many messages until now; 0 of one that is not known. Raises StoreError."""
        return int(await self._domain.link.call("HGET", self._run, "messages") or 0)

    async def forget(self) -> None:
        """Nobody will ask any more. Raises StoreError."""
        await self._domain.link.call("DEL", self._run)

    async def steps(self) -> AsyncIterator[PurgeProgress]:
        """Until it is done. Raises StoreError."""
        done = False
        while not done:
            emptied = await self.step()
            yield emptied
            done = emptied.is_done
