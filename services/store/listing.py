"""All queues together: which there are, and what is in them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from services.store.domain import Domain
from services.store.errors import QueueUnknown, QueueUnreadable
from services.store.figures import FIELDS, figures, figures_of
from services.store.queue_document import parse
from services.store.queues import Queue
from services.store.registry import Registry

log = logging.getLogger(__name__)

LOOKED_AT = 50  # queues in one call: the store serves others in between
Unread = Callable[[str, str], None]  # is told a queue's name, and why its document cannot be read


class Listing:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._complaints: dict[str, str] = {}  # names of queues -> what was wrong with them

    def _domain(self, name: str) -> Domain:
        raise NotImplementedError

    async def queues(self, beginning: str = "", unreadable: Unread | None = None) -> AsyncIterator[Queue]:
        """Those whose names begin so; what is declared or deleted meanwhile may be among them or not.

        One that cannot be read hides no other: `unreadable` is told its name and why; without, the log. Raises
        NotInitialised, StoreUnavailable.
        """
        async for name, document in self.registry.documents(beginning):
            try:
                yield parse(name, document)
            except QueueUnreadable as error:
                (unreadable or self.complain)(name, str(error))

    def complain(self, name: str, why: str) -> None:
        """Of a queue that is left out, once in each process and state of its document."""
        if self._complaints.get(name) != why:
            self._complaints[name] = why
            log.warning("left out: %s", why, extra={"action": "queue_unreadable", "queue": name})

    async def stats(self, queue: Queue) -> dict[str, Any]:
        """Exact counters and sizes of a queue: integers, times in ms. Raises QueueUnknown."""
        reply = await self._domain(queue.domain).link.function("stats", list(queue.keys))
        if reply == b"GONE":
            raise QueueUnknown(f"there is no queue {queue.name!r}")
        return figures(reply)

    async def stats_of(self, queues: Iterable[Queue]) -> dict[str, dict[str, Any]]:
        """The same of many, by name, in few calls; without those that are gone meanwhile. Raises StoreUnavailable."""
        domains: dict[str, list[Queue]] = {}
        for queue in queues:
            domains.setdefault(queue.domain, []).append(queue)
        found: dict[str, dict[str, Any]] = {}
        await asyncio.gather(*(self._look(name, those, found) for name, those in domains.items()))
        return found

    async def _look(self, domain: str, queues: list[Queue], found: dict[str, dict[str, Any]]) -> None:
        link = self._domain(domain).link
        for at in range(0, len(queues), LOOKED_AT):
            part = queues[at : at + LOOKED_AT]
            keys = [key for queue in part for key in queue.keys]
            told = figures_of(await link.function("stats_of", keys, *FIELDS))
            found |= {queue.name: its for queue, its in zip(part, told, strict=True) if its is not None}
