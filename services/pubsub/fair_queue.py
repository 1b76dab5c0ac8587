"""Queue SENDs that wait for their copies: clients in turn, each client's own in order (pubsub.md 5.1).

A line with copies needs much more memory and time than one without, so waiting lines are processed few at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from services.store import Source, StoreError
from services.store.model import OutcomeUnknown, Published, Refusals

PART_COST = 512  # octets of memory of a waiting part in addition to its lines


@dataclass(slots=True)
class SendRun:
    """The SENDs of one client in one run; its parts are answered one by one."""

    source: Source
    origin: str
    done: Published
    unanswered: int  # lines
    refusals: Refusals = field(default_factory=list)

    def answered(self, first: int, count: int, error: StoreError | None) -> None:
        """Note the outcome of `count` lines from `first` on; report the run's outcome after the last."""
        self.unanswered -= count
        if isinstance(error, OutcomeUnknown):
            self.unanswered = -1  # the whole run has no outcome
            self.done(error)
        elif error is not None:
            self.refusals += [(index, error) for index in range(first, first + count)]
        if self.unanswered == 0:
            self.done(self.refusals)


@dataclass(frozen=True, slots=True)
class SendPart:
    """Consecutive lines of a run."""

    run: SendRun
    first: int
    count: int
    block: bytes

    def cut(self, lines: int) -> tuple[SendPart, SendPart | None]:
        """Return the first so many lines, and the rest."""
        if self.count <= lines:
            return self, None
        end = 0
        for _ in range(lines):
            end = self.block.index(b"\n", end) + 1
        rest = SendPart(self.run, self.first + lines, self.count - lines, self.block[end:])
        return SendPart(self.run, self.first, lines, self.block[:end]), rest


class FairQueue:
    """Waiting parts of all clients; true if there are any."""

    def __init__(self) -> None:
        self.lines = 0
        self.bytes = 0  # memory, roughly
        self._by_source: dict[Source, deque[SendPart]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_source)

    def has(self, source: Source) -> bool:
        """Return whether parts of this client wait."""
        return source in self._by_source

    def append(self, part: SendPart) -> None:
        """Add a part behind the client's others."""
        self._by_source.setdefault(part.run.source, deque()).append(part)
        self._count(part, 1)

    def put_back(self, parts: list[SendPart]) -> None:
        """Add parts before all that wait, in their order."""
        by_source: dict[Source, deque[SendPart]] = {}
        for part in parts:
            by_source.setdefault(part.run.source, deque()).append(part)
            self._count(part, 1)
        for source, waiting in self._by_source.items():
            by_source.setdefault(source, deque()).extend(waiting)
        self._by_source = by_source

    def take(self, lines: int) -> SendPart:
        """Remove at most so many lines of the client whose turn it is."""
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
        """Remove all parts."""
        everything = [part for parts in self._by_source.values() for part in parts]
        self._by_source.clear()
        self.lines = self.bytes = 0
        return everything

    def _count(self, part: SendPart, sign: int) -> None:
        self.lines += sign * part.count
        self.bytes += sign * (len(part.block) + PART_COST)
