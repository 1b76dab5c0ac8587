"""The audit log: who changed what by way of the console, and who was not let, in two capped streams of the catalogue's.

What was refused, and what happens all the time, has a stream of its own: so nobody who may do little can push out what
others did. They are read as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from services.store.catalogue.reading import parse_id
from services.store.catalogue.registry import Registry
from services.store.model.names import decode_name, encode_name

KEPT = 10_000  # lines of each of the two, and some more for a while
MOST_OCTETS = 1_000  # of a field; of a longer one this is its beginning
MOST_PAGE = 1_000
CUT = "..."
LOOK = 500  # lines that are compared with a filter for one page: who waits for the console should not feel it
LAST = (1 << 64) - 1  # the highest second part of an id
MINOR = "m"  # ends the id of a line of the second stream: of two of the same id, the first one's is the newer
PLACE = re.compile(rf"([0-9]{{1,19}}-[0-9]{{1,19}})({MINOR}?)")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line. Every field is text, of any octets (surrogateescape)."""

    who: str
    role: str  # what he may do
    address: str  # where he came from
    action: str  # a stable label
    target: str  # of what
    outcome: str  # 'done', or the label of what stood against it
    detail: str = ""
    auth: str = ""  # how we know who he is: the same name may be a token's and a proxy's


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An entry as it stands there."""

    id: str  # '<at_ms>-<number>', and MINOR
    at_ms: int  # by the store's clock
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Lines, the newest first; with a filter they may be few, even none, though there are more behind."""

    lines: list[AuditLine]
    next: str | None  # what the next page is `before`; None: there is none


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which lines are meant: all that is said has to hold. Of texts, a part is enough, in capitals or not."""

    who: str = ""
    action: str = ""
    target: str = ""
    from_ms: int = 0  # of the store's clock, 0: whenever
    until_ms: int = 0  # before that; 0: whenever

    @property
    def is_of_texts(self) -> bool:
        return bool(self.who or self.action or self.target)

    def fits(self, entry: AuditEntry) -> bool:
        """Whether its texts do."""
        return (
            self.who.lower() in entry.who.lower()
            and self.action.lower() in entry.action.lower()
            and self.target.lower() in entry.target.lower()
        )


EVERY = AuditFilter()


NAMES = tuple(field.name for field in fields(AuditEntry))


class AuditLog:
    """Every method raises StoreUnavailable."""

    def __init__(self, registry: Registry, kept: int = KEPT) -> None:
        self._registry = registry
        self._kept = kept

    async def append(self, entry: AuditEntry, *, minor: bool = False) -> str:
        """Its id. Where the answer to it was lost it is written again, and may stand there twice."""
        told = [part for name in NAMES for part in (name, _cut(getattr(entry, name)))]
        key = self._registry.keys.audit_minor if minor else self._registry.keys.audit
        written = await self._registry.link.call("XADD", key, "MAXLEN", "~", self._kept, "*", *told)
        return str(written.decode()) + (MINOR if minor else "")

    async def page(self, before: str = "", limit: int = 100, wanted: AuditFilter = EVERY) -> AuditPage:
        """The newest, or those before this id. Raises ValueError for what is none, or a limit beyond 1,000.

        With a filter of texts LOOK lines are looked at: whoever wants more goes on with `next`, which is behind them.
        """
        if not 0 < limit <= MOST_PAGE:
            raise ValueError(f"a page has 1 to {MOST_PAGE} lines")
        if before and not is_place(before):
            raise ValueError(f"{before!r} is the id of no line")
        looked = LOOK if wanted.is_of_texts else limit
        found = await self._behind(before, looked + 1, wanted)
        fit = [line for line in found[:looked] if wanted.fits(line.entry)]
        if len(fit) > limit:
            return AuditPage(fit[:limit], fit[limit - 1].id)
        return AuditPage(fit, found[looked - 1].id if len(found) > looked else None)

    async def _behind(self, before: str, count: int, wanted: AuditFilter) -> list[AuditLine]:
        """So many lines at most, of the time that is meant, whatever else they say."""
        place, minor = before.removesuffix(MINOR), before.endswith(MINOR)
        first = f"({place}" if before else "+"
        second = first if minor or not before else place  # that one's line of the same id comes behind
        if wanted.until_ms and (not before or parse_id(place)[0] >= wanted.until_ms):
            first = second = f"{wanted.until_ms - 1}-{LAST}"
        keys, start = self._registry.keys, f"{wanted.from_ms}-0" if wanted.from_ms else "-"
        found = await self._read(keys.audit, first, start, count, "")
        found += await self._read(keys.audit_minor, second, start, count, MINOR)
        found.sort(
            key=lambda line: (parse_id(line.id.removesuffix(MINOR)), not line.id.endswith(MINOR)),
            reverse=True,
        )
        return found[:count]

    async def _read(self, key: str, end: str, start: str, count: int, mark: str) -> list[AuditLine]:
        found = await self._registry.link.call("XREVRANGE", key, end, start, "COUNT", count)
        return [_line(identifier, told, mark) for identifier, told in found]


def is_place(text: str) -> bool:
    """Whether it may be the id of a line: the server knows nothing before 0-0."""
    found = PLACE.fullmatch(text)
    return found is not None and found[1].strip("0-") != ""


def _cut(text: str) -> bytes:
    octets = encode_name(text)
    return octets if len(octets) <= MOST_OCTETS else octets[:MOST_OCTETS] + CUT.encode()


def _line(identifier: bytes, told: list[Any], mark: str) -> AuditLine:
    """Fields that are unknown are of later versions; those that are not there are empty."""
    found = {decode_name(told[i]): decode_name(told[i + 1]) for i in range(0, len(told), 2)}
    entry = AuditEntry(*(found.get(name, "") for name in NAMES))
    return AuditLine(identifier.decode() + mark, parse_id(identifier.decode())[0], entry)
