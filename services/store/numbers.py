"""Queues by the numbers that protocols know them by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from services.store.queues import Queue
from services.store.rqp_binding import number_name
from services.store.sharing import Sharing


class Numbers:
    """What was found is remembered for as long as somebody follows the changes; that there is none never is."""

    def __init__(self, look: Callable[[str], Awaitable[Queue]]) -> None:
        """look: finds the queue of 'rqp-mca 7', or raises QueueUnknown."""
        self._sharing = Sharing(look)
        self._found: dict[str, Queue] = {}
        self._followed = False
        self._changes = 0

    def held(self, protocol: str, number: int) -> Queue | None:
        """The queue, if it is known without asking the store."""
        return self._held(number_name(protocol, number))

    async def ask(self, protocol: str, number: int) -> Queue:
        """Raises QueueUnknown, StoreUnavailable."""
        name = number_name(protocol, number)
        if (held := self._held(name)) is not None:
            return held
        before = self._changes
        queue = await self._sharing.ask(name)
        if self._followed and before == self._changes:
            self._found[name] = queue
        return queue

    def _held(self, name: str) -> Queue | None:
        queue = self._found.get(name)
        return queue if queue is not None and name in queue.spec.numbers() else None

    def changed(self) -> None:
        """Some document did: what was found is looked for again, what is being looked for is not remembered."""
        self._found.clear()
        self._changes += 1

    def follow(self, followed: bool) -> None:
        """Whether each change will be told."""
        self._followed = followed
        self.changed()

    async def close(self) -> None:
        await self._sharing.close()
