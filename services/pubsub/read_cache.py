"""Keep what was read from the log for slow consumers until they have sent it: a turn sends only a part of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter

from services.pubsub.catchup import CatchUp
from services.pubsub.recent_entries import ENTRY_BYTES
from services.store.log import Entry

KEPT_BYTES = 16 << 20  # for all consumers; beyond it some must read again what they have not sent
IDLE_S = 1.0  # entries unused for so long are dropped
_place = attrgetter("place")


@dataclass(slots=True)
class _Kept:
    entries: list[Entry]
    octets: int
    used: float  # when last, in the loop's time
    round: int  # and in which round


class ReadCache:
    """At most one read for each slow consumer, or as much of it as there is room for."""

    def __init__(self) -> None:
        self.octets = 0
        self._round = 0
        self._kept: dict[CatchUp, _Kept] = {}  # least recently used first

    def after(self, consumer: CatchUp, now: float) -> list[Entry]:
        """Return the cached entries after the consumer's place; without any, drop the cache."""
        kept = self._kept.pop(consumer, None)
        if kept is None:
            return []
        left = kept.entries[bisect_right(kept.entries, consumer.place, key=_place) :]
        if left:
            kept.used, kept.round = now, self._round
            self._kept[consumer] = kept
        else:
            self.octets -= kept.octets
        return left

    def keep(self, consumer: CatchUp, entries: list[Entry], now: float) -> None:
        """Cache entries that were just read, as far as there is room; now: after the read.

        Entries of other consumers are not evicted: if each had only a few, all of them would read in vain.
        """
        self.drop(consumer)
        kept = _Kept([], 0, now, self._round)
        for entry in entries:
            octets = len(entry.block) + ENTRY_BYTES
            if self.octets + kept.octets + octets > KEPT_BYTES and (self._kept or kept.entries):
                break  # the first entry of any size is kept: it may match very many subscriptions
            kept.entries.append(entry)
            kept.octets += octets
        if kept.entries:
            self._kept[consumer] = kept
            self.octets += kept.octets

    def drop(self, consumer: CatchUp) -> None:
        """Drop what is cached for a consumer."""
        if (kept := self._kept.pop(consumer, None)) is not None:
            self.octets -= kept.octets

    def next_round(self, now: float) -> None:
        """Begin a round of turns; drop entries that were not used for long."""
        self._round += 1
        while self._kept:
            consumer, kept = next(iter(self._kept.items()))
            if now - kept.used < IDLE_S or self._round - kept.round < 2:
                return  # a round may take longer than IDLE_S
            self.drop(consumer)
