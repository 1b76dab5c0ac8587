"""Find queues by their numbers in protocols."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from services.store.catalogue.sharing import Sharing
from services.store.model.errors import QueueUnknown, StoreError
from services.store.model.queues import Queue
from services.store.model.rqp_binding import number_name

BUSY = 16  # concurrent lookups above which requests for unknown numbers are assumed to be a flood
BUSY_S = 1.0  # the flood is assumed to last this long after the last such lookup


class Numbers:
    """A cache of queues by number, used while this process receives notices of changes.

    Unknown numbers are not cached, as the queue may have just been created. During a flood of lookups, numbers that are
    not in a list of all numbers are refused without asking the store, so that other lookups stay fast.
    """

    def __init__(
        self,
        find: Callable[[str], Awaitable[Queue]],
        list_all: Callable[[], Awaitable[frozenset[str] | None]],
    ) -> None:
        """find: by 'rqp-mca 7', raises QueueUnknown. list_all: returns all such names, or None for too many."""
        self._sharing = Sharing(find)
        self._list_all = list_all
        self._found: dict[str, Queue] = {}
        self._all: frozenset[str] | None = None  # since the last change; None: unknown
        self._listing: asyncio.Task[None] | None = None
        self._followed = False
        self._changes = 0
        self._lookups = 0
        self._busy_until = 0.0  # by the loop's clock

    def held(self, protocol: str, number: int) -> Queue | None:
        """Return the queue from the cache, or None."""
        name = number_name(protocol, number)
        queue = self._found.get(name)
        return queue if queue is not None and name in queue.spec.numbers() else None

    def lacks(self, protocol: str, number: int) -> bool:
        """Return whether the number is known to be unused, during a flood of lookups."""
        if not self._followed or asyncio.get_running_loop().time() >= self._busy_until:
            return False
        if self._all is not None:
            return number_name(protocol, number) not in self._all
        if self._listing is None:
            self._listing = asyncio.create_task(self._list(), name="list of numbers")
        return False

    async def ask(self, protocol: str, number: int) -> Queue:
        """Return the queue with this number. Raises QueueUnknown, StoreUnavailable."""
        if (held := self.held(protocol, number)) is not None:
            return held
        name, before = number_name(protocol, number), self._changes
        if self.lacks(protocol, number):
            raise QueueUnknown(f"there is no queue with the number {name}")
        queue = await self._find(name)
        if self._followed and before == self._changes:
            self._found[name] = queue
        return queue

    async def _find(self, name: str) -> Queue:
        self._lookups += 1
        if self._lookups >= BUSY:
            self._busy_until = asyncio.get_running_loop().time() + BUSY_S
        try:
            return await self._sharing.ask(name)
        finally:
            self._lookups -= 1

    async def _list(self) -> None:
        before = self._changes
        with contextlib.suppress(StoreError):
            found = await self._list_all()
            if self._followed and before == self._changes:
                self._all = found
                if found is None:
                    return  # do not retry before the next change
        self._listing = None

    def changed(self) -> None:
        """Clear the cache after a change of a document; lookups in progress are not cached."""
        self._found.clear()
        self._all = None
        if self._listing is not None and self._listing.done():
            self._listing = None
        self._changes += 1

    def follow(self, followed: bool) -> None:
        """Set whether this process receives notices of all changes, which the cache needs."""
        self._followed = followed
        self.changed()

    async def close(self) -> None:
        """Fail all lookups in progress with StoreUnavailable."""
        await self._sharing.close()
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)
