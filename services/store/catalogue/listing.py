"""List the queues of a store, and read their statistics."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from services.store.catalogue.bulk_stats import BulkStats
from services.store.catalogue.figures import BulkStatsResult, figures
from services.store.catalogue.registry import Registry
from services.store.model.errors import QueueUnknown, QueueUnreadable, StoreFault
from services.store.model.queue_document import parse
from services.store.model.queues import Queue
from services.store.pipeline.domains import Domains

log = logging.getLogger(__name__)

Unread = Callable[[str, str], None]  # called with a queue's name, and why its document cannot be read


class Listing:
    """The list of one store's queues."""

    def __init__(self, registry: Registry, domains: Domains) -> None:
        self._registry = registry
        self._domains = domains
        self._complaints: dict[str, str] = {}  # names of queues -> what was wrong with them
        self._bulk_stats = BulkStats(lambda domain: domains.get(domain).link)

    async def queues(self, beginning: str = "", unreadable: Unread | None = None) -> AsyncIterator[Queue]:
        """Yield the queues whose names begin with `beginning`; concurrent changes may or may not be included.

        Unreadable queues are passed to `unreadable`, or logged. Raises NotInitialised, StoreUnavailable.
        """
        async for name, document in self._registry.documents(beginning):
            try:
                yield parse(name, document)
            except QueueUnreadable as error:
                (unreadable or self.complain)(name, str(error))

    def complain(self, name: str, why: str) -> None:
        """Log that an unreadable queue is skipped, once for each state of its document."""
        if self._complaints.get(name) != why:
            self._complaints[name] = why
            log.warning("queue skipped: %s", why, extra={"action": "queue_unreadable", "queue": name})

    async def stats(self, queue: Queue) -> dict[str, Any]:
        """Return exact counters and sizes of a queue: integers, times in ms. Raises QueueUnknown, StoreFault."""
        reply = await self._domains.get(queue.domain).link.function("stats", list(queue.keys))
        if reply == b"GONE":
            raise QueueUnknown(f"there is no queue {queue.name!r}")
        try:
            return figures(reply)
        except ValueError as error:  # a counter is not a number
            raise StoreFault(f"queue {queue.name!r} is damaged in the store: {error}") from error

    async def stats_of(self, queues: Iterable[Queue]) -> BulkStatsResult:
        """Return the statistics of many queues in few calls, without queues that were deleted meanwhile.

        Damaged queues and those of unreachable domains are in the result's errors.
        """
        return await self._bulk_stats.read(queues)
