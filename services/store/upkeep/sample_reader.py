"""Read the samples of a domain (docs/store.md, Samples): new ones, and backwards from the start."""

from __future__ import annotations

from dataclasses import dataclass

from services.store.model.dead_letter import parse_id
from services.store.model.keys import DomainKeys
from services.store.model.names import decode_name
from services.store.redis.link import Link

PAGE = 1_000  # samples per call, some 250 KB
MOST_BACK = 100_000  # samples to read backwards


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample in the store. `fields` are text of any octets (surrogateescape)."""

    id: str
    at_ms: int  # end of its interval, by the store's clock
    fields: dict[str, str]


class SampleReader:
    """A reader of one domain's samples. It starts at the newest one and reads in both directions.

    Every method raises StoreUnavailable; the next call goes on at the same place.
    """

    def __init__(self, link: Link, domain: str, back_ms: int, most_back: int = MOST_BACK) -> None:
        """Read backwards for `back_ms` from the start, and `most_back` samples at most."""
        self.place = ""  # id of the newest sample read; '': not started
        self._link = link
        self._key = DomainKeys(domain).samples
        self._back_ms = back_ms
        self._left = most_back
        self._before = ""  # samples before this one were not read
        self._floor = ""

    async def next(self, count: int = PAGE) -> list[StoredSample]:
        """Return up to `count` samples after `place`, the oldest first; [] without new ones."""
        if not self.place:
            await self._begin()
        found = await self._link.call("XRANGE", self._key, f"({self.place}", "+", "COUNT", count)
        self.place = found[-1][0].decode() if found else await self._end()
        return [_sample(*one) for one in found]

    async def earlier(self, count: int = PAGE) -> list[StoredSample]:
        """Return up to `count` samples before the start, the newest first; fewer at the end."""
        if not self.place:
            await self._begin()
        count = min(count, self._left)
        if not count:
            return []
        found = await self._link.call("XREVRANGE", self._key, self._before, self._floor, "COUNT", count)
        if found:
            self._before = f"({found[-1][0].decode()}"
        self._left -= len(found)
        return [_sample(*one) for one in found]

    async def _begin(self) -> None:
        floor = f"{max(0, await self._link.now_ms() - self._back_ms)}-0"
        place = await self._last() or "0-0"
        self.place, self._before, self._floor = place, place, floor

    async def _end(self) -> str:
        """Return the place to go on from when nothing new came; an earlier one if the store lost samples."""
        last = await self._last()
        return last if last and parse_id(last) < parse_id(self.place) else self.place

    async def _last(self) -> str:
        """Return the id of the newest sample, '' without samples."""
        found = await self._link.call("XREVRANGE", self._key, "+", "-", "COUNT", 1)
        return str(found[0][0].decode()) if found else ""


def _sample(identifier: bytes, pairs: list[bytes]) -> StoredSample:
    fields = {decode_name(pairs[i]): decode_name(pairs[i + 1]) for i in range(0, len(pairs), 2)}
    text = identifier.decode()
    return StoredSample(text, parse_id(text)[0], fields)
