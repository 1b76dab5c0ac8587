"""Many queues looked at together: whatever is wrong with some, the rest is seen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from services.store.catalogue.figures import FIELDS, BulkStatsResult, figures_of
from services.store.model.errors import StoreError, StoreFault
from services.store.model.queues import Queue
from services.store.redis.link import Link

log = logging.getLogger(__name__)

QUEUES_PER_CALL = 50  # queues in one call: the store serves others in between
NAMED = 10  # in one line of the log


class BulkStats:
    """Of one process, which tells once of each queue that cannot be read, until it can."""

    def __init__(self, link_of: Callable[[str], Link]) -> None:
        """link_of: by the domain's name."""
        self._link_of = link_of
        self._unread: set[str] = set()

    async def read(self, queues: Iterable[Queue]) -> BulkStatsResult:
        """Return what was found. Queues of a domain that cannot be asked are unread, also if it is the only one."""
        domains: dict[str, list[Queue]] = {}
        for queue in queues:
            domains.setdefault(queue.domain, []).append(queue)
        found = BulkStatsResult()
        await asyncio.gather(*(self._read_domain(name, those, found) for name, those in domains.items()))
        self._complain(found)
        return found

    async def _read_domain(self, domain: str, queues: list[Queue], found: BulkStatsResult) -> None:
        link = self._link_of(domain)
        for at in range(0, len(queues), QUEUES_PER_CALL):
            part = queues[at : at + QUEUES_PER_CALL]
            keys = [key for queue in part for key in queue.keys]
            try:
                told = figures_of(await link.function("stats_of", keys, *FIELDS))
            except StoreError as error:
                found.errors.update((queue.name, error) for queue in queues[at:])
                return
            for queue, its in zip(part, told, strict=True):
                if isinstance(its, StoreFault):
                    found.errors[queue.name] = its
                elif its is not None:
                    found.stats[queue.name] = its

    def _complain(self, found: BulkStatsResult) -> None:
        """One line for all of which the same is to be said: a shard that is away may have thousands."""
        news: dict[str, list[str]] = {}
        for name, error in found.errors.items():
            if name not in self._unread:
                news.setdefault(str(error), []).append(name)
        for why, names in news.items():
            shown, more = ", ".join(map(repr, names[:NAMED])), len(names) - NAMED
            told = f"{shown} and {more} more" if more > 0 else shown
            fields = {
                "action": "queue_unread",
                "queues": names[:NAMED],
                "reason": found.errors[names[0]].reason,
            }
            log.warning("nobody sees how these queues stand: %s: %s", told, why, extra=fields)
        self._unread = set(found.errors)
