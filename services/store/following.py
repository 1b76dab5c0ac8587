"""The samples of a domain (docs/store.md, Samples), read from some time back on and then as they come.

Nothing is written, and nothing waits: who follows asks again when he likes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from services.store.keys import DomainKeys
from services.store.link import Link
from services.store.reading import parse_id
from services.store.registry import decode_name

PAGE = 1_000  # samples in one call, some 250 KB
MOST_BACK = 100_000  # samples that whoever begins looks back at, more or less


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample: `fields` as they stand there, all text, of any octets (surrogateescape)."""

    id: str
    at_ms: int  # by the store's clock: what it tells is of the time before that
    fields: dict[str, str]


class Following:
    """One domain's. Every method raises StoreUnavailable, and then goes on where it was."""

    def __init__(self, link: Link, domain: str, back_ms: int, most_back: int = MOST_BACK) -> None:
        """back_ms: how far it looks back when it begins; most_back: and at how many samples, more or less."""
        self.place = ""  # what it has read; '': it has not begun
        self._link = link
        self._key = DomainKeys(domain).samples
        self._back_ms = back_ms
        self._most_back = most_back

    async def next(self, count: int = PAGE) -> list[Sampled]:
        """The samples behind `place`, at most so many; [] when there are no more for now."""
        if not self.place:
            self.place = await self._beginning()
        found = await self._link.call("XRANGE", self._key, f"({self.place}", "+", "COUNT", count)
        self.place = found[-1][0].decode() if found else await self._end()
        return [_sampled(*one) for one in found]

    async def pages(self, count: int = PAGE) -> AsyncIterator[list[Sampled]]:
        """All that there are for now."""
        while page := await self.next(count):
            yield page
            if len(page) < count:
                return

    async def _end(self) -> str:
        """Where it goes on when nothing came: the data went back in time, and so did the clock, or it is as it was."""
        last = await self._id("XREVRANGE", "+", "-")
        return last if last and parse_id(last) < parse_id(self.place) else self.place

    async def _beginning(self) -> str:
        """So far back as it may; where there are too many samples, as far as if all came at the same pace."""
        start = max(0, await self._link.now_ms() - self._back_ms)
        first, last = await self._id("XRANGE", "-", "+"), await self._id("XREVRANGE", "+", "-")
        number = int(await self._link.call("XLEN", self._key))
        if first and last and number > self._most_back:
            begin, end = parse_id(first)[0], parse_id(last)[0]
            start = max(start, end - (end - begin) * self._most_back // number)
        return f"{start}-0"

    async def _id(self, command: str, start: str, end: str) -> str:
        """Of the entry at this end, '' if there is none."""
        found = await self._link.call(command, self._key, start, end, "COUNT", 1)
        return str(found[0][0].decode()) if found else ""


def _sampled(identifier: bytes, told: list[bytes]) -> Sampled:
    fields = {decode_name(told[i]): decode_name(told[i + 1]) for i in range(0, len(told), 2)}
    text = identifier.decode()
    return Sampled(text, parse_id(text)[0], fields)
