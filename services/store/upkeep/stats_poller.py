"""Poll the statistics of all queues, for metrics and displays."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from services.store.catalogue.listing import Listing
from services.store.catalogue.registry import Registry
from services.store.log.log import Log, LogSpec
from services.store.model.errors import QueueUnreadable, StoreError
from services.store.model.queue_document import parse_leniently
from services.store.model.safe_notify import FAULT, FAULT_FIELDS, FoundT, notify_safely
from services.store.model.spec import LOG_DOMAIN, Overflow, QueueSpec
from services.store.pipeline.domains import Domains

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 15.0  # metrics are usually scraped less often


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Statistics of one queue. Totals count since it was created."""

    ready: int
    in_flight: int
    dead: int  # present dead letters
    died: int  # total of dead letters
    dead_overflowed: int  # total of dead letters dropped because there were too many
    redriven: int  # total of redriven dead letters
    purged: int  # total
    emptied: int  # total of ready messages that were removed by request
    expired: int  # total
    duplicates: int  # total
    fenced: int  # total
    octets: int
    oldest_age_s: float  # of the oldest unsettled message; 0 without messages
    used: float  # share of its bounds (see `used_part`)


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Statistics of all queues, by name."""

    queues: Mapping[str, QueueStats]
    unreadable: Collection[str]  # damaged, or on a shard that is down


async def read_store_stats(registry: Registry, listing: Listing) -> StoreStats:
    """Return the statistics of all queues. Raises StoreError."""
    queues, unreadable = [], set[str]()
    async for name, document in registry.documents():
        try:
            queues.append(parse_leniently(name, document)[0])
        except QueueUnreadable as error:  # not even its id can be read
            unreadable.add(name)
            listing.complain(name, str(error))
    found = await listing.stats_of(queues)
    specs = {queue.name: queue.spec for queue in queues}
    read = {name: _queue_stats(figures, specs[name]) for name, figures in found.stats.items()}
    return StoreStats(read, unreadable | found.errors.keys())


def _queue_stats(figures: dict[str, Any], spec: QueueSpec) -> QueueStats:
    return QueueStats(
        figures["ready"],
        figures["in_flight"],
        figures["dead_letters"],
        figures["dead"],
        figures["dead_overflowed"],
        figures["redriven"],
        figures["purged"],
        figures["emptied"],
        figures["expired"],
        figures["duplicates"],
        figures["fenced"],
        figures["bytes"],
        figures["oldest_age_ms"] / 1000,
        used_part(spec, figures["ready"] + figures["in_flight"], figures["bytes"]),
    )


def used_part(spec: QueueSpec, messages: int, octets: int) -> float:
    """Return the used share of `maxLength` or `maxBytes`, the greater one; from 1 on publishes are refused.

    0 for a queue without bounds, or whose oldest messages make way: it is meant to be full.
    """
    if spec.overflow is Overflow.DEAD_LETTER_OLDEST:
        return 0.0
    bounds = ((messages, spec.max_length), (octets, spec.max_bytes))
    return max((used / most for used, most in bounds if most), default=0.0)


async def copies_lost(domains: Domains) -> int:
    """Return how many copies links have lost since the log began; 0 without a log. Raises StoreError."""
    figures = await Log(domains.get(LOG_DOMAIN), LogSpec()).figures()
    return int(figures.get("copies_lost", 0))


async def poll_store(
    poll: Callable[[], Awaitable[FoundT]], report: Callable[[FoundT | None], None], every_s: float
) -> None:
    """Poll until cancelled and report each result; None if the store cannot be read."""
    last_reason = ""
    while True:
        found: FoundT | None = None
        try:
            found = await poll()
            last_reason = ""
        except StoreError as error:
            if error.reason != last_reason:
                fields = {"action": "look_failed", "reason": error.reason}
                log.warning("store poll failed; its metrics are missing: %s", error, extra=fields)
            last_reason = error.reason
        except Exception as error:
            log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
        notify_safely(found, report)
        await asyncio.sleep(every_s)
