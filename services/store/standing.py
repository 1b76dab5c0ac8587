"""How all queues stand, looked at again and again by one process for all: for metrics, and whoever else shows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from services.store.errors import StoreError, StoreFault
from services.store.log import Log, LogSpec
from services.store.spec import LOG_DOMAIN

if TYPE_CHECKING:
    from services.store.store import Store

log = logging.getLogger(__name__)

FoundT = TypeVar("FoundT")

LOOK_S = 15.0  # between two looks: scrapes are rarer than that, as a rule


@dataclass(frozen=True, slots=True)
class Standing:
    """One queue, as a look found it."""

    ready: int
    in_flight: int
    dead: int  # dead letters that there are
    died: int  # that there ever were, since the queue was made
    dead_overflowed: int  # dead letters that were dropped as there were too many
    redriven: int  # dead letters that were brought back; this and what follows since the queue was made
    purged: int
    expired: int
    duplicates: int
    fenced: int
    octets: int
    oldest_age_s: float  # of the oldest message that is not settled; 0: there is none


@dataclass(frozen=True, slots=True)
class Standings:
    """Of all queues that there are, by name."""

    read: Mapping[str, Standing]
    unread: Collection[str]  # damaged ones, and those of a shard that is away


async def standings(store: Store) -> Standings:
    """Raises StoreError."""
    queues, unread = [], set[str]()
    async for name, document in store.registry.documents():
        try:
            queues.append(store.registry.parse_leniently(name, document)[0])
        except StoreFault:  # not even its id can be read
            unread.add(name)
    looked = await store.stats_of(queues)
    read = {name: _standing(figures) for name, figures in looked.told.items()}
    return Standings(read, unread | looked.unread.keys())


def _standing(figures: dict[str, Any]) -> Standing:
    return Standing(
        figures["ready"],
        figures["in_flight"],
        figures["dead_letters"],
        figures["dead"],
        figures["dead_overflowed"],
        figures["redriven"],
        figures["purged"],
        figures["expired"],
        figures["duplicates"],
        figures["fenced"],
        figures["bytes"],
        figures["oldest_age_ms"] / 1000,
    )


async def copies_lost(store: Store) -> int:
    """By links, since the text service's log began; 0 where there is none. Raises StoreError."""
    figures = await Log(store.look_at(LOG_DOMAIN), LogSpec()).figures()
    return int(figures.get("copies_lost", 0))


async def keep_looking(
    look: Callable[[], Awaitable[FoundT]], tell: Callable[[FoundT | None], None], every_s: float
) -> None:
    """Until it is cancelled. tell: is given what was found, None where the store cannot be asked."""
    trouble = ""
    while True:
        try:
            tell(await look())
            trouble = ""
        except StoreError as error:
            if error.reason != trouble:
                fields = {"action": "look_failed", "reason": error.reason}
                log.warning(
                    "a look at the store failed, and what it tells is not told: %s", error, extra=fields
                )
            trouble = error.reason
            tell(None)
        except Exception as error:  # a fault of ours ends no look
            log.critical(
                "a look at the store failed: %r", error, exc_info=True, extra={"action": "look_fault"}
            )
            tell(None)
        await asyncio.sleep(every_s)
