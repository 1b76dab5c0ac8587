"""How all queues stand, looked at again and again by one process for all: for metrics, and whoever else shows it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from services.store.errors import QueueUnreadable, StoreError
from services.store.log import Log, LogSpec
from services.store.looking import FAULT, FAULT_FIELDS, FoundT, hand_on
from services.store.queue_document import parse_leniently
from services.store.spec import LOG_DOMAIN

if TYPE_CHECKING:
    from services.store.store import Store

log = logging.getLogger(__name__)

LOOK_S = 15.0  # between two looks: scrapes are rarer than that, as a rule


@dataclass(frozen=True, slots=True)
class Standing:
    """One queue, as a look found it."""

    ready: int
    in_flight: int
    dead: int  # dead letters that there are
    died: int  # that there ever were, since the queue was made
    dead_overflowed: int  # dead letters that were dropped as there were too many
    octets: int
    oldest_age_s: float  # of the oldest message that is not settled; 0: there is none


Standings = Mapping[str, Standing]  # by the name of the queue


async def standings(store: Store) -> Standings:
    """Of all queues, but those of which not even the id can be read. Raises StoreError."""
    queues = []
    async for name, document in store.registry.documents():
        with contextlib.suppress(QueueUnreadable):
            queues.append(parse_leniently(name, document)[0])
    told = await store.stats_of(queues)
    return {name: _standing(figures) for name, figures in told.items()}


def _standing(figures: dict[str, Any]) -> Standing:
    return Standing(
        figures["ready"],
        figures["in_flight"],
        figures["dead_letters"],
        figures["dead"],
        figures["dead_overflowed"],
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
    while True:
        found: FoundT | None = None
        try:
            found = await look()
        except StoreError:
            pass
        except Exception as error:  # a fault of ours ends no look
            log.critical(FAULT, error, exc_info=True, extra=FAULT_FIELDS)
        hand_on(found, tell)
        await asyncio.sleep(every_s)
