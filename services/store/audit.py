"""The audit log: who changed what by way of the console, and who was not let, in a capped stream of the catalogue's."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from services.store.reading import parse_id
from services.store.registry import Registry, decode_name, encode_name

KEPT = 10_000  # lines, and some more for a while
MOST_OCTETS = 1_000  # of a field; of a longer one this is its beginning
MOST_PAGE = 1_000
CUT = "..."
PLACE = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. Every field is text, of any octets (surrogateescape)."""

    who: str
    role: str  # what he may do
    address: str  # where he came from
    action: str  # a stable label
    target: str  # of what
    outcome: str  # 'done', or the label of what stood against it
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it stands there."""

    id: str  # '<at_ms>-<number>'
    at_ms: int  # by the store's clock
    entry: Entry


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Lines, the newest first."""

    lines: list[Line]
    next: str | None  # what the next page is `before`; None: there is none


NAMES = tuple(field.name for field in fields(Entry))


class AuditLog:
    """Every method raises StoreUnavailable."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def append(self, entry: Entry) -> str:
        """Its id. Where the answer to it was lost it is written again, and may stand there twice."""
        told = [part for name in NAMES for part in (name, _cut(getattr(entry, name)))]
        key = self._registry.keys.audit
        written = await self._registry.link.call("XADD", key, "MAXLEN", "~", KEPT, "*", *told)
        return str(written.decode())

    async def page(self, before: str = "", limit: int = 100) -> AuditPage:
        """The newest, or those before this id. Raises ValueError for what is none, or a limit beyond 1,000."""
        if not 0 < limit <= MOST_PAGE:
            raise ValueError(f"a page has 1 to {MOST_PAGE} lines")
        if before and not is_place(before):
            raise ValueError(f"{before!r} is the id of no line")
        end = f"({before}" if before else "+"
        key = self._registry.keys.audit
        found = await self._registry.link.call("XREVRANGE", key, end, "-", "COUNT", limit + 1)
        lines = [_line(*one) for one in found[:limit]]
        return AuditPage(lines, lines[-1].id if len(found) > limit else None)


def is_place(text: str) -> bool:
    """Whether it may be the id of a line: the server knows nothing before 0-0."""
    return PLACE.fullmatch(text) is not None and text.strip("0-") != ""


def _cut(text: str) -> bytes:
    octets = encode_name(text)
    return octets if len(octets) <= MOST_OCTETS else octets[:MOST_OCTETS] + CUT.encode()


def _line(identifier: bytes, told: list[Any]) -> Line:
    """Fields that are unknown are of later versions; those that are not there are empty."""
    found = {decode_name(told[i]): decode_name(told[i + 1]) for i in range(0, len(told), 2)}
    entry = Entry(*(found.get(name, "") for name in NAMES))
    return Line(identifier.decode(), parse_id(identifier.decode())[0], entry)
