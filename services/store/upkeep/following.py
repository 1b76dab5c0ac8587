"""The samples of a domain (docs/store.md, Samples), as they come, and back from where somebody began.

Nothing is written, and nothing waits: who follows asks again when he likes.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.store.model.dead_letter import parse_id
from services.store.model.keys import DomainKeys
from services.store.model.names import decode_name
from services.store.redis.link import Link

PAGE = 1_000  # samples in one call, some 250 KB
MOST_BACK = 100_000  # samples that whoever begins looks back at


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample: `fields` as they stand there, all text, of any octets (surrogateescape)."""

    id: str
    at_ms: int  # by the store's clock: what it tells is of the time before that
    fields: dict[str, str]


class Following:
    """One domain's, from where it begins: what comes after that, and back from there.

    Every method raises StoreUnavailable, and then goes on where it was.
    """

    def __init__(self, link: Link, domain: str, back_ms: int, most_back: int = MOST_BACK) -> None:
        """back_ms: how far it looks back from the time when it begins; most_back: and at how many samples."""
        self.place = ""  # what it has read; '': it has not begun
        self._link = link
        self._key = DomainKeys(domain).samples
        self._back_ms = back_ms
        self._left = most_back
        self._before = ""  # what is in front of this was not read
        self._floor = ""

    async def next(self, count: int = PAGE) -> list[Sampled]:
        """What came behind `place`, the oldest first, at most so many; [] when there are no more for now."""
        if not self.place:
            await self._begin()
        found = await self._link.call("XRANGE", self._key, f"({self.place}", "+", "COUNT", count)
        self.place = found[-1][0].decode() if found else await self._end()
        return [_sampled(*one) for one in found]

    async def earlier(self, count: int = PAGE) -> list[Sampled]:
        """What was there when it began, the newest first, at most so many; fewer when these were all."""
        if not self.place:
            await self._begin()
        count = min(count, self._left)
        if not count:
            return []
        found = await self._link.call("XREVRANGE", self._key, self._before, self._floor, "COUNT", count)
        if found:
            self._before = f"({found[-1][0].decode()}"
        self._left -= len(found)
        return [_sampled(*one) for one in found]

    async def _begin(self) -> None:
        floor = f"{max(0, await self._link.now_ms() - self._back_ms)}-0"
        place = await self._last() or "0-0"
        self.place, self._before, self._floor = place, place, floor

    async def _end(self) -> str:
        """Where it goes on when nothing came: the data went back in time, and so did the clock, or it is as it was."""
        last = await self._last()
        return last if last and parse_id(last) < parse_id(self.place) else self.place

    async def _last(self) -> str:
        """The id of the newest one, '' if there is none."""
        found = await self._link.call("XREVRANGE", self._key, "+", "-", "COUNT", 1)
        return str(found[0][0].decode()) if found else ""


def _sampled(identifier: bytes, told: list[bytes]) -> Sampled:
    fields = {decode_name(told[i]): decode_name(told[i + 1]) for i in range(0, len(told), 2)}
    text = identifier.decode()
    return Sampled(text, parse_id(text)[0], fields)
