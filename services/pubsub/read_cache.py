"""What was read of the log for those who are behind, kept until they have used it: a turn uses only a part of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import attrgetter

from services.pubsub.catchup import CatchUp
from services.pubsub.recent_entries import ENTRY_BYTES
from services.store.log import Entry

KEPT_BYTES = 16 << 20  # for all of them together; beyond it some read again what they have not used
IDLE_S = 1.0  # who had no room for so long reads again, too
_place = attrgetter("place")


@dataclass(slots=True)
class _Kept:
    entries: list[Entry]
    octets: int
    used: float  # when last, in the loop's time
    round: int  # and in which round


class ReadCache:
    """Of each who is behind at most one reading, or the part of it that there was room for."""

    def __init__(self) -> None:
        self.octets = 0
        self._round = 0
        self._kept: dict[CatchUp, _Kept] = {}  # who used it longest ago comes first

    def after(self, whose: CatchUp, now: float) -> list[Entry]:
        """What is kept of the entries behind its place; none: it is to be read, and what was kept is let go."""
        kept = self._kept.pop(whose, None)
        if kept is None:
            return []
        left = kept.entries[bisect_right(kept.entries, whose.place, key=_place) :]
        if left:
            kept.used, kept.round = now, self._round
            self._kept[whose] = kept
        else:
            self.octets -= kept.octets
        return left

    def keep(self, whose: CatchUp, entries: list[Entry], now: float) -> None:
        """now: after it was read.

        Nobody else's is thrown away for it: were all to have a little, nobody would use what he reads.
        """
        self.drop(whose)
        kept = _Kept([], 0, now, self._round)
        for entry in entries:
            octets = len(entry.block) + ENTRY_BYTES
            if self.octets + kept.octets + octets > KEPT_BYTES and (self._kept or kept.entries):
                break  # one entry is kept however long it is: it may match very many subscriptions
            kept.entries.append(entry)
            kept.octets += octets
        if kept.entries:
            self._kept[whose] = kept
            self.octets += kept.octets

    def drop(self, whose: CatchUp) -> None:
        """It is not behind any more."""
        if (kept := self._kept.pop(whose, None)) is not None:
            self.octets -= kept.octets

    def next_round(self, now: float) -> None:
        """Everybody has had a look: what was long of no use to its owner makes room for others'."""
        self._round += 1
        while self._kept:
            whose, kept = next(iter(self._kept.items()))
            if now - kept.used < IDLE_S or self._round - kept.round < 2:
                return  # by the clock alone, rounds longer than that would read everything twice
            self.drop(whose)
