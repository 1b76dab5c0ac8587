"""Queues by the numbers that protocols know them by."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from services.store.catalogue.sharing import Sharing
from services.store.model.errors import QueueUnknown, StoreError
from services.store.model.queues import Queue
from services.store.model.rqp_binding import number_name

BUSY = 16  # so many looked for at once are more than those who mean us ask for
BUSY_S = 1.0  # so long afterwards, too


class Numbers:
    """What was found is remembered for as long as somebody follows the changes.

    That there is none is not, since whoever asks may have just made it: but while very many are looked for, those that
    are in no list of all that there are need not be. So floods of strange numbers keep nobody from finding his.
    """

    def __init__(
        self,
        look: Callable[[str], Awaitable[Queue]],
        list_all: Callable[[], Awaitable[frozenset[str] | None]],
    ) -> None:
        """look: finds the queue of 'rqp-mca 7', or raises QueueUnknown. list_all: such names; None: too many."""
        self._sharing = Sharing(look)
        self._list_all = list_all
        self._found: dict[str, Queue] = {}
        self._all: frozenset[str] | None = None  # as of the last change; None: not known
        self._listing: asyncio.Task[None] | None = None
        self._followed = False
        self._changes = 0
        self._looked_for = 0
        self._busy_until = 0.0  # by the loop's clock

    def held(self, protocol: str, number: int) -> Queue | None:
        """The queue, if it is known without asking the store."""
        return self._held(number_name(protocol, number))

    def lacks(self, protocol: str, number: int) -> bool:
        """Whether the store need not be asked, as so many others are looked for and there is none."""
        return self._lacks(number_name(protocol, number))

    async def ask(self, protocol: str, number: int) -> Queue:
        """Raises QueueUnknown, StoreUnavailable."""
        name = number_name(protocol, number)
        if (held := self._held(name)) is not None:
            return held
        if self._lacks(name):
            raise QueueUnknown(f"there is no queue with the number {name}")
        before = self._changes
        queue = await self._look(name)
        if self._followed and before == self._changes:
            self._found[name] = queue
        return queue

    async def _look(self, name: str) -> Queue:
        self._looked_for += 1
        if self._looked_for >= BUSY:
            self._busy_until = asyncio.get_running_loop().time() + BUSY_S
        try:
            return await self._sharing.ask(name)
        finally:
            self._looked_for -= 1

    def _held(self, name: str) -> Queue | None:
        queue = self._found.get(name)
        return queue if queue is not None and name in queue.spec.numbers() else None

    def _lacks(self, name: str) -> bool:
        if not self._followed or asyncio.get_running_loop().time() >= self._busy_until:
            return False
        if self._all is not None:
            return name not in self._all
        if self._listing is None:
            self._listing = asyncio.create_task(self._list(), name="list of numbers")
        return False

    async def _list(self) -> None:
        before = self._changes
        with contextlib.suppress(StoreError):
            found = await self._list_all()
            if self._followed and before == self._changes:
                self._all = found
                if found is None:
                    return  # not again before something changes
        self._listing = None

    def changed(self) -> None:
        """Some document did: what was found is looked for again, what is being looked for is not remembered."""
        self._found.clear()
        self._all = None
        if self._listing is not None and self._listing.done():
            self._listing = None
        self._changes += 1

    def follow(self, followed: bool) -> None:
        """Whether each change will be told."""
        self._followed = followed
        self.changed()

    async def close(self) -> None:
        await self._sharing.close()
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)
