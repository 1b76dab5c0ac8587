"""How all queues stand, looked at again and again by one process for all: for metrics, and whoever else shows it."""

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

POLL_INTERVAL_S = 15.0  # between two looks: scrapes are rarer than that, as a rule


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue, as a look found it."""

    ready: int
    in_flight: int
    dead: int  # dead letters that there are
    died: int  # that there ever were, since the queue was made
    dead_overflowed: int  # dead letters that were dropped as there were too many
    redriven: int  # dead letters that were brought back; this and what follows since the queue was made
    purged: int
    emptied: int  # messages that were ready, and that somebody removed
    expired: int
    duplicates: int
    fenced: int
    octets: int
    oldest_age_s: float  # of the oldest message that is not settled; 0: there is none
    used: float  # part of its bounds, as `used_part` reckons it


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Of all queues that there are, by name."""

    queues: Mapping[str, QueueStats]
    unreadable: Collection[str]  # damaged ones, and those of a shard that is away


async def read_store_stats(registry: Registry, listing: Listing) -> StoreStats:
    """Raises StoreError."""
    queues, unread = [], set[str]()
    async for name, document in registry.documents():
        try:
            queues.append(parse_leniently(name, document)[0])
        except QueueUnreadable as error:  # not even its id can be read
            unread.add(name)
            listing.complain(name, str(error))
    looked = await listing.stats_of(queues)
    specs = {queue.name: queue.spec for queue in queues}
    read = {name: _queue_stats(figures, specs[name]) for name, figures in looked.stats.items()}
    return StoreStats(read, unread | looked.errors.keys())


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
    """Of `maxLength` or `maxBytes`, whichever is nearer; from 1 on whoever puts something in is refused.

    0 where there are none, or the oldest make way: such a queue is meant to be full.
    """
    if spec.overflow is Overflow.DEAD_LETTER_OLDEST:
        return 0.0
    bounds = ((messages, spec.max_length), (octets, spec.max_bytes))
    return max((there / most for there, most in bounds if most), default=0.0)


async def copies_lost(domains: Domains) -> int:
    """By links, since the text service's log began; 0 where there is none. Raises StoreError."""
    figures = await Log(domains.get(LOG_DOMAIN), LogSpec()).figures()
    return int(figures.get("copies_lost", 0))


async def poll_store(
    look: Callable[[], Awaitable[FoundT]], tell: Callable[[FoundT | None], None], every_s: float
) -> None:
    """Until it is cancelled. tell: is given what was found, None where the store cannot be asked."""
    trouble = ""
    while True:
        found: FoundT | None = None
        try:
            found = await look()
            trouble = ""
        except StoreError as error:
            if error.reason != trouble:
                fields = {"action": "look_failed", "reason": error.reason}
                log.warning(
                    "a look at the store failed, and what it tells is not told: %s", error, extra=fields
                )
            trouble = error.reason
        except Exception as error:  # a fault of ours ends no look
            log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
        notify_safely(found, tell)
        await asyncio.sleep(every_s)
