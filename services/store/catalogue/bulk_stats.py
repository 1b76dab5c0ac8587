"""Read the statistics of many queues in few calls; failures of some queues do not affect others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from services.store.catalogue.figures import FIELDS, BulkStatsResult, figures_of
from services.store.model.errors import StoreError, StoreFault
from services.store.model.queues import Queue
from services.store.redis.link import Link

log = logging.getLogger(__name__)

QUEUES_PER_CALL = 50  # the store serves other clients between calls
NAMED = 10  # queues in one log message


class BulkStats:
    """A reader that logs each unreadable queue once until it is readable again."""

    def __init__(self, link_of: Callable[[str], Link]) -> None:
        """link_of: by the domain's name."""
        self._link_of = link_of
        self._unread: set[str] = set()

    async def read(self, queues: Iterable[Queue]) -> BulkStatsResult:
        """Read the statistics of all queues; those of unreachable domains are in the result's errors."""
        domains: dict[str, list[Queue]] = {}
        for queue in queues:
            domains.setdefault(queue.domain, []).append(queue)
        found = BulkStatsResult()
        await asyncio.gather(*(self._read_domain(name, those, found) for name, those in domains.items()))
        self._log_errors(found)
        return found

    async def _read_domain(self, domain: str, queues: list[Queue], found: BulkStatsResult) -> None:
        link = self._link_of(domain)
        for at in range(0, len(queues), QUEUES_PER_CALL):
            batch = queues[at : at + QUEUES_PER_CALL]
            keys = [key for queue in batch for key in queue.keys]
            try:
                results = figures_of(await link.function("stats_of", keys, *FIELDS))
            except StoreError as error:
                found.errors.update((queue.name, error) for queue in queues[at:])
                return
            for queue, result in zip(batch, results, strict=True):
                if isinstance(result, StoreFault):
                    found.errors[queue.name] = result
                elif result is not None:
                    found.stats[queue.name] = result

    def _log_errors(self, found: BulkStatsResult) -> None:
        """Log one message for all queues with the same error, as an unreachable shard may have thousands."""
        news: dict[str, list[str]] = {}
        for name, error in found.errors.items():
            if name not in self._unread:
                news.setdefault(str(error), []).append(name)
        for why, names in news.items():
            shown, more = ", ".join(map(repr, names[:NAMED])), len(names) - NAMED
            fields = {
                "action": "queue_unread",
                "queues": names[:NAMED],
                "reason": found.errors[names[0]].reason,
            }
            log.warning(
                "queue statistics are unavailable for %s%s: %s",
                shown,
                f" and {more} more" if more > 0 else "",
                why,
                extra=fields,
            )
        self._unread = set(found.errors)
