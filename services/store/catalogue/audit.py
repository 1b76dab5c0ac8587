"""Write and read the audit log of the console: changes and refusals, in two capped streams of the catalogue.

Refused and frequent actions have their own stream, so that users with few rights cannot displace the records of
others. Both are read as one log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from services.store.catalogue.registry import Registry
from services.store.model.dead_letter import parse_id
from services.store.model.names import decode_name, encode_name

KEPT = 10_000  # lines of each stream, approximately
MOST_OCTETS = 1_000  # of a field; longer ones are cut
MOST_PAGE = 1_000
CUT = "..."
SCAN_LIMIT = 500  # lines compared with a filter for one page, which bounds the latency of other requests
LAST = (1 << 64) - 1  # the highest second part of an id
MINOR = "m"  # suffix of ids in the second stream, whose lines sort before those of the first with the same id
PLACE = re.compile(rf"([0-9]{{1,19}}-[0-9]{{1,19}})({MINOR}?)")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A record of the audit log; each field is text of any octets (surrogateescape)."""

    who: str
    role: str
    address: str  # of the client
    action: str  # a stable label
    target: str
    outcome: str  # 'done', or the label of the refusal
    detail: str = ""
    auth: str = ""  # the authentication method: a token and a proxy may use the same name


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A stored entry with its id and time."""

    id: str  # '<at_ms>-<number>', with the suffix MINOR in the second stream
    at_ms: int  # by the store's clock
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Lines, newest first; with a filter, a page may be short or empty although more lines follow."""

    lines: list[AuditLine]
    next: str | None  # `before` of the next page; None: this is the last page


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of lines: all conditions must hold; texts are substrings, compared without case."""

    who: str = ""
    action: str = ""
    target: str = ""
    from_ms: int = 0  # by the store's clock; 0: no bound
    until_ms: int = 0  # exclusive; 0: no bound

    @property
    def is_of_texts(self) -> bool:
        """Return True if the filter has conditions on texts."""
        return bool(self.who or self.action or self.target)

    def fits(self, entry: AuditEntry) -> bool:
        """Return whether the texts of an entry match."""
        return (
            self.who.lower() in entry.who.lower()
            and self.action.lower() in entry.action.lower()
            and self.target.lower() in entry.target.lower()
        )


EVERY = AuditFilter()
NAMES = tuple(field.name for field in fields(AuditEntry))


class AuditLog:
    """The audit log of a store. Every method raises StoreUnavailable."""

    def __init__(self, registry: Registry, kept: int = KEPT) -> None:
        self._registry = registry
        self._kept = kept

    async def append(self, entry: AuditEntry, *, minor: bool = False) -> str:
        """Append an entry and return its id; after a lost answer it is written again, and may appear twice."""
        values = [part for name in NAMES for part in (name, _cut(getattr(entry, name)))]
        key = self._registry.keys.audit_minor if minor else self._registry.keys.audit
        written = await self._registry.link.call("XADD", key, "MAXLEN", "~", self._kept, "*", *values)
        return str(written.decode()) + (MINOR if minor else "")

    async def page(self, before: str = "", limit: int = 100, wanted: AuditFilter = EVERY) -> AuditPage:
        """Return the newest lines, or those before an id. Raises ValueError for an invalid id or limit (1 to 1,000).

        With a filter of texts, SCAN_LIMIT lines are compared; continue with the page's `next`.
        """
        if not 0 < limit <= MOST_PAGE:
            raise ValueError(f"a page has 1 to {MOST_PAGE} lines")
        if before and not is_place(before):
            raise ValueError(f"{before!r} is not the id of a line")
        scanned = SCAN_LIMIT if wanted.is_of_texts else limit
        found = await self._lines_before(before, scanned + 1, wanted)
        fit = [line for line in found[:scanned] if wanted.fits(line.entry)]
        if len(fit) > limit:
            return AuditPage(fit[:limit], fit[limit - 1].id)
        return AuditPage(fit, found[scanned - 1].id if len(found) > scanned else None)

    async def _lines_before(self, before: str, count: int, wanted: AuditFilter) -> list[AuditLine]:
        """Return at most `count` lines in the filter's period, newest first."""
        place, minor = before.removesuffix(MINOR), before.endswith(MINOR)
        first = f"({place}" if before else "+"
        # includes the minor line with the same id, which follows
        second = first if minor or not before else place
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
        return [_line(identifier, values, mark) for identifier, values in found]


def is_place(text: str) -> bool:
    """Return whether a text can be the id of a line; the server rejects ids before 0-0."""
    found = PLACE.fullmatch(text)
    return found is not None and found[1].strip("0-") != ""


def _cut(text: str) -> bytes:
    octets = encode_name(text)
    return octets if len(octets) <= MOST_OCTETS else octets[:MOST_OCTETS] + CUT.encode()


def _line(identifier: bytes, values: list[Any], mark: str) -> AuditLine:
    """Parse a line; unknown fields, of later versions, are ignored, and missing ones are empty."""
    found = dict(zip(map(decode_name, values[::2]), map(decode_name, values[1::2]), strict=True))
    entry = AuditEntry(*(found.get(name, "") for name in NAMES))
    return AuditLine(identifier.decode() + mark, parse_id(identifier.decode())[0], entry)
