"""Lines that wait for their copies to be made: each client in its turn, and each client's own in order (5.1).

A line with copies costs the store's side of the edge hundreds of octets and much more time than one without. So lines
wait as they came, and few at a time are taken apart.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from services.store import Source, StoreError
from services.store.model import OutcomeUnknown, Published, Refusals

PART_COST = 512  # octets that a waiting part takes beside its lines


@dataclass(slots=True)
class SendRun:
    """What one client sent in one go; its parts are answered one by one."""

    source: Source
    origin: str
    done: Published
    unanswered: int  # lines
    refusals: Refusals = field(default_factory=list)

    def answered(self, first: int, count: int, error: StoreError | None) -> None:
        """Lines `first` and so on have their outcome."""
        self.unanswered -= count
        if isinstance(error, OutcomeUnknown):
            self.unanswered = -1  # whatever the others say: the whole run has no answer
            self.done(error)
        elif error is not None:
            self.refusals += [(index, error) for index in range(first, first + count)]
        if self.unanswered == 0:
            self.done(self.refusals)


@dataclass(frozen=True, slots=True)
class SendPart:
    """Lines of a run."""

    run: SendRun
    first: int
    count: int
    block: bytes

    def cut(self, lines: int) -> tuple[SendPart, SendPart | None]:
        """The first so many lines, and the rest."""
        if self.count <= lines:
            return self, None
        end = 0
        for _ in range(lines):
            end = self.block.index(b"\n", end) + 1
        rest = SendPart(self.run, self.first + lines, self.count - lines, self.block[end:])
        return SendPart(self.run, self.first, lines, self.block[:end]), rest


class FairQueue:
    """What waits, of all clients. True if there is anything."""

    def __init__(self) -> None:
        self.lines = 0
        self.bytes = 0  # memory, roughly
        self._by_source: dict[Source, deque[SendPart]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_source)

    def has(self, source: Source) -> bool:
        return source in self._by_source

    def append(self, part: SendPart) -> None:
        self._by_source.setdefault(part.run.source, deque()).append(part)
        self._count(part, 1)

    def put_back(self, parts: list[SendPart]) -> None:
        """In their order, before all that waits."""
        by_source: dict[Source, deque[SendPart]] = {}
        for part in parts:
            by_source.setdefault(part.run.source, deque()).append(part)
            self._count(part, 1)
        for source, waiting in self._by_source.items():
            by_source.setdefault(source, deque()).extend(waiting)
        self._by_source = by_source

    def take(self, lines: int) -> SendPart:
        """At most so many lines of whoever's turn it is."""
        source, parts = next(iter(self._by_source.items()))
        whole = parts.popleft()
        self._count(whole, -1)
        part, rest = whole.cut(lines)
        if rest is not None:
            parts.appendleft(rest)
            self._count(rest, 1)
        del self._by_source[source]
        if parts:
            self._by_source[source] = parts  # behind all others
        return part

    def take_all(self) -> list[SendPart]:
        everything = [part for parts in self._by_source.values() for part in parts]
        self._by_source.clear()
        self.lines = self.bytes = 0
        return everything

    def _count(self, part: SendPart, sign: int) -> None:
        self.lines += sign * part.count
        self.bytes += sign * (len(part.block) + PART_COST)
